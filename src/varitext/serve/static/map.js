"use strict";
// The map of the documents that the model was fitted on, as a picture of dots; the text that was looked at is a ring.

import { ask, byId, element, plural, status } from "./asking.js";

const SVG = "http://www.w3.org/2000/svg";
const SIZE = 1000; // of the picture, in its own units
const EDGE = 24;
const REACH = 40; // how near the pointer must be to a dot
const TRIES = 90;
const NOTHING = "Point at a dot, or use the arrow keys, to read the beginning of a document.";
let shown = null; // columns, as the server sends them
let order = []; // documents in the order of the arrow keys: those nearest to the text first
let at = -1;
let round = 0;

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
}

// The map of another model; it is drawn by the server when first asked for, so the answer may be to come again.
export async function open(model, address) {
  const mine = ++round;
  [shown, order, at] = [null, [], -1];
  byId("map").replaceChildren();
  byId("map-groups").replaceChildren();
  byId("map-card").hidden = model.documents === "none";
  status("map-title", "");
  if (model.documents === "none") return;
  const found = await again(() => ask(address("map")), mine);
  if (!found || mine !== round) return;
  shown = found;
  order = found.x.map((_, row) => row);
  byId("map").replaceChildren(...found.x.map((_, row) => dot(row)), ring());
  const counts = found.groups.map((_, group) => found.group.filter((one) => one === group).length);
  byId("map-groups").replaceChildren(...found.groups.map((name, group) => [name, group]).filter(([, group]) => counts[group])
    .map(([name, group]) => element("li", { dir: "auto" }, element("i", { class: colour(group) }), name)));
  const some = found.of > found.x.length ? `${plural(found.x.length, "document")} of ${found.of.toLocaleString("en")}` : plural(found.of, "document");
  byId("map-note").textContent = `${some} that the model was fitted on. Near each other are those whose vectors point the same way.`;
  status("map-title", NOTHING);
}

// Where the text lies; nothing happens if there is no map, or not yet.
export async function place(text, address) {
  const mine = round;
  const ringed = byId("map").querySelector(".ring");
  if (ringed) ringed.setAttribute("visibility", "hidden");
  if (byId("map-card").hidden) return;
  const found = await again(() => ask(address("place"), { text }), mine);
  if (!found || mine !== round || !shown) return;
  const mark = byId("map").querySelector(".ring");
  mark.setAttribute("cx", across(found.x));
  mark.setAttribute("cy", across(found.y));
  mark.setAttribute("visibility", "visible");
  const distance = (row) => (shown.x[row] - found.x) ** 2 + (shown.y[row] - found.y) ** 2;
  order.sort((one, other) => distance(one) - distance(other));
  at = -1;
  select(null);
  status("map-title", `The ring is your text, amid the ${plural(found.near.length, "document")} nearest to it. ${NOTHING}`);
}

async function again(question, mine) {
  for (let tried = 0; tried < TRIES && mine === round; tried += 1) {
    try {
      return await question();
    } catch (error) {
      if (error.status !== 503) {
        if (mine === round) status("map-title", error.message, true);
        return null;
      }
      if (mine === round && !shown) status("map-title", "The map is being drawn …");
      await new Promise((resume) => setTimeout(resume, 1000));
    }
  }
  return null;
}

const across = (share) => EDGE + share * (SIZE - 2 * EDGE);
const colour = (group) => (group === shown.groups.length - 1 ? "others" : `hue-${group}`);

function drawn(tag, attributes) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

const dot = (row) => drawn("circle", { cx: across(shown.x[row]), cy: across(shown.y[row]), r: 6, class: colour(shown.group[row]) });
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
  status("map-title", shown.titles[row] || `Document ${row + 1}: only counts of its words are here. ${shown.groups[shown.group[row]]}`);
}
