// Elements without markup in strings: text goes in as text, so that nothing that a model says becomes HTML.

/** An element. `props`: attributes by name; `on...` handlers; `class`, `text`; false and null leave an attribute out. */
export function el(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "text") node.textContent = value;
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "value" || name === "checked") node[name] = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat(3).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

/** What somebody or a model said, apart from the direction of the text around it. */
export const said = (text) => el("bdi", { text });

/** A section with a heading of level 3. */
export const part = (title, ...children) => {
  const id = `part-${Math.random().toString(36).slice(2)}`;
  return el("section", { "aria-labelledby": id, class: "part" }, el("h3", { id, text: title }), ...children);
};

/** A form field with its label and, where there is one, a hint. */
export function field(label, input, hint = "") {
  input.id ||= `field-${Math.random().toString(36).slice(2)}`;
  const more = hint ? el("p", { class: "hint", id: `${input.id}-hint`, text: hint }) : null;
  if (more) input.setAttribute("aria-describedby", more.id);
  return el("div", { class: "field" }, el("label", { for: input.id, text: label }), input, more);
}

export const button = (text, onclick, kind = "") => el("button", { type: "button", class: kind || null, onclick, text });

export const options = (items, chosen = "") =>
  items.map(([value, text]) => el("option", { value, selected: value === chosen, text }));

/** Tell those who do not see the screen. */
export function tell(text) {
  document.getElementById("told").textContent = text;
}

/** Show a view: its heading gets the focus, so that the keyboard and a screen reader begin there. */
export function show(...children) {
  const main = document.getElementById("main");
  main.replaceChildren(...children);
  const head = main.querySelector("h2");
  if (head) {
    head.tabIndex = -1;
    head.focus({ preventScroll: true });
    window.scrollTo(0, 0);
  }
}

/** A box with what went wrong. */
export const alarm = (error) =>
  el("div", { class: "box alarm", role: "alert" }, el("p", {}, el("strong", { text: "That did not work. " }), said(error.message)));

/** What the model says of past runs, beside what is counted. */
export function summary({ tried, ended, failed, left_out, counts }) {
  const facts = [["Tried", tried], ["Ended", ended], ["Failed", failed]];
  const more = left_out ? ` The ${left_out} oldest did not fit the model’s context: it has not read them.` : "";
  return el("div", { class: "box" },
    el("p", {}, el("strong", { text: "Summary by the model." }), ` Counted: ${counts.runs} runs, ${counts.finished} cases finished, ${counts.failed} failed.${more}`),
    el("dl", { class: "facts" }, facts.map(([name, text]) => [el("dt", { text: name }), el("dd", {}, said(text))])));
}

/** `text` by code points: places in it are counted as the server counts them. */
export const points = (text) => Array.from(text);
