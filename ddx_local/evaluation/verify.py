"""Scoring a recorded benchmark, saving that, and verifying it later: the same numbers from the same events, without a model."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ddx_local.errors import DdxLocalError
from ddx_local.evaluation import report, stamp
from ddx_local.evaluation.match import Matcher
from ddx_local.evaluation.match_judge import Judge
from ddx_local.evaluation.match_open import matcher, reliability
from ddx_local.evaluation.plan import data_of, suite_of
from ddx_local.evaluation.record import Bench, Record
from ddx_local.evaluation.report_table import Json
from ddx_local.evaluation.rubrics import rate
from ddx_local.evaluation.score import CaseScore, from_json, score, to_json
from ddx_local.evaluation.suite import Match, Suite
from ddx_local.settings import Settings
from ddx_local.store import Store

_VOLATILE = ("status", "package_version")
"""Parts of a report that may differ without any number differing."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was verified; `ok` None is neither right nor wrong: `detail` says what is to be known."""

    what: str
    ok: bool | None
    detail: str = ""


async def scored(bench_id: str, record: Record, store: Store, found: Matcher, choice: Match) -> Json:
    """Score with a matcher, save rows and report, and return the report."""
    bench = record.load(bench_id)
    rows = await score(bench, store, found)
    ratings = await rate(found, bench, rows, choice.rubrics) if isinstance(found, Judge) and choice.rubrics else []
    about = reliability(found)
    body = report.build(with_match(bench, choice), rows, found.label, about, ratings)
    saved = {
        "rows": [to_json(row) for row in rows], "report": body, "match": _plain(choice), "reliability": about,
        "ratings": ratings,
    }  # fmt: skip
    record.save_scores(bench_id, found.label, saved)
    return body


def with_match(bench: Bench, choice: Match) -> Bench:
    """The benchmark as if its suite had named this matcher: a rescore's stamp says what it was scored by."""
    suite = {**bench.body["suite"], "match": {k: v for k, v in _plain(choice).items() if k in _MATCH_KEYS}}
    suite["judge"] = {k: v for k, v in _plain(choice).items() if k in _JUDGE_KEYS} if choice.kind == "judge" else {}
    return replace(bench, body={**bench.body, "suite": suite})


_MATCH_KEYS = ("kind", "threshold", "assignment", "hierarchy", "model", "layer")
_JUDGE_KEYS = ("model", "engine", "repeat", "seed", "hierarchy", "weigh", "rubrics")


def _plain(choice: Match) -> dict[str, Any]:
    return {name: getattr(choice, name) for name in Match.__dataclass_fields__ if getattr(choice, name) is not None}


def saved_rows(body: Any) -> list[CaseScore]:
    return [from_json(row) for row in body["rows"]]


async def verify(bench_id: str, record: Record, store: Store, settings: Settings) -> list[Finding]:
    """Check the inputs against what lies here now, and every number against a new scoring of the recorded events."""
    bench = record.load(bench_id)
    suite = suite_of(bench)
    found = [*_inputs(bench, suite)]
    for label, body in record.scores(bench_id).items():
        choice = Match(**body["match"])
        try:
            async with matcher(choice, settings, record, lambda _: None, opener=None) as instrument:
                rows = await score(bench, store, instrument)
        except DdxLocalError as error:
            found.append(Finding(f"scores by {label}", False, error.message))
            continue
        again = report.build(with_match(bench, choice), rows, label, body["reliability"], body["ratings"])
        before, after = body["report"], _through_json(again)
        parts = [name for name in stamp.changed(before, after) if name.split(".")[0] not in _VOLATILE]
        if [to_json(row) for row in rows] != body["rows"]:
            parts.append("rows")
        digest = f"results {again['stamp']['results'][:16]}"
        found.append(
            Finding(f"scores by {label}: {len(rows)} rows, every number", not parts, ", ".join(parts[:5]) or digest)
        )
    return found


def _inputs(bench: Bench, suite: Suite) -> list[Finding]:
    data = bench.body["data"]
    found = [Finding("recorded cases and golds", stamp.rows_digest(bench.cases) == data["rows"], f"{data['n']} rows")]
    if data["path"] and not Path(data["path"]).exists():
        found.append(Finding("data file", None, f"{data['path']} is not here now"))
    else:
        try:
            same = stamp.rows_digest(data_of(suite).cases) == data["rows"]
            found.append(Finding("data file", same, "" if same else "its rows are no longer those of the benchmark"))
        except DdxLocalError as error:
            found.append(Finding("data file", False, error.message))
    changed = stamp.changed(bench.body["prompts"], stamp.prompts(arm.method for arm in suite.arms))
    found.append(Finding("prompts and grammars", not changed, ", ".join(changed[:5])))
    code = stamp.changed(bench.body["code"], stamp.code())
    # Other code that gives the same numbers is no fault; where it gives others, the scores below say so.
    found.append(Finding("code", None if code else True, f"changed since: {', '.join(code)}" if code else ""))
    return found


def _through_json(value: Any) -> Any:
    return json.loads(json.dumps(value))
