"""Sign test: does removing the evidence that a role named lower its diagnosis more often than removing other text does?

For each case a single agent names diagnoses with quotes. The probability of its first diagnosis among its list is taken on
the case, on the case without the quotes, and on the case without as many other words of the same length.
"""

import asyncio
import json
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Any

from bench.speed.shared import gate, opened, run, vignettes
from ddx_local import jobs, launch
from ddx_local.assets import Assets
from ddx_local.case import Case
from ddx_local.clinical.quotes import Span, chunks, highlight_spans
from ddx_local.flow import Weigh
from ddx_local.methods.counterfactual_steps import PROBABILITY
from ddx_local.methods.edits import Patch, apply
from ddx_local.methods.gaps import probabilities
from ddx_local.request import LoglikelihoodRequest
from ddx_local.store import Store

CASES, SEED = 40, 20260701
SLACK = 3
"""Characters by which other words may be longer or shorter than the evidence, where none are as long."""

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data" / "open-xddx-dev.jsonl"


@dataclass(frozen=True, slots=True)
class Trial:
    """A case, what the agent named (the diagnosis under test first), and its text without the evidence and without other words."""

    case: Case
    names: tuple[str, ...]
    without_evidence: str
    without_others: str


def sign_test() -> dict[str, float]:
    """The shares of cases in which the probability falls, and the exact two-sided McNemar p of their difference."""
    print(f"command: scripts/speed sign_test; seed {SEED}", file=sys.stderr)
    return measure(_cases(), opened(), CASES)


def measure(cases: Sequence[Case], through: launch.Opened, most: int, seed: int = SEED) -> dict[str, float]:
    """Take the first `most` cases that can be used, with an engine; figures by name."""
    trials: list[Trial] = []
    for start in range(0, len(cases), most):
        if len(trials) >= most:
            break
        part = cases[start : start + most]
        found = [trial_of(case, said, seed) for case, said in zip(part, _answers(part, through, seed), strict=True)]
        trials += [trial for trial in found if trial is not None]
    trials = trials[:most]
    lowered = run(_lowered(trials, through))
    evidence, others = [pair[0] for pair in lowered], [pair[1] for pair in lowered]
    count = max(len(trials), 1)
    return {
        "sign_test_cases": len(trials),
        "sign_test_seed": seed,
        "sign_test_evidence_share": sum(evidence) / count,
        "sign_test_random_share": sum(others) / count,
        "sign_test_mcnemar_p": mcnemar(evidence, others),
    }


def trial_of(case: Case, document: Any, seed: int) -> Trial | None:
    """A trial from a single agent's result document; None where it failed, named one diagnosis, or left no other words."""
    entries = document["differential"]
    if len(entries) < 2 or not entries[0]["evidence"]:
        return None
    evidence = highlight_spans(Span(item["start"], item["end"]) for item in entries[0]["evidence"])
    others = others_like(case.text, evidence, random.Random(f"{seed} {case.id}"))
    if others is None:
        return None
    names = tuple(entry["diagnosis"] for entry in entries)
    return Trial(case, names, without(case.text, evidence), without(case.text, others))


def others_like(text: str, taken: Sequence[Span], chance: random.Random) -> tuple[Span, ...] | None:
    """Runs of whole words, one for each span and of its length, or nearly, apart from all others.

    None where the text has no room for one.
    """
    words = _words(text)
    found: list[Span] = []
    for span in taken:

        def off(item: Span, length: int = span.end - span.start) -> int:
            return abs(item.end - item.start - length)

        runs = [Span(one.start, two.end) for one, two in combinations_with_replacement(words, 2)]
        near = [item for item in runs if off(item) <= SLACK]
        free = [
            item
            for item in near
            if all(item.end <= other.start or other.end <= item.start for other in (*taken, *found))
        ]
        if not free:
            return None
        nearest = min(off(item) for item in free)
        found.append(chance.choice([item for item in free if off(item) == nearest]))
    return tuple(sorted(found))


def _words(text: str) -> list[Span]:
    words, position = [], 0
    for chunk in chunks(text):
        if word := chunk.strip():
            start = position + chunk.index(word)
            words.append(Span(start, start + len(word)))
        position += len(chunk)
    return words


def without(text: str, spans: Sequence[Span]) -> str:
    return apply(text, [Patch(span.start, span.end, "") for span in spans])


def mcnemar(one: Sequence[bool], two: Sequence[bool]) -> float:
    """Exact two-sided McNemar test of paired outcomes: a binomial test on the pairs that differ; 1 where none does."""
    from scipy.stats import binomtest  # type: ignore[import-untyped]

    only_one = sum(a and not b for a, b in zip(one, two, strict=True))
    only_two = sum(b and not a for a, b in zip(one, two, strict=True))
    differ = only_one + only_two
    return float(binomtest(only_one, differ, 0.5).pvalue) if differ else 1.0


def _cases() -> tuple[Case, ...]:
    """The project's own cases, then those of the shared data where it is there."""
    own = vignettes(99)
    if not SHARED.is_file():
        print(f"shared data not found at {SHARED}: only the {len(own)} cases of bench/cases are used", file=sys.stderr)
        return own
    rows = [json.loads(line) for line in SHARED.read_text("utf-8").splitlines()]
    return (*own, *(Case(row["id"], row["case"]) for row in rows))


def _answers(cases: Sequence[Case], through: launch.Opened, seed: int) -> Any:
    method = jobs.method("zero-shot")
    job = jobs.Job(method, method.options(), "smollm2-135m", "vllm", seed, {}, tuple(cases))
    store = Store(None)
    return jobs.documents(store, run(jobs.start(job, through, store, None, gate())))


async def _lowered(trials: Sequence[Trial], through: launch.Opened) -> list[tuple[bool, bool]]:
    """For each trial: whether its diagnosis is less probable without the evidence, and without other words."""
    assets = Assets()

    async def share(trial: Trial, text: str) -> float:
        filled = assets.fill(Weigh(PROBABILITY, {"case": text}, trial.names))
        request = LoglikelihoodRequest(filled.messages, filled.answer_prefix, trial.names, PROBABILITY.name)
        (scores,) = await through.engine.loglikelihood([request])
        return probabilities(scores).normalised[trial.names[0]]

    async def one(trial: Trial) -> tuple[bool, bool]:
        texts = (trial.case.text, trial.without_evidence, trial.without_others)
        before, evidence, others = await asyncio.gather(*(share(trial, text) for text in texts))
        return evidence < before, others < before

    return list(await asyncio.gather(*(one(trial) for trial in trials)))
