// The panel's views by the address behind #: a new case, a run, the history.

import { ask } from "./api.js";
import { alarm, el, show } from "./dom.js";
import { editor } from "./editor.js";
import { history } from "./history.js";
import { run } from "./run.js";

let leave = () => {};
let state = null;

async function refresh() {
  try {
    state = await ask("/status");
  } catch (error) {
    document.getElementById("state").textContent = error.message;
    return;
  }
  document.getElementById("state").textContent = state.ready ? `Model ${state.model}, ready` : state.reason;
  document.getElementById("demo").hidden = !state.demo;
  document.getElementById("leave").hidden = !state.needs_key;
  document.getElementById("disclaimer").textContent = state.disclaimer;
}

async function route() {
  leave();
  leave = () => {};
  const [view, id] = location.hash.slice(1).split("/");
  for (const link of document.querySelectorAll("nav a")) {
    if (link.dataset.view === (view || "new")) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  try {
    if (view === "run" && id) leave = run(id);
    else if (view === "history") await history();
    else await editor(state);
  } catch (error) {
    show(el("h2", { text: "Not there" }), alarm(error));
  }
}

document.getElementById("leave").addEventListener("click", async () => {
  await ask("/session", { method: "DELETE" }).catch(() => {});
  location.replace("/");
});
document.querySelector("a.skip").addEventListener("click", (event) => {
  event.preventDefault();
  document.getElementById("main").focus();
});
window.addEventListener("hashchange", route);
await refresh();
await route();
setInterval(refresh, 10_000);
