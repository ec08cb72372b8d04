"use strict";
// The OpenAPI schema in readable form: one block per route, with a command to copy.

import { ask, byId, element, hasToken } from "./asking.js";

let schemas;

const resolved = (schema) => (schema?.$ref ? schemas[schema.$ref.split("/").pop()] : schema);

function call(path, method, about) {
  const asked = resolved(about.requestBody?.content["application/json"].schema);
  const answer = resolved(about.responses["200"].content["application/json"]?.schema);
  const parameters = (about.parameters ?? []).map((one) => [one.name, one.schema, one.required]);
  const fields = Object.entries(asked?.properties ?? {}).map(([name, one]) => [name, one, asked.required?.includes(name)]);
  return element("details", {},
    element("summary", {}, element("span", { class: "method" }, method.toUpperCase()), element("code", {}, path),
      element("span", { class: "note" }, about.description?.split("\n")[0] ?? "")),
    about.description?.includes("\n") ? element("p", { class: "note" }, about.description) : null,
    table("Request", [...parameters, ...fields].map(([name, one, needed]) => [name, kindOf(one), needed ? "required" : "", one.description ?? ""])),
    table("Response", Object.entries(answer?.properties ?? {}).map(([name, one]) => [name, kindOf(one), one.description ?? ""])),
    element("h3", {}, "Example"), element("pre", {}, command(path, method, asked)),
    table("Status codes", Object.entries(about.responses).map(([code, one]) => [code, one.description])));
}

function table(heading, rows) {
  if (!rows.length) return null;
  const cells = (row) => row.map((cell, place) => element("td", {}, place === 0 ? element("code", {}, cell) : cell));
  return element("div", {}, element("h3", {}, heading), element("table", {}, ...rows.map((row) => element("tr", {}, ...cells(row)))));
}

function kindOf(schema) {
  const one = resolved(schema);
  if (one.anyOf) return one.anyOf.map(kindOf).filter((kind) => kind !== "null").join(" or ");
  if (one.enum) return one.enum.join(", ");
  const limits = [["minimum", "from"], ["maximum", "to"], ["maxItems", "up to"], ["maxLength", "characters, up to"]]
    .filter(([key]) => one[key] !== undefined).map(([key, word]) => `${word} ${one[key].toLocaleString("en")}`);
  const kind = one.type === "array" && one.items ? `list of ${kindOf(one.items)}` : one.title && one.properties ? one.title : one.type ?? "";
  const standard = one.default !== undefined && one.default !== null ? `, default ${one.default}` : "";
  return `${kind}${limits.length ? ` (${limits.join(" ")})` : ""}${standard}`;
}

function command(path, method, asked) {
  const address = `${location.origin}${path.replace("{model}", "MODEL")}`;
  const token = hasToken() ? " \\\n  -H 'Authorization: Bearer TOKEN'" : "";
  if (method === "get") return `curl ${path.includes("similar-words") ? `'${address}?word=space'` : address}${token}`;
  const body = Object.fromEntries(Object.entries(asked.properties).filter(([, one]) => one.examples).map(([name, one]) => [name, one.examples[0]]));
  return `curl ${address}${token} \\\n  -H 'Content-Type: application/json' \\\n  -d '${JSON.stringify(body)}'`;
}

try {
  const schema = await ask("/api/openapi.json");
  schemas = schema.components.schemas;
  const calls = Object.entries(schema.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, about]) => call(path, method, about)));
  byId("calls").replaceChildren(...calls);
} catch (error) {
  byId("problem").textContent = error.status === 401 ? "Enter the token on the explorer page first." : error.message;
  byId("problem").hidden = false;
}
