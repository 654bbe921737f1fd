"""Escalation: which way it goes, by which of its two signals, what the note says, and that the panel is SCoT itself."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from ddx_local.case import Case, Differential
from ddx_local.flow import Ask
from ddx_local.methods import scot_options
from ddx_local.methods.escalate import Options, auto
from ddx_local.methods.scot import scot
from tests.methods.driving import Driven, World, drive
from tests.methods.scot_world import CASE, panel, proposal

SINGLE = ("Malaria", "Gout", "Pericarditis")
DIFFERENTIAL, PROBABILITY = "zero_shot/differential", "counterfactual/probability"


def run(
    agree: int = 5,
    shares: Sequence[float] = (0.8, 0.1, 0.1),
    single: Sequence[str] = SINGLE,
    sample: Callable[[int], Sequence[str]] | None = None,
    **options: Any,
) -> Driven[Differential]:
    """The first `agree` samples begin as the single agent does, the others with Gout."""

    def answer(ask: Ask[Any]) -> Any:
        names = single
        if ask.role != "physician":
            number = int(ask.role.split()[-1])
            names = sample(number) if sample else single if number <= agree else ("Gout", "Malaria")
        return {"differential": [proposal(name, "R") for name in names]}

    chances = dict(zip(single, shares, strict=True))
    world = World({**panel(), DIFFERENTIAL: answer}, probability=lambda _, label: chances[label] / 10)
    return drive(auto(CASE, Options(**options)), world)


def escalated(driven: Driven[Differential]) -> bool:
    """Whether the panel was asked; exactly one note tells which way it went."""
    assert len(driven.noted("escalated")) + len(driven.noted("single")) == 1
    panelled = "scot/panel" in driven.batches
    assert panelled == bool(driven.noted("escalated"))
    return panelled


def test_a_sure_single_agent_is_two_batches_and_its_answer_stays_with_probabilities() -> None:
    driven = run()
    assert not escalated(driven)
    assert driven.batches == [DIFFERENTIAL, PROBABILITY]
    assert [(entry.diagnosis, entry.rank) for entry in driven.answer.entries] == [
        (name, rank) for rank, name in enumerate(SINGLE, start=1)
    ]
    assert [entry.probability for entry in driven.answer.entries] == pytest.approx([0.8, 0.1, 0.1])
    assert (driven.answer.score_kind, driven.answer.panel) == ("reciprocal_place", ("physician",))
    assert driven.answer.entries[0].evidence


def test_the_single_agent_and_its_samples_are_asked_the_same_in_one_batch() -> None:
    driven = run(samples=3, k=4, temperature=0.2, sample_temperature=0.9)
    said = driven.of(DIFFERENTIAL)
    assert tuple(said) == ("physician", "sample 1", "sample 2", "sample 3")
    assert [item.filled.temperature for item in said.values()] == [0.2, 0.9, 0.9, 0.9]
    assert len({item.filled.prompt_digest for item in said.values()}) == 1
    assert {item.ask.slots["k"] for item in said.values()} == {"4"}
    (weighed,) = driven.weighed
    assert weighed.labels == SINGLE
    assert dict(weighed.slots) == {"case": CASE.text}


@pytest.mark.parametrize(
    ("agree", "first", "panelled"),
    [
        (5, 0.61, False),
        (5, 0.60, False),
        (5, 0.59, True),  # the probability is too low, however stable the answer is
        (3, 0.99, False),  # 3 of 5 samples are 0.6: just enough
        (2, 0.99, True),  # too few samples, however probable the answer is
        (0, 0.99, True),
        (3, 0.59, True),
    ],
)
def test_the_smaller_of_the_two_signals_decides_and_the_threshold_is_inclusive(
    agree: int, first: float, panelled: bool
) -> None:
    driven = run(agree, (first, (1 - first) / 2, (1 - first) / 2))
    assert escalated(driven) == panelled
    (said,) = driven.noted("escalated" if panelled else "single")
    smaller = min(first, agree / 5)
    assert said.startswith(
        f"confidence {smaller:.3g}: probability {first:.3g}, first in {agree / 5:.3g} of 5 samples. It "
    )
    assert "0.6 (not calibrated yet)" in said
    assert said.endswith("the panel decides" if panelled else "the single answer stays")


@pytest.mark.parametrize(
    ("threshold", "panelled"), [(0.0, False), (0.39, False), (0.4, False), (0.41, True), (1.0, True)]
)
def test_the_threshold_is_an_option(threshold: float, panelled: bool) -> None:
    driven = run(agree=2, threshold=threshold)
    assert escalated(driven) == panelled
    assert f"{threshold:g} (not calibrated yet)" in driven.notes[0].detail


def test_samples_that_use_another_name_agree_and_a_later_place_does_not() -> None:
    names = ("Myocardial infarction", "Gout", "Pericarditis")
    assert not escalated(run(single=names, sample=lambda _: ("Heart attack", "Gout")))
    assert escalated(run(single=names, sample=lambda _: ("Gout", "Myocardial infarction")))


def test_two_names_of_one_diagnosis_share_its_probability() -> None:
    names = ("Myocardial infarction", "Heart attack", "Pericarditis")
    driven = run(single=names, shares=(0.4, 0.4, 0.2))
    assert not escalated(driven)
    assert "probability 0.8" in driven.noted("single")[0]
    assert [entry.probability for entry in driven.answer.entries] == pytest.approx([0.4, 0.4, 0.2])


def test_the_panel_is_scot_with_its_number_of_seats_and_diagnoses() -> None:
    driven = run(agree=0, agents=4, k=4)
    alone = drive(scot(CASE, scot_options.Options(agents=4, k=4)), World(panel()))
    assert driven.answer == alone.answer
    assert driven.batches == [DIFFERENTIAL, PROBABILITY, *alone.batches]
    assert [note for note in driven.notes if note.kind != "escalated"] == alone.notes
    assert [item.prompt for item in driven.said if item.step.startswith("scot/")] == [
        item.prompt for item in alone.said
    ]


@pytest.mark.parametrize("text", [CASE.text, "fever 39", "x" * 200])
def test_whatever_the_model_says_it_goes_one_way_and_an_answer_comes_out(text: str) -> None:
    for seed in range(3):
        driven = drive(auto(Case("any", text), Options(samples=1, agents=1)), World(seed=seed))
        assert len(driven.batches) == 2 or escalated(driven)
        assert driven.answer.entries


@pytest.mark.parametrize(
    "wrong",
    [
        {"threshold": 1.1},
        {"threshold": float("nan")},
        {"samples": 0},
        {"samples": 51},
        {"temperature": -0.1},
        {"sample_temperature": 2.1},
        {"agents": 0},
        {"k": 0},
    ],
)
def test_options_out_of_range_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        Options(**wrong)


def test_the_defaults_are_those_of_the_specification() -> None:
    options = Options()
    assert (options.threshold, options.samples, options.k, options.agents) == (0.6, 5, 5, 5)
