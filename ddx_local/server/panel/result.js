// A finished run: ranking, what must not be missed, triage, the marked case, heat maps, what was degraded, and what to do with it.

import { deleting, summarising } from "./actions.js";
import { el, part, said } from "./dom.js";
import { caseView } from "./marks.js";

const URGENCY = ["emergent", "urgent", "routine"];

export function result(found) {
  const document_ = found.results[0];
  const text = found.cases[0]?.text ?? "";
  if (!document_) return el("p", { class: "box", text: "No result is recorded." });
  return el("div", { class: "sheet result" },
    actions(found),
    failure(document_),
    degraded(document_),
    differential(document_),
    cantMiss(document_),
    triage(document_),
    caseView(document_, text, found.heat[0] ?? {}),
    trace(document_),
    listed("Comments", document_.comments.map((item) => `${item.by}, after round ${item.round}: ${item.text}`)),
    listed("Notes", document_.notes.map((item) => item.detail)),
    account(document_));
}

function actions(found) {
  const said_ = el("div", {});
  const summarise = summarising("Summarise with the model", `/runs/${found.run_id}/summary`, undefined, said_);
  const remove = deleting("Delete the run", "danger", found.run_id, said_, () => { location.hash = "#history"; });
  const link = (ending, label) => el("a", { class: "button", href: `/ddx/v1/runs/${found.run_id}/export.${ending}`, download: "", text: label });
  return el("div", {}, el("div", { class: "row" }, link("html", "Export as HTML"), link("json", "Export as JSON"), summarise, remove), said_);
}

function failure(document_) {
  if (document_.error) {
    const { kind, message, hint } = document_.error;
    return el("div", { class: "box alarm" }, el("p", {}, el("strong", { text: `The case failed (${kind}): ` }), said(`${message}. ${hint}`)));
  }
  return document_.status === "finished" ? null : el("div", { class: "box alarm" }, el("p", {}, el("strong", { text: "The case was not finished: it was cancelled." })));
}

function degraded(document_) {
  if (!document_.degraded.length) return null;
  return el("div", { class: "box care" }, el("p", {}, el("strong", { text: "Degraded" })), el("ul", {}, document_.degraded.map((item) => el("li", {}, said(item.detail)))));
}

function differential(document_) {
  const entries = document_.differential;
  if (!entries.length) return document_.error ? null : part("Differential diagnosis", el("p", { text: "No diagnosis was given." }));
  const shares = ["probability", "share_of_samples", "reciprocal_place"].includes(document_.score_kind);
  const whole = shares ? 1 : Math.max(...entries.map((entry) => entry.score)) || 1;
  return part("Differential diagnosis",
    el("p", { class: "quiet", text: `Ranked, the most likely first. Score: ${document_.score_kind.replaceAll("_", " ")}.` }),
    document_.panel.length ? el("p", { class: "quiet" }, "Panel: ", said(document_.panel.join(", "))) : null,
    el("ol", { class: "ranking" }, entries.map((entry) => ranked(entry, whole))));
}

function ranked(entry, whole) {
  const bar = el("div", { class: "fill" });
  bar.style.width = `${Math.max(0, Math.min(1, entry.score / whole)) * 100}%`;
  const places = Object.values(entry.votes);
  const facts = [
    entry.icd10 ? ["ICD-10", `${entry.icd10.code} ${entry.icd10.name}`] : null,
    places.length ? ["Places", places.sort((a, b) => a - b).join(", ")] : null,
    entry.probability !== null && entry.probability !== entry.score ? ["Probability", entry.probability.toFixed(2)] : null,
    entry.proposed_by.length ? ["Proposed by", entry.proposed_by.join(", ")] : null,
  ].filter(Boolean);
  return el("li", {},
    el("div", { class: "head" }, el("span", { class: "rank", text: String(entry.rank) }),
      el("h4", {}, said(entry.diagnosis), entry.critical ? [" ", el("span", { class: "flag alarm", text: "critical" })] : null),
      el("span", { class: "score", text: entry.score.toFixed(2) })),
    el("div", { class: "track", "aria-hidden": "true" }, bar),
    entry.reasoning ? el("p", {}, said(entry.reasoning)) : null,
    el("dl", { class: "facts" }, facts.map(([name, value]) => [el("dt", { text: name }), el("dd", {}, said(value))])),
    el("ul", { class: "quotes" }, entry.evidence.map((item) => el("li", {},
      el("span", { class: `sign ${item.supports ? "for" : "against"}`, text: item.supports ? "+ for" : "− against" }),
      el("q", {}, said(item.quote)), el("span", { class: "quiet small", text: ` ${item.by.join(", ")}` })))));
}

function cantMiss(document_) {
  if (!document_.cant_miss.length) return null;
  return part("Not to be missed",
    el("p", { class: "quiet", text: "Beside the differential; they do not change its order." }),
    el("ul", { class: "items" }, document_.cant_miss.map((item) => el("li", {},
      el("strong", {}, said(item.diagnosis)), el("p", {}, said(item.why), " Excluded by: ", said(item.test), el("span", { class: "quiet", text: ` (${item.by.join(", ")})` })),
      item.quote ? el("q", {}, said(item.quote)) : null))));
}

function triage(document_) {
  if (!document_.triage.length) return null;
  const items = [...document_.triage].sort((a, b) => URGENCY.indexOf(a.urgency) - URGENCY.indexOf(b.urgency));
  return part("Triage", el("ul", { class: "items" }, items.map((item) => el("li", {},
    el("strong", {}, said(item.finding)), el("span", { class: `flag ${item.urgency === "routine" ? "" : "alarm"}`, text: item.urgency }),
    el("p", {}, said(item.step), el("span", { class: "quiet", text: ` (${item.by})` }))))));
}

function trace(document_) {
  const found = document_.trace;
  if (!found) return null;
  return part("Reasoning",
    el("p", { class: "quiet", text: found.by_consensus ? "The specialists agreed." : "The specialists did not agree." }),
    found.conclusion ? el("p", {}, said(found.conclusion)) : null,
    found.would_change ? el("p", {}, el("strong", { text: "What would change it: " }), said(found.would_change)) : null);
}

const listed = (title, items) => (items.length ? part(title, el("ul", {}, items.map((text) => el("li", {}, said(text))))) : null);

function account(document_) {
  const { calls, batches, prompt_tokens, generated_tokens, seconds } = document_.totals;
  const text = `${calls} calls in ${batches} rounds, ${prompt_tokens.toLocaleString("en")} prompt and ${generated_tokens.toLocaleString("en")} generated tokens, ${seconds.toFixed(1)} s`;
  return part("What ran", el("p", { class: "quiet" }, said(`${document_.method} on ${document_.model.name} (${document_.engine}), seed ${document_.seed}: ${text}.`)),
    el("p", { class: "quiet", text: document_.disclaimer }));
}
