"""Inspect AI's eval log (JSON, version 2): one for each method, model and seed; its viewer and readers take it.

Layout: inspect_ai 499e615, `EvalLog`: eval spec, plan, results, stats, samples.
"""

import json
import re
from collections.abc import Sequence
from typing import Any

from ddx_local import __version__
from ddx_local.evaluation.datasets import LabelledCase
from ddx_local.evaluation.record import Bench
from ddx_local.evaluation.score import CaseScore
from ddx_local.evaluation.stamp import digest

_VALUES = ("f1", "precision", "recall", "top1")


def inspect_log(bench: Bench, rows: Sequence[CaseScore]) -> dict[str, str]:
    """File name -> log; names as Inspect's own (time_task_id), by which its viewer finds them in a folder."""
    cases = {case.id: case for case in bench.cases}
    parts: dict[tuple[str, str, int], list[CaseScore]] = {}
    for row in rows:
        parts.setdefault((row.arm, row.model, row.seed), []).append(row)
    found = {}
    for (arm, model, seed), part in parts.items():
        name = re.sub(r"[^a-z0-9.]+", "-", f"{bench.row.suite} {arm} {model} seed {seed}".lower()).strip("-")
        found[f"{_time(bench)}_{name}_{_key(bench, arm, model, seed)}.json"] = (
            json.dumps(_log(bench, arm, model, seed, part, cases), ensure_ascii=False, indent=1) + "\n"
        )
    return found


def _time(bench: Bench) -> str:
    return re.sub(r"[:.]", "-", bench.row.created_at)


def _key(bench: Bench, arm: str, model: str, seed: int) -> str:
    return digest([bench.row.bench_id, arm, model, seed])[:22]


def _log(
    bench: Bench, arm: str, model: str, seed: int, rows: Sequence[CaseScore], cases: dict[str, LabelledCase]
) -> dict[str, Any]:
    finished = [row for row in rows if row.status == "finished"]
    key = _key(bench, arm, model, seed)
    used = _usage(sum(r.usage.prompt_tokens for r in rows), sum(r.usage.generated_tokens for r in rows))
    return {
        "version": 2,
        "status": "success" if bench.row.status == "finished" else "cancelled",
        "eval": {
            "eval_id": key,
            "run_id": bench.row.bench_id,
            "created": bench.row.created_at,
            "task": f"{bench.row.suite}/{arm}",
            "task_id": key,
            "task_version": 0,
            "task_attribs": {},
            "task_args": {"arm": arm, "seed": seed},
            "dataset": {
                "name": bench.body["data"]["name"],
                "location": bench.body["data"]["path"],
                "samples": len(rows),
                "sample_ids": [row.case_id for row in rows],
                "shuffled": False,
            },
            "model": f"ddx-local/{model}",
            "model_args": {},
            "model_generate_config": {"seed": seed},
            "config": {"epochs": 1},
            "packages": {"ddx-local": __version__},
            "metadata": {
                "data_sha256": bench.body["data"]["sha256"],
                "fingerprint": bench.body["fingerprints"].get(model, {}),
            },
        },
        "plan": {"name": "plan", "steps": [{"solver": arm, "params": {}}], "config": {}},
        "results": {
            "total_samples": len(rows),
            "completed_samples": len(finished),
            "scores": [_score(name, rows) for name in _VALUES],
        },
        "stats": {"started_at": bench.row.created_at, "completed_at": "", "model_usage": {f"ddx-local/{model}": used}},
        "samples": [_sample(row, cases[row.case_id], model) for row in rows],
    }


def _score(name: str, rows: Sequence[CaseScore]) -> dict[str, Any]:
    mean = sum(_value(row, name) for row in rows) / len(rows)
    return {
        "name": name,
        "scorer": name,
        "scored_samples": len(rows),
        "unscored_samples": 0,
        "params": {},
        "metrics": {"mean": {"name": "mean", "value": mean, "params": {}}},
        "metadata": {"denominator": "every selected case; failures count as 0"},
    }


def _value(row: CaseScore, name: str) -> float:
    return float(row.first == 1) if name == "top1" else float(getattr(row.prf, name))


def _sample(row: CaseScore, case: LabelledCase, model: str) -> dict[str, Any]:
    answer = "\n".join(f"{rank}. {name}" for rank, name in enumerate(row.predictions, start=1))
    message = {"role": "assistant", "content": answer, "source": "generate", "model": f"ddx-local/{model}"}
    found: dict[str, Any] = {
        "id": row.case_id,
        "epoch": 1,
        "input": case.case.text,
        "target": list(row.golds),
        "messages": [{"role": "user", "content": case.case.text, "source": "input"}, message],
        "output": {
            "model": f"ddx-local/{model}",
            "choices": [{"message": message, "stop_reason": "stop"}],
            "usage": _usage(row.usage.prompt_tokens, row.usage.generated_tokens),
            "time": row.usage.seconds,
        },
        "scores": {
            name: {"value": _value(row, name), "answer": row.predictions[0] if row.predictions else "", "metadata": {}}
            for name in _VALUES
        },
        "metadata": dict(case.groups),
        "store": {
            "deliberation": dict(row.discussion) if row.discussion else {},
            "pairs": [list(pair) for pair in row.pairs],
        },
        "events": [],
        "model_usage": {f"ddx-local/{model}": _usage(row.usage.prompt_tokens, row.usage.generated_tokens)},
        "attachments": {},
        "total_time": row.usage.seconds,
    }
    if row.status != "finished":
        found["error"] = {"message": row.error or row.status, "traceback": "", "traceback_ansi": ""}
    return found


def _usage(prompt: int, generated: int) -> dict[str, int]:
    return {"input_tokens": prompt, "output_tokens": generated, "total_tokens": prompt + generated}
