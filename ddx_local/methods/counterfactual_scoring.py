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
    text = team.case.text
    proposed, dropped = _proposals(text, edits)
    if dropped:
        yield from note("edits", f"round {number}: {dropped} edits left out (nothing changed, or a second insertion)")
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
    for role in team.specialists if "editing" not in team.options.without else ():
        if not best[role]:
            yield from note("no_counterfactual", f"round {number}: no edit of the {role} preserved enough of the case")
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
    preserved = sip(sem_sim(cosine), edit_sim)
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
        combined=combined(signal, shift, preserved),
        kept=preserved >= options.least_sip and edit_sim >= options.least_edit_sim,
    )


def _proposals(text: str, edits: Edits) -> tuple[list[Proposal], int]:
    """What changes the case, with at most one insertion for each specialist; and how many were left out."""
    found: list[Proposal] = []
    inserted: set[str] = set()
    for (role, name), items in edits.items():
        for edit in items:
            changes = patches(text, edit)
            if not changes or (edit.operation == "insert" and role in inserted):
                continue
            if edit.operation == "insert":
                inserted.add(role)
            found.append(Proposal(role, name, edit, changes, apply(text, changes)))
    return found, sum(len(items) for items in edits.values()) - len(found)


def _best(tested: Sequence[Tested], role: str, top: int) -> tuple[Tested, ...]:
    own = [item for item in tested if item.role == role and item.kept]
    return tuple(sorted(own, key=lambda item: -item.combined)[:top])
