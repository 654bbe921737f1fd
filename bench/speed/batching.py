"""What batching pays: the same requests one after another, and as the program sends them."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from bench.speed.shared import Noting, forget, median, opened, run, scot, scot_run, vignettes
from ddx_local.request import Request

Rounds = Sequence[Sequence[Request]]


def one_case() -> dict[str, float]:
    """The rounds of five of one SCoT case: one by one / in batches; median of 3, each from a cold cache."""
    noting = Noting(opened().engine)
    scot(vignettes(1), noting)
    rounds = [batch for batch in noting.batches if len(batch) == 5]
    return {"scot_one_case_ratio": median([_one_by_one([rounds]) / _in_batches([rounds]) for _ in range(3)])}


def eight_cases() -> dict[str, float]:
    """Rounds 1 and 2 of eight SCoT cases: one by one / all cases at once; from a cold cache.

    One by one, the whole of eight cases would take an hour; two rounds of five hold all that is measured here.
    """
    noted = [(case, Noting(opened().engine)) for case in vignettes(8)]

    async def everything() -> None:
        short = "merge,refinement,voting,cant_miss"
        await asyncio.gather(*(scot_run([case], noting, without=short) for case, noting in noted))

    run(everything())
    cases = [[batch for batch in noting.batches if len(batch) == 5][:2] for _, noting in noted]
    return {"scot_eight_cases_ratio": _one_by_one(cases) / _in_batches(cases)}


def _one_by_one(cases: Sequence[Rounds]) -> float:
    async def work() -> None:
        for rounds in cases:
            for batch in rounds:
                for request in batch:
                    await opened().engine.generate([request])

    return _timed(work)


def _in_batches(cases: Sequence[Rounds]) -> float:
    async def one(rounds: Rounds) -> None:
        for batch in rounds:
            await opened().engine.generate(batch)

    async def work() -> None:
        await asyncio.gather(*(one(rounds) for rounds in cases))

    return _timed(work)


def _timed(work: Callable[[], Coroutine[Any, Any, None]]) -> float:
    forget()
    began = time.perf_counter()
    run(work())
    return time.perf_counter() - began
