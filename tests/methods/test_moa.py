"""Mixture of Agents: batches, who reads which layer, what the aggregator does, and a record that does not fit."""

from collections.abc import Callable
from typing import Any

import pytest

from ddx_local.case import Case, Differential
from ddx_local.engines.scripted import Policy, ScriptedEngine
from ddx_local.flow import Ask
from ddx_local.methods.moa import Options, moa
from tests.grammars import POLICIES
from tests.methods.driving import Driven, World, drive
from tests.methods.scot_world import CASE, QUOTES, proposal
from tests.methods.scripted_run import document, quotes_stand_in

NAMES = ("Malaria", "Gout", "Sarcoidosis", "Amyloidosis")
STEPS = ("moa/propose", "moa/refine", "moa/aggregate")

Lists = Callable[[int, str], tuple[str, ...]]
"""(layer from 1, role) -> the list; the aggregator's layer is the one after the last."""


def own(layer: int, role: str) -> tuple[str, ...]:  # noqa: ARG001
    """Every proposer holds on to a diagnosis of its own."""
    return ("Malaria",) if role == "aggregator" else (NAMES[int(role.split()[-1]) - 1],)


def world(lists: Lists = own, fits: Callable[[Ask[Any]], bool] = lambda ask: True) -> World:  # noqa: ARG005
    """Every answer has a marker: layer and role."""
    said: dict[str, int] = {}

    def answer(ask: Ask[Any]) -> Any:
        layer = said[ask.role] = said.get(ask.role, 0) + 1
        of = f"M{layer} {ask.role}"
        quote = QUOTES[len(ask.role) % 2]
        items = [proposal(name, f"why {of}", quote) for name in lists(layer, ask.role)]
        return {"answer": of, "differential": items}

    return World(dict.fromkeys(STEPS, answer), fits=fits)


def run(
    lists: Lists = own,
    fits: Callable[[Ask[Any]], bool] = lambda ask: True,  # noqa: ARG005
    **options: Any,
) -> Driven[Differential]:
    return drive(moa(CASE, Options(**options)), world(lists, fits))


def test_two_layers_of_four_and_an_aggregator_are_three_batches_and_nine_calls() -> None:
    driven = run()
    assert driven.batches == ["moa/layer 1", "moa/layer 2", "moa/aggregate"]
    proposers = [f"proposer {number}" for number in range(1, 5)]
    assert [(item.batch, item.role, item.step) for item in driven.said] == [
        *((0, role, "moa/propose") for role in proposers),
        *((1, role, "moa/refine") for role in proposers),
        (2, "aggregator", "moa/aggregate"),
    ]
    assert driven.notes == []


@pytest.mark.parametrize(("proposers", "layers"), [(1, 1), (3, 1), (2, 3), (6, 2)])
def test_calls_are_m_times_l_and_one_and_batches_l_and_one(proposers: int, layers: int) -> None:
    driven = run(lambda layer, role: ("Gout",), proposers=proposers, layers=layers)  # noqa: ARG005
    assert len(driven.said) == proposers * layers + 1
    assert len(driven.batches) == layers + 1


def test_a_layer_reads_all_answers_of_the_layer_before_and_of_no_other() -> None:
    driven = run(layers=3)
    assert len(driven.said) == 13
    for item in driven.said:
        for layer in (1, 2, 3):
            for proposer in range(1, 5):
                said = f"M{layer} proposer {proposer}\n"
                assert (said in item.prompt) == (item.batch == layer), f"{said} for {item.role} in batch {item.batch}"


def test_the_reader_sees_names_quotes_and_reasons() -> None:
    for item in run().said[4:]:
        assert f'- Malaria. "{QUOTES[0].strip()}" why M' in item.prompt
        assert all(f"ANSWER {number}: " in item.prompt for number in (1, 2, 3, 4))


def test_the_answers_come_after_the_case_so_that_all_prompts_of_a_layer_are_one() -> None:
    driven = run()
    for batch in (0, 1):
        assert len({item.filled.prompt_digest for item in driven.said if item.batch == batch}) == 1
    assert len({item.filled.messages[0] for item in driven.said}) == 1
    last = driven.said[-1].prompt
    assert last.index("(end of the case)") < last.index("ANSWER 1")


def test_proposers_and_aggregator_have_temperatures_of_their_own() -> None:
    driven = run(temperature=0.9, temperature_aggregator=0.1)
    assert [item.filled.temperature for item in driven.said] == [0.9] * 8 + [0.1]


def test_the_answer_is_the_aggregators_list_with_the_places_of_the_last_layer() -> None:
    def lists(layer: int, role: str) -> tuple[str, ...]:
        if role == "aggregator":
            return ("Myocardial infarction", "Gout", "Lyme disease")
        return ("Gout", "MI") if layer == 2 or role == "proposer 1" else ("Malaria",)

    driven = run(lists, proposers=2)
    assert [(item.diagnosis, item.score, item.entered_in) for item in driven.answer.entries] == [
        ("Myocardial infarction", 1.0, "layer 1"),
        ("Gout", 0.5, "layer 1"),
        ("Lyme disease", 1 / 3, "aggregate"),
    ]
    first, _, last = driven.answer.entries
    assert first.votes == {"aggregator": 1, "proposer 1": 2, "proposer 2": 2}
    assert first.proposed_by == ("proposer 1", "proposer 2")
    assert (last.votes, last.proposed_by) == ({"aggregator": 3}, ("aggregator",))
    assert driven.noted("outside") == ["the aggregator names what no proposer named: Lyme disease"]
    assert driven.answer.panel == ("proposer 1", "proposer 2", "aggregator")
    assert first.reasoning == "why M1 aggregator"


def test_what_enters_in_the_second_layer_is_marked_so() -> None:
    driven = run(lambda layer, role: ("Gout",) if layer == 2 or role == "aggregator" else ("Malaria",))
    assert [item.entered_in for item in driven.answer.entries] == ["layer 2"]


def test_a_diagnosis_that_the_aggregator_names_twice_is_one_entry() -> None:
    driven = run(lambda layer, role: ("MI", "Heart attack", "Gout"), k=3)  # noqa: ARG005
    assert [(item.rank, item.diagnosis, item.score) for item in driven.answer.entries] == [
        (1, "MI", 1),
        (2, "Gout", 0.5),
    ]


def test_evidence_tells_who_quoted_it() -> None:
    (entry,) = run(lambda layer, role: ("Gout",)).answer.entries  # noqa: ARG005
    roles = {role for item in entry.evidence for role in item.by}
    assert roles == {"aggregator", *(f"proposer {number}" for number in range(1, 5))}
    assert all(CASE.text[item.quote.start : item.quote.end] == item.quote.quote for item in entry.evidence)


def test_a_failed_answer_is_not_left_out_it_fails_the_case(monkeypatch: pytest.MonkeyPatch) -> None:
    class Dumb(ScriptedEngine):
        async def generate(self, requests: Any, on_completion: Any = None) -> Any:
            self.reply = (lambda _: "") if len(self.batches) == 1 else self.reply
            return await super().generate(requests, on_completion)

    monkeypatch.setattr("tests.methods.scripted_run.ScriptedEngine", Dumb)
    found = document("moa", CASE)
    assert (found["status"], found["error"]["kind"], found["differential"]) == ("failed", "EmptyAnswer", [])


def test_answers_that_do_not_fit_are_shown_without_quotes_and_reasons_then_as_counts_and_noted() -> None:
    prompts = []
    for times in range(3):
        left = [times]

        def fits(ask: Ask[Any], left: list[int] = left) -> bool:
            if ask.step.name != "moa/aggregate" or not left[0]:
                return True
            left[0] -= 1
            return False

        driven = run(fits=fits)
        prompts.append(driven.said[-1].prompt)
        assert len([note for note in driven.notes if note.degraded]) == (times > 0)
    full, brief, bare = prompts
    assert len(full) > len(brief) > len(bare)
    assert "why M2 proposer 1" in full
    assert "why M2" not in brief
    assert "ANSWER 2: Gout" in brief
    assert "NAMED (by how many): Malaria; Gout; Sarcoidosis; Amyloidosis" in bare


@pytest.mark.parametrize("odd", ["β-thalassemia", "Wolff-Parkinson-White (WPW)", "Gout, acute", "Sjögren's"])
def test_odd_labels_come_out_as_they_are(odd: str) -> None:
    assert [item.diagnosis for item in run(lambda layer, role: (odd,)).answer.entries] == [odd]  # noqa: ARG005


@pytest.mark.parametrize(
    "wrong",
    [
        {"proposers": 0},
        {"proposers": 13},
        {"layers": 0},
        {"layers": 7},
        {"k": 0},
        {"k": 11},
        {"temperature": 2.5},
        {"temperature_aggregator": -1},
    ],
)
def test_options_out_of_range_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must be"):
        Options(**wrong)


def test_the_defaults_are_two_layers_of_four() -> None:
    assert (Options().layers, Options().proposers, Options().temperature) == (2, 4, 0.7)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_real_driver_finishes(policy: Policy, seed: int) -> None:
    found = document("moa", CASE, policy, seed)
    assert (found["status"], found["totals"]["batches"], found["totals"]["calls"]) == ("finished", 3, 9)
    assert quotes_stand_in(CASE, found)


@pytest.mark.parametrize("text", ["fever 39", "x" * 200])
def test_whatever_the_case_an_answer_comes_out(text: str) -> None:
    driven = drive(moa(Case("any", text), Options(proposers=2)), World(seed=4))
    assert 1 <= len(driven.answer.entries) <= 5
