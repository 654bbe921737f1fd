"""The stamp of a benchmark: digests of all that decides its numbers, and of the numbers themselves.

`inputs` covers data rows, prompts and grammars, methods and options, models (fingerprints), seeds, engine settings, code,
matcher and the policies (k, hierarchy, ddof, failures). `results` covers what came out, without times, run ids, or how much
the KV cache saved, so that order and parallelism do not change it.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import ddx_local
from ddx_local import __version__, jobs
from ddx_local.assets import Assets
from ddx_local.evaluation.datasets import LabelledCase
from ddx_local.evaluation.score import CaseScore, to_json
from ddx_local.evaluation.suite import Suite

DDOF = 1
"""Of every standard deviation that a report prints."""

FAILURES = "a failed case has no prediction and counts as wrong"

_CODE = ("methods", "clinical", "engines", "evaluation")
_CODE_FILES = ("assets", "flow", "grammar", "grammar_template", "rounds", "run", "request", "result", "case")


def digest(value: Any) -> str:
    """sha256 of canonical JSON."""
    return hashlib.sha256(
        json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode()
    ).hexdigest()


def rows_digest(cases: Sequence[LabelledCase]) -> str:
    """Of ids, texts, golds and groups, in order."""
    return digest([[case.id, case.case.text, list(case.gold), dict(case.groups)] for case in cases])


def prompts(methods: Iterable[str]) -> dict[str, str]:
    """Step -> digest of its prompt and grammar files, for all steps of some methods."""
    assets = Assets()
    folders = dict.fromkeys(folder for name in methods for folder in jobs.method(name).folders)
    return {step: assets.template(step).digest for folder in folders for step in assets.names(folder)}


def code() -> dict[str, str]:
    """Part of the program -> digest of its Python files, the label synonyms among them."""
    root = Path(ddx_local.__file__).parent
    parts = {
        name: sorted(path for path in (root / name).rglob("*") if path.suffix in (".py", ".txt")) for name in _CODE
    }
    parts["core"] = [root / f"{name}.py" for name in _CODE_FILES]
    found = {}
    for name, files in parts.items():
        whole = hashlib.sha256()
        for path in files:
            whole.update(path.name.encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
        found[name] = whole.hexdigest()
    return found


def inputs(suite: Suite, data: Mapping[str, Any], fingerprints: Mapping[str, Any], matcher: str) -> dict[str, Any]:
    """Everything that decides the numbers, by name; `digest` of it is the stamp."""
    return {
        "package_version": __version__,
        "data": dict(data),
        "arms": [asdict(arm) for arm in suite.arms],
        "k_policy": {arm.label: arm.k for arm in suite.arms},
        "models": {name: dict(fingerprints.get(name, {})) for name in suite.models},
        "seeds": list(suite.seeds),
        "engine": dict(suite.engine),
        "prompts": prompts(arm.method for arm in suite.arms),
        "code": code(),
        "matcher": matcher,
        "hierarchy": suite.match.hierarchy,
        "ddof": DDOF,
        "failures": FAILURES,
    }


def results(rows: Sequence[CaseScore]) -> str:
    """Digest of what came out."""
    kept = []
    for row in rows:
        body = to_json(row)
        del body["usage"]["seconds"]
        kept.append(body)
    return digest(sorted(kept, key=lambda body: (body["arm"], body["model"], body["seed"], body["case_id"])))


def changed(before: Mapping[str, Any], now: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Names of what differs between two stamps' inputs, as paths such as `prompts.scot/vote`."""
    found = []
    for name in sorted({*before, *now}):
        one, two = before.get(name), now.get(name)
        if isinstance(one, Mapping) and isinstance(two, Mapping):
            found += changed(one, two, f"{prefix}{name}.")
        elif json.dumps(one, sort_keys=True) != json.dumps(two, sort_keys=True):
            found.append(f"{prefix}{name}")
    return found
