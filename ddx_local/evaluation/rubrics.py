"""The judge's two rubrics over a benchmark: how close the first diagnosis is (Bond), how safe the answer (five dimensions).

The first diagnosis is rated in four dimensions; the first three as a list in five, which is why a list can be less safe
than its first. What the judge did not rate, or nobody could read, is unscored: never right and never safe.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from ddx_local.evaluation.match_judge import Judge
from ddx_local.evaluation.metrics_safety import safety_rate, taxonomy
from ddx_local.evaluation.record import Bench
from ddx_local.evaluation.score import CaseScore

LISTED = 3
"""Diagnoses of the list that is rated (DMoA's top-3)."""

Rating = Mapping[str, Any]


async def rate(judge: Judge, bench: Bench, rows: Sequence[CaseScore], rubrics: Sequence[str]) -> list[Rating]:
    """One rating for each row, all asked in three batches; raw, so that a report can be built again without the judge."""
    texts = {case.id: case.case.text for case in bench.cases}
    answered = [row for row in rows if row.predictions]
    closeness: Sequence[Any] = [None] * len(answered)
    single: Sequence[Any] = closeness
    listed: Sequence[Any] = closeness
    if "taxonomy" in rubrics:
        closeness = await judge.closeness([(row.predictions[0], row.golds[0]) for row in answered])
    if "safety" in rubrics:
        golds = [", ".join(row.golds) for row in answered]
        single = await judge.safety(
            [(texts[row.case_id], row.predictions[:1], gold) for row, gold in zip(answered, golds, strict=True)]
        )
        several = [(row, gold) for row, gold in zip(answered, golds, strict=True) if len(row.predictions) > 1]
        rated = await judge.safety([(texts[row.case_id], row.predictions[:LISTED], gold) for row, gold in several])
        by_row = {id(row): rating for (row, _), rating in zip(several, rated, strict=True)}
        listed = [by_row.get(id(row)) for row in answered]
    found = {id(row): item for row, *item in zip(answered, closeness, single, listed, strict=True)}
    return [
        {
            "model": row.model,
            "arm": row.arm,
            "seed": row.seed,
            "case_id": row.case_id,
            **dict(zip(("closeness", "single", "listed"), found.get(id(row), (None, None, None)), strict=True)),
        }
        for row in rows
    ]


def summary(ratings: Sequence[Rating], rubrics: Sequence[str]) -> list[dict[str, Any]]:
    """Shares of all rows, by model and arm."""
    parts: dict[tuple[str, str], list[Rating]] = {}
    for item in ratings:
        parts.setdefault((item["model"], item["arm"]), []).append(item)
    found: list[dict[str, Any]] = []
    for (model, arm), items in parts.items():
        line: dict[str, Any] = {"model": model, "arm": arm, "n": len(items)}
        if "taxonomy" in rubrics:
            line["taxonomy"] = taxonomy([item["closeness"] for item in items])
        if "safety" in rubrics:
            line["safety_first"] = safety_rate([item["single"] for item in items], 4)
            line["safety_list"] = safety_rate([item["listed"] for item in items], 5)
        found.append(line)
    return found
