"""Rounds of one case: seeds, what is recorded in which order, answers that are none, resuming and replaying a question."""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ddx_local.case import Case, Differential
from ddx_local.engines.scripted import ScriptedEngine
from ddx_local.errors import ContextLengthExceeded, ReplayMismatch
from ddx_local.events import Answered, Asked, CaseFailed, CaseStarted, Event, Noted, RoundStarted, sha256
from ddx_local.flow import Ask, Flow, Weigh, ask, ask_each, note, similarities, together, weigh
from ddx_local.request import Completion, LoglikelihoodRequest, Request
from ddx_local.rounds import question_seed
from tests.toy import CANARY, CASES, FILES, FREE, RATE, SAY, Toy, differential, said, talk

# --- seeds --------------------------------------------------------------------------------------------------------------

KEYS = st.lists(st.text(max_size=8), min_size=1, max_size=3).map(tuple)
PLACES = st.tuples(st.integers(0, 2**40), st.text(max_size=8), st.integers(0, 99), st.text(max_size=8), KEYS)


@given(PLACES, PLACES)
def test_a_seed_is_a_function_of_run_seed_case_round_step_and_key_and_differs_where_one_of_them_does(
    one: tuple[int, str, int, str, tuple[str, ...]], other: tuple[int, str, int, str, tuple[str, ...]]
) -> None:
    seed = question_seed(*one)
    assert 0 <= seed < 2**31
    assert question_seed(*one) == seed
    for place in range(5):
        mixed = list(one)
        mixed[place] = other[place]
        assert (question_seed(*mixed) == seed) == (one[place] == other[place])  # type: ignore[arg-type]


def test_the_parts_of_a_seed_cannot_run_into_each_other() -> None:
    seeds = [
        question_seed(1, "a", 2, "b", ("c", "d")),
        question_seed(1, "a", 2, "b", ("cd",)),
        question_seed(1, "a", 2, "bc", ("d",)),
        question_seed(1, 'a", 2, "b', 2, "b", ("c", "d")),
        question_seed(12, "a", 2, "b", ("c", "d")),
    ]
    assert len(set(seeds)) == len(seeds)


def test_a_seed_is_the_same_in_every_process_and_version() -> None:
    code = "from ddx_local.rounds import question_seed as q; print(q(7, 'ann', 3, 'scot/vote', ('Neurology',)))"
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    # Recorded runs hold seeds: another value here makes every one of them impossible to resume.
    assert int(child.stdout) == question_seed(7, "ann", 3, "scot/vote", ("Neurology",)) == 1222164221


def test_the_engine_gets_the_seeds_that_are_recorded_and_no_two_questions_share_one(tmp_path: Path) -> None:
    engine = ScriptedEngine(said)
    toy = Toy(tmp_path, cases=CASES[:1]).start()
    toy.drive(engine)
    asked = [event for event in toy.events() if isinstance(event, Asked)]
    seeds = {event.key: event.seed for event in asked if event.step != "toy/rate"}
    assert [request.sampling.seed for request in engine.requests] == list(seeds.values())
    assert len(set(seeds.values())) == len(seeds) == 4
    for event in asked:
        assert event.seed == question_seed(0, "ann", event.round, event.step, event.key)


# --- what is recorded ---------------------------------------------------------------------------------------------------


def kinds(events: tuple[Event, ...]) -> list[str]:
    return [type(event).__name__ for event in events]


def test_events_stand_in_the_order_in_which_things_happen(tmp_path: Path) -> None:
    toy = Toy(tmp_path, cases=CASES[:1]).start()
    (answer,) = toy.drive().values()
    assert isinstance(answer, Differential)
    assert kinds(toy.events("ann")) == [
        "CaseStarted",
        *["RoundStarted", "Asked", "Answered"],  # one question
        *["RoundStarted", "Noted"],
        *["RoundStarted", "Asked", "Asked", "Answered", "Answered"],
        *["RoundStarted", "Answered"],  # similarity
        *["RoundStarted", "Answered"],  # size
        *["RoundStarted", "Asked", "Answered"],  # labels
        *["RoundStarted", "Asked", "Answered"],  # free text
        "CaseFinished",
    ]
    rounds = [event for event in toy.events("ann") if isinstance(event, RoundStarted)]
    assert [event.round for event in rounds] == list(range(7))
    assert [event.batch for event in rounds] == [True, False, True, False, False, True, True]


def test_what_is_asked_is_durable_before_the_engine_is_asked_and_each_answer_before_the_next(tmp_path: Path) -> None:
    toy = Toy(tmp_path, cases=CASES[:1]).start()
    seen: list[tuple[int, int]] = []

    def reply(request: Request) -> str:
        count = Counter(kinds(toy.events("ann")))
        seen.append((count["Asked"], count["Answered"]))
        return said(request)

    toy.drive(ScriptedEngine(reply))
    # (asked, answered) on disk when each of the four model answers is computed; 3 of the answered are no completions.
    assert seen == [(1, 0), (3, 1), (3, 2), (5, 6)]


def test_texts_are_kept_by_address_and_no_event_holds_one(tmp_path: Path) -> None:
    toy = Toy(tmp_path, cases=CASES[:1]).start()
    toy.drive()
    texts = dict(toy.store.all_texts("r1"))
    assert texts[sha256(CASES[0].text)] == CASES[0].text
    for event in toy.events("ann"):
        assert CANARY not in repr(event)
        if isinstance(event, Asked):
            assert texts[event.slots["case"]] == CASES[0].text
        if isinstance(event, Answered) and event.text:
            assert event.finish_reason == "stop"
            assert "said" in texts[event.text] or "free" in texts[event.text]


# --- answers that are none ----------------------------------------------------------------------------------------------

FAULTS: dict[str, Callable[[Request], str]] = {
    "LengthStop": lambda _: json.dumps({"say": "x" * 500}),
    "EmptyAnswer": lambda _: " \n ",
    "GrammarDeadEnd": lambda _: f'{{"say": "{CANARY}',
    "ParseError": lambda _: f"{CANARY} in free text",
}


def read_nothing(answer: Any) -> str:
    raise KeyError(answer)


def faulty_talk(case: Case) -> Flow[Differential]:
    """Two questions at once; the answer to the second one is wrong."""
    answers = yield from ask_each({role: Ask(SAY, {"case": case.text}, role) for role in ("right", "wrong")})
    free = yield from ask(replace(FREE, parse=read_nothing), case=case.text)
    return differential(*answers.values(), free)


def faulty(kind: str) -> Callable[[Request], str]:
    def reply(request: Request) -> str:
        wrong = request.sampling.seed == question_seed(0, "bea", 0, "toy/say", ("wrong",))
        if kind == "ParseError":
            return said(request) if request.grammar else FAULTS[kind](request)
        return FAULTS[kind](request) if wrong else said(request)

    return reply


@pytest.mark.parametrize("kind", FAULTS)
def test_an_answer_that_is_none_is_a_failure_of_its_kind_and_everything_is_recorded(kind: str, tmp_path: Path) -> None:
    toy = Toy(tmp_path, flow=faulty_talk, cases=CASES[1:2]).start()
    (failure,) = toy.drive(ScriptedEngine(faulty(kind))).values()
    assert isinstance(failure, CaseFailed)
    assert failure.kind == kind
    assert f"step `toy/{'free' if kind == 'ParseError' else 'say'}`" in failure.message
    assert failure.hint
    assert CANARY not in repr(toy.events())
    events = toy.events("bea")
    assert events[-1] == failure or replace(events[-1], at="", case_id="") == failure
    answered = [event for event in events if isinstance(event, Answered)]
    assert len(answered) == (3 if kind == "ParseError" else 2), "the good answer of the round is kept, and the bad one"
    assert "CaseFinished" not in kinds(events)


class Ending(ScriptedEngine):
    """Ends every answer with a reason of one's choice."""

    def __init__(self, reply: Callable[[Request], str], reason: Any) -> None:
        super().__init__(reply)
        self.reason = reason

    async def generate(self, requests: Any, on_completion: Any = None) -> Any:
        def record(index: int, completion: Completion) -> None:
            on_completion(index, replace(completion, finish_reason=self.reason))

        return [replace(item, finish_reason=self.reason) for item in await super().generate(requests, record)]


@pytest.mark.parametrize(
    ("text", "reason", "kind"),
    [
        ('{"say": "half', "abort", "GrammarDeadEnd"),
        ('{"say": "whole"}', "abort", "GrammarDeadEnd"),
        ("", "abort", "EmptyAnswer"),
        ('{"say": "whole"}', "length", "LengthStop"),
    ],
)
def test_no_finish_reason_makes_a_good_answer_of_a_bad_one(text: str, reason: str, kind: str, tmp_path: Path) -> None:
    toy = Toy(tmp_path, cases=CASES[:1]).start()
    (failure,) = toy.drive(Ending(lambda _: text, reason)).values()
    assert isinstance(failure, CaseFailed)
    assert failure.kind == kind


def test_a_prompt_that_does_not_fit_is_refused_with_the_numbers_and_nothing_is_computed(tmp_path: Path) -> None:
    engine = ScriptedEngine(said, context=120)
    toy = Toy(tmp_path, cases=CASES[:1]).start()
    (failure,) = toy.drive(engine).values()
    assert isinstance(failure, CaseFailed)
    assert failure.kind == "ContextLengthExceeded"
    prompt = len("You test.CASE\n\n\nSay something.") + len(CASES[0].text)
    assert f"toy/say: {prompt} prompt tokens" in failure.message
    assert failure.message.endswith("the context holds 120")
    assert "--agents" in failure.hint
    assert engine.requests == []


# --- resuming and replaying ---------------------------------------------------------------------------------------------


class Killed(BaseException):
    """Ends a run as a signal would, in the middle of an append."""


def cut_after(toy: Toy, appends: int) -> None:
    """Drive until so many appends are durable, then end as if killed: nothing more is written."""
    left = appends
    write = toy.store.append

    def append(run_id: str, events: Any, texts: Any = ()) -> None:
        nonlocal left
        if left == 0:
            raise Killed
        left -= 1
        write(run_id, events, texts)

    toy.store.append = append  # type: ignore[method-assign]
    try:
        toy.drive()
    except Killed:
        pass
    finally:
        toy.store.append = write  # type: ignore[method-assign]


def timeless(events: tuple[Event, ...]) -> list[Event]:
    fixed: list[Event] = []
    for event in events:
        changes: dict[str, Any] = {"at": ""}
        if hasattr(event, "seconds"):
            changes["seconds"] = 0.0
        fixed.append(replace(event, **changes))
    return fixed


def test_a_case_that_is_cut_after_any_append_resumes_to_the_same_events_without_asking_again(tmp_path: Path) -> None:
    whole = Toy(tmp_path, cases=CASES[:1]).start()
    expected = whole.drive()
    events = timeless(whole.events("ann"))
    cut = 0
    while True:
        toy = Toy(tmp_path, cases=CASES[:1]).start()
        cut_after(toy, cut)
        before = toy.events("ann")
        if "CaseFinished" in kinds(before):
            break
        engine = ScriptedEngine(said)
        assert toy.drive(engine) == expected
        assert timeless(toy.events("ann")) == events, f"cut after {cut} appends"
        answered = {event.key for event in before if isinstance(event, Answered) and event.text}
        assert len(engine.requests) == 4 - len(answered)
        assert len(engine.scored) == (
            not any(isinstance(event, Answered) and event.key == ("which",) for event in before)
        )
        cut += 1
    assert cut == 20


def test_labels_that_were_scored_are_not_scored_again(tmp_path: Path) -> None:
    def rate(case: Case) -> Flow[Differential]:
        scores = yield from weigh({"which": Weigh(RATE, {"case": case.text}, ("flu", "gout"))})
        return differential(*(f"{score.label} {score.logprob} {score.tokens}" for score in scores["which"]))

    def score(_: LoglikelihoodRequest, label: str) -> float:
        return -0.1 - len(label) / 3

    toy = Toy(tmp_path, flow=rate, cases=CASES[:1]).start()
    engine = ScriptedEngine(said, score=score)
    first = toy.drive(engine)
    assert toy.drive(engine) == first
    assert len(engine.scored) == 1
    assert toy.drive(None) == first
    (request,) = engine.scored
    assert (request.answer_prefix, request.labels, request.what) == ("It is", ("flu", "gout"), "toy/rate")


def test_notes_of_one_round_are_recorded_together_even_where_they_are_alike(tmp_path: Path) -> None:
    def noting(case: Case) -> Flow[Differential]:
        yield from together({"left": note("tie", "alike"), "right": note("tie", "alike")})
        return differential((yield from ask(SAY, case=case.text)))

    for cut in range(6):
        toy = Toy(tmp_path, flow=noting, cases=CASES[:1]).start()
        cut_after(toy, cut)
        toy.drive()
        assert sum(isinstance(event, Noted) for event in toy.events("ann")) == 2, f"cut after {cut} appends"


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("prompts/toy/say.md", "Say something.", "Say something!"),
        ("prompts/toy/_shared.md", "You test.", "You tested."),
        ("grammars/toy/say.lark", "60", "61"),
        ("prompts/toy/say.md", "+++\nslots", "+++\ntop_p = 0.9\nslots"),
    ],
)
def test_a_changed_file_is_refused_before_anything_is_asked(
    file: str, old: str, new: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    toy = Toy(tmp_path, cases=CASES[:1]).start()
    cut_after(toy, 3)
    monkeypatch.setitem(FILES, file, FILES[file].replace(old, new))
    engine = ScriptedEngine(said)
    before = toy.events()
    with pytest.raises(
        ReplayMismatch, match=r"case `ann`, round 0 `toy/say`.*the prompt file, the grammar file"
    ) as caught:
        toy.drive(engine)
    assert CANARY not in str(caught.value)
    assert engine.requests == []
    assert toy.events() == before, "a refused resume adds nothing"


def hotter(case: Case) -> Flow[Differential]:
    return differential((yield from ask(SAY, role="first", temperature=0.9, case=case.text)))


def longer_case(case: Case) -> Flow[Differential]:
    return differential((yield from ask(SAY, role="first", case=case.text + " And gout.")))


def other_step(case: Case) -> Flow[Differential]:
    return differential((yield from ask(FREE, role="first", case=case.text)))


@pytest.mark.parametrize(
    ("flow", "seed", "named"),
    [
        (hotter, 0, "changed: temperature"),
        (longer_case, 0, "changed: slot `case`"),
        (other_step, 0, "changed: step, seed"),
        (talk, 1, "changed: seed"),
    ],
)
def test_a_question_that_is_not_the_recorded_one_is_refused_and_the_difference_is_named(
    flow: Any, seed: int, named: str, tmp_path: Path
) -> None:
    toy = Toy(tmp_path, cases=CASES[:1]).start()
    cut_after(toy, 3)
    toy.flow, toy.seed = flow, seed
    with pytest.raises(ReplayMismatch, match=named) as caught:
        toy.drive()
    assert CANARY not in str(caught.value)


def test_a_consultation_about_something_else_is_refused(tmp_path: Path) -> None:
    def compare(*pair: str) -> Any:
        def flow(_: Case) -> Flow[Differential]:
            (alike,) = yield from similarities([(pair[0], pair[1])])
            return differential(str(alike))

        return flow

    toy = Toy(tmp_path, flow=compare("flu", "gout"), cases=CASES[:1]).start()
    cut_after(toy, 3)
    toy.flow = compare("flu", "pseudogout")
    with pytest.raises(ReplayMismatch, match=r"round 0 `similarity`.*what is consulted about"):
        toy.drive()


def replayed(toy: Toy) -> Any:
    """Drive from the record alone."""
    import asyncio

    from ddx_local.run import drive

    async def one() -> Any:
        case = toy.cases[0]
        return await drive(toy.flow(case), case, toy.context(case, None, recording=False))

    return asyncio.run(one())


def test_a_replay_needs_no_engine_and_gives_the_same(tmp_path: Path) -> None:
    toy = Toy(tmp_path, cases=CASES[:1]).start()
    (answer,) = toy.drive().values()
    assert replayed(toy) == answer


@pytest.mark.parametrize("cut", range(1, 20))
def test_a_replay_of_an_interrupted_case_is_refused_with_what_to_do(cut: int, tmp_path: Path) -> None:
    toy = Toy(tmp_path, cases=CASES[:1]).start()
    cut_after(toy, cut)
    if cut == 19:  # every answer is there, only the end is not
        assert isinstance(replayed(toy), Differential)
        return
    with pytest.raises(ReplayMismatch, match=r"the run holds no answer.*interrupted") as caught:
        replayed(toy)
    assert "runs resume" in caught.value.hint


@pytest.mark.parametrize("kind", [*FAULTS, "ContextLengthExceeded"])
def test_a_replay_of_a_failed_case_fails_in_the_same_way(kind: str, tmp_path: Path) -> None:
    toy = Toy(tmp_path, flow=faulty_talk, cases=CASES[1:2]).start()
    engine = (
        ScriptedEngine(said, context=120) if kind == ContextLengthExceeded.__name__ else ScriptedEngine(faulty(kind))
    )
    toy.drive(engine)
    failure = replayed(toy)
    assert isinstance(failure, CaseFailed)
    assert failure.kind == kind


def test_a_case_that_failed_is_tried_again_on_a_resume_and_its_second_failure_is_recorded(tmp_path: Path) -> None:
    toy = Toy(tmp_path, cases=CASES[:1]).start()
    toy.drive(ScriptedEngine(said, context=120))
    toy.drive(ScriptedEngine(said, context=130))
    toy.drive(ScriptedEngine(said, context=130))
    failures = [event.message[-3:] for event in toy.events("ann") if isinstance(event, CaseFailed)]
    assert failures == ["120", "130"], "another failure is a fact of its own, the same one is not"
    (answer,) = toy.drive(ScriptedEngine(said)).values()
    assert isinstance(answer, Differential)
    assert kinds(toy.events("ann"))[-1] == "CaseFinished"
    assert sum(isinstance(event, CaseStarted) for event in toy.events("ann")) == 1
