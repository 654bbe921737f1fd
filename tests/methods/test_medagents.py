"""MedAgents: batches and calls of every path, who sees what, votes and revisions, and the faults of the authors' program."""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from ddx_local.case import Case, Differential
from ddx_local.clinical.pool import panel_choices
from ddx_local.engines.scripted import Policy
from ddx_local.flow import Ask
from ddx_local.methods.medagents import medagents
from ddx_local.methods.medagents_steps import Options
from tests.grammars import POLICIES
from tests.methods.driving import Driven, World, drive
from tests.methods.scot_world import CASE, QUOTES, proposal
from tests.methods.scripted_run import document, quotes_stand_in

NAMES = ("Malaria", "Gout", "Sarcoidosis")
STEPS = ("candidates", "experts", "option_experts", "analysis", "options", "report", "vote", "revision", "decision")


def named(*steps: str) -> list[str]:
    return [f"medagents/{step}" for step in steps]


def world(
    names: tuple[str, ...] = NAMES,
    says_no: Callable[[int, str], bool] = lambda vote, role: False,  # noqa: ARG005
    ranking: Callable[[tuple[str, ...]], tuple[str, ...]] = lambda candidates: candidates,
    fits: Callable[[Ask[Any]], bool] = lambda ask: True,  # noqa: ARG005
) -> World:
    """Everyone leaves a marker; `says_no` knows the vote (from 1) and who votes."""
    count: Counter[tuple[str, str]] = Counter()

    def choose(first: int) -> Callable[[Ask[Any]], Any]:
        return lambda ask: list(ask.slots["pool"])[first : first + int(str(ask.slots["agents"]))]

    def vote(ask: Ask[Any]) -> Any:
        count["vote", ask.role] += 1
        at = count["vote", ask.role]
        return {"vote": "no", "advice": f"Advice {at} by {ask.role}"} if says_no(at, ask.role) else {"vote": "yes"}

    def report(ask: Ask[Any]) -> Any:  # noqa: ARG001
        count["report", ""] += 1
        return {"key_facts": [f"Fact {count['report', '']}."], "analysis": f"Whole analysis {count['report', '']}."}

    def weigh(ask: Ask[Any]) -> Any:
        return [
            {"diagnosis": name, "for": [QUOTES[3]], "against": [QUOTES[4]], "conclusion": f"O <{ask.role}> on {name}"}
            for name in ask.slots["candidates"]
        ]

    return World(
        {
            "medagents/candidates": lambda ask: {"differential": [proposal(name, "Why") for name in names]},  # noqa: ARG005
            "medagents/experts": choose(4),
            "medagents/option_experts": choose(4),
            "medagents/analysis": lambda ask: {"findings": [QUOTES[2]], "analysis": f"A <{ask.role}>"},
            "medagents/options": weigh,
            "medagents/report": report,
            "medagents/revision": report,
            "medagents/vote": vote,
            "medagents/decision": lambda ask: {
                "reason": "Because of it.",
                "ranking": list(ranking(tuple(ask.slots["candidates"]))),
            },
        },
        fits=fits,
    )


def run(options: Mapping[str, Any] | None = None, **given: Any) -> Driven[Differential]:
    return drive(medagents(CASE, Options(**(options or {}))), world(**given))


def steps(driven: Driven[Differential]) -> list[list[str]]:
    """The steps of each batch, each once."""
    batches = range(max(item.batch for item in driven.said) + 1)
    return [
        list(dict.fromkeys(item.step.removeprefix("medagents/") for item in driven.said if item.batch == batch))
        for batch in batches
    ]


START = [["candidates", "experts"], ["analysis", "option_experts"], ["options"], ["report"]]


# Batches and calls


def test_agreement_at_once_is_an_answer_after_six_batches_and_nineteen_calls() -> None:
    driven = run()
    assert steps(driven) == [*START, ["vote"], ["decision"]]
    assert [len(round_.questions) for round_ in driven.rounds if round_.is_batch] == [2, 6, 2, 1, 7, 1]
    assert driven.answer.trace is not None
    assert driven.answer.trace.by_consensus
    assert driven.notes == []


def test_whoever_never_agrees_brings_three_revisions_twelve_batches_and_forty_three_calls() -> None:
    driven = run(says_no=lambda vote, role: True)  # noqa: ARG005
    assert steps(driven) == [*START, ["vote"], *[["revision"], ["vote"]] * 3, ["decision"]]
    assert len(driven.batches) == 12
    assert len(driven.said) == 43
    assert driven.noted("not_agreed") == ["7 of 7 experts do not agree after 3 revisions: the report stands"]
    assert driven.answer.trace is not None
    assert not driven.answer.trace.by_consensus


@pytest.mark.parametrize(("after", "batches"), [(1, 8), (2, 10), (3, 12)])
def test_the_revisions_end_when_the_last_no_is_gone(after: int, batches: int) -> None:
    driven = run(says_no=lambda vote, role: vote <= after and role == panel_choices()[4])
    assert len(driven.batches) == batches
    assert driven.notes == []
    assert driven.answer.trace is not None
    assert driven.answer.trace.by_consensus


@pytest.mark.parametrize(
    ("options", "batches", "calls"),
    [
        ({"option_experts": 0}, 5, 2 + 5 + 1 + 5 + 1),
        ({"loops": 0}, 5, 2 + 6 + 2 + 1 + 1),
        ({"loops": 0, "option_experts": 0}, 4, 2 + 5 + 1 + 1),
        ({"experts": 1, "option_experts": 1}, 6, 2 + 2 + 1 + 1 + 2 + 1),
    ],
)
def test_parts_can_be_left_out(options: dict[str, Any], batches: int, calls: int) -> None:
    driven = run(options)
    assert (len(driven.batches), len(driven.said)) == (batches, calls)


def test_a_golden_trace() -> None:
    driven = run({"experts": 2, "option_experts": 1, "loops": 1}, says_no=lambda vote, role: vote == 1)  # noqa: ARG005
    one, two, three = panel_choices()[4:7]
    assert [(item.batch, item.role, item.step.removeprefix("medagents/")) for item in driven.said] == [
        (0, "physician", "candidates"),
        (0, "recruiter", "experts"),
        (1, one, "analysis"),
        (1, two, "analysis"),
        (1, "recruiter", "option_experts"),
        (2, three, "options"),
        (3, "reporter", "report"),
        (4, one, "vote"),
        (4, two, "vote"),
        (4, three, "vote"),
        (5, "reporter", "revision"),
        (6, one, "vote"),
        (6, two, "vote"),
        (6, three, "vote"),
        (7, "decision maker", "decision"),
    ]


# Who sees what


def test_experts_analyse_alone_and_those_for_the_candidates_see_all_analyses() -> None:
    driven = run()
    experts = list(driven.of("medagents/analysis"))
    assert len(experts) == 5
    for item in driven.said:
        seen = [role for role in experts if f"A <{role}>" in item.prompt]
        step = item.step.removeprefix("medagents/")
        assert seen == (experts if step in ("options", "report") else []), step
    for item in driven.of("medagents/analysis").values():
        assert not [name for name in NAMES if name in item.prompt], "an analysis is made without the candidates"


def test_option_experts_do_not_see_each_other_and_the_report_sees_them_all() -> None:
    driven = run()
    others = list(driven.of("medagents/options"))
    for item in driven.said:
        seen = [role for role in others if f"O <{role}> on Gout" in item.prompt]
        assert seen == (others if item.step == "medagents/report" else [])


def test_all_seven_vote_on_the_report_and_the_key_facts_reach_vote_and_decision() -> None:
    driven = run()
    votes = driven.of("medagents/vote")
    assert tuple(votes) == driven.answer.panel
    assert len(votes) == 7
    for item in (*votes.values(), *driven.of("medagents/decision").values()):
        assert "THE REPORT:\n- Fact 1.\nWhole analysis 1." in item.prompt


def test_the_revision_sees_the_report_and_every_advice_and_the_next_vote_the_new_report() -> None:
    driven = run(says_no=lambda vote, role: vote == 1 and role in (panel_choices()[4], panel_choices()[6]))
    (revision,) = driven.of("medagents/revision").values()
    given = tuple(f"{role}: Advice 1 by {role}" for role in (panel_choices()[4], panel_choices()[6]))
    assert revision.ask.slots["advice"] == given
    assert "Whole analysis 1." in revision.prompt
    assert "A <" in revision.prompt
    assert "O <" in revision.prompt
    for item in (*driven.of("medagents/vote").values(), *driven.of("medagents/decision").values()):
        assert "Whole analysis 2." in item.prompt
        assert "Whole analysis 1." not in item.prompt


def test_prompts_of_one_vote_share_everything_up_to_the_role() -> None:
    prompts = [item.prompt for item in run().of("medagents/vote").values()]
    assert len({prompt[: prompt.index("You are the")] for prompt in prompts}) == 1


# The answer


def test_the_decision_ranks_all_candidates_with_the_evidence_for_and_against() -> None:
    driven = run(ranking=lambda candidates: candidates[::-1])
    assert [(item.diagnosis, item.score) for item in driven.answer.entries] == [
        ("Sarcoidosis", 1.0),
        ("Gout", 0.5),
        ("Malaria", 1 / 3),
    ]
    first = driven.answer.entries[0]
    others = tuple(driven.of("medagents/options"))
    assert {(item.quote.quote, item.supports): item.by for item in first.evidence} == {
        (QUOTES[0].strip(), True): ("physician",),
        (QUOTES[3].strip(), True): others,
        (QUOTES[4].strip(), False): others,
    }
    assert (first.votes, first.proposed_by, first.entered_in) == ({"decision maker": 1}, ("physician",), "candidates")
    assert driven.answer.trace is not None
    assert driven.answer.trace.conclusion == "Because of it. Whole analysis 1."


def test_open_advice_is_told_with_the_answer() -> None:
    driven = run({"loops": 1}, says_no=lambda vote, role: role == panel_choices()[4])  # noqa: ARG005
    assert driven.answer.trace is not None
    assert driven.answer.trace.would_change == f"{panel_choices()[4]}: Advice 2 by {panel_choices()[4]}"


def test_candidates_that_mean_the_same_are_one_and_that_is_noted() -> None:
    driven = run(names=("MI", "Gout", "Myocardial infarction"))
    assert driven.of("medagents/decision")["decision maker"].ask.slots["candidates"] == ("MI", "Gout")
    assert driven.noted("merged") == ["one diagnosis: MI = Myocardial infarction"]


def test_a_single_candidate_is_an_answer() -> None:
    assert [item.diagnosis for item in run({"k": 1}, names=("Gout",)).answer.entries] == ["Gout"]


@pytest.mark.parametrize("odd", ["β-thalassemia", "Wolff-Parkinson-White (WPW)", "Gout, acute", "Sjögren's"])
def test_odd_labels_come_out_as_they_are(odd: str) -> None:
    assert [item.diagnosis for item in run({"k": 1}, names=(odd,)).answer.entries] == [odd]


# Faults of the authors' program


def test_a_word_with_a_no_in_it_is_no_vote_and_nothing_is_a_yes_by_default() -> None:
    for said in ({"vote": "The diagnosis is right"}, {"vote": ""}, {"vote": "maybe"}, {}):
        replies = {**world().replies, "medagents/vote": lambda ask, said=said: said}  # noqa: ARG005
        with pytest.raises(AssertionError, match="no engine can answer"):
            drive(medagents(CASE, Options()), World(replies))


def test_a_no_without_advice_cannot_be_said() -> None:
    replies = {**world().replies, "medagents/vote": lambda ask: {"vote": "no"}}  # noqa: ARG005
    with pytest.raises(AssertionError, match="no engine can answer"):
        drive(medagents(CASE, Options()), World(replies))


def test_the_decision_cannot_leave_the_candidates() -> None:
    with pytest.raises(AssertionError, match="no engine can answer"):
        run(ranking=lambda candidates: ("Based on the report", *candidates[1:]))


def test_no_field_overwrites_another_and_none_is_made_up() -> None:
    for seed in range(5):
        driven = drive(medagents(CASE, Options(loops=0)), World(seed=seed))
        assert len(set(driven.answer.panel)) == 7
        assert set(driven.answer.panel) <= set(panel_choices())


def test_the_candidates_stand_once_in_a_prompt_and_not_five_times() -> None:
    for item in run().of("medagents/options").values():
        assert item.prompt.count("- Sarcoidosis") == 1
        assert item.prompt.count("Weigh each of them") == 1


def test_the_last_revision_is_voted_on_too() -> None:
    driven = run({"loops": 1}, says_no=lambda vote, role: vote == 1)  # noqa: ARG005
    assert steps(driven)[-4:] == [["vote"], ["revision"], ["vote"], ["decision"]]


# Room, options, the real driver


@pytest.mark.parametrize("step", ["options", "report", "vote", "decision"])
def test_what_does_not_fit_is_condensed_and_noted(step: str) -> None:
    lengths = []
    for times in range(3):
        left = [times]

        def fits(ask: Ask[Any], left: list[int] = left) -> bool:
            if ask.step.name != f"medagents/{step}" or not left[0]:
                return True
            left[0] -= 1
            return False

        driven = run(fits=fits)
        lengths.append(sum(len(item.prompt) for item in driven.said if item.step == f"medagents/{step}"))
        assert len([note for note in driven.notes if note.degraded]) == (times > 0)
    assert lengths[0] > lengths[1] >= lengths[2]


@pytest.mark.parametrize(
    "wrong",
    [
        {"experts": 0},
        {"experts": 11},
        {"option_experts": -1},
        {"option_experts": 6},
        {"loops": -1},
        {"loops": 11},
        {"k": 0},
        {"k": 11},
        {"temperature": 2.1},
    ],
)
def test_options_out_of_range_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must be"):
        Options(**wrong)


def test_the_defaults_are_the_papers() -> None:
    assert (Options().experts, Options().option_experts, Options().loops, Options().temperature) == (5, 2, 3, 0.0)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("seed", [0, 1])
def test_the_real_driver_finishes(policy: Policy, seed: int) -> None:
    found = document("medagents", CASE, policy, seed)
    assert found["status"] == "finished"
    revisions = (found["totals"]["batches"] - 6) / 2
    assert revisions in (0, 1, 2, 3)
    assert found["totals"]["calls"] == 19 + 8 * revisions
    assert quotes_stand_in(CASE, found)


@pytest.mark.parametrize("text", ["fever 39", "x" * 200])
def test_whatever_the_case_an_answer_comes_out(text: str) -> None:
    driven = drive(medagents(Case("any", text), Options(experts=2, option_experts=1)), World(seed=4))
    assert 1 <= len(driven.answer.entries) <= 5
