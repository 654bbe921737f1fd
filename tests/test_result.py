"""The result document: its schema refuses what it should, and documents of every kind of run obey it."""

import copy
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jsonschema
import pytest

from ddx_local import DISCLAIMER
from ddx_local.case import CantMiss, Conflict, Differential, Entry, Evidence, Quote, TriageItem
from ddx_local.events import (
    Answered,
    Asked,
    CaseFailed,
    CaseFinished,
    CaseStarted,
    Commented,
    Event,
    Noted,
    RoundStarted,
    RunFinished,
    RunStarted,
)
from ddx_local.result import SCHEMA, differential_json, document, schema
from ddx_local.view import fold

TEXT = "Ann has had fever and a cough 漢 for two days."
AT = "2026-01-01T00:00:00.000+00:00"


def quote(text: str) -> Quote:
    return Quote(text, TEXT.index(text), TEXT.index(text) + len(text))


ANSWER = Differential(
    score_kind="borda",
    entries=(
        Entry(
            rank=1,
            diagnosis="influenza",
            score=3.5,
            votes={"Neurology": 1, "Cardiology": 2},
            probability=0.25,
            evidence=(
                Evidence(quote("fever and"), supports=True, by=("Neurology",)),
                Evidence(quote("two days"), supports=False, by=("Cardiology", "Neurology")),
            ),
            proposed_by=("Neurology",),
            entered_in="differential",
            critical=True,
            reasoning="It fits.",
            stances={"Neurology": "support"},
        ),
        Entry(rank=2, diagnosis="cold", score=0),
    ),
    cant_miss=(
        CantMiss("sepsis", "it kills", quote("fever"), "culture", ("Neurology",)),
        CantMiss("embolism", "it kills", None, "CT", ("Neurology", "Cardiology")),
    ),
    triage=(
        TriageItem("fever", quote("fever"), "urgent", "antipyretic", "Neurology"),
        TriageItem("cough", None, "routine", "watch", "Cardiology"),
    ),
    panel=("Neurology", "Cardiology"),
    conflicts=(Conflict("gout", "flu", "the joint", "aggregator"),),
    uncertainty="no joint fluid was looked at",
)

HEADER = RunStarted(
    at=AT,
    run_id="r1",
    method="scot",
    options={"k": 5, "without": []},
    model="m",
    fingerprint={"dtype": "float32"},
    engine="scripted",
    seed=7,
    package_version="0.1.0",
    cases={"ann": "aa", "bea": "bb"},
    roles={"judge": {"model": "n", "dtype": "float32"}},
)


def round_of(number: int, cached: int = 0) -> list[Event]:
    head: dict[str, Any] = {"case_id": "ann", "round": number}
    asked: dict[str, Any] = {"step": "scot/vote", "slots": {}, "seed": 1, "temperature": 0.3, "digest": "d"}
    keys = [("a",), ("b",)]
    answered: dict[str, Any] = {
        "digest": "d",
        "text": "t",
        "prompt_tokens": 100,
        "cached_tokens": cached,
        "generated_tokens": 10,
    }
    return [
        RoundStarted(**head, name="scot/vote", questions=2, batch=True),
        *[Asked(**head, key=key, role=key[0], **asked) for key in keys],
        *[Answered(**head, key=key, **answered, seconds=0.5 + place) for place, key in enumerate(keys)],
    ]


def events(*end: Event) -> list[Event]:
    return [
        HEADER,
        CaseStarted(case_id="ann", text="aa"),
        *round_of(0),
        RoundStarted(case_id="ann", round=1, name="note", questions=1, batch=False),
        Noted(case_id="ann", round=1, kind="tie", detail="equal"),
        Noted(case_id="ann", round=1, kind="condensed", detail="shortened", degraded=True),
        Commented(at=AT, case_id="ann", round=1, by="reader", text="no rash"),
        *round_of(2, cached=64),
        *end,
    ]


def made(*end: Event, answer: Differential | None = None, case_id: str = "ann") -> dict[str, Any]:
    view = fold(events(*end))
    body = json.loads(json.dumps(differential_json(answer, TEXT))) if answer else None
    return document(HEADER, view.cases[case_id], body)


FINISHED = made(CaseFinished(case_id="ann", answer="x", seconds=3.25), answer=ANSWER)
FAILED = made(CaseFailed(case_id="ann", kind="LengthStop", message="cut", hint="report it", seconds=3.25))
CANCELLED = made(RunFinished(status="cancelled", finished=0, failed=0, seconds=1.0))
WAITING = made(case_id="bea")


def check(data: Any) -> None:
    jsonschema.Draft202012Validator(schema(), format_checker=jsonschema.FormatChecker()).validate(data)


def test_the_schema_is_one_of_2020_12_and_carries_the_version() -> None:
    jsonschema.Draft202012Validator.check_schema(schema())
    assert schema()["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema()["properties"]["schema"] == {"const": SCHEMA}


@pytest.mark.parametrize(
    ("data", "status"),
    [(FINISHED, "finished"), (FAILED, "failed"), (CANCELLED, "cancelled"), (WAITING, "cancelled")],
    ids=["finished", "failed", "cancelled", "never begun"],
)
def test_documents_obey_the_schema_also_after_a_way_through_json(data: dict[str, Any], status: str) -> None:
    check(data)
    check(json.loads(json.dumps(data, allow_nan=False)))
    assert data["status"] == status
    assert data["disclaimer"] == DISCLAIMER


def test_a_document_says_what_the_events_say() -> None:
    assert FINISHED["rounds"] == [
        {
            "name": "scot/vote",
            "questions": 2,
            "prompt_tokens": 200,
            "prompt_tokens_computed": computed,
            "generated_tokens": 20,
            "seconds": 1.5,
        }
        for computed in (200, 72)
    ]
    assert FINISHED["totals"] == {
        "calls": 4,
        "batches": 2,
        "prompt_tokens": 400,
        "prompt_tokens_computed": 272,
        "generated_tokens": 40,
        "seconds": 3.25,
        "parse_failures": 0,
        "length_stops": 0,
    }
    assert FINISHED["degraded"] == [{"kind": "condensed", "detail": "shortened"}]
    assert FINISHED["notes"] == [{"kind": "tie", "detail": "equal"}]
    assert FINISHED["comments"] == [{"round": 1, "by": "reader", "about": "", "text": "no rash", "at": AT}]
    assert FINISHED["conflicts"] == [{"kept": "gout", "over": "flu", "why": "the joint", "by": "aggregator"}]
    assert (FINISHED["uncertainty"], WAITING["uncertainty"]) == ("no joint fluid was looked at", "")
    judge = {"name": "n", "fingerprint": {"model": "n", "dtype": "float32"}}
    assert FINISHED["model"] == {"name": "m", "fingerprint": {"dtype": "float32"}, "roles": {"judge": judge}}
    assert (FINISHED["seed"], FINISHED["created_at"], FINISHED["panel"]) == (7, AT, ["Neurology", "Cardiology"])


def test_every_quote_of_a_document_is_the_case_s_at_its_place() -> None:
    entries = [item for entry in FINISHED["differential"] for item in entry["evidence"]]
    placed = [*entries, *FINISHED["triage"], *FINISHED["cant_miss"]]
    assert len(placed) == 6
    for item in placed:
        assert item["quote"] is None or TEXT[item["start"] : item["end"]] == item["quote"]


@pytest.mark.parametrize(
    ("kind", "parse_failures", "length_stops"),
    [
        ("LengthStop", 0, 1),
        ("ParseError", 1, 0),
        ("GrammarDeadEnd", 1, 0),
        ("EmptyAnswer", 1, 0),
        ("ContextLengthExceeded", 0, 0),
    ],
)
def test_a_failure_is_counted_by_its_kind(kind: str, parse_failures: int, length_stops: int) -> None:
    data = made(CaseFailed(case_id="ann", kind=kind, message="m", hint="h", seconds=1.0))
    assert data["error"] == {"kind": kind, "message": "m", "hint": "h"}
    assert (data["totals"]["parse_failures"], data["totals"]["length_stops"]) == (parse_failures, length_stops)
    check(data)


def test_a_case_that_failed_and_then_finished_is_finished() -> None:
    failed = CaseFailed(case_id="ann", kind="LengthStop", message="cut", hint="", seconds=1.0)
    data = made(failed, CaseFinished(case_id="ann", answer="x", seconds=1.0), answer=ANSWER)
    assert (data["status"], data["error"]) == ("finished", None)
    check(data)


@pytest.mark.parametrize("wrong", [Quote("fever", 0, 5), Quote("gout", 0, 4), Quote("fever", 12, 16)])
@pytest.mark.parametrize("place", ["evidence", "cant_miss", "triage"])
def test_a_quote_that_is_not_the_case_s_is_refused_wherever_it_stands(wrong: Quote, place: str) -> None:
    assert TEXT[wrong.start : wrong.end] != wrong.quote
    item: Any = {
        "evidence": Entry(1, "flu", 1.0, evidence=(Evidence(wrong, supports=True, by=()),)),
        "cant_miss": CantMiss("flu", "", wrong, "", ()),
        "triage": TriageItem("flu", wrong, "routine", "", ""),
    }[place]
    changed: dict[str, Any] = {{"evidence": "entries"}.get(place, place): (item,)}
    with pytest.raises(AssertionError):
        differential_json(replace(Differential("votes", ()), **changed), TEXT)


def put(path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    """A change of a document: `path` with dots, numbers for places of a list."""

    def change(data: Any) -> None:
        *way, last = [int(step) if step.isdigit() else step for step in path.split(".")]
        for step in way:
            data = data[step]
        data[last] = value

    return change


@pytest.mark.parametrize(
    "path",
    [
        "mood",
        "model.mood",
        "totals.mood",
        "rounds.0.mood",
        "differential.0.mood",
        "differential.0.evidence.0.mood",
        "cant_miss.0.mood",
        "triage.0.mood",
        "degraded.0.mood",
        "notes.0.mood",
        "comments.0.mood",
    ],
)
def test_a_key_that_is_not_in_the_plan_is_refused(path: str) -> None:
    data = copy.deepcopy(FINISHED)
    put(path, "sunny")(data)
    with pytest.raises(jsonschema.ValidationError, match="mood"):
        check(data)


def paths(data: Any, before: str = "") -> list[str]:
    """All keys of a document whose set is fixed."""
    free = ("options", "fingerprint", "roles", "votes", "stances")
    if isinstance(data, list):
        return paths(data[0], f"{before}0.") if data else []
    if not isinstance(data, dict):
        return []
    inner = [path for key, value in data.items() if key not in free for path in paths(value, f"{before}{key}.")]
    return [f"{before}{key}" for key in data] + inner


@pytest.mark.parametrize("path", paths(FINISHED))
def test_every_key_is_required(path: str) -> None:
    data = copy.deepcopy(FINISHED)
    inner: Any = data
    *way, last = path.split(".")
    for step in way:
        inner = inner[int(step) if step.isdigit() else step]
    del inner[last]
    with pytest.raises(jsonschema.ValidationError):
        check(data)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("schema", "ddx-local/result/2"),
        ("status", "running"),
        ("status", "waiting"),
        ("status", "cancelled"),  # with a differential
        ("error", {"kind": "LengthStop", "message": "m", "hint": ""}),  # of a finished case
        ("created_at", "yesterday"),
        ("seed", -1),
        ("seed", 1.5),
        ("differential.0.rank", 0),
        ("differential.0.probability", 1.5),
        ("differential.0.score", "high"),
        ("differential.0.votes", {"Neurology": 0}),
        ("differential.0.critical", "yes"),
        ("differential.0.icd10", "J10"),
        ("differential.0.evidence.0.start", None),
        ("differential.0.evidence.0.quote", ""),
        ("cant_miss.0.start", None),
        ("cant_miss.1.start", 4),
        ("triage.0.urgency", "soon"),
        ("triage.1.end", 4),
        ("totals.calls", -1),
        ("rounds.0.seconds", -0.1),
        ("score_kind", ""),
        ("disclaimer", ""),
    ],
)
def test_a_value_out_of_its_range_is_refused(path: str, value: Any) -> None:
    data = copy.deepcopy(FINISHED)
    put(path, value)(data)
    with pytest.raises(jsonschema.ValidationError):
        check(data)


def test_what_a_later_method_adds_has_its_place() -> None:
    data = copy.deepcopy(FINISHED)
    data["differential"][0]["icd10"] = {"code": "J10", "name": "Influenza"}
    numbers = ("p_before", "p_after", "gap", "gap_paper", "noise_floor", "sip", "edit_sim", "shift", "combined")
    data["counterfactuals"] = [
        {
            "by": "Neurology",
            "round": 1,
            "diagnosis": "influenza",
            "operation": "remove",
            "patches": [{"start": 0, "end": 3, "replacement": ""}],
            **dict.fromkeys(numbers, 0.5),
            "kept": True,
        }
    ]
    check(data)
    data["counterfactuals"][0]["mood"] = "sunny"
    with pytest.raises(jsonschema.ValidationError):
        check(data)


def test_the_schema_is_a_file_of_the_package() -> None:
    from importlib import resources

    assert resources.files("ddx_local").joinpath("result.schema.json").is_file()
