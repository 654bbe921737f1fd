// The Information Editor: a case as text and as sections, a method with its options, and the start of a run.

import { ask } from "./api.js";
import { alarm, button, el, field, options, part, points, show, tell } from "./dom.js";

export async function editor(state) {
  const { methods } = await ask("/methods");
  const text = el("textarea", { rows: 11, class: "case", spellcheck: "false", autocomplete: "off", required: true });
  const sections = el("div", {});
  const trouble = el("div", {});
  const boxes = new Map();

  async function split() {
    trouble.replaceChildren();
    try {
      const found = await ask("/cases", { method: "POST", body: { text: text.value } });
      const letters = points(found.text);
      boxes.clear();
      const titles = found.names.map(({ name, title }) => [name, title]);
      for (const [name] of titles) {
        const own = found.sections.filter((span) => span.name === name);
        const said = own.map((span) => letters.slice(span.start, span.end).join("")).join("\n").trim();
        boxes.set(name, el("textarea", { rows: Math.min(9, 2 + Math.ceil(said.length / 90)), spellcheck: "false", value: said }));
      }
      sections.replaceChildren(
        part(
          "Sections",
          el("p", { class: "hint", text: "Every character of the text is in one section or under Other. Select text in a box and move it where it belongs; what is in the boxes is what the panel of agents reads." }),
          el("div", { class: "section-grid" }, titles.map(([name, title]) => sectionBox(name, title, titles))),
          button("Back to the text as written", () => {
            boxes.clear();
            sections.replaceChildren();
            text.focus();
          }),
        ),
      );
      tell("The text is split into sections.");
      sections.querySelector("textarea").focus();
    } catch (error) {
      trouble.replaceChildren(alarm(error));
    }
  }

  function sectionBox(name, title, titles) {
    const box = boxes.get(name);
    const to = el("select", { "aria-label": `Move the selection of ${title} to` }, options([["", "Move the selection to …"], ...titles.filter(([other]) => other !== name)]));
    to.addEventListener("change", () => {
      const [start, end] = [box.selectionStart, box.selectionEnd];
      const piece = start === end ? box.value : box.value.slice(start, end);
      const target = boxes.get(to.value);
      if (target && piece.trim()) {
        box.value = start === end ? "" : box.value.slice(0, start) + box.value.slice(end);
        target.value = [target.value.trimEnd(), piece.trim()].filter(Boolean).join("\n");
        tell(`Moved to ${to.selectedOptions[0].textContent}.`);
      }
      to.value = "";
    });
    return el("div", { class: "section-box" }, field(title, box), to);
  }

  const method = el("select", {}, options(methods.map((item) => [item.name, `${item.name}: ${item.summary}`]), state?.default_method));
  const about = el("div", {});
  const seed = el("input", { type: "number", min: 0, step: 1, value: "0", inputmode: "numeric" });
  const pause = el("input", { type: "checkbox" });
  let inputs = new Map();

  function choose() {
    const chosen = methods.find((item) => item.name === method.value);
    inputs = new Map(chosen.options.map((option) => [option, input(option)]));
    about.replaceChildren(
      el("p", { class: "hint", text: chosen.citation }),
      el("details", {}, el("summary", { text: "What happens, round by round" }), el("ol", {}, chosen.rounds.map((text) => el("li", { text })))),
      el("details", {}, el("summary", { text: `Options of ${chosen.name}` }),
        el("div", { class: "options" }, [...inputs].map(([option, node]) => field(option.name.replaceAll("_", " "), node, option.type === "list" ? "names with commas between them" : "")))),
    );
  }
  method.addEventListener("change", choose);
  choose();

  async function start(event) {
    event.preventDefault();
    trouble.replaceChildren();
    const given = {};
    for (const [option, node] of inputs) {
      const value = read(option, node);
      if (value !== null && JSON.stringify(value) !== JSON.stringify(option.default)) given[option.name] = value;
    }
    const body = { method: method.value, options: given, seed: Number(seed.value || 0), supervise: pause.checked };
    if (boxes.size) body.sections = Object.fromEntries([...boxes].map(([name, box]) => [name, box.value]));
    else body.text = text.value;
    try {
      const { run_id } = await ask("/runs", { method: "POST", body });
      location.hash = `#run/${run_id}`;
    } catch (error) {
      trouble.replaceChildren(alarm(error));
    }
  }

  show(
    el("h2", { text: "New case" }),
    el("form", { onsubmit: start },
      el("div", { class: "sheet" },
        field("Case text", text, "Paste the history, findings and results of this episode. It stays on this machine."),
        button("Split into sections", split),
        sections),
      el("div", { class: "sheet" },
        field("Method", method), about,
        el("div", { class: "row" }, field("Seed", seed),
          el("div", { class: "check" }, pause, el("label", { for: "pause", text: "Pause after each round, for a comment (Doctor Supervisor)" }))),
        trouble,
        el("button", { class: "main", type: "submit", text: "Start" }))),
  );
  pause.id = "pause";
}

function input(option) {
  if (option.choices) return el("select", {}, options(option.choices.map((name) => [name, name]), String(option.default)));
  if (option.type === "boolean") return el("select", {}, options([["true", "yes"], ["false", "no"]], String(option.default)));
  const shown = Array.isArray(option.default) ? option.default.join(", ") : option.default ?? "";
  const numeric = option.type === "integer" || option.type === "number";
  return el("input", { type: numeric ? "number" : "text", step: option.type === "number" ? "any" : "1", value: String(shown), autocomplete: "off" });
}

function read(option, node) {
  if (option.type === "boolean") return node.value === "true";
  if (option.type === "list") return node.value.split(",").map((item) => item.trim()).filter(Boolean);
  if (node.value === "") return null;
  return option.type === "integer" || option.type === "number" ? Number(node.value) : node.value;
}
