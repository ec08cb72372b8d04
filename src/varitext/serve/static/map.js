"use strict";
// The map of the training documents: dots coloured by topic or label, with the names of topics among them. A ring marks
// the analysed text.

import { ask, byId, element, plural, status } from "./asking.js";

const SVG = "http://www.w3.org/2000/svg";
const SIZE = 1000; // of the picture, in its own units
const EDGE = 24;
const REACH = 40; // how near the pointer must be to a dot
const HUES = 20;
const PAUSE = 1000; // milliseconds between two requests for the map
const LETTER = 0.54; // width of a letter, of its size: names must not cover each other
const byFinger = matchMedia("(pointer: coarse)");
const narrow = matchMedia("(max-width: 760px)");
let shown = null; // columns, as the server sends them
let order = []; // documents in the order of the arrow keys: those nearest to the text first
let at = -1;
let wanted = null; // the text last analysed
let chosen = null; // number of the topic that is highlighted
let tell = null; // called with the colour of each topic
let round = 0;

const howTo = () => (byFinger.matches || narrow.matches ? "Tap a dot to read its document."
  : "Point at a dot, or use the arrow keys, to read its document.");

export function prepare() {
  const picture = byId("map");
  picture.addEventListener("pointermove", (event) => select(nearestTo(event)));
  picture.addEventListener("pointerdown", (event) => select(nearestTo(event)));
  picture.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!step || !shown) return;
    event.preventDefault();
    at = (at + step + order.length) % order.length;
    select(order[at]);
  });
  byId("map-colour").addEventListener("change", paint);
  narrow.addEventListener("change", () => shown && write());
}

// The map of another model; the server draws it when first asked for.
export async function open(model, address) {
  const mine = ++round;
  [shown, order, at, wanted, chosen, tell] = [null, [], -1, null, null, null];
  byId("map").replaceChildren();
  there(model.documents !== "none");
  if (model.documents === "none") return;
  status("map-title", "Drawing the map …");
  const found = await drawnMap(address, mine);
  if (mine !== round || !found) return;
  there(found.state !== "none");
  if (found.state === "none") return;
  shown = found;
  order = found.x.map((_, row) => row);
  byId("map").replaceChildren(...found.x.map((_, row) => dot(row)), ring());
  byId("map-colour-label").hidden = !found.labelled || !found.topics.length;
  byId("map-colour").value = found.topics.length ? "topic" : "group";
  paint();
  write();
  tellColours();
  const some = found.of > found.x.length ? `${plural(found.x.length, "document")} of ${found.of.toLocaleString("en")}` : plural(found.of, "document");
  byId("map-note").textContent = `${some} from the training data. Documents about the same subject lie close together.`;
  status("map-title", howTo());
  if (wanted) place(wanted, address);
}

// `told` is called with the number and the colour of every topic, now or once the map is drawn.
export function colours(told) {
  tell = told;
  tellColours();
}

export function highlight(number) {
  chosen = number;
  if (!shown) return;
  const topic = shown.topics.findIndex((one) => one.number === number);
  for (const [row, one] of shown.topic.entries())
    byId("map").children[row].classList.toggle("faint", topic >= 0 && one !== topic);
  write();
}

// Mark the position of the text, now or once the map is drawn.
export async function place(text, address) {
  wanted = text;
  if (!shown) return;
  const mine = round;
  const mark = byId("map").querySelector(".ring");
  mark.setAttribute("visibility", "hidden");
  let found;
  try {
    found = await ask(address("place"), { text });
  } catch {
    return; // the error is shown beside the text
  }
  if (mine !== round || wanted !== text) return;
  mark.setAttribute("cx", across(found.x));
  mark.setAttribute("cy", across(found.y));
  mark.setAttribute("visibility", "visible");
  const distance = (row) => (shown.x[row] - found.x) ** 2 + (shown.y[row] - found.y) ** 2;
  order.sort((one, other) => distance(one) - distance(other));
  at = -1;
  select(null);
  status("map-title", `The ring marks your text, near the most similar documents. ${howTo()}`);
}

function there(is) {
  byId("map-card").hidden = !is;
  byId("model-desk").classList.toggle("alone", !is);
}

async function drawnMap(address, mine) {
  try {
    let found = await ask(address("map"));
    while (found.state === "drawing" && mine === round) {
      await new Promise((resume) => setTimeout(resume, PAUSE));
      found = await ask(address("map"));
    }
    return found;
  } catch (error) {
    if (mine === round) status("map-title", error.message, true);
    return null;
  }
}

const across = (share) => EDGE + share * (SIZE - 2 * EDGE);
const hue = (place) => `hue-${place % HUES}`;
const hueOfGroup = (group) => (group === shown.groups.length - 1 ? "others" : hue(group));

function tellColours() {
  if (!shown || !tell) return;
  for (const [place, topic] of shown.topics.entries()) tell(topic.number, hue(place));
}

// Colour every dot by topic or label; labels are listed below the map.
function paint() {
  const byTopic = byId("map-colour").value === "topic";
  for (const row of shown.x.keys()) {
    const faint = byId("map").children[row].classList.contains("faint") ? " faint" : "";
    byId("map").children[row].setAttribute("class", (byTopic ? hue(shown.topic[row]) : hueOfGroup(shown.group[row])) + faint);
  }
  byId("map-groups").hidden = byTopic;
  const used = new Set(shown.group);
  byId("map-groups").replaceChildren(...shown.groups.map((name, group) => [name, group]).filter(([, group]) => used.has(group))
    .map(([name, group]) => element("li", { dir: "auto" }, element("i", { class: hueOfGroup(group) }), name)));
}

// Write the names of topics that cover no other name: first the highlighted topic, then the largest.
function write() {
  for (const one of byId("map").querySelectorAll("text")) one.remove();
  const size = narrow.matches ? 40 : 22;
  const taken = [];
  const first = shown.topics.filter((one) => one.number === chosen);
  for (const topic of [...first, ...shown.topics.filter((one) => one.number !== chosen)]) {
    const name = narrow.matches ? topic.name.split(", ")[0] : topic.name;
    const half = (LETTER * size * [...name].length) / 2;
    const x = Math.min(Math.max(across(topic.x), half + 4), SIZE - half - 4);
    const y = across(topic.y);
    const box = { left: x - half, right: x + half, top: y - 0.75 * size, bottom: y + 0.45 * size };
    if (half * 2 > SIZE || taken.some((one) => covers(one, box))) continue;
    taken.push(box);
    const written = drawn("text", { x, y, "font-size": size, class: topic.number === chosen ? "chosen-name" : "" });
    written.textContent = name;
    byId("map").append(written);
  }
}

const covers = (one, other) => one.left < other.right && other.left < one.right && one.top < other.bottom && other.top < one.bottom;

function drawn(tag, attributes) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

const dot = (row) => drawn("circle", { cx: across(shown.x[row]), cy: across(shown.y[row]), r: 6 });
const ring = () => drawn("circle", { r: 17, class: "ring", visibility: "hidden" });

function nearestTo(event) {
  if (!shown) return null;
  const frame = byId("map").getBoundingClientRect();
  const x = ((event.clientX - frame.left) / frame.width) * SIZE;
  const y = ((event.clientY - frame.top) / frame.height) * SIZE;
  let [best, least] = [null, REACH ** 2];
  for (let row = 0; row < shown.x.length; row += 1) {
    const distance = (across(shown.x[row]) - x) ** 2 + (across(shown.y[row]) - y) ** 2;
    if (distance < least) [best, least] = [row, distance];
  }
  return best;
}

function select(row) {
  for (const one of byId("map").querySelectorAll(".chosen")) one.classList.remove("chosen");
  if (row === null) return;
  byId("map").children[row].classList.add("chosen");
  const topic = shown.topics.length ? `${shown.topics[shown.topic[row]].name} · ` : "";
  status("map-title", `${topic}${shown.titles[row]}`);
}
