"""The fold of events into what a run looks like: laws over any sequence, and what each event changes."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ddx_local.events import (
    Answered,
    Asked,
    CaseFailed,
    CaseFinished,
    CaseStarted,
    Commented,
    Event,
    Noted,
    RoundStarted,
    RunFinished,
    RunStarted,
)
from ddx_local.view import Answer, CaseView, RunView, fold

HEADER = RunStarted(
    run_id="r1",
    method="scot",
    options={},
    model="tiny",
    fingerprint={},
    engine="scripted",
    seed=1,
    package_version="0",
    cases={"a": "sha-a", "b": "sha-b"},
)


def asked(round_: int, *key: str, case: str = "a", role: str = "", step: str = "scot/vote") -> Asked:
    return Asked(
        case_id=case, round=round_, key=key, step=step, role=role, slots={}, seed=0, temperature=0.3, digest="d"
    )


def answered(
    round_: int, *key: str, case: str = "a", tokens: int = 10, seconds: float = 1.0, text: str = "t"
) -> Answered:
    return Answered(
        case_id=case, round=round_, key=key, digest="d", text=text, finish_reason="stop",
        prompt_tokens=tokens, cached_tokens=tokens // 2, generated_tokens=tokens * 2, seconds=seconds,
    )  # fmt: skip


def started(
    round_: int, questions: int, *, batch: bool = True, case: str = "a", name: str = "scot/vote"
) -> RoundStarted:
    return RoundStarted(case_id=case, round=round_, name=name, questions=questions, batch=batch)


FAILED = CaseFailed(case_id="a", kind="LengthStop", message="m", hint="h", seconds=2.0)
FINISHED = CaseFinished(case_id="a", answer="sha", seconds=3.0)

CASES = st.sampled_from("abc")
KEYS = st.sampled_from([("x",), ("y",), ("x", "y")])
NUMBERS = st.integers(0, 3)
EVENTS = st.one_of(
    st.just(HEADER),
    CASES.map(lambda case: CaseStarted(case_id=case, text="sha")),
    st.builds(lambda n, q, b, c: started(n, q, batch=b, case=c), NUMBERS, NUMBERS, st.booleans(), CASES),
    st.builds(lambda n, k, c: asked(n, *k, case=c, role="r"), NUMBERS, KEYS, CASES),
    st.builds(lambda n, k, c, t: answered(n, *k, case=c, tokens=t), NUMBERS, KEYS, CASES, NUMBERS),
    st.builds(lambda n, c: Noted(case_id=c, round=n, kind="tie", detail="d"), NUMBERS, CASES),
    st.builds(lambda n, c: Commented(case_id=c, round=n, by="me", text="t"), NUMBERS, CASES),
    CASES.map(lambda case: CaseFinished(case_id=case, answer="sha", seconds=1.0)),
    CASES.map(lambda case: CaseFailed(case_id=case, kind="k", message="m", hint="h", seconds=1.0)),
    st.sampled_from(["finished", "cancelled"]).map(lambda s: RunFinished(status=s, finished=1, failed=0, seconds=1.0)),
)
SEQUENCES = st.lists(EVENTS, max_size=12)


@given(SEQUENCES, SEQUENCES)
def test_folding_in_two_parts_is_folding_at_once(first: list[Event], second: list[Event]) -> None:
    assert fold(first + second) == fold(second, fold(first))


@given(SEQUENCES)
def test_a_view_is_never_changed_in_place(events: list[Event]) -> None:
    views = [RunView()]
    shown = [repr(views[0])]
    for event in events:
        views.append(fold([event], views[-1]))
        shown.append(repr(views[-1]))
    assert [repr(view) for view in views] == shown


@given(SEQUENCES)
def test_events_of_one_case_do_not_touch_another(events: list[Event]) -> None:
    own = [event for event in events if event.case_id in ("", "a")]
    assert fold(events).cases.get("a") == fold(own).cases.get("a")


def test_nothing_is_an_empty_view() -> None:
    assert fold([]) == RunView(None, {}, "running")


def test_a_run_lists_its_cases_in_its_order_and_they_wait() -> None:
    view = fold([HEADER])
    assert view.header == HEADER
    assert list(view.cases.values()) == [CaseView("a"), CaseView("b")]
    assert {case.status for case in view.cases.values()} == {"waiting"}


def test_a_case_runs_and_finishes_and_the_run_ends() -> None:
    view = fold([HEADER, CaseStarted(case_id="a", text="sha-a")])
    assert (view.cases["a"].status, view.cases["a"].text, view.cases["b"].status) == ("running", "sha-a", "waiting")
    view = fold([FINISHED], view)
    assert (view.cases["a"].status, view.cases["a"].answer, view.cases["a"].seconds) == ("finished", "sha", 3.0)
    assert view.status == "running"
    assert fold([RunFinished(status="cancelled", finished=1, failed=0, seconds=1.0)], view).status == "cancelled"


def test_a_failed_case_keeps_its_failure_and_a_resumed_one_that_finishes_drops_it() -> None:
    view = fold([HEADER, CaseStarted(case_id="a", text="s"), FAILED])
    assert (view.cases["a"].status, view.cases["a"].failure) == ("failed", FAILED)
    done = fold([FINISHED], view).cases["a"]
    assert (done.status, done.failure, done.seconds) == ("finished", None, 5.0)


def test_a_resumed_run_is_running_again() -> None:
    view = fold([HEADER, RunFinished(status="cancelled", finished=0, failed=0, seconds=1.0)])
    assert view.status == "cancelled"
    assert fold([started(0, 1)], view).status == "running"


def test_a_round_collects_its_answers_and_is_done_with_the_last() -> None:
    events: list[Event] = [HEADER, started(3, 2), asked(3, "x", role="cardiologist"), asked(3, "y", role="neurologist")]
    (batch,) = fold(events).cases["a"].batches
    assert (batch.number, batch.name, batch.questions, batch.done) == (3, "scot/vote", 2, False)
    assert dict(batch.roles) == {("x",): "cardiologist", ("y",): "neurologist"}
    (batch,) = fold([*events, answered(3, "y", tokens=10, seconds=2.0, text="ty")]).cases["a"].batches
    assert not batch.done
    assert batch.answers == (Answer("neurologist", "scot/vote", "ty", 20, 2.0),)
    both = [*events, answered(3, "y", tokens=10, seconds=2.0), answered(3, "x", tokens=5, seconds=0.5)]
    (batch,) = fold(both).cases["a"].batches
    assert batch.done
    assert [answer.label for answer in batch.answers] == ["neurologist", "cardiologist"], "in the order they came in"
    figures = (batch.prompt_tokens, batch.prompt_tokens_computed, batch.generated_tokens, batch.seconds)
    assert figures == (15, 5 + 3, 30, 2.0)


def test_a_question_without_a_role_is_labelled_by_its_key_and_an_answer_bears_its_own_step() -> None:
    events: list[Event] = [
        HEADER,
        started(0, 2, name="mac/doctor + mac/judge"),
        asked(0, "left", "", step="mac/doctor"),
        asked(0, "right", "j", step="mac/judge"),
        answered(0, "left", ""),
        answered(0, "right", "j"),
    ]
    (batch,) = fold(events).cases["a"].batches
    assert [(answer.label, answer.step) for answer in batch.answers] == [
        ("left/", "mac/doctor"),
        ("right/j", "mac/judge"),
    ]


def test_consultations_and_notes_are_no_batches() -> None:
    events: list[Event] = [
        HEADER,
        started(0, 1, batch=False, name="similarity"),
        answered(0, "similarity"),
        started(1, 1, batch=False, name="note"),
        Noted(case_id="a", round=1, kind="tie", detail="x = y"),
        started(2, 1),
        asked(2, "x"),
        answered(2, "x"),
    ]
    case = fold(events).cases["a"]
    assert [batch.number for batch in case.batches] == [2]
    assert [note.detail for note in case.notes] == ["x = y"]


def test_an_answer_goes_to_its_own_round_only() -> None:
    events: list[Event] = [HEADER, started(0, 1), asked(0, "x"), answered(0, "x"), started(1, 1), asked(1, "x")]
    first, second = fold(events).cases["a"].batches
    assert (first.done, second.done) == (True, False)
    assert (len(first.answers), len(second.answers)) == (1, 0)
    first, second = fold([*events, answered(1, "x", text="later")]).cases["a"].batches
    assert [answer.text for answer in (*first.answers, *second.answers)] == ["t", "later"]


def test_comments_are_kept_in_order() -> None:
    said: list[Any] = [Commented(case_id="a", round=n, by="me", text=f"t{n}") for n in (1, 2)]
    assert list(fold([HEADER, *said]).cases["a"].comments) == said


def test_a_new_header_begins_anew() -> None:
    assert fold([HEADER, FAILED, HEADER]) == fold([HEADER])
