"""The figures of counterfactual reasoning: their arithmetic, and that they can be taken, on an engine without a model."""

import json
import random
import zlib
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.speed.__main__ import BENCHMARKS
from bench.speed.counterfactual import SMALL, documents, ratio, scoring_calls
from bench.speed.shared import Noting, vignettes
from bench.speed.sign import SLACK, Span, mcnemar, measure, others_like, trial_of, without
from ddx_local.case import Case
from ddx_local.clinical.similarity import spelling_similarity
from ddx_local.engines.scripted import ScriptedEngine, by_policy
from ddx_local.flow import Similarity
from ddx_local.launch import Opened
from ddx_local.request import Completion, LoglikelihoodRequest, Message, Request, Sampling

TEXT = vignettes(1)[0].text


def opened(engine: Any) -> Opened:
    return Opened(engine, {Similarity: spelling_similarity})


def scored(request: LoglikelihoodRequest, label: str) -> float:
    return -1.0 - zlib.crc32(f"{request.messages[-1].content} {label}".encode()) % 4000 / 1000


# Tokens of an edit


def answered(what: str, text: str, tokens: int, edits: int) -> tuple[Request, Completion]:
    request = Request((Message("user", f"THE CASE\n{text}\n(end)"),), Sampling(), what=what)
    return request, Completion(json.dumps({"edits": [["remove", "lab", []]] * edits}), "stop", 900, 0, tokens)


def test_the_ratio_is_tokens_of_an_edit_over_tokens_of_its_case() -> None:
    cases = (Case("a", "one two three four"), Case("b", "five six"))
    found = [
        answered("counterfactual/edit", cases[0].text, 6, 2),
        answered("counterfactual/edit", cases[1].text, 2, 1),
        answered("counterfactual/report", cases[1].text, 1000, 1),
    ]
    assert ratio(found, cases, lambda text: len(text.split())) == pytest.approx((6 + 2) / (2 * 4 + 1 * 2))


def test_the_ratio_can_be_taken() -> None:
    noting = Noting(ScriptedEngine(by_policy("shortest")))
    documents(vignettes(1), opened(noting), **SMALL)
    assert sum(request.what == "counterfactual/edit" for request, _ in noting.answered) == 4
    # Bytes are tokens here. The shortest edits are one piece of the case and one letter.
    assert 0 < ratio(noting.answered, vignettes(1), lambda text: len(text.encode())) < 0.2


def test_a_case_that_failed_is_no_figure() -> None:
    with pytest.raises(RuntimeError, match=vignettes(1)[0].id):
        documents(vignettes(1), opened(ScriptedEngine(lambda _: "")), **SMALL)


# The second run


def test_the_second_run_computes_no_score() -> None:
    engine = ScriptedEngine(by_policy("walk"), score=scored)
    first, second = scoring_calls(vignettes(1), opened(engine))
    assert first == 1
    assert second == 0
    assert len({(request.messages, request.labels) for request in engine.scored}) == len(engine.scored)


# Sign test


def test_mcnemar_by_hand() -> None:
    yes, no = True, False
    assert mcnemar([yes] * 5, [no] * 5) == pytest.approx(2 / 32)
    assert mcnemar([no] * 5, [yes] * 5) == pytest.approx(2 / 32)
    assert mcnemar([yes, yes, yes, no, yes], [no, no, no, yes, yes]) == pytest.approx(2 * (1 + 4) / 16)
    assert mcnemar([yes, no], [yes, no]) == 1.0
    assert mcnemar([], []) == 1.0


@pytest.mark.parametrize("seed", range(5))
def test_other_words_are_as_long_whole_and_apart(seed: int) -> None:
    taken = (Span(0, TEXT.index(" ", 30)), Span(TEXT.index(" ", 200) + 1, TEXT.index(" ", 240)))
    found = others_like(TEXT, taken, random.Random(seed))
    assert found is not None
    assert sorted(found) == list(found)
    assert len(found) == len(taken)
    spans = sorted((*found, *taken))
    assert all(one.end <= two.start for one, two in pairwise(spans))
    for span in found:
        assert TEXT[: span.start] == "" or TEXT[span.start - 1].isspace()
        assert TEXT[span.end :] == "" or TEXT[span.end].isspace()
        assert TEXT[span.start : span.end].strip() == TEXT[span.start : span.end]
        assert min(abs(span.end - span.start - other.end + other.start) for other in taken) <= SLACK
    assert found == others_like(TEXT, taken, random.Random(seed))


def test_the_choice_of_other_words_depends_on_the_seed() -> None:
    taken = (Span(0, TEXT.index(" ", 30)),)
    assert len({others_like(TEXT, taken, random.Random(seed)) for seed in range(12)}) > 4


@settings(max_examples=20, deadline=None)
@given(st.integers(0, len(TEXT) - 60), st.integers(12, 60), st.integers(0, 99))
def test_other_words_never_touch_the_evidence(start: int, length: int, seed: int) -> None:
    taken = (Span(start, start + length),)
    found = others_like(TEXT, taken, random.Random(seed))
    assert found is not None
    assert found[0].end <= start or found[0].start >= start + length
    assert abs((found[0].end - found[0].start) - length) <= SLACK


def test_a_text_without_room_has_no_other_words() -> None:
    assert others_like("crushing chest pain", (Span(0, 19),), random.Random(0)) is None
    assert others_like("fever crushing chest pain", (Span(6, 25),), random.Random(0)) is None


def test_without_takes_exactly_the_spans() -> None:
    assert without("a bb ccc dddd", (Span(2, 4), Span(9, 13))) == "a  ccc "


def said(*names: str, evidence: tuple[tuple[int, int], ...] = ((0, 20),)) -> Any:
    placed = [{"start": start, "end": end} for start, end in evidence]
    return {"differential": [{"diagnosis": name, "evidence": placed} for name in names]}


def test_a_trial_takes_the_first_diagnosis_and_its_evidence() -> None:
    case = Case("a", TEXT)
    trial = trial_of(case, said("Gout", "Pseudogout", evidence=((5, 30), (20, 40))), 1)
    assert trial is not None
    assert trial.names == ("Gout", "Pseudogout")
    assert trial.without_evidence == TEXT[:5] + TEXT[40:]
    assert abs(len(trial.without_others) - len(trial.without_evidence)) <= SLACK
    assert trial.without_others != trial.without_evidence
    assert trial_of(case, said("Gout"), 1) is None, "the share of a single name is always one"
    assert trial_of(case, said("Gout", "Pseudogout", evidence=()), 1) is None
    assert trial_of(case, said(), 1) is None, "a case that failed"


def test_the_sign_test_sees_evidence_that_matters_and_none_that_does_not() -> None:
    """An engine whose probability is the share of the words of the evidence, against one that looks at nothing."""
    quote = "fever of 39.1 C "
    cases = tuple(
        Case(f"c{n}", f"Number {n} has had a {quote}since Monday, and walks his dog at night.") for n in range(6)
    )
    names = ("Malaria", "Gout")
    answer = {"differential": [{"diagnosis": name, "evidence": [quote], "reason": "R"} for name in names]}

    def looks(request: LoglikelihoodRequest, label: str) -> float:
        return -1.0 if label == "Malaria" and quote.strip() in request.messages[-1].content else -2.0

    reply = json.dumps(answer)
    found = measure(cases, opened(ScriptedEngine(lambda _: reply, score=looks)), 5)
    assert found == {
        "sign_test_cases": 5,
        "sign_test_seed": 20260701,
        "sign_test_evidence_share": 1.0,
        "sign_test_random_share": 0.0,
        "sign_test_mcnemar_p": pytest.approx(2 / 32),
    }
    blind = measure(cases, opened(ScriptedEngine(lambda _: reply)), 5)
    assert (blind["sign_test_evidence_share"], blind["sign_test_random_share"]) == (0, 0)
    assert blind["sign_test_mcnemar_p"] == 1.0


def test_cases_that_cannot_be_used_are_replaced_by_later_ones() -> None:
    quote = "fever of 39.1 C "
    cases = [Case(f"c{n}", f"He has had a {quote}since {n} days, and walks his dog at night.") for n in range(6)]
    cases[1:1] = [Case("bare", f"He has a {quote}")]
    answer = {"differential": [{"diagnosis": name, "evidence": [quote], "reason": "R"} for name in ("Flu x", "Gout")]}
    engine = ScriptedEngine(lambda _: json.dumps(answer), score=scored)
    assert measure(cases, opened(engine), 6)["sign_test_cases"] == 6
    assert measure(cases, opened(engine), 7)["sign_test_cases"] == 6


def test_the_figures_have_rows_in_the_table() -> None:
    assert {"edit_token_ratio", "counterfactual_second_run_scoring_calls", "sign_test"} <= set(BENCHMARKS)
