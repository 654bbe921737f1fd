// Buttons for what is done with runs: the model sums them up, one is deleted. What went wrong is shown in `place`.

import { ask } from "./api.js";
import { alarm, button, summary, tell } from "./dom.js";

/** Asks for a summary and shows it in `place`. */
export function summarising(text, path, body, place) {
  const made = button(text, async () => {
    made.disabled = true;
    try {
      place.replaceChildren(summary(await ask(path, { method: "POST", body })));
      tell("The summary is there.");
    } catch (error) {
      place.replaceChildren(alarm(error));
    }
    made.disabled = false;
  });
  return made;
}

/** Deletes a run, at the second press; `gone` is called when it is done. */
export function deleting(text, kind, runId, place, gone) {
  const made = button(text, async () => {
    if (made.dataset.sure !== "1") {
      made.dataset.sure = "1";
      made.textContent = "Delete for good?";
      return;
    }
    try {
      await ask(`/runs/${runId}`, { method: "DELETE" });
      gone();
    } catch (error) {
      place.replaceChildren(alarm(error));
    }
  }, kind);
  return made;
}
