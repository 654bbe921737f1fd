"""DxChain's end: what the verdicts leave, and the final report with its codes."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ddx_local.case import Differential, Icd10
from ddx_local.clinical import labels
from ddx_local.flow import CloseCode, Flow, Step, codes, note
from ddx_local.methods.dxchain_debate import Debate
from ddx_local.methods.dxchain_record import Chain
from ddx_local.methods.dxchain_result import differential
from ddx_local.methods.dxchain_steps import Working
from ddx_local.methods.dxchain_tree import Asked, asked, joined
from ddx_local.methods.proposals import read_texts

REPORT: Step[Any] = Step("dxchain/report", lambda answer: answer)
CODE: Step[str] = Step("dxchain/code", lambda answer: str(answer["code"]))

NO_CODE = "none of these"

CODES = 5
"""Codes that the coder chooses among, those that fit the name first."""


def left(debate: Debate, diagnoses: Sequence[Working]) -> Flow[tuple[Working, ...]]:
    """The diagnoses after the verdicts: kept, renamed (two of one name joined), never none at all."""
    kept: list[Working] = []
    for item in diagnoses:
        verdict = debate.verdicts.get(item.diagnosis)
        if verdict is None:
            kept += [item] if item.diagnosis not in debate.removed() else []
            continue
        told = replace(item, confidence=verdict.confidence, reason=verdict.reason)
        if verdict.verdict == "discard":
            yield from note("discarded", f"discarded after the debate: {item.diagnosis}")
        elif verdict.verdict == "modify":
            yield from note("renamed", f"renamed after the debate: {item.diagnosis} is now {verdict.name}")
            kept.append(replace(told, diagnosis=verdict.name))
        else:
            kept.append(told)
    if not kept:
        best = max(diagnoses, key=lambda item: item.confidence)
        yield from note("kept", f"the debate left no diagnosis: {best.diagnosis} stays", degraded=True)
        return (best,)
    groups = labels.merge([item.diagnosis for item in kept])
    for group in groups:
        if len(group) > 1:
            yield from note("merged", f"one diagnosis: {' = '.join(kept[index].diagnosis for index in group)}")
    return tuple(joined([kept[index] for index in group]) for group in groups)


def report(chain: Chain, debate: Debate, kept: Sequence[Working]) -> Flow[Differential]:
    """The final report and the coder's choice for each diagnosis, in one batch; codes are checked against the names."""
    names = tuple(item.diagnosis for item in kept)
    close = dict(zip(names, (yield from codes(names, CODES)), strict=True))
    choices = {name: tuple(_line(item) for item in found) for name, found in close.items() if found}
    questions: dict[str, Asked] = {"report": (REPORT, "judge", {"diagnoses": names})}
    for name, lines in choices.items():
        questions[f"code {name}"] = (CODE, "medical_coder", {"diagnosis": name, "codes": (*lines, NO_CODE)})
    sections = [*chain.sections(), *debate.sections()]
    found = yield from asked(chain, questions, sections, "dxchain/report")
    written = {item["diagnosis"]: item for item in found["report"]["diagnoses"]}
    final = [
        replace(
            item,
            kind=written[item.diagnosis]["kind"],
            reason=written[item.diagnosis]["reasoning"].strip(),
            confidence=written[item.diagnosis]["confidence"] / 100,
        )
        for item in kept
    ]
    coded = {}
    for name in names:
        coded[name] = yield from _code(name, close[name], found.get(f"code {name}", NO_CODE))
    treatment = read_texts(found["report"]["treatment"])
    return replace(differential(chain, final, debate, coded), treatment=treatment)


def _line(item: CloseCode) -> str:
    return f"{item.code} {item.name}"


def _code(name: str, close: Sequence[CloseCode], chosen: str) -> Flow[Icd10 | None]:
    """The coder's choice if it fits the name, else the code that does; what cannot be coded is said so."""
    fitting = [item for item in close if item.fits]
    taken = next((item for item in fitting if _line(item) == chosen), next(iter(fitting), None))
    if taken is None:
        yield from note("icd10", f"{name}: cannot be coded, no code's name fits")
        return None
    if _line(taken) != chosen:
        what = "the coder took none" if chosen == NO_CODE else f"{chosen.split()[0]} does not fit the name"
        yield from note("icd10", f"{name}: {what}, {taken.code} in its place")
    return Icd10(taken.code, taken.name)
