"""A method in the real driver on the scripted engine: answers that only their grammars bound, by policy and seed."""

import random
from collections.abc import Mapping
from typing import Any

from ddx_local.case import Case
from ddx_local.engines.scripted import Policy
from ddx_local.request import LoglikelihoodRequest
from tests.methods.scripted_run import document

HARD = (
    Case("brackets", 'He says "my chest hurts" {{case}} [sic] (twice), and \\n his IgG4 level is 9 g/L, was 3 g/L.\n'),
    Case("greek", "Η β-θαλασσαιμία της ασθενούς και ο πυρετός 39 °C επιμένουν εδώ και τρεις ημέρες."),
    Case("no-quote", "fever 39"),
)
"""Cases whose text is hard to quote, or has nothing to quote."""


def scored(request: LoglikelihoodRequest, label: str) -> float:
    """Logprobs that differ from question to question."""
    return -3 * random.Random(f"{request.messages[-1].content} {label}").random()


def finished(method: str, policy: Policy, seed: int, case: Case, **options: object) -> Mapping[str, Any]:
    """The result document of a case, checked: finished, of its schema, ranked, and the same when replayed."""
    found = document(method, case, policy, seed, score=scored, **options)
    assert found["status"] == "finished", found["error"]
    entries = found["differential"]
    assert [entry["rank"] for entry in entries] == list(range(1, len(entries) + 1))
    assert entries
    scores = [entry["score"] for entry in entries]
    assert scores == sorted(scores, reverse=True)
    return found
