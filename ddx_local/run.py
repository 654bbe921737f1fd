"""Drive flows: one case, many cases at once, the rest of an interrupted run, a recorded run without an engine.

`drive` is the only place that turns an exception into a failed case; the other cases go on.
"""

import asyncio
import contextlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from ddx_local.assets import Assets
from ddx_local.case import Case, Differential
from ddx_local.engines.protocol import Engine
from ddx_local.engines.tasks import all_or_first_error
from ddx_local.errors import CaseError, DdxLocalError, ReplayMismatch, StoreError
from ddx_local.events import CaseFailed, CaseFinished, CaseStarted, RunFinished, sha256
from ddx_local.flow import Flow
from ddx_local.recorder import Append, Context, RecordedFailure, Recorder, now
from ddx_local.result import differential_json
from ddx_local.rounds import Rounds

Gate = int | asyncio.Semaphore
"""Cases in flight: a number, or a semaphore that several runs share."""

T = TypeVar("T")


async def drive(flow: Flow[Differential], case: Case, context: Context) -> Differential | CaseFailed:
    """Run one case's flow to its end.

    Returns:
        The flow's answer, or the failure as a value; both are recorded.

    Raises:
        DdxLocalError: What is not this case's own failure (`CaseError`): of the engine, the store, the record, the
            network guard. What is recorded stays.
    """
    recorder = Recorder(case, context)
    started = time.perf_counter()
    try:
        recorder.add([CaseStarted(text=sha256(case.text))], [case.text])
        answer = await _advance(flow, Rounds(case, context, recorder))
        body = json.dumps(differential_json(answer, case.text), ensure_ascii=False)
    except Exception as error:
        if isinstance(error, DdxLocalError) and not isinstance(error, CaseError):
            raise
        failure = _failure(error, time.perf_counter() - started)
        recorder.add([failure])
        return failure
    finally:
        flow.close()
    recorder.add([CaseFinished(answer=sha256(body), seconds=time.perf_counter() - started)], [body])
    return answer


async def unrecorded(flow: Flow[T], case: Case, engine: Engine, seed: int = 0) -> T:
    """Drive a flow that belongs to no run: nothing of it is kept, and what fails is raised.

    Raises:
        DdxLocalError: The engine failed, or an answer is none.
    """
    context = Context(engine=engine, assets=Assets(), append=lambda _events, _texts: None, seed=seed)
    try:
        return await _advance(flow, Rounds(case, context, Recorder(case, context)))
    finally:
        flow.close()


async def _advance(flow: Flow[T], rounds: Rounds) -> T:
    try:
        round_ = next(flow)
        while True:
            round_ = flow.send(await rounds.answer(round_))
    except StopIteration as stop:
        answer: T = stop.value
        return answer


def _failure(error: Exception, seconds: float) -> CaseFailed:
    if isinstance(error, RecordedFailure):
        return error.failure
    if isinstance(error, DdxLocalError):
        return CaseFailed(kind=error.kind, message=error.message, hint=error.hint, seconds=seconds)
    # A fault of the program. The error's own text may quote the case, so only its type and place are kept.
    last = error.__traceback__
    while last and last.tb_next:
        last = last.tb_next
    place = f"{last.tb_frame.f_code.co_name}, line {last.tb_lineno}" if last else "unknown place"
    message = f"the program failed with {type(error).__name__} in {place}"
    return CaseFailed(kind="InternalError", message=message, hint="Please report this.", seconds=seconds)


async def run_cases(
    cases: Sequence[Case],
    flow_of: Callable[[Case], Flow[Differential]],
    context_of: Callable[[Case], Context],
    append: Append,
    *,
    at_once: Gate,
    finished_before: int = 0,
    counts: Callable[[], Mapping[str, int]] = dict,
) -> Mapping[str, Differential | CaseFailed]:
    """Drive many cases; the engine batches whatever is ready.

    Args:
        cases: The cases, with distinct ids.
        flow_of: Makes a case's flow.
        context_of: Makes a case's context (its history, when the run is resumed).
        append: Makes events durable.
        at_once: How many cases are in flight; a semaphore is shared with other runs on the same engine.
        finished_before: Cases that an interrupted run had finished; they count in its `RunFinished`.
        counts: What its `RunFinished` says beside that, as of its end.

    Returns:
        Case id -> answer or failure, in the order of `cases`.
    """
    began = time.perf_counter()
    gate = at_once if isinstance(at_once, asyncio.Semaphore) else asyncio.Semaphore(at_once)
    results: dict[str, Differential | CaseFailed] = {}

    async def one(case: Case) -> None:
        async with gate:
            results[case.id] = await drive(flow_of(case), case, context_of(case))

    def finish(status: str) -> None:
        failed = sum(isinstance(result, CaseFailed) for result in results.values())
        finished = finished_before + len(results) - failed
        seconds = time.perf_counter() - began
        end = RunFinished(
            at=now(), status=status, finished=finished, failed=failed, seconds=seconds, counts=dict(counts())
        )
        append([end], [])

    try:
        await all_or_first_error([one(case) for case in cases])
    except ReplayMismatch:
        raise  # refused: the run stays as it was
    except BaseException:
        with contextlib.suppress(StoreError):  # a full disk must not hide why the run ended
            finish("cancelled")
        raise
    finish("finished")
    return {case.id: results[case.id] for case in cases}
