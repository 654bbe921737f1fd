"""The result document: one JSON object for a case, the same from the command line, the server and the store.

Its JSON Schema is `result.schema.json` beside this file; `schema` carries its version.
"""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

from ddx_local import DISCLAIMER
from ddx_local.case import Differential, Investigation, Quote
from ddx_local.events import CaseFailed, RunStarted
from ddx_local.view import CaseView

SCHEMA = "ddx-local/result/1"

Json = dict[str, Any]


def schema() -> Json:
    """The JSON Schema (2020-12) of the result document."""
    found: Json = json.loads(resources.files("ddx_local").joinpath("result.schema.json").read_text("utf-8"))
    return found


def differential_json(answer: Differential, text: str) -> Json:
    """A flow's answer as JSON values; raises `AssertionError` where a quote is not the case's (a fault of the method)."""
    for quote in _quotes(answer):
        assert text[quote.start : quote.end] == quote.quote
    return {
        "score_kind": answer.score_kind,
        "panel": list(answer.panel),
        "differential": [
            {
                "rank": entry.rank,
                "diagnosis": entry.diagnosis,
                "icd10": None if entry.icd10 is None else dataclasses.asdict(entry.icd10),
                "score": entry.score,
                "votes": dict(entry.votes),
                "probability": entry.probability,
                "evidence": [
                    {**dataclasses.asdict(item.quote), "supports": item.supports, "by": list(item.by)}
                    for item in entry.evidence
                ],
                "proposed_by": list(entry.proposed_by),
                "entered_in": entry.entered_in,
                "critical": entry.critical,
                "reasoning": entry.reasoning,
                "stances": dict(entry.stances),
                **({"kind": entry.kind} if entry.kind else {}),
            }
            for entry in answer.entries
        ],
        "cant_miss": [
            {
                "diagnosis": item.diagnosis,
                "why": item.why,
                **_placed(item.quote),
                "test": item.test,
                "by": list(item.by),
            }
            for item in answer.cant_miss
        ],
        "triage": [
            {"finding": item.finding, **_placed(item.quote), "urgency": item.urgency, "step": item.step, "by": item.by}
            for item in answer.triage
        ],
        "counterfactuals": [
            {
                **dataclasses.asdict(item),
                "patches": [{"start": start, "end": end, "replacement": new} for start, end, new in item.patches],
            }
            for item in answer.counterfactuals
        ],
        "trace": None if answer.trace is None else dataclasses.asdict(answer.trace),
        "conflicts": [dataclasses.asdict(item) for item in answer.conflicts],
        "uncertainty": answer.uncertainty,
        # Only where there are any: answers of other methods stay what older versions recorded.
        **({"treatment": list(answer.treatment)} if answer.treatment else {}),
        **(
            {"investigations": [_investigation(item) for item in answer.investigations]}
            if answer.investigations
            else {}
        ),
    }


def document(header: RunStarted, view: CaseView, answer: Mapping[str, Any] | None) -> Json:
    """The result document of one case.

    Args:
        header: The run's settings.
        view: The case's events, folded.
        answer: The recorded `differential_json`, or None for a case that failed or was cancelled.
    """
    body = dict(answer or {})
    return {
        "schema": SCHEMA,
        "case_id": view.case_id,
        "run_id": header.run_id,
        "method": header.method,
        "options": dict(header.options),
        "model": {"name": header.model, "fingerprint": dict(header.fingerprint), "roles": _roles(header)},
        "engine": header.engine,
        "seed": header.seed,
        "created_at": header.at,
        "package_version": header.package_version,
        "score_kind": body.get("score_kind", ""),
        "status": view.status if view.status in ("finished", "failed") else "cancelled",
        "error": _error(view.failure),
        "panel": body.get("panel", []),
        "differential": body.get("differential", []),
        "cant_miss": body.get("cant_miss", []),
        "triage": body.get("triage", []),
        "counterfactuals": body.get("counterfactuals", []),
        "trace": body.get("trace"),
        "conflicts": body.get("conflicts", []),
        "uncertainty": body.get("uncertainty", ""),
        **{name: body[name] for name in ("treatment", "investigations") if name in body},
        "rounds": [_round(item) for item in view.batches],
        "totals": {
            "calls": sum(item.questions for item in view.batches),
            "batches": len(view.batches),
            "prompt_tokens": sum(item.prompt_tokens for item in view.batches),
            "prompt_tokens_computed": sum(item.prompt_tokens_computed for item in view.batches),
            "generated_tokens": sum(item.generated_tokens for item in view.batches),
            "seconds": round(view.seconds, 3),
            "parse_failures": int(view.failure is not None and view.failure.kind in _PARSE_FAILURES),
            "length_stops": int(view.failure is not None and view.failure.kind == "LengthStop"),
        },
        "degraded": [{"kind": note.kind, "detail": note.detail} for note in view.notes if note.degraded],
        "notes": [{"kind": note.kind, "detail": note.detail} for note in view.notes if not note.degraded],
        "comments": [
            {"round": item.round, "by": item.by, "about": item.about, "text": item.text, "at": item.at}
            for item in view.comments
        ],
        "disclaimer": DISCLAIMER,
    }


_PARSE_FAILURES = ("ParseError", "GrammarDeadEnd", "EmptyAnswer")


def _roles(header: RunStarted) -> Json:
    return {
        role: {"name": fingerprint.get("model", ""), "fingerprint": dict(fingerprint)}
        for role, fingerprint in header.roles.items()
    }


def _quotes(answer: Differential) -> Sequence[Quote]:
    found = [item.quote for entry in answer.entries for item in entry.evidence]
    beside = [item.quote for item in answer.cant_miss] + [item.quote for item in answer.triage]
    beside += [found.quote for item in answer.investigations for found in item.observations]
    return found + [quote for quote in beside if quote is not None]


def _investigation(item: Investigation) -> Json:
    observations = [
        {"by": found.by, "asked": found.asked, **_placed(found.quote), "means": found.means}
        for found in item.observations
    ]
    return {**dataclasses.asdict(item), "observations": observations}


def _placed(quote: Quote | None) -> Json:
    return {"quote": None, "start": None, "end": None} if quote is None else dataclasses.asdict(quote)


def _error(failure: CaseFailed | None) -> Json | None:
    if failure is None:
        return None
    return {"kind": failure.kind, "message": failure.message, "hint": failure.hint}


def _round(item: Any) -> Json:
    return {
        "name": item.name,
        "questions": item.questions,
        "prompt_tokens": item.prompt_tokens,
        "prompt_tokens_computed": item.prompt_tokens_computed,
        "generated_tokens": item.generated_tokens,
        "seconds": round(item.seconds, 3),
    }
