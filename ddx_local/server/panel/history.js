// The Memory Agent: all runs of this machine, with how they ended, to open, export and delete.

import { deleting, summarising } from "./actions.js";
import { ask } from "./api.js";
import { el, show, tell } from "./dom.js";

export async function history() {
  const { runs, counts } = await ask("/runs?limit=500");
  const trouble = el("div", {});
  const told = Object.entries(counts).map(([name, count]) => `${count} ${name}`).join(", ");

  const cell = (name, text) => el("td", { "data-name": name, text });
  const row = (item) => {
    const remove = deleting("Delete", "danger small", item.run_id, trouble, () => {
      line.remove();
      tell("The run is deleted.");
    });
    remove.setAttribute("aria-label", `Delete run ${item.run_id}`);
    const link = (ending) => el("a", { href: `/ddx/v1/runs/${item.run_id}/export.${ending}`, download: "", "aria-label": `Export run ${item.run_id} as ${ending.toUpperCase()}`, text: ending.toUpperCase() });
    const line = el("tr", {},
      el("th", { scope: "row" }, el("a", { href: `#run/${item.run_id}`, text: item.run_id })),
      cell("Began", `${item.created_at.slice(0, 16).replace("T", " ")} UTC`), cell("Method", item.method), cell("Model", item.model),
      cell("State", item.status), el("td", { class: "row" }, link("html"), link("json"), item.status === "running" ? null : remove));
    return line;
  };

  const summarise = summarising("Summarise the last 10 with the model", "/summary", { last: 10 }, trouble);
  const head = ["Run", "Began", "Method", "Model", "State", "Export, delete"].map((text) => el("th", { scope: "col", text }));
  show(
    el("h2", { text: "History" }),
    el("p", { class: "quiet", text: runs.length ? `${told}.` : "No runs yet." }),
    runs.length ? summarise : null,
    trouble,
    runs.length
      ? el("div", { class: "sheet scroll", role: "region", "aria-label": "Runs", tabindex: "0" }, el("table", { class: "stacks" }, el("thead", {}, el("tr", {}, head)), el("tbody", {}, runs.map(row))))
      : el("p", {}, el("a", { href: "#new", text: "Begin with a case" })),
  );
}
