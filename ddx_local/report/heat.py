"""What counterfactuals say about a case: how much each character carries a candidate, and the table finding x candidate. Pure.

It reads result documents. It doesn't know how anything is shown.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ddx_local.report.cut import cut

Document = Mapping[str, Any]
Strength = Literal["primary", "supporting", "weak", "none"]

PRIMARY, SUPPORTING = 0.2, 0.1
"""A gap above the first is primary evidence, from the second on supporting, below it the finding does not discriminate."""


@dataclass(frozen=True, slots=True)
class Effect:
    """What one edit did to the candidate that it was made for.

    Args:
        diagnosis: The candidate.
        gap: P(candidate | case) - P(candidate | edited case), normalised over the candidates, in [-1, 1]. Positive: the
            case as it is written speaks more for the candidate than the edited one does.
        noise_floor: A smaller |gap| means nothing.
        before: P(candidate | case), if it is known.
        after: P(candidate | edited case), if it is known.
        operation: negate, remove, replace, weaken, intensify or insert.
        patches: (start, end, replacement) in the case text.
        by: The role that proposed it.
        round: In which round.
    """

    diagnosis: str
    gap: float
    noise_floor: float
    before: float | None
    after: float | None
    operation: str
    patches: tuple[tuple[int, int, str], ...]
    by: str
    round: str

    @property
    def counts(self) -> bool:
        """Whether the gap is more than noise."""
        return self.gap != 0 and abs(self.gap) >= self.noise_floor

    @property
    def weight(self) -> float:
        """The gap, or 0 where it is noise."""
        return self.gap if self.counts else 0.0

    @property
    def strength(self) -> Strength:
        """How the method reads |gap|, whichever its sign."""
        if not self.counts:
            return "none"
        size = abs(self.gap)
        return "primary" if size > PRIMARY else "supporting" if size >= SUPPORTING else "weak"


@dataclass(frozen=True, slots=True)
class Stretch:
    """`text[start:end]` with its strongest effect, None where no edit touched it; empty at a place of insertion."""

    start: int
    end: int
    effect: Effect | None

    @property
    def weight(self) -> float:
        return self.effect.weight if self.effect else 0.0


@dataclass(frozen=True, slots=True)
class Finding:
    """A row of the table: what one or several edits changed.

    Args:
        texts: The changed pieces of the case, each once; of an insertion what was inserted.
        inserted: Whether the finding does not stand in the case.
        start: Where it first stands.
        effects: Candidate -> the effects of its edits, the strongest first.
    """

    texts: tuple[str, ...]
    inserted: bool
    start: int
    effects: Mapping[str, tuple[Effect, ...]]


def effects(document: Document) -> tuple[Effect, ...]:
    """The effects of the edits that preserved enough of the case to count, in the document's order."""
    return tuple(
        Effect(
            diagnosis=item["diagnosis"],
            gap=item["gap"],
            noise_floor=item["noise_floor"] or 0.0,
            before=item["p_before"],
            after=item["p_after"],
            operation=item["operation"],
            patches=tuple((patch["start"], patch["end"], patch["replacement"]) for patch in item["patches"]),
            by=item["by"],
            round=str(item["round"]),
        )
        for item in document["counterfactuals"]
        if item["kept"] and item["gap"] is not None and item["patches"]
    )


def candidates(document: Document) -> tuple[str, ...]:
    """The columns: the differential in its order, then whatever else was tested."""
    tested = (item["diagnosis"] for item in document["counterfactuals"])
    return tuple(dict.fromkeys([*(entry["diagnosis"] for entry in document["differential"]), *tested]))


def stretches(document: Document, diagnosis: str, length: int) -> tuple[Stretch, ...]:
    """The case text of this length, in characters, cut where the strongest effect on a candidate changes."""
    own = [effect for effect in effects(document) if effect.diagnosis == diagnosis]
    placed = [(start, end, effect) for effect in own for start, end, _ in effect.patches]
    inserted: dict[int, list[Effect]] = {}
    for start, end, effect in placed:
        if start == end <= length:
            inserted.setdefault(start, []).append(effect)
    # An insertion also covers the border that it stands on, so that the text is cut there.
    found = [Stretch(0, 0, _strongest(inserted[0]))] if 0 in inserted else []
    for piece in cut(length, [*((start, end) for start, end, _ in placed), *((0, place) for place in inserted)]):
        strongest = _strongest([placed[place][2] for place in piece.over if place < len(placed)])
        last = found[-1] if found else None
        if last is not None and last.start < last.end and last.effect == strongest:
            found[-1] = Stretch(last.start, piece.end, strongest)
        else:
            found.append(Stretch(piece.start, piece.end, strongest))
        if piece.end in inserted:
            found.append(Stretch(piece.end, piece.end, _strongest(inserted[piece.end])))
    return tuple(found)


def table(document: Document, text: str) -> tuple[Finding, ...]:
    """The findings that were edited, those with the strongest effect first, equals in the order of the case."""
    rows: dict[tuple[bool, tuple[str, ...]], list[Effect]] = {}
    for effect in effects(document):
        inserted = all(start == end for start, end, _ in effect.patches)
        pieces = [new if inserted else text[start:end] for start, end, new in effect.patches]
        texts = tuple(dict.fromkeys(name for piece in pieces if (name := _plain(piece))))
        rows.setdefault((inserted, texts), []).append(effect)
    findings = [
        Finding(
            texts=texts,
            inserted=inserted,
            start=min(start for effect in found for start, _, _ in effect.patches),
            effects={
                name: tuple(sorted((item for item in found if item.diagnosis == name), key=_rank, reverse=True))
                for name in dict.fromkeys(item.diagnosis for item in found)
            },
        )
        for (inserted, texts), found in rows.items()
    ]
    return tuple(sorted(findings, key=lambda row: (-_most(row), row.start)))


def _plain(piece: str) -> str:
    """Without the punctuation that a quote of whole words drags along: "fever," and "fever" are one finding."""
    line = " ".join(piece.split())
    return line.strip(",;:. ") or line


def _most(row: Finding) -> float:
    return max(abs(effect.weight) for found in row.effects.values() for effect in found)


def _rank(effect: Effect) -> tuple[bool, float]:
    return effect.counts, abs(effect.gap)


def _strongest(found: Sequence[Effect]) -> Effect | None:
    return max(found, key=_rank, default=None)
