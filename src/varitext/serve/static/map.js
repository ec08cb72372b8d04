"use strict";
// The map of the training documents on a canvas: dots coloured by topic or label, with the names of topics at their
// densest places. A ring marks the analysed text. The wheel, pinching or the buttons zoom, dragging moves.

import { ask, byId, element, plural, status } from "./asking.js";

const EDGE = 0.035; // of the picture, free on each side
const REACH = 14; // pixels between the pointer and a dot
const PAUSE = 700; // milliseconds between two requests for the map
const MOVING = 400; // milliseconds in which dots move to a better layout
const MAX_ZOOM = 40;
const CROWDED = 12; // topics; more of them have shorter names until the map is enlarged
const SHOWN_GROUPS = 8; // labels that are listed before the rest is asked for
const byFinger = matchMedia("(pointer: coarse)");
const narrow = matchMedia("(max-width: 760px)");
const dark = matchMedia("(prefers-color-scheme: dark)");
let shown = null; // columns, as the server sends them
let before = null; // the layout from which dots are moving
let since = 0;
let order = []; // documents in the order of the arrow keys: those nearest to the text first
let at = -1;
let picked = null; // the document that is read
let ring = null; // where the analysed text is
let wanted = null; // the text last analysed
let chosen = null; // number of the topic that is highlighted
let found = null; // documents that match the search, as a Uint8Array
let tell = null; // called with the colour of each topic
let round = 0;
let view = { zoom: 1, x: 0.5, y: 0.5 }; // what is in the middle
let due = false; // whether a picture is on its way

const howTo = () => (byFinger.matches || narrow.matches ? "Tap a dot to read its document."
  : "Point at a dot, or use the arrow keys, to read its document.");

export function prepare() {
  const picture = byId("map");
  prepareDragging(picture);
  picture.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const factor = { "+": 1.5, "-": 1 / 1.5, 0: 0 }[event.key];
    if (!shown || (!step && factor === undefined)) return;
    event.preventDefault();
    if (factor !== undefined) return zoom(factor);
    at = (at + step + order.length) % order.length;
    select(order[at]);
  });
  for (const [id, factor] of [["map-in", 1.6], ["map-out", 1 / 1.6], ["map-all", 0]])
    byId(id).addEventListener("click", () => zoom(factor));
  byId("map-colour").addEventListener("change", () => {
    listGroups();
    draw();
  });
  byId("map-search").addEventListener("input", search);
  for (const query of [narrow, dark]) query.addEventListener("change", draw);
  new ResizeObserver(draw).observe(picture);
}

// The map of another model; the server draws it when first asked for, and shows it while it gets better.
export async function open(model, address) {
  const mine = ++round;
  [shown, before, order, at, picked, ring, wanted, chosen, found, tell] = [null, null, [], -1, null, null, null, null, null, null];
  view = { zoom: 1, x: 0.5, y: 0.5 };
  byId("map-search").value = "";
  there(model.documents !== "none");
  draw();
  if (model.documents === "none") return;
  status("map-title", "Drawing the map …");
  let [state, version] = ["drawing", 0];
  while (state === "drawing" && mine === round) {
    let next;
    try {
      next = await ask(address(`map?known=${version}`));
    } catch (error) {
      if (mine === round) status("map-title", error.message, true);
      return;
    }
    if (mine !== round) return;
    ({ state } = next);
    if (next.version !== version) take(next, address);
    ({ version } = next);
    if (state === "drawing") await new Promise((resume) => setTimeout(resume, PAUSE));
  }
  if (state === "none") there(false);
}

function take(next, address) {
  const first = shown === null;
  before = first || matchMedia("(prefers-reduced-motion: reduce)").matches ? null : { x: shown.x, y: shown.y };
  since = performance.now();
  shown = next;
  shown.size = Array(next.topics.length).fill(0);
  for (const topic of next.topic) shown.size[topic] += 1;
  if (order.length !== next.x.length) order = next.x.map((_, row) => row);
  if (first) byId("map-colour").value = next.topics.length ? "topic" : "group";
  byId("map-colour").options[1].textContent = next.label_name;
  byId("map-colour-label").hidden = !next.labelled || !next.topics.length;
  byId("map").dataset.dots = next.x.length;
  byId("map").dataset.state = next.state;
  listGroups();
  tellColours();
  search();
  const some = next.of > next.x.length ? `${plural(next.x.length, "document")} of ${next.of.toLocaleString("en")}` : plural(next.of, "document");
  byId("map-note").textContent = `${some} from the training data. Documents about the same subject lie close together.`;
  if (picked === null) status("map-title", next.state === "drawing" ? `The map is still getting better. ${howTo()}` : howTo());
  if (wanted) place(wanted, address);
}

// `told` is called with the number and the colour of every topic, now or once the map is drawn.
export function colours(told) {
  tell = told;
  tellColours();
}

function tellColours() {
  if (shown && tell) for (const topic of shown.topics) tell(topic.number, topic.colour);
}

export const labelName = () => shown?.label_name ?? "label";

export function highlight(number) {
  chosen = number;
  byId("map").dataset.chosen = number ?? "";
  draw();
}

// Mark the position of the text, now or once the map is drawn.
export async function place(text, address) {
  wanted = text;
  if (!shown) return;
  const mine = round;
  let spot;
  try {
    spot = await ask(address("place"), { text });
  } catch {
    return; // the error is shown beside the text
  }
  if (mine !== round || wanted !== text) return;
  ring = spot;
  byId("map").dataset.ring = "yes";
  const distance = (row) => (shown.x[row] - spot.x) ** 2 + (shown.y[row] - spot.y) ** 2;
  order.sort((one, other) => distance(one) - distance(other));
  at = -1;
  picked = null;
  draw();
  status("map-title", `The ring marks your text, near the most similar documents. ${howTo()}`);
}

function there(is) {
  byId("map-card").hidden = !is;
  byId("model-desk").classList.toggle("alone", !is);
}

// Search: documents whose beginning, label or topic contains the words.

function search() {
  const words = byId("map-search").value.trim().toLowerCase();
  byId("all-topics").dispatchEvent(new CustomEvent("search", { detail: words }));
  found = null;
  byId("map-found").textContent = "";
  if (shown && words) {
    const inTopic = shown.topics.map((topic) => topic.name.toLowerCase().includes(words));
    found = Uint8Array.from(shown.titles, (title, row) => inTopic[shown.topic[row]] || title.toLowerCase().includes(words));
    shown.hits = shown.topics.map(() => 0); // documents found of each topic
    for (const [row, here] of found.entries()) shown.hits[shown.topic[row]] += here;
    byId("map-found").textContent = `${plural(found.reduce((sum, one) => sum + one, 0), "document")} found`;
  }
  draw();
}

// View

const byTopic = () => byId("map-colour").value === "topic";

// From the unit square to pixels of the canvas.
function projection() {
  const frame = byId("map").getBoundingClientRect();
  const side = Math.min(frame.width, frame.height);
  const scale = side * (1 - 2 * EDGE) * view.zoom;
  return {
    width: frame.width,
    height: frame.height,
    x: (share) => frame.width / 2 + (share - view.x) * scale,
    y: (share) => frame.height / 2 + (share - view.y) * scale,
    scale,
  };
}

function zoom(factor, x = 0.5, y = 0.5) {
  if (!factor) view = { zoom: 1, x: 0.5, y: 0.5 };
  else {
    const next = Math.min(Math.max(view.zoom * factor, 1), MAX_ZOOM);
    const kept = 1 - view.zoom / next; // the point under the pointer stays where it is
    view = { zoom: next, x: view.x + (x - view.x) * kept, y: view.y + (y - view.y) * kept };
    if (next === 1) [view.x, view.y] = [0.5, 0.5];
  }
  byId("map").classList.toggle("zoomed", view.zoom > 1);
  draw();
}

function pointAt(event) {
  const frame = byId("map").getBoundingClientRect();
  const { scale } = projection();
  const [left, top] = [event.clientX - frame.left, event.clientY - frame.top];
  return { x: view.x + (left - frame.width / 2) / scale, y: view.y + (top - frame.height / 2) / scale };
}

function prepareDragging(picture) {
  const down = new Map(); // pointers that are pressed
  let moved = 0;
  picture.addEventListener("pointerdown", (event) => {
    down.set(event.pointerId, event);
    moved = 0;
  });
  picture.addEventListener("pointermove", (event) => {
    const last = down.get(event.pointerId);
    if (!last) return shown && event.pointerType === "mouse" && select(nearestTo(event));
    const [dx, dy] = [event.clientX - last.clientX, event.clientY - last.clientY];
    moved += Math.abs(dx) + Math.abs(dy);
    if (down.size === 2) {
      const other = [...down].find(([id]) => id !== event.pointerId)[1];
      const apart = (one) => Math.hypot(one.clientX - other.clientX, one.clientY - other.clientY);
      const middle = pointAt({ clientX: (event.clientX + other.clientX) / 2, clientY: (event.clientY + other.clientY) / 2 });
      zoom(apart(event) / Math.max(apart(last), 1), middle.x, middle.y);
    } else if (view.zoom > 1 && moved > 4) {
      const { scale } = projection();
      view = { ...view, x: view.x - dx / scale, y: view.y - dy / scale };
      draw();
    }
    down.set(event.pointerId, event);
  });
  const up = (event) => {
    if (down.delete(event.pointerId) && moved <= 6 && shown && event.type === "pointerup") select(nearestTo(event));
  };
  for (const name of ["pointerup", "pointercancel", "pointerleave"]) picture.addEventListener(name, up);
  picture.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && document.activeElement !== picture && view.zoom === 1) return; // the page scrolls
    event.preventDefault();
    const { x, y } = pointAt(event);
    zoom(Math.exp(-event.deltaY / 300), x, y);
  }, { passive: false });
}

function nearestTo(event) {
  const { x, y } = pointAt(event);
  let [best, least] = [null, (REACH / projection().scale) ** 2];
  for (let row = 0; row < shown.x.length; row += 1) {
    const distance = (shown.x[row] - x) ** 2 + (shown.y[row] - y) ** 2;
    if (distance < least && visible(row)) [best, least] = [row, distance];
  }
  return best;
}

function select(row) {
  if (row === picked) return;
  picked = row;
  byId("map").dataset.picked = row ?? "";
  draw();
  if (row === null) return;
  const topic = shown.topics.length ? `${shown.topics[shown.topic[row]].name} · ` : "";
  status("map-title", `${topic}${shown.titles[row]}`);
}

// Drawing

function draw() {
  if (due) return;
  due = true;
  requestAnimationFrame(() => {
    due = false;
    paint();
  });
}

const visible = (row) => (chosen === null || shown.topics[shown.topic[row]]?.number === chosen) && (!found || found[row]);
const colourOf = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function paint() {
  const canvas = byId("map");
  const project = projection();
  if (!project.width) return;
  const density = window.devicePixelRatio || 1;
  [canvas.width, canvas.height] = [Math.round(project.width * density), Math.round(project.height * density)];
  const pen = canvas.getContext("2d");
  pen.scale(density, density);
  if (!shown) return;
  const share = before ? Math.min((performance.now() - since) / MOVING, 1) : 1;
  const [x, y] = ["x", "y"].map((axis) => (row) => {
    const from = before?.[axis][row] ?? shown[axis][row];
    return project[axis](from + (shown[axis][row] - from) * share);
  });
  paintDots(pen, project, x, y);
  if (picked !== null) circle(pen, x(picked), y(picked), 5.5, colourOf("--ink"), 2);
  if (ring) circle(pen, project.x(ring.x), project.y(ring.y), 10, colourOf("--warm"), 4);
  if (share < 1) return draw();
  before = null;
  if (byTopic()) writeNames(pen, project);
}

// By colour, so that each is set once; dots that do not count are drawn first, faintly.
function paintDots(pen, project, x, y) {
  const n = shown.x.length;
  const size = Math.min(Math.max((project.scale / 640) ** 0.5 * (n > 15000 ? 1.8 : n > 4000 ? 2.3 : 3.4), 1.3), 5);
  const full = dark.matches ? 0.9 : n > 15000 ? 0.6 : 0.75;
  const [column, list] = byTopic() ? [shown.topic, shown.topics.map((one) => one.colour)] : [shown.group, shown.colours];
  const some = chosen !== null || found;
  for (const bright of some ? [false, true] : [true]) {
    const rows = list.map(() => []);
    for (let row = 0; row < n; row += 1) if (!some || Boolean(visible(row)) === bright) rows[column[row]].push(row);
    for (const [place, own] of rows.entries()) {
      pen.fillStyle = list[place];
      pen.globalAlpha = bright ? full : 0.07;
      pen.beginPath();
      for (const row of own) {
        const [left, top] = [x(row), y(row)];
        if (left < -9 || top < -9 || left > project.width + 9 || top > project.height + 9) continue;
        pen.moveTo(left + size, top);
        pen.arc(left, top, size, 0, 2 * Math.PI);
      }
      pen.fill();
    }
  }
  pen.globalAlpha = 1;
}

function circle(pen, x, y, size, colour, width) {
  [pen.strokeStyle, pen.lineWidth] = [colour, width];
  pen.beginPath();
  pen.arc(x, y, size, 0, 2 * Math.PI);
  pen.stroke();
}

// Names

const ANGLES = Array.from({ length: 16 }, (_, place) => (place * Math.PI) / 8);

// First the highlighted topic, then the largest; a name that would cover another goes beside its place with a line.
function writeNames(pen, project) {
  const [ink, paper, accent, quiet] = ["--ink", "--paper", "--accent", "--quiet"].map(colourOf);
  const size = narrow.matches ? 12 : 12.5;
  pen.font = `600 ${size}px system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif`;
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  pen.lineJoin = "round";
  const rank = (topic) => (topic.number === chosen ? 1 : 0);
  const some = narrow.matches && view.zoom < 2 ? 14 : shown.topics.length;
  const topics = [...shown.topics].sort((one, other) => rank(other) - rank(one)).slice(0, some);
  const words = narrow.matches ? 1 : topics.length > CROWDED && view.zoom < 2 ? 2 : Infinity;
  const buttons = buttonsBox(project);
  const taken = [];
  for (const topic of topics) {
    const name = topic.number === chosen ? topic.name : topic.name.split(", ").slice(0, words).join(", ");
    const [x, y] = [project.x(topic.x), project.y(topic.y)];
    if (x < 0 || y < 0 || x > project.width || y > project.height) continue;
    const box = spotFor(x, y, pen.measureText(name).width / 2 + 3, size * 0.66, [buttons, ...taken], project);
    if (box) taken.push({ ...box, name, topic, from: [x, y] });
  }
  const most = found ? Math.max(...shown.hits) : 0;
  const missed = (topic) => found && shown.hits[shown.topics.indexOf(topic)] < Math.max(0.1 * most, 1);
  const faint = (topic) => ((chosen !== null && topic.number !== chosen) || missed(topic) ? 0.3 : 1);
  for (const { x, y, from, topic } of taken) {
    if (Math.hypot(x - from[0], y - from[1]) < 18) continue; // near enough without a line
    [pen.strokeStyle, pen.lineWidth, pen.globalAlpha] = [quiet, 1, 0.8 * faint(topic)];
    pen.beginPath();
    pen.moveTo(...from);
    pen.lineTo(x, y);
    pen.stroke();
  }
  for (const { x, y, name, topic } of taken) {
    pen.globalAlpha = 0.9 * faint(topic);
    [pen.strokeStyle, pen.lineWidth] = [paper, 4];
    pen.strokeText(name, x, y);
    pen.globalAlpha = faint(topic);
    pen.fillStyle = topic.number === chosen ? accent : ink;
    pen.fillText(name, x, y);
  }
  pen.globalAlpha = 1;
  byId("map").dataset.names = taken.length;
}

// The buttons that zoom, as a box of the picture.
function buttonsBox(project) {
  const picture = byId("map").getBoundingClientRect();
  const [first, last] = ["map-in", "map-all"].map((id) => byId(id).getBoundingClientRect());
  const [left, top] = [first.left - picture.left, first.top - picture.top];
  const [halfWidth, halfHeight] = [(last.right - first.left) / 2, (last.bottom - first.top) / 2];
  return { x: left + halfWidth, y: top + halfHeight, halfWidth, halfHeight };
}

// The nearest free box around a place, or none within reach.
function spotFor(x, y, halfWidth, halfHeight, taken, project) {
  for (let away = 0; away <= 110; away += 10)
    for (const angle of away ? ANGLES : [0]) {
      const box = { x: x + 1.5 * away * Math.cos(angle), y: y + away * Math.sin(angle), halfWidth, halfHeight };
      if (box.x < halfWidth || box.x > project.width - halfWidth || box.y < halfHeight || box.y > project.height - halfHeight) continue;
      if (!taken.some((one) => covers(one, box))) return box;
    }
  return null;
}

const covers = (one, other) => Math.abs(one.x - other.x) < one.halfWidth + other.halfWidth
  && Math.abs(one.y - other.y) < one.halfHeight + other.halfHeight;

// Labels below the map, when dots are coloured by label

function listGroups() {
  byId("map-groups").hidden = byTopic();
  if (byTopic() || !shown) return;
  const used = new Set(shown.group);
  const items = shown.groups.map((name, group) => [name, group]).filter(([, group]) => used.has(group))
    .map(([name, group]) => element("li", { dir: "auto" }, element("i", { style: { background: shown.colours[group] } }), name));
  const rest = items.slice(SHOWN_GROUPS);
  for (const item of rest) item.hidden = true;
  const more = element("button", { type: "button", class: "more-groups", onclick: () => {
    for (const item of rest) item.hidden = false;
    more.remove();
  } }, `${rest.length} more`);
  byId("map-groups").replaceChildren(...items, ...(rest.length ? [more] : []));
}
