"""What the benchmarks share: the project's cases, one real engine, an engine that notes what passes through it."""

import asyncio
import json
import statistics
import sys
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from ddx_local import jobs, launch, options
from ddx_local.case import Case
from ddx_local.engines.protocol import OnCompletion, Tokens
from ddx_local.events import CaseFailed, CaseFinished, Event
from ddx_local.request import Completion, Loglikelihood, LoglikelihoodRequest, Request, Size
from ddx_local.settings import Settings
from ddx_local.store import Store

T = TypeVar("T")
CASES = Path(__file__).resolve().parent.parent / "cases"


def vignettes(count: int) -> tuple[Case, ...]:
    """The first cases by name."""
    return tuple(Case(path.stem, path.read_text("utf-8")) for path in sorted(CASES.glob("*.txt"))[:count])


@cache
def loop() -> asyncio.AbstractEventLoop:
    return asyncio.new_event_loop()


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run on the one loop that the shared engine lives on."""
    return loop().run_until_complete(work)


@cache
def opened() -> launch.Opened:
    """The embedded model in the real engine, float32, as `diagnose` opens it, but without kept probabilities."""
    return run(launch.open_all(Settings(probability_cache=False), embedding=True, say=lambda _: None))


@cache
def gate() -> asyncio.Semaphore:
    """As many cases in flight as the program has by default: more would push each other's prompts out of the KV cache."""
    return asyncio.Semaphore(Settings().at_once)


def ended(what: str) -> Callable[[Event, Mapping[str, str]], None]:
    """A listener that says on standard error which case has ended."""
    began = time.perf_counter()

    def hear(event: Event, _: Mapping[str, str]) -> None:
        if isinstance(event, CaseFinished | CaseFailed):
            how = "finished" if isinstance(event, CaseFinished) else "FAILED"
            print(f"  {time.perf_counter() - began:.0f} s: {what}, {event.case_id} {how}", file=sys.stderr, flush=True)

    return hear


class Noting:
    """Passes everything on to an engine; keeps the batches, what was answered, and the seconds spent inside."""

    def __init__(self, engine: Any) -> None:
        self.engine = engine
        self.batches: list[list[Request]] = []
        self.answered: list[tuple[Request, Completion]] = []
        self.seconds = 0.0

    @property
    def fingerprint(self) -> Mapping[str, str]:
        return dict(self.engine.fingerprint)

    async def generate(
        self, requests: Sequence[Request], on_completion: OnCompletion | None = None
    ) -> Sequence[Completion]:
        self.batches.append(list(requests))
        began = time.perf_counter()
        completions: Sequence[Completion] = await self.engine.generate(requests, on_completion)
        self.seconds += time.perf_counter() - began
        self.answered += zip(requests, completions, strict=True)
        return completions

    async def loglikelihood(self, requests: Sequence[LoglikelihoodRequest]) -> Sequence[tuple[Loglikelihood, ...]]:
        found: Sequence[tuple[Loglikelihood, ...]] = await self.engine.loglikelihood(requests)
        return found

    async def tokens(self, requests: Sequence[LoglikelihoodRequest]) -> Sequence[Tokens]:
        found: Sequence[Tokens] = await self.engine.tokens(requests)
        return found

    async def measure(self, requests: Sequence[Request]) -> Sequence[Size]:
        found: Sequence[Size] = await self.engine.measure(requests)
        return found

    async def aclose(self) -> None:
        return None


def scot(cases: Sequence[Case], engine: Any, *, seed: int = 0, store: Store | None = None, **values: Any) -> Any:
    """Run SCoT on cases with an engine; returns the result documents."""
    return run(scot_run(cases, engine, seed=seed, store=store, **values))


async def scot_run(
    cases: Sequence[Case], engine: Any, *, seed: int = 0, store: Store | None = None, **values: Any
) -> Any:
    """As `scot`, for runs that share the engine."""
    method = jobs.method("scot")
    chosen = options.parse(method.options, {name: str(value) for name, value in values.items()}, "scot")
    job = jobs.Job(method, chosen, "smollm2-135m", "vllm", seed, {}, tuple(cases))
    place = store or Store(None)
    consultants = opened().consultants
    run_id = await jobs.start(job, launch.Opened(engine, consultants), place, ended(f"scot, seed {seed}"), gate())
    return jobs.documents(place, run_id)


def forget() -> None:
    """Empty the shared engine's prefix cache: every measurement begins cold."""
    run(opened().engine.forget())  # type: ignore[attr-defined]


def median(values: Sequence[float]) -> float:
    return float(statistics.median(values))


def parse(text: str) -> Any:
    """A parser that knows nothing of grammars."""
    return json.loads(text)
