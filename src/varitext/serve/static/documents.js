"use strict";
// A text: its topics with their uncertainty, the words that moved it there, similar documents and words.

import { ask, byId, element, onCtrlEnter, percent, plural, show, status, waiting } from "./asking.js";
import * as map from "./map.js";

const RESULTS = ["posterior", "moved", "alike"];
const SHOWN_WORDS = 12;
const FIRST_TOPICS = 15;
const PAUSE = 1000; // milliseconds, until it is asked again whether the documents are read
let address; // of what is asked of the model chosen
let model;
let explained = null;
let pressed = null; // the topic whose words are shown; null for all together
let round = 0; // of questions: a late answer to an earlier one is not shown

export function prepare() {
  byId("text-form").addEventListener("submit", (event) => {
    event.preventDefault();
    look();
  });
  onCtrlEnter(byId("text-form"));
  byId("text-example").addEventListener("click", example);
  byId("word-form").addEventListener("submit", (event) => {
    event.preventDefault();
    similarWords(byId("word").value.trim());
  });
  map.prepare();
}

export async function open(chosen, addressOf) {
  [model, address, explained, pressed] = [chosen, addressOf, null, null];
  const mine = ++round;
  show("posterior", [], "The topics of your text will stand here.");
  show("moved", [], "Words of your text, the strongest first.");
  show("alike", [], NO_DOCUMENTS[model.documents] ?? "Documents that lie near your text.");
  show("near", [], "Words that are used alike. Type one, or choose one anywhere on this page.");
  map.open(model, addressOf);
  try {
    const { topics } = await ask(address("topics?words=8"));
    if (mine <= round && address === addressOf) drawTopics(topics);
  } catch (error) {
    status("text-status", error.message, true);
  }
}

const NO_DOCUMENTS = { none: "The documents that this model was fitted on are not on this machine." };

async function example() {
  try {
    byId("text").value = (await ask(address("example"))).text;
    await look();
  } catch (error) {
    status("text-status", error.message, true);
  }
}

async function look() {
  const text = byId("text").value;
  if (!text.trim()) {
    status("text-status", "There is no text yet: paste one, or try the example.", true);
    byId("text").focus();
    return;
  }
  const mine = ++round;
  const started = performance.now();
  waiting(RESULTS, true);
  similarDocuments(text, mine);
  map.place(text, address);
  try {
    const [found, perplexity] = await Promise.all([
      ask(address("explain"), { text, topics: 10, words: 100 }),
      ask(address("perplexity"), { texts: [text] }),
    ]);
    if (mine !== round) return;
    [explained, pressed] = [found, null];
    drawPosterior();
    drawMoved();
    const times = perplexity.unigram_per_document_perplexity / perplexity.per_document_perplexity;
    const surprise = `perplexity ${Math.round(perplexity.per_document_perplexity).toLocaleString("en")}, ${times.toFixed(1)} times better than word frequencies`;
    const took = Math.round(performance.now() - started);
    status("text-status", `${plural(found.known_words, "known word")}; ${surprise}. ${took} ms.`);
  } catch (error) {
    if (mine !== round) return;
    status("text-status", error.message, true);
    show("posterior", [], "Nothing to show for this text.");
    show("moved", [], "Nothing to show for this text.");
  } finally {
    if (mine === round) waiting(["posterior", "moved"], false);
  }
}

function drawPosterior() {
  const reach = Math.max(...explained.topics.map((topic) => Math.abs(topic.mean) + topic.std), 1e-9);
  show("posterior", explained.topics.map((topic, place) => posteriorRow(topic, place, reach)), "No topics.");
}

function posteriorRow(topic, place, reach) {
  const size = Math.abs(topic.mean);
  const style = {
    "--mean": size / reach,
    "--low": Math.max(0, size - topic.std) / reach,
    "--high": (size + topic.std) / reach,
  };
  const [first, ...rest] = topic.words;
  const said = `${size.toFixed(2)} ± ${topic.std.toFixed(2)}`;
  const gauge = element("span", { class: "gauge", role: "img", "aria-label": said, style },
    element("i"), topic.std > 0 ? element("u") : null, element("s"));
  const words = element("span", { class: "words", dir: "auto" }, element("b", {}, first), ` ${rest.join(" ")}`);
  const choose = () => {
    pressed = pressed === place ? null : place;
    for (const [row, button] of [...byId("posterior").querySelectorAll("button")].entries())
      button.setAttribute("aria-pressed", String(row === pressed));
    drawMoved();
  };
  return element("li", {}, element("button",
    { type: "button", title: `${said}: ${topic.words.join(", ")}`, "aria-pressed": "false", onclick: choose }, words, gauge));
}

function drawMoved() {
  const value = (word) => (pressed === null ? word.along : word.by_topic[pressed]);
  const words = [...explained.words].sort((a, b) => Math.abs(value(b)) - Math.abs(value(a))).slice(0, SHOWN_WORDS);
  const most = Math.max(...words.map((word) => Math.abs(value(word))), 1e-9);
  const left = explained.tried_words < explained.distinct_words ? ` The ${explained.tried_words} most telling of ${explained.distinct_words} words.` : "";
  byId("moved-note").textContent = pressed === null
    ? `Each word is left out in turn: how far is the text then from where it lies?${left}`
    : `Towards “${explained.topics[pressed].words.slice(0, 3).join(" ")}”, when each word is left out in turn.${left}`;
  show("moved", words.map((word) => {
    const away = value(word) < 0;
    const number = `${away ? "−" : "+"}${Math.abs(value(word)).toFixed(2)}`;
    return element("li", { class: away ? "away" : null, title: away ? "pulls away" : "pulls there" },
      element("span", { class: "bar", style: { "--share": Math.abs(value(word)) / most } }),
      element("span", {}, term(word.word), word.count > 1 ? element("span", { class: "times" }, ` × ${word.count}`) : null),
      element("span", { class: "value" }, number));
  }), "No words.");
}

async function similarDocuments(text, mine) {
  try {
    while (model.documents === "reading" && mine === round) {
      show("alike", [], "The documents of the corpus are still being read …");
      await new Promise((resume) => setTimeout(resume, PAUSE));
      const { models } = await ask("/api/models");
      model.documents = models.find((one) => one.id === model.id).documents;
    }
    if (mine !== round) return;
    if (model.documents === "none") return show("alike", [], NO_DOCUMENTS.none);
    const found = await ask(address("similar-documents"), { text, n: 5 });
    if (mine !== round) return;
    byId("alike-note").textContent = `Nearest of ${plural(found.among, "document")} by the cosine of their vectors.`;
    show("alike", found.similar.map((one) => element("li", {},
      element("span", { class: "value" }, one.similarity.toFixed(3)),
      element("span", { class: "label", dir: "auto" }, one.label ?? `document ${one.index + 1}`),
      element("p", { dir: "auto", title: one.text }, one.text))), "None.");
  } catch (error) {
    if (mine === round) show("alike", [], NO_DOCUMENTS[model.documents] ?? error.message);
  } finally {
    if (mine === round) waiting(["alike"], false);
  }
}

async function similarWords(word) {
  if (!word) return byId("word").focus();
  byId("word").value = word;
  waiting(["near"], true);
  try {
    const found = await ask(address(`similar-words?n=12&word=${encodeURIComponent(word)}`));
    show("near", found.similar.map((one) => element("li", {},
      element("span", { class: "bar", style: { "--share": Math.max(0, one.similarity) } }),
      term(one.word),
      element("span", { class: "value" }, one.similarity.toFixed(3)))), "None.");
  } catch (error) {
    show("near", [], error.message);
  } finally {
    waiting(["near"], false);
  }
}

function drawTopics(topics, pressedAll = false) {
  const most = Math.max(...topics.map((topic) => topic.share), 1e-9);
  const shown = pressedAll ? topics : topics.slice(0, FIRST_TOPICS);
  byId("more-topics").hidden = shown.length === topics.length;
  byId("more-topics").textContent = `Show all ${topics.length} topics`;
  byId("more-topics").onclick = () => drawTopics(topics, true);
  show("all-topics", shown.map((topic) => element("li", {},
    element("p", { class: "share" }, element("i", { style: { "--share": topic.share / most } }), percent(topic.share)),
    element("ol", { class: "words" }, ...bars(topic)))), "No topics.");
}

function bars(topic) {
  const most = Math.max(...topic.weights.map(Math.abs), 1e-9);
  return topic.words.map((word, place) => element("li", { title: `weight ${topic.weights[place].toFixed(2)}` },
    element("span", { class: "bar", style: { "--share": Math.max(0, topic.weights[place]) / most } }), term(word)));
}

function term(word) {
  const choose = () => {
    similarWords(word);
    byId("near").scrollIntoView({ block: "nearest", behavior: "smooth" });
  };
  return element("button", { type: "button", class: "term", title: "Similar words", dir: "auto", onclick: choose }, word);
}
