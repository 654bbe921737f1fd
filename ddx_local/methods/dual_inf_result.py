"""Dual-Inf's book-keeping: what is known of each suspected diagnosis, the record for reflection, and the differential.

Pure: it asks nothing.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ddx_local.case import Case, Differential, Entry, Evidence, Quote
from ddx_local.clinical.quotes import Span, locate
from ddx_local.methods.dual_inf_steps import Options
from ddx_local.methods.fitting import Section, titled

FORWARD_ROLE, BACKWARD_ROLE = "forward inference", "backward inference"

UNEXAMINED = -1.0
"""In the place of a probability that was not taken yet."""


@dataclass
class Suspect:
    """A diagnosis under examination.

    Args:
        diagnosis: Its name, as first given.
        reason: Why it was first named.
        entered_in: The round that first named it.
        place: On the list that named it last, from 1.
        listed_in: The iteration that named it last.
        facts: Quote of forward inference -> probability that it is a finding of the disease, or UNEXAMINED.
        textbook: Findings of backward inference.
        found: Textbook finding -> probability that the case mentions it.
        quotes: Textbook finding that the case mentions -> the quote that says so, or ''.
    """

    diagnosis: str
    reason: str
    entered_in: str
    place: int = 0
    listed_in: int = 0
    facts: dict[str, float] = field(default_factory=dict)
    textbook: tuple[str, ...] = ()
    found: dict[str, float] = field(default_factory=dict)
    quotes: dict[str, str] = field(default_factory=dict)

    def mentioned(self, threshold: float) -> tuple[str, ...]:
        return tuple(finding for finding, probability in self.found.items() if probability >= threshold)


@dataclass(frozen=True, slots=True)
class Confirmed:
    """A finding that counts for a diagnosis: its words, where the case says so (None without a quote), and P(yes)."""

    words: str
    span: Span | None
    probability: float
    by: str


def confirmed(suspect: Suspect, case: Case, threshold: float) -> tuple[Confirmed, ...]:
    """Confirmed facts, then textbook findings that the case mentions; pieces of the case that overlap count once."""
    named = [(quote, quote, p, FORWARD_ROLE) for quote, p in suspect.facts.items() if p >= threshold]
    for finding in suspect.mentioned(threshold):
        named.append((finding, suspect.quotes.get(finding, ""), suspect.found[finding], BACKWARD_ROLE))
    kept: list[Confirmed] = []
    for words, quote, probability, by in named:
        span = locate(case.text, quote) if quote else None
        if span is None or not any(item.span and _overlap(item.span, span) for item in kept):
            kept.append(Confirmed(words, span, probability, by))
    return tuple(kept)


def doubtful(suspects: Iterable[Suspect], case: Case, options: Options) -> tuple[Suspect, ...]:
    """Those with few confirmed findings."""
    return tuple(item for item in suspects if len(confirmed(item, case, options.threshold)) <= options.low)


def examined(suspects: Sequence[Suspect], case: Case, options: Options) -> Section:
    """What the examination found, for the next forward inference."""
    full, brief = [], []
    for item in suspects:
        held = confirmed(item, case, options.threshold)
        said = "; ".join(f'"{one.words}"' if one.by == FORWARD_ROLE else one.words for one in held) or "nothing"
        unlike = "; ".join(f'"{quote}"' for quote, p in item.facts.items() if p < options.threshold)
        full.append(f"- {item.diagnosis}: confirmed: {said}" + (f"; not its findings: {unlike}" if unlike else ""))
        brief.append(f"- {item.diagnosis}: {len(held)} findings confirmed")
    title = "EXAMINATION OF YOUR DIFFERENTIAL DIAGNOSIS:"
    return {"full": titled(title, full), "brief": titled(title, brief), "bare": ""}


def rank(suspects: Sequence[Suspect], case: Case, options: Options) -> list[tuple[Suspect, float]]:
    """Suspects by the expected number of confirmed findings, then by place on the later list."""
    scored = [
        (item, round(sum(one.probability for one in confirmed(item, case, options.threshold)), 9)) for item in suspects
    ]
    return sorted(scored, key=lambda pair: (-pair[1], -pair[0].listed_in, pair[0].place))


def answer(ranked: Sequence[tuple[Suspect, float]], case: Case, options: Options) -> Differential:
    """The differential; a diagnosis's evidence is the confirmed findings that the case can be quoted for."""
    return Differential(
        score_kind="confirmed_findings",
        entries=tuple(
            Entry(
                rank=place,
                diagnosis=item.diagnosis,
                score=score,
                votes={FORWARD_ROLE: item.place},
                evidence=tuple(
                    Evidence(Quote(case.text[one.span.start : one.span.end], *_ends(one.span)), True, (one.by,))
                    for one in confirmed(item, case, options.threshold)
                    if one.span
                ),
                proposed_by=(FORWARD_ROLE,),
                entered_in=item.entered_in,
                reasoning=item.reason,
            )
            for place, (item, score) in enumerate(ranked[: options.k], start=1)
        ),
        panel=(FORWARD_ROLE, BACKWARD_ROLE),
    )


def _overlap(one: Span, two: Span) -> bool:
    return one.start < two.end and two.start < one.end


def _ends(span: Span) -> tuple[int, int]:
    return span.start, span.end
