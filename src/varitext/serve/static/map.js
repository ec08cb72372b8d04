"use strict";
// The map of the documents that the model was fitted on, as a picture of dots; the text that was looked at is a ring.

import { ask, byId, element, plural, status } from "./asking.js";

const SVG = "http://www.w3.org/2000/svg";
const SIZE = 1000; // of the picture, in its own units
const EDGE = 24;
const REACH = 40; // how near the pointer must be to a dot
const PAUSE = 1000; // milliseconds, until it is asked again whether the map is drawn
const NOTHING = "Point at a dot, or use the arrow keys, to read the beginning of a document.";
let shown = null; // columns, as the server sends them
let order = []; // documents in the order of the arrow keys: those nearest to the text first
let at = -1;
let wanted = null; // the text last looked at
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

// The map of another model; the server draws it when first asked for.
export async function open(model, address) {
  const mine = ++round;
  [shown, order, at, wanted] = [null, [], -1, null];
  byId("map").replaceChildren();
  byId("map-groups").replaceChildren();
  byId("map-card").hidden = model.documents === "none";
  status("map-title", "");
  if (model.documents === "none") return;
  status("map-title", "The map is being drawn …");
  const found = await drawnMap(address, mine);
  if (mine !== round || !found) return;
  byId("map-card").hidden = found.state === "none";
  if (found.state === "none") return;
  shown = found;
  order = found.x.map((_, row) => row);
  byId("map").replaceChildren(...found.x.map((_, row) => dot(row)), ring());
  const counts = found.groups.map((_, group) => found.group.filter((one) => one === group).length);
  byId("map-groups").replaceChildren(...found.groups.map((name, group) => [name, group]).filter(([, group]) => counts[group])
    .map(([name, group]) => element("li", { dir: "auto" }, element("i", { class: colour(group) }), name)));
  const some = found.of > found.x.length ? `${plural(found.x.length, "document")} of ${found.of.toLocaleString("en")}` : plural(found.of, "document");
  byId("map-note").textContent = `${some} that the model was fitted on. Near each other are those whose vectors point the same way.`;
  status("map-title", NOTHING);
  if (wanted) place(wanted, address);
}

// Where the text lies; a map that is not there yet is told later.
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
    return; // what is wrong with the text is said beside it
  }
  if (mine !== round || wanted !== text) return;
  mark.setAttribute("cx", across(found.x));
  mark.setAttribute("cy", across(found.y));
  mark.setAttribute("visibility", "visible");
  const distance = (row) => (shown.x[row] - found.x) ** 2 + (shown.y[row] - found.y) ** 2;
  order.sort((one, other) => distance(one) - distance(other));
  at = -1;
  select(null);
  status("map-title", `The ring is your text, amid the ${plural(found.near.length, "document")} nearest to it. ${NOTHING}`);
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
  status("map-title", shown.titles[row]);
}
