// What a role said, as elements: the answer's values in their order, diagnoses in bold, quotes of the case in quotation marks.

import { el, said } from "./dom.js";

const NAMES = ["diagnosis", "finding", "name", "role", "specialty"];
const QUOTES = ["quote", "quotes", "evidence", "for", "against"];

/** An answer's text: its JSON form as lists, or the text itself. */
export function answer(text) {
  let value;
  try {
    value = JSON.parse(text);
  } catch {
    return el("p", {}, said(text));
  }
  return el("div", { class: "answer" }, shown(value, ""));
}

function shown(value, name) {
  if (value === null || value === "" || (Array.isArray(value) && !value.length)) return el("span", { class: "quiet", text: "none" });
  if (Array.isArray(value)) {
    return el("ul", {}, value.map((item) => el("li", {}, shown(item, name))));
  }
  if (typeof value === "object") return object(value);
  if (typeof value === "boolean") return el("span", { text: value ? "yes" : "no" });
  return QUOTES.includes(name) ? el("q", {}, said(String(value))) : said(String(value));
}

function object(value) {
  const head = NAMES.find((name) => typeof value[name] === "string");
  const rest = Object.entries(value).filter(([name]) => name !== head);
  return el("div", {}, head ? el("strong", {}, said(value[head])) : null,
    rest.map(([name, item]) => el("div", { class: "pair" }, el("span", { class: "quiet", text: `${name.replaceAll("_", " ")}: ` }), shown(item, name))));
}
