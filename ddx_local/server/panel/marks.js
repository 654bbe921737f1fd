// The case text with what was found in it: evidence for and against, and each candidate's gap heat map.
// Colour never stands alone: every mark has an underline of its own kind and a tag with a sign.

import { el, options, part, points, said } from "./dom.js";

export function caseView(document_, text, heat) {
  const letters = points(text);
  const shown = el("div", { class: "case-text", dir: "auto" });
  const legend = el("p", { class: "quiet small" });
  const names = Object.keys(heat);
  const views = [["evidence", "Evidence of all diagnoses"],
    ...document_.differential.map((entry) => [`one:${entry.rank}`, `Evidence: ${entry.rank}. ${entry.diagnosis}`]),
    ...names.map((name, index) => [`heat:${index}`, `Heat map: ${name}`])];
  const choice = el("select", { id: "case-view" }, options(views, "evidence"));

  function draw() {
    const [kind, number] = choice.value.split(":");
    if (kind === "heat") {
      shown.replaceChildren(...heatMap(letters, heat[names[Number(number)]]));
      legend.textContent = "The number is the gap: the candidate’s probability on the case minus that on the changed case. Plus: the text as written speaks for it. “noise”: below the noise floor.";
    } else {
      const entries = document_.differential.filter((entry) => kind === "evidence" || entry.rank === Number(number));
      shown.replaceChildren(...evidence(letters, entries));
      legend.textContent = "+1 speaks for diagnosis 1 (solid underline), −2 against diagnosis 2 (dashed), both double.";
    }
  }
  choice.addEventListener("change", draw);
  draw();
  return part("The case", el("div", { class: "field" }, el("label", { for: "case-view", text: "Mark" }), choice), legend, shown);
}

function evidence(letters, entries) {
  const items = entries.flatMap((entry) => entry.evidence.map((item) => ({ ...item, rank: entry.rank })));
  const cuts = [...new Set([0, letters.length, ...items.flatMap((item) => [item.start, item.end])])].sort((a, b) => a - b);
  return cuts.slice(0, -1).flatMap((start, index) => {
    const end = cuts[index + 1];
    const piece = letters.slice(start, end).join("");
    const over = items.filter((item) => item.start <= start && item.end >= end);
    const ending = items.filter((item) => item.end === end);
    const tags = [...new Set(ending.map((item) => `${item.supports ? "+" : "−"}${item.rank}`))];
    return [over.length ? el("mark", { class: side(over) }, piece) : document.createTextNode(piece),
      ...(tags.length ? [el("span", { class: `tag ${side(ending)}`, text: tags.join(" ") })] : [])];
  });
}

function side(items) {
  const kinds = new Set(items.map((item) => item.supports));
  return kinds.size === 2 ? "both" : kinds.has(true) ? "for" : "against";
}

function heatMap(letters, stretches) {
  return stretches.flatMap((stretch) => {
    const piece = letters.slice(stretch.start, stretch.end).join("");
    if (stretch.gap === null) return [document.createTextNode(piece)];
    const kind = stretch.counts ? (stretch.gap > 0 ? "for" : "against") : "none";
    const number = `${stretch.gap > 0 ? "+" : stretch.gap < 0 ? "−" : ""}${Math.abs(stretch.gap).toFixed(2)}${stretch.counts ? "" : " noise"}`;
    const tag = el("span", { class: `tag ${kind}` }, stretch.start === stretch.end ? "if inserted: " : "", said(number));
    return stretch.start === stretch.end ? [tag] : [el("mark", { class: `${kind} ${stretch.strength}` }, piece), tag];
  });
}
