"""lm-evaluation-harness' output: `samples_TASK_TIME.jsonl` with `results_TIME.json`, one pair for each method, model and seed.

Layout: lm-evaluation-harness 4e7e0d4, `--log_samples`.
"""

import json
import re
from collections.abc import Sequence
from typing import Any

from ddx_local import __version__
from ddx_local.evaluation.datasets import LabelledCase
from ddx_local.evaluation.record import Bench
from ddx_local.evaluation.score import CaseScore
from ddx_local.evaluation.statistics import bootstrap_mean
from ddx_local.events import sha256

_METRICS = ("f1", "precision", "recall")


def lm_eval(bench: Bench, rows: Sequence[CaseScore]) -> dict[str, str]:
    """File name -> text, in a folder for each model and seed."""
    cases = {case.id: case for case in bench.cases}
    parts: dict[tuple[str, int], dict[str, list[CaseScore]]] = {}
    for row in rows:
        parts.setdefault((row.model, row.seed), {}).setdefault(_task(bench, row.arm), []).append(row)
    when = re.sub(r"[:+]", "-", bench.row.created_at)
    found = {}
    for (model, seed), tasks in parts.items():
        folder = f"{re.sub('[^A-Za-z0-9.-]', '_', model)}__seed{seed}"
        for task, items in tasks.items():
            lines = (
                json.dumps(_sample(place, row, cases[row.case_id]), ensure_ascii=False)
                for place, row in enumerate(items)
            )
            found[f"{folder}/samples_{task}_{when}.jsonl"] = "".join(line + "\n" for line in lines)
        found[f"{folder}/results_{when}.json"] = json.dumps(_results(bench, model, seed, tasks), indent=1) + "\n"
    return found


def _task(bench: Bench, arm: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", f"{bench.row.suite} {arm}".lower()).strip("_")


def _sample(place: int, row: CaseScore, case: LabelledCase) -> dict[str, Any]:
    answer = "\n".join(row.predictions)
    doc = {"id": case.id, "case": case.case.text, "gold": list(row.golds), **dict(case.groups)}
    return {
        "doc_id": place,
        "doc": doc,
        "target": json.dumps(list(row.golds), ensure_ascii=False),
        "arguments": {"gen_args_0": {"arg_0": case.case.text, "arg_1": {}}},
        "resps": [[answer]],
        "filtered_resps": [answer],
        "filter": "none",
        "metrics": [*_METRICS, "top1"],
        "doc_hash": sha256(json.dumps(doc, ensure_ascii=False)),
        "prompt_hash": sha256(case.case.text),
        "target_hash": sha256(json.dumps(list(row.golds), ensure_ascii=False)),
        **{name: getattr(row.prf, name) for name in _METRICS},
        "top1": float(row.first == 1),
        "status": row.status,
    }


def _results(bench: Bench, model: str, seed: int, tasks: dict[str, list[CaseScore]]) -> dict[str, Any]:
    results: dict[str, Any] = {}
    for task, rows in tasks.items():
        results[task] = {"alias": task}
        for name in (*_METRICS, "top1"):
            values = [float(row.first == 1) if name == "top1" else float(getattr(row.prf, name)) for row in rows]
            mean = bootstrap_mean(values)
            results[task] |= {f"{name},none": mean.value, f"{name}_stderr,none": mean.se}
    n = {task: {"original": len(rows), "effective": len(rows)} for task, rows in tasks.items()}
    return {
        "results": results,
        "group_subtasks": {task: [] for task in tasks},
        "configs": {
            task: {"task": task, "dataset_path": bench.body["data"]["name"], "output_type": "generate_until"}
            for task in tasks
        },
        "versions": dict.fromkeys(tasks, 1.0),
        "n-shot": dict.fromkeys(tasks, 0),
        "higher_is_better": {task: dict.fromkeys((*_METRICS, "top1"), True) for task in tasks},
        "n-samples": n,
        "config": {"model": "ddx-local", "model_args": f"pretrained={model}", "random_seed": seed},
        "model_name": model,
        "model_source": "ddx-local",
        "lm_eval_version": f"ddx-local {__version__}",
        "task_hashes": {
            task: sha256("".join(sha256(row.case_id + "".join(row.golds)) for row in rows))
            for task, rows in tasks.items()
        },
    }
