// One run: its rounds as they finish, the Doctor Supervisor between them, and in the end the result.

import { answer } from "./answers.js";
import { ask, watch } from "./api.js";
import { alarm, button, el, field, options, said, show, tell } from "./dom.js";
import { result } from "./result.js";

/** Show a run; returns what ends the view. */
export function run(id) {
  const stop = new AbortController();
  const facts = el("p", { class: "quiet", text: `Run ${id}` });
  const controls = el("div", { class: "row controls" });
  const trouble = el("div", {});
  const doctor = el("div", {});
  const outcome = el("div", {});
  const rounds = el("div", { class: "rounds" });
  const talk = el("details", { open: true, class: "sheet" }, el("summary", {}, el("h3", { text: "Rounds" })), rounds);
  const open = new Map();
  const roles = new Set();
  show(el("h2", { text: "Run" }), facts, controls, trouble, doctor, outcome, talk);

  const act = (path, body = undefined) => async () => {
    trouble.replaceChildren();
    try {
      return await ask(`/runs/${id}${path}`, { method: "POST", body });
    } catch (error) {
      trouble.replaceChildren(alarm(error));
      return null;
    }
  };
  const cancel = button("Cancel the run", act("/cancel"), "danger");
  const pause = button("Pause after this round", async () => {
    if (await act("/pause")()) {
      pause.disabled = true;
      tell("The run will wait after this round.");
    }
  });
  controls.append(pause, cancel);

  function supervise(message) {
    const text = el("textarea", { rows: 3, maxlength: 2000 });
    const by = el("input", { type: "text", maxlength: 100, value: supervise.by ?? "clinician", autocomplete: "off" });
    const about = el("select", {}, options([["", "the whole round"], ...[...roles].map((role) => [role, role])]));
    const done = el("ul", { class: "items" });
    const go = (pausing) => async () => {
      if (text.value.trim() && !(await comment())) return;
      await act("/continue", { pause: pausing })();
    };
    async function comment() {
      supervise.by = by.value;
      const sent = await act("/comments", { text: text.value, by: by.value, about: about.value })();
      if (!sent) return false;
      done.append(el("li", {}, said(text.value)));
      text.value = "";
      tell("The comment is noted.");
      return true;
    }
    doctor.replaceChildren(
      el("section", { class: "box care", "aria-label": "Doctor Supervisor" },
        el("h3", { text: `Waiting after round ${open.get(message.round)?.place ?? ""}: ${plain(message.name)}` }),
        el("p", { text: "A comment enters every later prompt of this case and is kept with your name in the result." }),
        field("Comment", text),
        el("div", { class: "row" }, field("About", about), field("Your name or role", by)),
        done,
        el("div", { class: "row" }, button("Add the comment", comment), button("Go on", go(true), "main"), button("Go on without pauses", go(false)))),
    );
    tell(`The run waits after ${plain(message.name)}.`);
    text.focus();
  }

  function round(message) {
    const cards = el("div", { class: "cards" });
    const count = el("span", { class: "quiet", text: ` 0 of ${message.questions}` });
    const block = el("section", { class: "round", "aria-label": `Round ${plain(message.name)}` },
      el("h4", {}, `${open.size + 1}. ${plain(message.name)}`, count), cards);
    open.set(message.round, { place: open.size + 1, cards, count, total: message.questions, here: 0, scores: 0, columns: new Map() });
    rounds.append(block);
  }

  function card(message) {
    const place = open.get(message.round);
    if (!place) return;
    place.here += 1;
    place.count.textContent = ` ${place.here} of ${place.total}`;
    if (message.role && message.text) roles.add(message.role);
    if (!message.text) {
      place.scores += 1;
      place.note ??= place.cards.appendChild(el("p", { class: "quiet" }));
      place.note.textContent = `Label probabilities of ${place.scores} texts, measured without sampling.`;
    } else {
      const thoughts = message.thoughts ? el("details", {}, el("summary", { text: "Thoughts" }), el("p", {}, said(message.thoughts))) : null;
      const body = el("div", { class: "said" }, answer(message.text), thoughts,
        el("p", { class: "quiet small", text: `${plain(message.step)}, ${message.tokens} tokens, ${message.seconds} s` }));
      const column = place.columns.get(message.role);
      if (column) column.append(body);
      else {
        const fresh = el("article", { class: "card" }, el("h5", {}, said(message.role || "model")), body);
        place.columns.set(message.role, fresh);
        place.cards.append(fresh);
      }
    }
    if (message.last) tell(`Round ${plain(lastName)} is finished.`);
  }

  let lastName = "";
  function heard(message) {
    switch (message.type) {
      case "run":
        facts.textContent = `Run ${id} · method ${message.method} · model ${message.model} · seed ${message.seed} · ${message.at.slice(0, 16).replace("T", " ")} UTC`;
        break;
      case "round":
        lastName = message.name;
        round(message);
        break;
      case "answer":
        card(message);
        break;
      case "note":
        rounds.append(el("p", { class: message.degraded ? "box care" : "note" }, el("strong", { text: message.degraded ? "Degraded: " : "Note: " }), said(message.detail)));
        break;
      case "comment":
        rounds.append(el("p", { class: "box" }, el("strong", {}, said(message.by), ": "), said(message.text)));
        break;
      case "waits":
        supervise(message);
        break;
      case "goes_on":
        doctor.replaceChildren();
        pause.disabled = false;
        break;
    }
  }

  async function whole() {
    await watch(id, heard, stop.signal);
    if (stop.signal.aborted) return;
    controls.replaceChildren();
    doctor.replaceChildren();
    const found = await ask(`/runs/${id}`);
    outcome.replaceChildren(result(found));
    talk.open = found.status !== "finished" || !found.results[0]?.differential.length;
    document.querySelector("h2").textContent = found.status === "finished" ? "Result" : `Run, ${found.status}`;
    tell(`The run is ${found.status}.`);
  }
  whole().catch((error) => trouble.replaceChildren(alarm(error)));
  return () => stop.abort();
}

/** "scot/differential + scot/triage" in words. */
export const plain = (name) => name.split(" + ").map((item) => item.split("/").pop().replaceAll("_", " ")).join(" + ");

