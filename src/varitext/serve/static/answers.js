"use strict";
// A question and candidates: the ranking, its uncertainty, and the attention on words or the words that match.

import { ask, byId, element, onCtrlEnter, percent, plural, show, status, waiting } from "./asking.js";

const SHOWN = 20; // documents of a search

let address;
let round = 0;
let typed = false; // whether the user entered the question and candidates
let indexed = 0; // documents that are searched if there are no candidates

export function prepare() {
  byId("rank-form").addEventListener("submit", (event) => {
    event.preventDefault();
    rank();
  });
  onCtrlEnter(byId("rank-form"));
  byId("rank-form").addEventListener("input", () => { typed = true; });
  byId("rank-example").addEventListener("click", () => {
    typed = false;
    example();
  });
}

export function open(model, addressOf) {
  address = addressOf;
  indexed = model.indexed ?? 0;
  byId("candidates-label").textContent = indexed
    ? `Candidate answers, one per line; if empty, ${plural(indexed, "document")} are searched`
    : "Candidate answers, one per line";
  round += 1;
  show("ranking", [], "No ranking yet.");
  if (!typed) example();
}

async function example() {
  try {
    const { question, candidates } = await ask(address("example"));
    if (typed) return; // the user has entered something meanwhile
    byId("question").value = question;
    byId("candidates").value = candidates.join("\n");
    await rank();
  } catch (error) {
    status("rank-status", error.message, true);
  }
}

async function rank() {
  const question = byId("question").value.trim();
  const candidates = byId("candidates").value.split("\n").map((line) => line.trim()).filter(Boolean);
  if (!question || !(candidates.length || indexed)) {
    status("rank-status", question ? "Enter the candidates, one per line." : "Enter a question.", true);
    return byId(question ? "candidates" : "question").focus();
  }
  const mine = ++round;
  const started = performance.now();
  waiting(["ranking"], true);
  try {
    const given = candidates.length ? { candidates, ordered: byId("ordered").checked } : {};
    const ranking = await ask(address("rank"), { question, samples: 100, ...given });
    if (mine !== round) return;
    const shown = candidates.length ? ranking.candidates : ranking.candidates.slice(0, SHOWN);
    show("ranking", shown.map((one) => row(one, ranking.candidates.length)), "No candidates.");
    byId("attention-key").hidden = !shown.some((one) => focused(one.attention_mean));
    byId("match-key").hidden = !shown.some((one) => one.matches.length && !focused(one.attention_mean));
    showNone(ranking.probability_none);
    const took = Math.round(performance.now() - started);
    const sampled = ranking.n_samples > 1 ? `, ${plural(ranking.n_samples, "sample")}` : ""; // one sample: nothing is drawn
    status("rank-status", `${plural(ranking.candidates.length, "candidate")}${sampled}. ${took} ms.`);
  } catch (error) {
    if (mine !== round) return;
    status("rank-status", error.message, true);
    show("ranking", [], "Nothing was ranked.");
    showNone(null);
  } finally {
    if (mine === round) waiting(["ranking"], false);
  }
}

function row(candidate, of) {
  const head = element("div", { class: "head" },
    element("span", { class: "rank", "aria-label": `rank ${candidate.rank}` }, String(candidate.rank)),
    share("right", candidate.probability),
    share("best", candidate.probability_best),
    interval(candidate, of),
    remark(candidate.known ? null : "no known word"),
    remark(candidate.same_as === null ? null : `copy of candidate ${candidate.same_as + 1}: one probability for both`));
  const from = indexed && candidate.id ? element("p", { class: "note", dir: "auto" }, candidate.id) : null;
  return element("li", {}, head, sentence(candidate), from);
}

const remark = (text) => (text ? element("span", { class: "figure remark" }, element("span", { class: "name" }, text)) : null);

function showNone(probability) {
  const none = byId("none");
  none.hidden = probability === null;
  none.replaceChildren(...(none.hidden ? [] : [share("no answer is right", probability)]));
}

function share(name, value) {
  return element("span", { class: "figure" },
    element("span", { class: "name" }, `${name} `), element("b", {}, percent(value)),
    element("span", { class: "track" }, element("i", { style: { "--share": value } })));
}

// Ranks lie on a line from 1 to the last, each in the middle of its section.
function interval(candidate, of) {
  const [low, high] = candidate.rank_interval;
  const said = low === high ? `${low}` : `${low} to ${high}`;
  const style = { "--low": (low - 1) / of, "--high": high / of, "--at": (candidate.rank - 0.5) / of };
  return element("span", { class: "figure" },
    element("span", { class: "name" }, "ranks "), element("b", {}, said), element("span", { class: "name of" }, ` of ${of}`),
    element("span", { class: "ranks", role: "img", "aria-label": `rank interval (${percent(candidate.rank_interval_probability)}): ${said} of ${of}`, style }, element("i"), element("s")));
}

// A long candidate is shown with the passage that was read, in its text. Positions count characters, as Python does.
function sentence(candidate) {
  const characters = Array.from(candidate.text);
  const [begin, end] = candidate.window ?? [0, characters.length];
  const [before, read, after] = [[0, begin], [begin, end], [end]].map((span) => characters.slice(...span).join(""));
  const words = focused(candidate.attention_mean) ? attended(candidate) : matched(read, candidate.matches);
  return element("p", { class: "sentence", dir: "auto" }, unread(before), ...words, unread(after));
}

const unread = (text) => (text ? element("span", { class: "unread" }, text) : null);

// Attention explains something if the number of words that it is spread over, exp(entropy), is well below all.
const FOCUSED = 0.6;

function focused(mean) {
  if (!mean || mean.length < 2) return false;
  const entropy = mean.reduce((sum, one) => (one > 0 ? sum - one * Math.log(one) : sum), 0);
  return Math.exp(entropy) <= FOCUSED * mean.length;
}

function attended({ words, attention_mean: mean, attention_std: std }) {
  // On a log scale: 0 at an equal weight or less, 1 at eight times an equal weight.
  const strength = (weight) => Math.min(1, Math.max(0, Math.log2(Math.max(weight * mean.length, 1e-9)) / 3));
  const widest = Math.max(...std, 1e-9, 0.25 * Math.max(...mean, 1e-9));
  return words.flatMap((word, place) => [
    element("span", {
      class: "word",
      title: `attention ${mean[place].toFixed(3)} ± ${std[place].toFixed(3)}, ${(mean[place] * mean.length).toFixed(1)} times an equal share`,
      style: { "--attention": strength(mean[place]), "--spread": std[place] / widest },
    }, word), " "]);
}

function matched(text, matches) {
  const share = new Map(matches);
  return text.split(/([^\p{L}\p{N}]+)/u).map((part) => {
    const found = share.get(part.toLowerCase());
    return found === undefined ? part : element("b", { class: "match", title: `a word of the question: ${percent(found)} of the BM25 score` }, part);
  });
}
