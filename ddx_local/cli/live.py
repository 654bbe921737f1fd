"""The live view: each round as it finishes, who said what, tokens a second. It reads events and nothing else.

It writes to standard error, so that standard output holds results alone. On a terminal a status line shows what runs now;
elsewhere the same lines are printed plainly.
"""

import sys
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.markup import escape

from ddx_local.cli.say import summary
from ddx_local.events import Answered, CaseFailed, CaseFinished, Commented, Event, Noted, RoundStarted, RunStarted
from ddx_local.view import CaseView, RunView, step


class LiveView:
    """Hears events (`hear`) and shows them; `quiet` shows nothing but still keeps the view."""

    def __init__(self, *, quiet: bool = False) -> None:
        self.view = RunView()
        self.quiet = quiet
        self._console = Console(stderr=True, highlight=False, soft_wrap=True)
        self._status: Any = None
        self._texts: dict[str, str] = {}
        self._began: dict[tuple[str, int], float] = {}

    @property
    def run_id(self) -> str:
        return self.view.header.run_id if self.view.header else ""

    def __enter__(self) -> "LiveView":
        if not self.quiet and sys.stderr.isatty():
            self._status = self._console.status("starting")
            self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._status is not None:
            self._status.stop()

    def say(self, line: str) -> None:
        """A line about what the program does now."""
        if self._status is not None:
            self._status.update(escape(line))
        elif not self.quiet:
            self._console.print(escape(line), style="dim")

    def ask(self, line: str) -> None:
        """A line to a person who is to type something; it is shown in a quiet view too."""
        if self._status is not None:
            self._status.stop()
        self._console.print(escape(line), style="bold")

    def hear(self, event: Event, texts: Mapping[str, str]) -> None:
        """Take in one event; the view's own faults must not end a run, so it only reads what it needs."""
        before = self.view.cases.get(event.case_id)
        self.view = step(self.view, event)
        if self.quiet:
            return
        case = self.view.cases.get(event.case_id)
        if isinstance(event, RunStarted):
            cases = f"{len(event.cases)} cases" if len(event.cases) > 1 else "one case"
            self._console.print(
                escape(f"{event.method} on {event.model}: {cases}, seed {event.seed}, run {event.run_id}")
            )
        elif isinstance(event, RoundStarted) and event.batch:
            self._began[(event.case_id, event.round)] = time.perf_counter()
        elif isinstance(event, Answered):
            self._texts |= {event.text: texts[event.text]} if event.text in texts else {}
            self._answered(event, before, case)
        elif isinstance(event, Commented):
            self._line(case, f"  [bold]{escape(event.by)}[/bold]: {escape(event.text)}")
        elif isinstance(event, Noted):
            self._line(case, f"[dim]  note: {escape(event.detail)}[/dim]")
        elif isinstance(event, CaseFailed):
            self._line(case, f"[red]  failed: {escape(event.message)}[/red]")
        elif isinstance(event, CaseFinished) and len(self.view.cases) > 1:
            done = sum(item.status in ("finished", "failed") for item in self.view.cases.values())
            self._console.print(escape(f"{event.case_id}: finished ({done} of {len(self.view.cases)})"))
        self._update()

    def _answered(self, event: Answered, before: CaseView | None, case: CaseView | None) -> None:
        batch = next((item for item in case.batches if item.number == event.round), None) if case else None
        old = next((item for item in before.batches if item.number == event.round), None) if before else None
        if batch is None or not batch.done or (old is not None and old.done):
            return
        began = self._began.pop((event.case_id, event.round), None)
        seconds = time.perf_counter() - began if began is not None else batch.seconds
        rate = f"{batch.generated_tokens / seconds:.0f} tokens/s" if seconds > 0 else ""
        self._line(case, f"[bold]{escape(batch.name)}[/bold]  {seconds:.1f} s, {batch.generated_tokens} tokens, {rate}")
        if len(self.view.cases) == 1:
            order = {label: place for place, label in enumerate(batch.roles.values())}
            for answer in sorted(batch.answers, key=lambda item: order[item.label]):
                who = f"[cyan]{escape(answer.label)}[/cyan]: " if answer.label else ""
                text = self._texts.get(answer.text, "")
                if text:  # probabilities have none
                    self._console.print(f"  {who}{escape(summary(answer.step, text))}")

    def _line(self, case: CaseView | None, line: str) -> None:
        prefix = f"{escape(case.case_id)}: " if case is not None and len(self.view.cases) > 1 else ""
        self._console.print(prefix + line)

    def _update(self) -> None:
        if self._status is None:
            return
        self._status.start()
        running = [case for case in self.view.cases.values() if case.status == "running" and case.batches]
        if len(self.view.cases) > 1:
            done = sum(case.status in ("finished", "failed") for case in self.view.cases.values())
            self._status.update(f"{done} of {len(self.view.cases)} cases finished, {len(running)} running")
        elif running:
            batch = running[0].batches[-1]
            self._status.update(f"{escape(batch.name)}: {len(batch.answers)} of {batch.questions} answers")
