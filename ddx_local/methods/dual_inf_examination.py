"""Dual-Inf's backward inference and examination: what a textbook says of each suspect, and what of it holds for the case.

It knows suspects and what was examined before; it doesn't know lists, iterations, or when to stop.
"""

from collections.abc import Sequence

from ddx_local.case import Case
from ddx_local.flow import Ask, Flow, SlotValue, Weigh, ask_each, weigh
from ddx_local.methods.dual_inf_result import BACKWARD_ROLE, UNEXAMINED, Suspect
from ddx_local.methods.dual_inf_steps import (
    BACKWARD,
    LEAST_FINDINGS,
    MANIFESTATION,
    MENTIONED,
    PLACE,
    YES_NO,
    Options,
)
from ddx_local.methods.gaps import probabilities

NO_CASE = "(none: the question is about a disease in general)"
"""In the place of the case where a textbook is asked for, so that nothing is copied from the case."""


def backward(options: Options, fresh: Sequence[Suspect]) -> Flow[None]:
    """The textbook's findings of every diagnosis that has none yet."""
    bounds = {"case": NO_CASE, "least": str(LEAST_FINDINGS), "findings": str(options.findings)}
    new = {f"disease {at}": item for at, item in enumerate(fresh, start=1) if not item.textbook}
    questions = {
        key: Ask(BACKWARD, {"diagnosis": item.diagnosis, **bounds}, BACKWARD_ROLE, options.temperature)
        for key, item in new.items()
    }
    for key, textbook in (yield from ask_each(questions)).items():
        new[key].textbook = textbook


def examine(case: Case, suspects: Sequence[Suspect]) -> Flow[None]:
    """Yes or no, by probability, on every fact and textbook finding that was not examined yet; one batch."""
    facts = [(item, fact) for item in suspects for fact, yes in item.facts.items() if yes == UNEXAMINED]
    open_ = [(item, finding) for item in suspects for finding in item.textbook if finding not in item.found]
    findings = list(dict.fromkeys(finding for _, finding in open_))  # two diseases may share one
    questions: dict[str, Weigh] = {}
    for at, (item, fact) in enumerate(facts):
        slots: dict[str, SlotValue] = {
            "case": case.text,
            "diagnosis": item.diagnosis,
            "textbook": item.textbook,
            "fact": fact,
        }
        questions[f"fact {at}"] = Weigh(MANIFESTATION, slots, YES_NO)
    for at, finding in enumerate(findings):
        questions[f"finding {at}"] = Weigh(MENTIONED, {"case": case.text, "finding": finding}, YES_NO)
    scores = yield from weigh(questions, "dual_inf/examination")
    yes = {key: probabilities(score).normalised["yes"] for key, score in scores.items()}
    for at, (item, fact) in enumerate(facts):
        item.facts[fact] = yes[f"fact {at}"]
    for item, finding in open_:
        item.found[finding] = yes[f"finding {findings.index(finding)}"]


def place(case: Case, options: Options, suspects: Sequence[Suspect]) -> Flow[None]:
    """Where the case mentions the textbook's findings."""
    wanted: dict[str, tuple[Suspect, tuple[str, ...]]] = {}
    for at, item in enumerate(suspects, start=1):
        found = tuple(one for one in item.mentioned(options.threshold) if one not in item.quotes)
        if found:
            wanted[f"disease {at}"] = (item, found)
    questions = {
        key: Ask(PLACE, {"case": case.text, "diagnosis": item.diagnosis, "found": found}, BACKWARD_ROLE)
        for key, (item, found) in wanted.items()
    }
    for key, quotes in (yield from ask_each(questions)).items():
        item, found = wanted[key]
        item.quotes |= dict(zip(found, quotes, strict=True))
