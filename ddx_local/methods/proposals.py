"""A diagnosis that a role proposes, with its evidence; how lists of them are read from answers."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Proposal:
    diagnosis: str
    evidence: tuple[str, ...]
    reason: str


def read_proposals(items: Any) -> tuple[Proposal, ...]:
    """A list of proposals, each diagnosis once, in the order given."""
    found: dict[str, Proposal] = {}
    for item in items:
        name = item["diagnosis"].strip()
        evidence = tuple(dict.fromkeys(quote.strip() for quote in item["evidence"] if quote.strip()))
        found.setdefault(name.casefold(), Proposal(name, evidence, item["reason"].strip()))
    return tuple(found.values())
