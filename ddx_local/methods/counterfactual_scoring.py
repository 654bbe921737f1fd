"""Scoring of counterfactuals: every candidate on the case and on every edited case, in one round without sampling."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ddx_local.flow import Flow, Weigh, note, similarities, weigh
from ddx_local.methods.counterfactual_record import Team, Tested
from ddx_local.methods.counterfactual_steps import PROBABILITY
from ddx_local.methods.edits import Edit, Patch, apply, patches
from ddx_local.methods.gaps import Probabilities, combined, gap, probabilities, sem_sim, sip

Edits = Mapping[tuple[str, str], tuple[Edit, ...]]
"""(specialist, diagnosis under test) -> proposed edits."""

Tests = Mapping[str, tuple[Tested, ...]]
"""Specialist -> its best counterfactuals, the strongest first."""


class Proposal(NamedTuple):
    """An edit that changes the case, and the text that it makes."""

    role: str
    diagnosis: str
    edit: Edit
    patches: tuple[Patch, ...]
    text: str


def score(team: Team, edits: Edits, number: int) -> Flow[Tests]:
    """Score every candidate on the case and on every edited case in one weigh round; then keep each specialist's best."""
    text, editing = team.case.text, "editing" not in team.options.without
    if team.before and not editing:
        return dict.fromkeys(team.specialists, ())
    proposed, unchanged, insertions = _proposals(text, edits)
    if unchanged:
        yield from note("edits", f"round {number}: {unchanged} edits left out that change nothing")
    if insertions:
        yield from note("edits", f"round {number}: {insertions} insertions left out beyond each specialist's first")
    variants = dict.fromkeys([text, *(item.text for item in proposed)])
    scores = yield from weigh(
        {f"text {place}": Weigh(PROBABILITY, {"case": variant}, team.names) for place, variant in enumerate(variants)}
    )
    by_text = {variant: probabilities(scores[f"text {place}"]) for place, variant in enumerate(variants)}
    team.before = by_text[text]
    meaning = yield from similarities([(text, item.text) for item in proposed])
    spelling = yield from similarities([(text, item.text) for item in proposed], "spelling")
    alike = yield from similarities([(item.diagnosis, by_text[item.text].most_likely) for item in proposed])
    tested = [
        _tested(team, item, number, by_text, cosine, like, label)
        for item, cosine, like, label in zip(proposed, meaning, spelling, alike, strict=True)
    ]
    team.tested += tested
    best = {role: _best(tested, role, team.options.top) for role in team.specialists}
    for role in team.specialists if editing else ():
        if not best[role]:
            detail = f"round {number}: no edit of the {role} changed the case and preserved enough of it"
            yield from note("no_counterfactual", detail)
    return best


def _tested(
    team: Team,
    item: Proposal,
    number: int,
    by_text: Mapping[str, Probabilities],
    cosine: float,
    edit_sim: float,
    label_cosine: float,
) -> Tested:
    """An edit with all its numbers (the paper's section 4.4)."""
    options, before, after = team.options, by_text[team.case.text], by_text[item.text]
    measured = gap(item.diagnosis, before, after)
    preserved = sip(sem_sim(cosine), edit_sim, options.weights)
    shift = 1 - sem_sim(label_cosine) if measured.flipped_to else 0.0
    signal = measured.paper if options.gap == "paper" else abs(measured.signed)
    return Tested(
        role=item.role,
        round=number,
        diagnosis=item.diagnosis,
        edit=item.edit,
        patches=item.patches,
        gap=measured,
        before=before,
        after=after,
        sip=preserved,
        edit_sim=edit_sim,
        shift=shift,
        combined=combined(signal, shift, preserved, options.weights),
        kept=preserved >= options.least_sip and edit_sim >= options.least_edit_sim,
    )


def _proposals(text: str, edits: Edits) -> tuple[list[Proposal], int, int]:
    """What changes the case; how many edits change nothing; how many insertions come after the specialist's first."""
    found: list[Proposal] = []
    inserted: set[str] = set()
    unchanged = insertions = 0
    for (role, name), items in edits.items():
        for edit in items:
            changes = patches(text, edit)
            edited = apply(text, changes)
            if edited == text:
                unchanged += 1
            elif edit.operation == "insert" and role in inserted:
                insertions += 1
            else:
                inserted |= {role} if edit.operation == "insert" else set()
                found.append(Proposal(role, name, edit, changes, edited))
    return found, unchanged, insertions


def _best(tested: Sequence[Tested], role: str, top: int) -> tuple[Tested, ...]:
    own = [item for item in tested if item.role == role and item.kept]
    return tuple(sorted(own, key=lambda item: -item.combined)[:top])
