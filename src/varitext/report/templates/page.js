"use strict";

const dark = matchMedia("(prefers-color-scheme: dark)");
const narrow = matchMedia("(max-width: 560px)");
const byFinger = matchMedia("(pointer: coarse)");
const places = [...document.querySelectorAll(".drawn")];
const PHONE_MAP = 350; // pixels along one side
const PHONE_NAMES = 24; // the largest topics
const whole = new Map(); // names and range of each map, as on a wide page
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// Figures come in mid-tones; here they get the colours of the page.
function inked(layout) {
  const [ink, quiet, card, line] = ["--ink", "--quiet", "--card", "--line"].map(colour);
  layout.font.color = quiet;
  if (layout.title) layout.title.font = { ...layout.title.font, color: ink };
  layout.modebar = { bgcolor: "rgba(0,0,0,0)", color: quiet, activecolor: ink };
  Object.assign(layout.hoverlabel, { bgcolor: card, bordercolor: quiet });
  layout.hoverlabel.font.color = ink;
  layout.xaxis.gridcolor = layout.yaxis.gridcolor = line;
  for (const note of layout.annotations ?? []) note.font = { ...note.font, color: ink };
  return layout;
}

// On a phone, a finger scrolls the page, and a map is square, with the first words of the largest topics.
function fitted(place, layout) {
  delete layout.height;
  if (place.parentElement.classList.contains("map")) {
    if (!whole.has(place)) whole.set(place, { names: layout.annotations ?? [], range: layout.xaxis.range });
    const { names, range } = whole.get(place);
    const [low, high] = layout.yaxis.range;
    const middle = (range[0] + range[1]) / 2;
    const half = narrow.matches ? Math.max((high - low) / 2, layout.meta.reach) : (range[1] - range[0]) / 2;
    layout.xaxis.range = [middle - half, middle + half];
    layout.annotations = narrow.matches
      ? few(names, (2 * half) / PHONE_MAP, layout.xaxis.range)
      : names.map((note) => ({ ...note }));
    const [card, quiet] = ["--card", "--quiet"].map(colour);
    for (const note of layout.annotations) [note.bgcolor, note.arrowcolor] = [card + "b8", quiet];
  }
  if (byFinger.matches) layout.dragmode = false;
  return layout;
}

// Names that cover no other, at their places or, if the edge would cut them, beside; `pixel` is in units of the
// map.
function few(names, pixel, [left, right]) {
  const taken = [];
  for (const { x: at, y, text, font } of names.slice(0, PHONE_NAMES)) {
    const name = text.split(", ")[0];
    const half = 4 * pixel * name.length;
    const x = Math.min(Math.max(at, left + half), right - half);
    const note = { x, y, text: name, font: { ...font }, showarrow: false, borderpad: 0 };
    const near = (other) => half + 4 * pixel * other.text.length;
    if (!taken.some((other) => Math.abs(other.x - x) < near(other) && Math.abs(other.y - y) < 16 * pixel)) taken.push(note);
  }
  return taken;
}

function draw(place) {
  const figure = JSON.parse(place.querySelector("script").textContent);
  const onMap = place.parentElement.classList.contains("map");
  if (onMap && narrow.matches) for (const trace of figure.data) trace.marker.size *= 0.7;
  return Plotly.newPlot(place, figure.data, inked(fitted(place, figure.layout)), {
    responsive: true,
    displayModeBar: onMap && !byFinger.matches,
    modeBarButtons: [["pan2d", "zoom2d", "select2d", "lasso2d"], ["zoomIn2d", "zoomOut2d", "resetScale2d"], ["toImage"]],
    displaylogo: false,
  });
}

function redraw() {
  for (const place of places) Plotly.react(place, place.data, inked(fitted(place, place.layout)));
}

// Pressed names and documents that match the search stay bright; if there are neither, all are.
function highlight(figure) {
  const [place, legend, input] = [".drawn", ".legend", ".search input"].map((one) => figure.querySelector(one));
  const words = input.value.trim().toLowerCase();
  const pressed = place.data.map((_, trace) => legend.querySelector(`[data-trace="${trace}"]`).getAttribute("aria-pressed") === "true");
  const anyPressed = pressed.includes(true);
  let found = 0;
  const opacity = place.data.map((trace, number) => {
    if (anyPressed && !pressed[number]) return 0.05;
    if (!words) return anyPressed ? 0.9 : 0.75;
    return trace.customdata.map((text) => {
      const here = text.replace(/<[^>]*>/g, " ").toLowerCase().includes(words); // hover texts have tags
      found += here;
      return here ? 0.9 : 0.05;
    });
  });
  figure.querySelector(".search [role=status]").textContent = words ? `${found.toLocaleString("en")} documents found` : "";
  Plotly.restyle(place, { "marker.opacity": opacity });
}

for (const figure of document.querySelectorAll("figure.map")) {
  const legend = figure.querySelector(".legend");
  legend.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    if (button.classList.contains("more")) return legend.classList.add("whole");
    button.setAttribute("aria-pressed", String(button.getAttribute("aria-pressed") !== "true"));
    highlight(figure);
  });
  figure.querySelector(".search input").addEventListener("input", () => highlight(figure));
}

// A chart drawn in a closed element has no width yet.
for (const folded of document.querySelectorAll("details")) {
  folded.addEventListener("toggle", () => {
    if (folded.open) for (const place of folded.querySelectorAll(".drawn")) if (place.data) Plotly.Plots.resize(place);
  });
}

// One chart per turn, so that the page stays responsive while the map is drawn.
(async () => {
  for (const place of places) {
    await draw(place);
    await new Promise((resume) => setTimeout(resume));
  }
  dark.addEventListener("change", redraw);
  narrow.addEventListener("change", redraw);
  document.documentElement.dataset.drawn = "yes";
})();
