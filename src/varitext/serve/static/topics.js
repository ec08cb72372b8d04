"use strict";
// The topics of the model: name, size, words and typical documents. Opening a topic highlights it on the map.

import { ask, byId, element, percent, plural, show } from "./asking.js";
import * as map from "./map.js";

const SHOWN_LABELS = 6;
const LONG = 12; // topics: of more, the first is opened only where there is room beside the map

let shares = {}; // of topics, by label and by date, once the documents are read

// Topics with the words in their names or among their own words stay.
export function prepare() {
  byId("all-topics").addEventListener("search", (event) => {
    for (const item of byId("all-topics").children) item.hidden = !item.textContent.toLowerCase().includes(event.detail);
  });
}

export async function open(address, current) {
  shares = {};
  byId("all-note").textContent = "";
  show("all-topics", [], "Loading …");
  try {
    const { topics, choice } = await ask(address("topics?words=12"));
    if (current()) draw(topics, choice);
  } catch (error) {
    if (current()) show("all-topics", [], error.message);
  }
}

function draw(topics, choice) {
  topics.sort((one, other) => other.documents - one.documents);
  const documents = topics.reduce((sum, topic) => sum + topic.documents, 0);
  byId("all-note").textContent = `${plural(topics.length, "topic")} in ${plural(documents, "document")}, largest first. `
    + `Number of topics: ${choice.how}.`;
  const largest = Math.max(...topics.map((topic) => topic.share), 1e-9);
  show("all-topics", topics.map((topic) => row(topic, largest)), "No topics.");
  map.colours((number, colour) => byId("all-topics").querySelector(`[data-topic="${number}"] .dot`)?.style.setProperty("background", colour));
  if (topics.length > 1 && topics.length <= LONG) byId("all-topics").querySelector("details").open = true;
}

function row(topic, largest) {
  const details = element("details", { "data-topic": topic.number, name: "topic" },
    element("summary", {},
      element("i", { class: "dot" }),
      element("span", { class: "title", dir: "auto" }, topic.name),
      element("span", { class: "share", title: plural(topic.documents, "document") },
        element("i", { style: { "--share": topic.share / largest } }), percent(topic.share))),
    element("p", { class: "note" }, facts(topic)),
    element("ol", { class: "words" }, ...bars(topic)),
    ...typical(topic),
    element("div", { class: "shares" }));
  details.addEventListener("toggle", () => {
    if (details.open) {
      map.highlight(topic.number);
      drawShares(details.querySelector(".shares"), topic.number);
    }
    else if (!byId("all-topics").querySelector("details[open]")) map.highlight(null);
  });
  return element("li", {}, details);
}

// Called once the training documents are read.
export async function openShares(address, current) {
  for (const by of ["label", "date"]) {
    const found = (await ask(address(`topic-shares?by=${by}`))).shares;
    if (!current()) return;
    shares[by] = byTopic(found);
  }
  const opened = byId("all-topics").querySelector("details[open]");
  if (opened) drawShares(opened.querySelector(".shares"), Number(opened.dataset.topic));
}

function byTopic(found) {
  const groups = new Map();
  for (const one of found) groups.set(one.topic, [...(groups.get(one.topic) ?? []), one]);
  return groups;
}

// Where the topic is most frequent, and when.
function drawShares(place, number) {
  const byLabel = [...(shares.label?.get(number) ?? [])].sort((one, other) => other.share - one.share).slice(0, SHOWN_LABELS);
  const byDate = shares.date?.get(number) ?? [];
  place.replaceChildren(...shareList(`By ${map.labelName()}`, byLabel), ...shareList("Over time", byDate));
}

function shareList(heading, found) {
  if (found.length < 2) return [];
  const most = Math.max(...found.map((one) => one.high), 1e-9);
  return [element("h3", {}, heading), element("ol", {}, ...found.map((one) => (one.of ? element("li",
    { title: `${one.documents} of ${plural(one.of, "document")}; 95 % interval ${percent(one.low)} to ${percent(one.high)}` },
    element("span", { class: "value", dir: "auto" }, one.value),
    element("span", { class: "gauge", style: { "--mean": one.share / most, "--low": one.low / most, "--high": one.high / most } },
      element("i"), element("u"), element("s")),
    element("span", { class: "note" }, percent(one.share)))
    : element("li", { title: "no documents" }, element("span", { class: "value note" }, one.value)))))];
}

function facts(topic) {
  const coherence = topic.coherence === null ? "" : `, coherence (NPMI) ${topic.coherence.toFixed(2)}`;
  const stability = topic.stability == null ? "" : `, stability ${topic.stability.toFixed(2)}`;
  return `Topic ${topic.number}: ${plural(topic.documents, "document")}, ${plural(topic.tokens, "word")}${coherence}${stability}`;
}

function bars(topic) {
  const most = Math.max(...topic.weights, 1e-9);
  return topic.words.map((word, place) => element("li", { title: `p(word | topic) ${topic.weights[place].toFixed(4)}` },
    element("span", { class: "bar", style: { "--share": topic.weights[place] / most } }), term(word)));
}

function typical(topic) {
  const texts = topic.typical.filter((one) => one.text);
  if (!texts.length) return [];
  return [element("h3", {}, "Typical documents"),
    ...texts.map((one) => element("p", { class: "typical", dir: "auto", title: one.text }, one.text))];
}

// A word; selecting it shows similar words.
export function term(word) {
  const choose = () => byId("near").dispatchEvent(new CustomEvent("word", { detail: word }));
  return element("button", { type: "button", class: "term", title: "Show similar words", dir: "auto", onclick: choose }, word);
}
