"""DxChain, phase II, one function for each node of the tree of thoughts: expand, select, act, check, synthesise, reflect."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ddx_local.case import Case
from ddx_local.clinical import labels
from ddx_local.flow import Ask, Flow, PastCase, SlotValue, Step, Weigh, note, retrieve, weigh
from ddx_local.methods.dxchain_record import Branch, Chain, Reports, observations, past_cases
from ddx_local.methods.dxchain_steps import (
    CHECK,
    EXPAND,
    EXPERT,
    EXPERTS,
    KINDS,
    REFLECTION,
    SELECT,
    SYNTHESIS,
    Options,
    Review,
    Synthesis,
    Working,
)
from ddx_local.methods.fitting import Section, ask_fitting, render
from ddx_local.methods.gaps import probabilities

YES_NO = ("yes", "no")

MOST_OPEN = 6
"""Branches of earlier turns that stay on the stack, the best rated."""

Asked = tuple[Step[Any], str, dict[str, SlotValue]]
"""A step, who answers, and its slots beside the case and the record."""


def asked(chain: Chain, questions: dict[str, Asked], sections: list[Section], name: str = "") -> Flow[dict[str, Any]]:
    """One batch of questions that share the record, in the detail that fits."""
    text, temperature = chain.case.text, chain.options.temperature
    return ask_fitting(
        lambda detail: {
            key: Ask(step, {"case": text, "record": render(sections, detail), **slots}, role, temperature)
            for key, (step, role, slots) in questions.items()
        },
        name,
    )


def look_up(case: Case, options: Options) -> Flow[tuple[PastCase, ...]]:
    """The most similar past cases, before anything is asked, so that a file that cannot be read is known at once."""
    if not options.cases or options.phases == "1":
        return ()
    past = yield from retrieve(case.text, options.nearest, options.cases, (case.id,))
    found = ", ".join(item.id for item in past) or "none"
    yield from note("retrieved", f"past cases, the most similar first, never the case itself or a copy: {found}")
    return past


def expand(chain: Chain, turn: int) -> Flow[list[Branch]]:
    """Two or three strategies, each with an expectation that is committed before anything is seen."""
    slots: dict[str, SlotValue] = {
        "kinds": KINDS[: chain.options.strategies],
        "experts": tuple(EXPERTS),
        "retrieval": ("yes", "no") if chain.options.cases else ("no",),
    }
    found = yield from asked(chain, {"": (EXPAND, "planner", slots)}, chain.sections())
    return [Branch(turn, strategy) for strategy in found[""]]


def select(chain: Chain, turn: int, new: list[Branch]) -> Flow[Branch]:
    """Rate all open branches, those kept from earlier turns too; take the best, keep the others for backtracking."""
    branches = [*new, *chain.stack]
    told = [f"- {item.label}: {item.strategy.name}. {item.strategy.reason}" for item in branches]
    slots: dict[str, SlotValue] = {"open": tuple(item.label for item in branches), "branches": "\n".join(told)}
    ratings = (yield from asked(chain, {"": (SELECT, "evaluator", slots)}, chain.sections()))[""]
    rated = [replace(item, score=sum(ratings[item.label]) / 20) for item in branches]
    ranked = sorted(rated, key=lambda item: -item.score)  # equal scores: the new before the old, the broad first
    best = ranked[0]
    if tied := [item.label for item in ranked[1:] if item.score == best.score]:
        yield from note("tie", f"equal rating, the first proposed is taken: {', '.join([best.label, *tied])}")
    if best.turn != turn:
        yield from note("backtrack", f"turn {turn} goes back to the strategy {best.label}")
    if gone := ranked[1 + MOST_OPEN :]:
        yield from note("left_out", f"off the stack: {', '.join(item.label for item in gone)}")
    chain.stack = ranked[1 : 1 + MOST_OPEN]
    return best


def act(chain: Chain, branch: Branch) -> Flow[Reports]:
    """The experts that the strategy names report what the record says, in one batch; with past cases once one wants them."""
    strategy = branch.strategy
    chain.comparing |= strategy.past_cases
    sections = [*chain.sections(), *([past_cases(chain.past)] if chain.comparing else [])]
    task = f"{strategy.name}. {strategy.reason}"
    return (
        yield from asked(
            chain,
            {role: (EXPERT, role, _expert(role, task)) for role in strategy.experts},
            sections,
        )
    )


def _expert(role: str, task: str) -> dict[str, SlotValue]:
    return {"role": role.replace("_", " "), "field": EXPERTS[role], "strategy": task}


def check(chain: Chain, branch: Branch, reports: Reports) -> Flow[float]:
    """How much what was found conflicts with what was expected: P(no) against P(yes), without sampling."""
    if not any(item.quote for found in reports.values() for item in found):
        yield from note("expectation", f"strategy {branch.label}: the record answers nothing, so nothing conflicts")
        return 0.0
    slots: dict[str, SlotValue] = {
        "case": chain.case.text,
        "profile": chain.memory.profile.section()["full"],
        "expected": branch.strategy.expected,
        "observed": observations(reports),
    }
    scores = yield from weigh({"": Weigh(CHECK, slots, YES_NO)})
    return probabilities(scores[""]).normalised["no"]


def synthesise(chain: Chain, turn: int) -> Flow[None]:
    """The consolidated diagnosis; names of one diagnosis are joined."""
    found = yield from asked(chain, {"": (SYNTHESIS, "synthesis", {"k": str(chain.options.k)})}, chain.sections())
    written: Synthesis = found[""]
    groups = labels.merge([item.diagnosis for item in written.diagnoses])
    diagnoses = tuple(joined([written.diagnoses[index] for index in group]) for group in groups)
    if len(diagnoses) < len(written.diagnoses):
        yield from note(
            "merged", f"turn {turn}: {len(written.diagnoses) - len(diagnoses)} names of a diagnosis named before"
        )
    chain.syntheses.pop(turn, None)
    chain.syntheses[turn] = replace(written, diagnoses=diagnoses)


def joined(items: Sequence[Working]) -> Working:
    """Names of one diagnosis as the first of them, with all their evidence and the highest confidence."""
    evidence = tuple(dict.fromkeys(quote for item in items for quote in item.evidence))
    return replace(items[0], evidence=evidence, confidence=max(item.confidence for item in items))


def reflect(chain: Chain) -> Flow[Review]:
    """Does the consolidated diagnosis pass the review?"""
    found = yield from asked(chain, {"": (REFLECTION, "reflection", {})}, chain.sections())
    review: Review = found[""]
    return review
