"""What roles say of diagnoses: what they propose, what they weigh, what must not be missed; and how that is read."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Proposal:
    diagnosis: str
    evidence: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class Weighed:
    """What speaks for and against a candidate, as quotes."""

    supports: tuple[str, ...]
    opposes: tuple[str, ...]
    conclusion: str


@dataclass(frozen=True, slots=True)
class Danger:
    """A life-threatening condition that must not be missed: why to think of it, a quote, and the test that excludes it."""

    diagnosis: str
    why: str
    quote: str | None
    test: str


def read_proposals(items: Any) -> tuple[Proposal, ...]:
    """A list of proposals, each diagnosis once, in the order given."""
    found: dict[str, Proposal] = {}
    for item in items:
        name = item["diagnosis"].strip()
        found.setdefault(name.casefold(), Proposal(name, read_quotes(item["evidence"]), item["reason"].strip()))
    return tuple(found.values())


def read_differential(answer: Any) -> tuple[Proposal, ...]:
    """The proposals of an answer whose list stands under `differential`."""
    return read_proposals(answer["differential"])


def read_dangers(items: Any) -> tuple[Danger, ...]:
    """A list of dangers, as it was given."""
    return tuple(
        Danger(item["diagnosis"].strip(), item["why"].strip(), read_quote(item["quote"]), item["test"].strip())
        for item in items
    )


def read_quote(value: str | None) -> str | None:
    """A quote without white space around it; None where nothing is quoted."""
    return value.strip() or None if value else None


def read_quotes(items: Any) -> tuple[str, ...]:
    """Quotes without white space around them, each once."""
    return tuple(dict.fromkeys(quote.strip() for quote in items if quote.strip()))


def read_texts(items: Any) -> tuple[str, ...]:
    """Texts without white space around them, each once."""
    return tuple(dict.fromkeys(item.strip() for item in items))


def in_words(item: Proposal) -> str:
    """A proposal as text: its name, its quotes, its reason."""
    quotes = " ".join(f'"{quote}"' for quote in item.evidence)
    return " ".join(part for part in (f"{item.diagnosis}.", quotes, item.reason) if part)
