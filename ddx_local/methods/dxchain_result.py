"""DxChain's answer as a differential: primary diagnoses first, each with its evidence and codes, and the turns. Pure."""

from collections.abc import Mapping, Sequence

from ddx_local.case import Differential, Entry, Icd10, Investigation, Observation
from ddx_local.clinical import labels
from ddx_local.methods.dxchain_debate import Debate
from ddx_local.methods.dxchain_record import Chain, Investigated
from ddx_local.methods.dxchain_steps import Working
from ddx_local.methods.lists import Quoted, by_quote, located


def differential(
    chain: Chain,
    diagnoses: Sequence[Working],
    debate: Debate | None = None,
    coded: Mapping[str, Icd10 | None] | None = None,
) -> Differential:
    """Primary diagnoses first, then secondary ones, each by confidence; the score is 1 / place."""
    order = sorted(diagnoses, key=lambda item: (item.kind != "primary", -item.confidence))
    experts = dict.fromkeys(role for item in chain.history for role in item.reports)
    third = (*debate.openings, "judge") if debate is not None else ()
    entries = tuple(
        _entry(chain, rank, item, debate, (coded or {}).get(item.diagnosis)) for rank, item in enumerate(order, 1)
    )
    return Differential(
        score_kind="reciprocal_place",
        entries=entries,
        panel=("profiler", *experts, "synthesis", *third),
        investigations=tuple(_investigation(chain, item) for item in chain.history),
    )


def _investigation(chain: Chain, item: Investigated) -> Investigation:
    strategy = item.branch.strategy
    return Investigation(
        turn=item.turn,
        kind=strategy.kind,
        strategy=strategy.name,
        reason=strategy.reason,
        expected=strategy.expected,
        conflict=item.conflict,
        replanned=item.replanned,
        observations=tuple(
            Observation(role, found.asked, located(chain.case, found.quote), found.means)
            for role, reported in item.reports.items()
            for found in reported
        ),
    )


def _entry(chain: Chain, rank: int, item: Working, debate: Debate | None, code: Icd10 | None) -> Entry:
    first = _first_named(chain, item.diagnosis)
    said = [("synthesis", quote, True) for quote in item.evidence]
    if debate is not None:
        said += _argued(debate, item.diagnosis)
    return Entry(
        rank=rank,
        diagnosis=item.diagnosis,
        score=1 / rank,
        evidence=by_quote(chain.case, said),
        proposed_by=("synthesis",) if first else ("judge",),
        entered_in=first or "dxchain/verdict",
        reasoning=f"{item.reason} ({item.confidence:.0%} sure)",
        icd10=code,
        kind=item.kind,
    )


def _first_named(chain: Chain, name: str) -> str:
    """The turn whose synthesis first had it; '' for a name that only the debate gave."""
    for turn, found in chain.syntheses.items():
        if any(labels.same(name, item.diagnosis) for item in found.diagnoses):
            return f"turn {turn}" if turn else "dxchain/synthesis"
    return ""


def _argued(debate: Debate, name: str) -> list[Quoted]:
    """The quotes of both sides on a diagnosis, whatever it was called when it was debated."""
    before = [old for old, verdict in debate.verdicts.items() if labels.same(verdict.name or old, name)]
    return [
        (side, arguments[old].quote, side == "angel")
        for side, arguments in debate.openings.items()
        for old in before
        if arguments[old].quote
    ]
