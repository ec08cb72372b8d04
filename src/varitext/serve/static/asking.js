"use strict";
// Requests to the server, and elements of the page. Text is only ever inserted as text: there is no innerHTML here.

const KEPT = "varitext-token";

export class Problem extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

export function keepToken(token) {
  sessionStorage.setItem(KEPT, token);
}

export function hasToken() {
  return Boolean(sessionStorage.getItem(KEPT));
}

export async function ask(address, body) {
  const headers = {};
  const token = sessionStorage.getItem(KEPT);
  if (token) headers.Authorization = `Bearer ${token}`;
  if (body) headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(address, { method: body ? "POST" : "GET", headers, body: body && JSON.stringify(body) });
  } catch {
    throw new Problem("The server does not answer. Is it still running?", 0);
  }
  const answer = await response.json().catch(() => ({ error: `The server answered with status ${response.status}.` }));
  if (!response.ok) throw new Problem(sentence(answer.error), response.status);
  return answer;
}

// element("li", { class: "x", style: { "--share": 0.5 } }, "text", child)
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "style") for (const [property, one] of Object.entries(value)) made.style.setProperty(property, one);
    else if (name === "onclick") made.addEventListener("click", value);
    else if (value !== null && value !== undefined && value !== false) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

export const byId = (id) => document.getElementById(id);

export function show(list, items, empty) {
  byId(list).replaceChildren(...(items.length ? items : [element("li", { class: "empty" }, empty)]));
}

export function status(id, message, wrong = false) {
  const place = byId(id);
  place.textContent = message;
  place.classList.toggle("wrong", wrong);
}

export function waiting(ids, on) {
  for (const id of ids) {
    byId(id).classList.toggle("waiting", on);
    byId(id).setAttribute("aria-busy", String(on));
  }
}

export function onCtrlEnter(form) {
  form.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      form.requestSubmit();
    }
  });
}

export const percent = (share) => {
  if (share > 0 && share < 0.01) return "< 1 %";
  if (share < 1 && share > 0.99) return "> 99 %";
  return `${Math.round(100 * share)} %`;
};

export const plural = (n, one, many = `${one}s`) => `${n.toLocaleString("en")} ${n === 1 ? one : many}`;

const sentence = (line) => `${line.charAt(0).toUpperCase()}${line.slice(1)}${/[.?!]$/.test(line) ? "" : "."}`;
