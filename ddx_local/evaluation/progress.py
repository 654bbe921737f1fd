"""Progress of a benchmark: cases done, tokens a second, time left, cost. It hears events and nothing else."""

import time
from collections.abc import Callable, Mapping

from ddx_local.evaluation.metrics import cost
from ddx_local.events import Answered, CaseFailed, CaseFinished, Event


class Progress:
    """Counts what all runs of a benchmark do.

    Args:
        owed: (arm, model) -> cases that are still to be done.
        prices: Per million prompt and generated tokens; zeros show no cost.
        show: Gets a line about every `every` seconds and at the end.
        every: Seconds between lines.
        clock: For tests.
    """

    def __init__(
        self,
        owed: Mapping[tuple[str, str], int],
        prices: tuple[float, float],
        show: Callable[[str], None],
        every: float = 5.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.owed = dict(owed)
        self.total = sum(owed.values())
        self.prices = prices
        self.show = show
        self.every = every
        self.clock = clock
        self.began = self.shown = clock()
        self.done: dict[tuple[str, str], int] = dict.fromkeys(owed, 0)
        self.failed = 0
        self.prompt_tokens = 0
        self.generated_tokens = 0
        self._tokens: dict[tuple[str, str], int] = dict.fromkeys(owed, 0)

    def add(self, owed: Mapping[tuple[str, str], int]) -> None:
        """More cases than were known at the beginning (equal budget)."""
        for key, count in owed.items():
            self.owed[key] = self.owed.get(key, 0) + count
            self.done.setdefault(key, 0)
            self._tokens.setdefault(key, 0)
        self.total = sum(self.owed.values())

    def hear(self, arm: str, model: str, event: Event) -> None:
        key = (arm, model)
        if isinstance(event, Answered):
            self.prompt_tokens += event.prompt_tokens
            self.generated_tokens += event.generated_tokens
            self._tokens[key] = self._tokens.get(key, 0) + event.prompt_tokens + event.generated_tokens
        elif isinstance(event, CaseFinished | CaseFailed):
            self.done[key] = self.done.get(key, 0) + 1
            self.failed += isinstance(event, CaseFailed)
        else:
            return
        if self.clock() - self.shown >= self.every:
            self.shown = self.clock()
            self.show(self.line())

    def seconds_left(self) -> float | None:
        """From tokens: what an arm's cases use on average, and how fast all tokens come; None until every arm has one case."""
        spent = sum(self._tokens.values())
        elapsed = self.clock() - self.began
        if not spent or elapsed <= 0 or not all(self.done[key] for key, count in self.owed.items() if count):
            return None
        # A case that is under way has used tokens, too, so that an arm's mean comes down as its cases end.
        ahead = sum(
            (count - self.done[key]) * self._tokens[key] / self.done[key] for key, count in self.owed.items() if count
        )
        return ahead / (spent / elapsed)

    def line(self) -> str:
        """How far it is."""
        elapsed = max(self.clock() - self.began, 1e-9)
        left = self.seconds_left()
        parts = [
            f"{sum(self.done.values())} of {self.total} cases",
            f"{self.failed} failed",
            f"{self.generated_tokens / elapsed:.0f} generated tokens/s",
            f"{(self.prompt_tokens + self.generated_tokens) / 1e6:.2f} M tokens",
            f"{_span(left)} left" if left is not None else "time left unknown",
        ]
        if any(self.prices):
            parts.append(f"cost {cost(self.prompt_tokens, self.generated_tokens, *self.prices):.4f}")
        return ", ".join(parts)


def _span(seconds: float) -> str:
    whole = round(seconds)
    return (
        f"{whole // 3600} h {whole % 3600 // 60:02d} min" if whole >= 3600 else f"{whole // 60} min {whole % 60:02d} s"
    )
