"""Many cases at once: a failed case is a value, an engine that dies ends the run, nothing recorded is lost."""

import asyncio
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ddx_local.case import Case, Differential, Entry, Evidence, Quote
from ddx_local.engines.scripted import ScriptedEngine
from ddx_local.engines.tasks import all_or_first_error
from ddx_local.errors import CaseError, EngineError, ModelError, OfflineViolation, ReplayMismatch, StoreError
from ddx_local.events import Answered, Asked, CaseFailed, CaseFinished, Event, RunFinished
from ddx_local.flow import Flow, ask
from ddx_local.request import Request
from ddx_local.run import run_cases
from tests.test_rounds import kinds, timeless
from tests.toy import CANARY, CASES, SAY, Toy, differential, said, talk


def failing_for(case_id: str, error: Exception) -> Callable[[Case], Flow[Differential]]:
    """The toy flow, but for one case whose second step raises."""

    def flow(case: Case) -> Flow[Differential]:
        first = yield from ask(SAY, role="first", case=case.text)
        if case.id == case_id:
            raise error
        return differential(first)

    return flow


def finished(toy: Toy) -> list[RunFinished]:
    return [event for event in toy.events() if isinstance(event, RunFinished)]


# --- results and order --------------------------------------------------------------------------------------------------


def test_results_and_each_case_s_events_are_the_same_however_many_cases_are_in_flight(tmp_path: Path) -> None:
    results, events = [], []
    for at_once in (1, 2, 4):
        toy = Toy(tmp_path).start()
        results.append(toy.drive(ScriptedEngine(said, delay=0.001), at_once=at_once))
        events.append([timeless(toy.events(case.id)) for case in CASES])
    assert list(results[0]) == [case.id for case in CASES]
    assert all(isinstance(result, Differential) for result in results[0].values())
    assert results[0] == results[1] == results[2]
    assert events[0] == events[1] == events[2]


def test_the_result_of_a_case_does_not_depend_on_the_other_cases(tmp_path: Path) -> None:
    together = Toy(tmp_path).start().drive(at_once=3)
    alone = Toy(tmp_path, cases=CASES[1:2]).start().drive()
    reversed_ = Toy(tmp_path, cases=CASES[::-1]).start().drive(at_once=3)
    assert alone["bea"] == together["bea"] == reversed_["bea"]
    assert len({repr(result) for result in together.values()}) == 3, "and every case has its own seeds"


def test_at_once_bounds_the_cases_in_flight_and_reaches_the_bound(tmp_path: Path) -> None:
    toy = Toy(tmp_path, cases=[Case(f"case {number}", "a cough for two days") for number in range(6)]).start()
    most = 0

    def reply(request: Request) -> str:
        nonlocal most
        open_cases = sum({"CaseStarted": 1, "CaseFinished": -1}.get(kind, 0) for kind in kinds(toy.events()))
        most = max(most, open_cases)
        return said(request)

    toy.drive(ScriptedEngine(reply, delay=0.001), at_once=3)
    assert most == 3


def test_no_cases_is_an_empty_result(tmp_path: Path) -> None:
    toy = Toy(tmp_path, cases=()).start()
    assert toy.drive() == {}
    assert kinds(toy.events()) == ["RunStarted", "RunFinished"]


# --- failures of a case -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("at_once", [1, 3])
def test_a_failed_case_is_a_value_and_the_others_go_on(at_once: int, tmp_path: Path) -> None:
    toy = Toy(tmp_path, failing_for("bea", CaseError("something of the case", "do this"))).start()
    results = toy.drive(at_once=at_once)
    failure = results["bea"]
    assert isinstance(failure, CaseFailed)
    assert (failure.kind, failure.message, failure.hint) == ("CaseError", "something of the case", "do this")
    assert isinstance(results["ann"], Differential)
    assert isinstance(results["cyd"], Differential)
    (end,) = finished(toy)
    assert (end.status, end.finished, end.failed) == ("finished", 2, 1)


@pytest.mark.parametrize(
    "error", [ValueError(f"{CANARY} is wrong"), KeyError(CANARY), AssertionError(CANARY), RecursionError(CANARY)]
)
def test_a_fault_of_the_program_fails_its_case_without_saying_what_the_error_quotes(
    error: Exception, tmp_path: Path
) -> None:
    toy = Toy(tmp_path, failing_for("bea", error)).start()
    failure = toy.drive()["bea"]
    assert isinstance(failure, CaseFailed)
    assert failure.kind == "InternalError"
    assert type(error).__name__ in failure.message
    assert "in flow, line" in failure.message
    assert CANARY not in repr(toy.events())


def test_a_quote_that_is_not_the_case_s_fails_the_case_instead_of_being_reported(tmp_path: Path) -> None:
    def lying(case: Case) -> Flow[Differential]:
        quote = Quote("gout", 0, 4)
        entry = Entry(1, "gout", 1.0, evidence=(Evidence(quote, supports=True, by=("first",)),))
        yield from ask(SAY, role="first", case=case.text)
        return Differential("votes", (entry,))

    toy = Toy(tmp_path, lying, cases=CASES[:1]).start()
    (failure,) = toy.drive().values()
    assert isinstance(failure, CaseFailed)
    assert failure.kind == "InternalError"
    assert "CaseFinished" not in kinds(toy.events())


# --- what ends the whole run --------------------------------------------------------------------------------------------


class Dying(ScriptedEngine):
    """Dead from its n-th answer on."""

    def __init__(self, error: BaseException, at: int) -> None:
        super().__init__(self.answer)
        self.error, self.left = error, at

    def answer(self, request: Request) -> str:
        self.left -= 1
        if self.left <= 0:
            raise self.error
        return said(request)


@pytest.mark.parametrize("at_once", [1, 3])
@pytest.mark.parametrize("at", [1, 3, 9])
def test_an_engine_that_dies_ends_the_run_and_what_was_recorded_stays_and_is_not_asked_again(
    at: int, at_once: int, tmp_path: Path
) -> None:
    expected = Toy(tmp_path).start().drive()
    toy = Toy(tmp_path).start()
    with pytest.raises(EngineError, match="it died"):
        toy.drive(Dying(EngineError("it died"), at), at_once=at_once)
    answered = [event for event in toy.events() if isinstance(event, Answered) and event.text]
    assert len(answered) == at - 1
    assert [event.status for event in finished(toy)] == ["cancelled"]
    assert "CaseFailed" not in kinds(toy.events())
    engine = ScriptedEngine(said)
    assert toy.drive(engine, at_once=at_once) == expected
    assert len(engine.requests) == 12 - len(answered)


@pytest.mark.parametrize(
    "error", [StoreError("disk full"), ModelError("changed"), OfflineViolation("closed"), ReplayMismatch("other")]
)
def test_what_is_not_the_case_s_own_failure_ends_the_run(error: Any, tmp_path: Path) -> None:
    toy = Toy(tmp_path, failing_for("bea", error)).start()
    with pytest.raises(type(error), match=str(error)):
        toy.drive()
    assert "CaseFailed" not in kinds(toy.events())
    ended = [event.case_id for event in toy.events() if isinstance(event, CaseFinished)]
    assert "ann" in ended
    assert "bea" not in ended


def test_a_store_that_fails_ends_the_run_with_its_own_error_even_if_the_end_cannot_be_recorded(tmp_path: Path) -> None:
    toy = Toy(tmp_path).start()
    write, left = toy.store.append, 5

    def append(run_id: str, events: Any, texts: Any = ()) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise StoreError("the disk is full")
        write(run_id, events, texts)

    toy.store.append = append  # type: ignore[method-assign]
    with pytest.raises(StoreError, match="the disk is full"):
        toy.drive(at_once=2)
    assert len(toy.events()) >= 5
    toy.store.append = write  # type: ignore[method-assign]
    assert toy.drive() == Toy(tmp_path).start().drive()


# --- cancelling ---------------------------------------------------------------------------------------------------------


def cancelled_in_the_middle(toy: Toy, *, at_once: int) -> ScriptedEngine:
    """Cancel the run when its fifth answer is there."""
    engine = ScriptedEngine(said, delay=0.002)

    async def whole() -> None:
        contexts = {case.id: toy.context(case, engine) for case in toy.cases}
        work = run_cases(toy.cases, toy.flow, lambda case: contexts[case.id], toy._append, at_once=at_once)
        task = asyncio.create_task(work)
        while len(engine.requests) < 5:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert len(asyncio.all_tasks()) == 1, "nothing goes on in the background"

    asyncio.run(whole())
    return engine


@pytest.mark.parametrize("at_once", [1, 3])
def test_cancelling_in_the_middle_is_recorded_keeps_every_answer_and_can_be_resumed(
    at_once: int, tmp_path: Path
) -> None:
    toy = Toy(tmp_path).start()
    first = cancelled_in_the_middle(toy, at_once=at_once)
    (end,) = finished(toy)
    assert end.status == "cancelled"
    assert toy.events()[-1] == end, "nothing is recorded after the end"
    assert toy.store.runs()[0].status == "cancelled"
    assert "CaseFailed" not in kinds(toy.events())
    answered = [event for event in toy.events() if isinstance(event, Answered) and event.text]
    assert len(answered) == len(first.requests)
    second = ScriptedEngine(said)
    assert toy.drive(second) == Toy(tmp_path).start().drive()
    assert len(first.requests) + len(second.requests) == 12
    asked = [(event.case_id, event.round, event.key) for event in toy.events() if isinstance(event, Asked)]
    assert len(asked) == len(set(asked)) == 15
    assert toy.store.runs()[0].status == "finished"


def test_cancelling_closes_the_flows_so_that_they_can_clean_up(tmp_path: Path) -> None:
    closed: list[str] = []
    kept: list[Flow[Differential]] = []  # what nobody refers to would be closed anyway

    def watched(case: Case) -> Flow[Differential]:
        try:
            return (yield from talk(case))
        finally:
            closed.append(case.id)

    def make(case: Case) -> Flow[Differential]:
        kept.append(watched(case))
        return kept[-1]

    cancelled_in_the_middle(Toy(tmp_path, make).start(), at_once=3)
    assert sorted(closed) == ["ann", "bea", "cyd"]


def test_the_end_of_a_resumed_run_counts_the_cases_that_were_finished_before(tmp_path: Path) -> None:
    toy = Toy(tmp_path, cases=CASES[1:]).start()

    async def rest() -> None:
        engine = ScriptedEngine(said)
        await run_cases(
            toy.cases, toy.flow, lambda case: toy.context(case, engine), toy._append, at_once=1, finished_before=1
        )

    asyncio.run(rest())
    assert [(event.finished, event.failed) for event in finished(toy)] == [(3, 0)]


# --- the wait for several coroutines ------------------------------------------------------------------------------------


async def test_the_first_error_stops_the_rest_and_waits_for_it_to_end() -> None:
    log = []

    async def slow() -> None:
        try:
            await asyncio.sleep(30)
        finally:
            await asyncio.sleep(0.01)
            log.append("ended")

    async def wrong() -> None:
        await asyncio.sleep(0)
        raise EngineError("first")

    with pytest.raises(EngineError, match="first"):
        await all_or_first_error([slow(), wrong(), slow()])
    assert log == ["ended", "ended"]


async def test_results_come_in_the_order_of_the_work_and_no_work_is_no_result() -> None:
    async def after(seconds: float) -> float:
        await asyncio.sleep(seconds)
        return seconds

    assert await all_or_first_error([after(0.02), after(0.0), after(0.01)]) == [0.02, 0.0, 0.01]
    assert await all_or_first_error([]) == []


def test_a_run_needs_no_thread_of_its_own(tmp_path: Path) -> None:
    before = threading.active_count()
    Toy(tmp_path).start().drive(at_once=3)
    assert threading.active_count() == before


def test_events_of_two_cases_in_flight_never_mix(tmp_path: Path) -> None:
    toy = Toy(tmp_path).start()
    toy.drive(ScriptedEngine(said, delay=0.001), at_once=3)
    interleaved = [event.case_id for event in toy.events() if event.case_id]
    assert interleaved != sorted(interleaved), "the cases do run at the same time"
    texts = dict(toy.store.all_texts("r1"))
    for case in CASES:
        events: tuple[Event, ...] = toy.events(case.id)
        assert all(replace(event, case_id=case.id) == event for event in events)
        for event in events:
            if isinstance(event, Asked):
                assert texts[event.slots["case"]] == case.text
