"use strict";
// A text: its topics, its influential words, similar documents and similar words.

import { ask, byId, element, onCtrlEnter, percent, plural, show, status, waiting } from "./asking.js";
import * as map from "./map.js";
import * as topics from "./topics.js";

const RESULTS = ["posterior", "moved", "alike"];
const SHOWN_WORDS = 12;
const LEAST = 0.01; // probability of a topic that is shown
const PAUSE = 1000; // milliseconds between two requests whether the documents are read
const NO_DOCUMENTS = { none: "The training documents of this model are not on this machine." };
let address; // makes the address of a route of the chosen model
let model;
let explained = null;
let pressed = null; // the topic whose words are shown; null for all together
let typed = false; // whether the user entered the text: it is not an example
let round = 0; // number of the request: late answers to earlier requests are not shown

export function prepare() {
  byId("text-form").addEventListener("submit", (event) => {
    event.preventDefault();
    look();
  });
  onCtrlEnter(byId("text-form"));
  byId("text").addEventListener("input", () => { typed = true; });
  byId("text-example").addEventListener("click", () => {
    typed = false;
    example();
  });
  byId("word-form").addEventListener("submit", (event) => {
    event.preventDefault();
    similarWords(byId("word").value.trim());
  });
  byId("near").addEventListener("word", (event) => {
    similarWords(event.detail);
    byId("near").scrollIntoView({ block: "nearest", behavior: "smooth" });
  });
  map.prepare();
  topics.prepare();
}

// Show another model: its topics and its map, and an example unless the user has entered a text.
export async function open(chosen, addressOf) {
  [model, address, explained, pressed] = [chosen, addressOf, null, null];
  round += 1;
  show("posterior", [], "Enter a text to see its topics.");
  show("moved", [], "The words that influence the topics of your text most.");
  show("alike", [], NO_DOCUMENTS[model.documents] ?? "Training documents similar to your text.");
  show("near", [], "Type a word, or select a word on this page.");
  byId("dimensions-card").hidden = true;
  map.open(model, addressOf);
  const current = () => address === addressOf;
  topics.open(addressOf, current);
  readDocuments(current).then((ready) => ready && topics.openShares(addressOf, current)).catch(() => {}); // the rest of the page works without them
  typed = typed && byId("text").value.trim() !== "";
  await (typed ? look() : example());
}

async function example() {
  const asked = address;
  try {
    const { text } = await ask(address("example"));
    if (asked !== address || typed) return; // the user has entered something meanwhile
    byId("text").value = text;
    await look();
  } catch (error) {
    status("text-status", error.message, true);
  }
}

async function look() {
  const text = byId("text").value;
  if (!text.trim()) {
    status("text-status", "Enter a text first, or try the example.", true);
    byId("text").focus();
    return;
  }
  const mine = ++round;
  const started = performance.now();
  waiting(RESULTS, true);
  similarDocuments(text, mine);
  map.place(text, address);
  try {
    const likelihood = ask(address("perplexity"), { texts: [text] });
    likelihood.catch(() => {}); // if both fail, the message is that of `explain`, whichever comes first
    const found = await ask(address("explain"), { text, topics: 8, words: 100 });
    const perplexity = await likelihood;
    if (mine !== round) return;
    [explained, pressed] = [found, null];
    drawTopicsOfText();
    drawDimensions();
    drawMoved();
    const rounded = (value) => Math.round(value).toLocaleString("en");
    const [figure, unigram] = [perplexity.per_document_perplexity, perplexity.unigram_per_document_perplexity].map(rounded);
    const took = Math.round(performance.now() - started);
    status("text-status", `${plural(found.known_words, "known word")}; perplexity ${figure} (unigram model: ${unigram}). ${took} ms.`);
  } catch (error) {
    if (mine !== round) return;
    status("text-status", error.message, true);
    show("posterior", [], "Nothing to show for this text.");
    show("moved", [], "Nothing to show for this text.");
    byId("dimensions-card").hidden = true;
  } finally {
    if (mine === round) waiting(["posterior", "moved"], false);
  }
}

function drawTopicsOfText() {
  const shown = explained.topics.filter((topic, place) => place === 0 || topic.probability >= LEAST);
  show("posterior", shown.map(topicRow), "No topics.");
}

function topicRow(topic, place) {
  const choose = () => {
    pressed = pressed === place ? null : place;
    for (const [row, button] of [...byId("posterior").querySelectorAll("button")].entries())
      button.setAttribute("aria-pressed", String(row === pressed));
    drawMoved();
  };
  return element("li", {}, element("button",
    { type: "button", title: topic.words.join(", "), "aria-pressed": "false", onclick: choose },
    element("span", { class: "words", dir: "auto" }, element("b", {}, topic.name)),
    element("span", { class: "probability" },
      element("span", { class: "track" }, element("i", { style: { "--share": topic.probability } })), percent(topic.probability))));
}

function drawDimensions() {
  const reach = Math.max(...explained.dimensions.map((one) => Math.abs(one.mean) + one.std), 1e-9);
  byId("dimensions-card").hidden = !explained.dimensions.length;
  show("dimensions", explained.dimensions.map((one) => dimensionRow(one, reach)), "");
}

function dimensionRow(dimension, reach) {
  const size = Math.abs(dimension.mean);
  const style = {
    "--mean": size / reach,
    "--low": Math.max(0, size - dimension.std) / reach,
    "--high": (size + dimension.std) / reach,
  };
  const said = `${size.toFixed(2)} ± ${dimension.std.toFixed(2)}`;
  const gauge = element("span", { class: "gauge", role: "img", "aria-label": said, style },
    element("i"), dimension.std > 0 ? element("u") : null, element("s"));
  const [first, ...rest] = dimension.words;
  return element("li", { class: "plain", title: `${said}: ${dimension.words.join(", ")}` },
    element("span", { class: "words", dir: "auto" }, element("b", {}, first), ` ${rest.join(" ")}`), gauge);
}

function drawMoved() {
  const value = (word) => (pressed === null ? word.along : word.by_topic[pressed]);
  const words = [...explained.words].sort((a, b) => Math.abs(value(b)) - Math.abs(value(a))).slice(0, SHOWN_WORDS);
  const most = Math.max(...words.map((word) => Math.abs(value(word))), 1e-9);
  const left = explained.tried_words < explained.distinct_words ? ` Shown: the ${explained.tried_words} most distinctive of ${explained.distinct_words} words.` : "";
  byId("moved-note").textContent = pressed === null
    ? `How far the vector of the text moves without the word.${left}`
    : `How much closer the word brings the text to “${explained.topics[pressed].name}” (cosine).${left}`;
  show("moved", words.map((word) => {
    const away = value(word) < 0;
    const number = `${away ? "−" : "+"}${Math.abs(value(word)).toFixed(2)}`;
    return element("li", { class: away ? "away" : null, title: away ? "moves the text away" : "moves the text closer" },
      element("span", { class: "bar", style: { "--share": Math.abs(value(word)) / most } }),
      element("span", {}, topics.term(word.word), word.count > 1 ? element("span", { class: "times" }, ` × ${word.count}`) : null),
      element("span", { class: "value" }, number));
  }), "No words.");
}

// Waits until the server has read the training documents; returns whether it has them.
async function readDocuments(current) {
  while (model.documents === "reading" && current()) {
    await new Promise((resume) => setTimeout(resume, PAUSE));
    const { models } = await ask("/api/models");
    model.documents = models.find((one) => one.id === model.id).documents;
  }
  return current() && model.documents === "ready";
}

async function similarDocuments(text, mine) {
  try {
    if (model.documents === "reading") show("alike", [], "Reading the training documents …");
    await readDocuments(() => mine === round);
    if (mine !== round) return;
    if (model.documents === "none") return show("alike", [], NO_DOCUMENTS.none);
    const found = await ask(address("similar-documents"), { text, n: 5 });
    if (mine !== round) return;
    byId("alike-note").textContent = `The nearest of ${plural(found.among, "training document")}, by the cosine of their vectors.`;
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
      topics.term(one.word),
      element("span", { class: "value" }, one.similarity.toFixed(3)))), "None.");
  } catch (error) {
    show("near", [], error.message);
  } finally {
    waiting(["near"], false);
  }
}
