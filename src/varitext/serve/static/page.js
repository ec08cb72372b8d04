"use strict";
// The choice of the model, and the token if the server needs one. The rest is in documents.js and answers.js.

import { Problem, ask, byId, element, keepToken, plural } from "./asking.js";
import * as answers from "./answers.js";
import * as documents from "./documents.js";

const kinds = { documents, answers };
let models = [];

function problem(message) {
  byId("problem").textContent = message;
  byId("problem").hidden = !message;
}

export const address = (model, what) => `/api/models/${encodeURIComponent(model.id)}/${what}`;

async function start() {
  problem("");
  try {
    models = (await ask("/api/models")).models;
  } catch (error) {
    if (error instanceof Problem && error.status === 401) return askForToken();
    if (error instanceof Problem && error.status === 503) setTimeout(start, 1000); // models are still being loaded
    return problem(error.message);
  }
  byId("token-form").hidden = true;
  byId("model").replaceChildren(...models.map((model) => element("option", { value: model.id }, model.id)));
  byId("model").disabled = models.length < 2;
  const wanted = decodeURIComponent(location.hash.slice(1));
  choose(models.find((model) => model.id === wanted) ?? models[0]);
}

function askForToken() {
  if (!byId("token-form").hidden) problem("Wrong token. Try again.");
  byId("token-form").hidden = false;
  byId("token").value = "";
  byId("token").focus();
}

function choose(model) {
  byId("model").value = model.id;
  const about = [model.model];
  about.push(model.words ? plural(model.words, "word") : "needs no fit");
  if (model.latent_dim) about.push(plural(model.latent_dim, "latent dimension"));
  if (model.corpus) about.push(`fitted on ${model.corpus}`);
  byId("about").textContent = about.join(", ");
  document.title = `${model.id} · varitext`;
  for (const kind of Object.keys(kinds)) byId(kind).hidden = kind !== model.kind;
  kinds[model.kind].open(model, (what) => address(model, what));
}

byId("model").addEventListener("change", () => {
  history.replaceState(null, "", `#${encodeURIComponent(byId("model").value)}`);
  choose(models.find((model) => model.id === byId("model").value));
});

byId("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  keepToken(byId("token").value.trim());
  start();
});

documents.prepare();
answers.prepare();
start();
