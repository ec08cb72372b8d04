"use strict";
// A question and candidates: the ranking, its uncertainty, and the attention on words.

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
    byId("attention-key").hidden = !shown.some((one) => one.attention_mean);
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
    candidate.known ? null : element("span", { class: "figure unknown" }, element("span", { class: "name" }, "no known word")));
  const from = indexed && candidate.id ? element("p", { class: "note", dir: "auto" }, candidate.id) : null;
  return element("li", {}, head, sentence(candidate), from);
}

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

function sentence(candidate) {
  const { words, attention_mean: mean, attention_std: std } = candidate;
  if (!mean) return element("p", { class: "sentence", dir: "auto" }, candidate.text);
  // On a log scale: 0 at an equal weight or less, 1 at eight times an equal weight.
  const strength = (weight) => Math.min(1, Math.max(0, Math.log2(Math.max(weight * mean.length, 1e-9)) / 3));
  const widest = Math.max(...std, 1e-9, 0.25 * Math.max(...mean, 1e-9));
  return element("p", { class: "sentence", dir: "auto" }, ...words.flatMap((word, place) => [
    element("span", {
      class: "word",
      title: `attention ${mean[place].toFixed(3)} ± ${std[place].toFixed(3)}, ${(mean[place] * mean.length).toFixed(1)} times an equal share`,
      style: { "--attention": strength(mean[place]), "--spread": std[place] / widest },
    }, word), " "]));
}
