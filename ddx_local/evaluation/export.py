"""A benchmark's rows for other tools: CSV and JSON lines here, Inspect's and lm-eval's layouts beside."""

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence

from ddx_local.evaluation.export_inspect import inspect_log
from ddx_local.evaluation.export_lm_eval import lm_eval
from ddx_local.evaluation.record import Bench
from ddx_local.evaluation.score import CaseScore, to_json

Files = dict[str, str]
"""File name -> its text."""

_COLUMNS = (
    "arm", "model", "seed", "case_id", "status", "error", "tp", "n_pred", "n_gold", "precision", "recall", "f1", "first",
    "primary", "unread", "calls", "batches", "prompt_tokens", "generated_tokens", "seconds", "predictions", "golds",
)  # fmt: skip


def rows_csv(_: Bench, rows: Sequence[CaseScore]) -> Files:
    """One line a case, method, model and seed; names joined by ` | `."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(_COLUMNS)
    for row in rows:
        usage = row.usage
        writer.writerow(
            [row.arm, row.model, row.seed, row.case_id, row.status, row.error, row.tp, len(row.predictions), len(row.golds),
             row.prf.precision, row.prf.recall, row.prf.f1, row.first, row.primary, row.unread, usage.calls, usage.batches,
             usage.prompt_tokens, usage.generated_tokens, usage.seconds, " | ".join(row.predictions), " | ".join(row.golds)]
        )  # fmt: skip
    return {"scores.csv": out.getvalue()}


def rows_jsonl(_: Bench, rows: Sequence[CaseScore]) -> Files:
    """The whole rows, with the deliberation record."""
    return {"scores.jsonl": "".join(json.dumps(to_json(row), ensure_ascii=False) + "\n" for row in rows)}


FORMATS: Mapping[str, Callable[[Bench, Sequence[CaseScore]], Files]] = {
    "csv": rows_csv,
    "jsonl": rows_jsonl,
    "inspect": inspect_log,
    "lm-eval": lm_eval,
}
