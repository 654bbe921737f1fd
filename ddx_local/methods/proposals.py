"""What roles say of diagnoses: one that they propose with its evidence, one that they weigh; how answers are read."""

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


def read_proposals(items: Any) -> tuple[Proposal, ...]:
    """A list of proposals, each diagnosis once, in the order given."""
    found: dict[str, Proposal] = {}
    for item in items:
        name = item["diagnosis"].strip()
        evidence = tuple(dict.fromkeys(quote.strip() for quote in item["evidence"] if quote.strip()))
        found.setdefault(name.casefold(), Proposal(name, evidence, item["reason"].strip()))
    return tuple(found.values())


def read_quotes(items: Any) -> tuple[str, ...]:
    """Quotes without white space around them, each once."""
    return tuple(dict.fromkeys(quote.strip() for quote in items if quote.strip()))
