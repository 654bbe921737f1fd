"""Codes for every method's answer: filled from the name, corrected, null where nothing fits; recorded, so that replay holds."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest

from ddx_local import jobs
from ddx_local.case import Case, Differential, Entry, Icd10
from ddx_local.engines.scripted import ScriptedEngine
from ddx_local.flow import Codes, Consult, Flow, Note, Round
from ddx_local.launch import Opened, consultants_of_files
from ddx_local.methods.coding import with_codes
from ddx_local.methods.table import METHODS
from ddx_local.store import Store

CASE = Case("toe", "A man wakes at night with severe pain at the base of his right big toe, red and hot.")
GOUT = Icd10("M10.9", "Gout, unspecified")


def answer(*entries: Entry) -> Flow[Differential]:
    yield Round("toy/one")
    return Differential("votes", entries)


def driven(flow: Flow[Differential], found: list[list[list[Any]]]) -> tuple[Differential, list[Round]]:
    rounds: list[Round] = []
    coded = with_codes(flow)
    try:
        reply: Mapping[Any, Any] | None = None
        while True:
            round_ = next(coded) if reply is None else coded.send(reply)
            rounds.append(round_)
            reply = {
                key: found if isinstance(question, Consult) else None for key, question in round_.questions.items()
            }
    except StopIteration as stop:
        return stop.value, rounds


def test_the_first_fitting_code_is_taken_and_what_does_not_fit_is_null() -> None:
    entries = (Entry(1, "gout", 1.0), Entry(2, "sore toe", 0.5))
    close = [[["M10.9", "Gout, unspecified", True], ["M10", "Gout", True]], [["M10", "Gout", False]]]
    result, rounds = driven(answer(*entries), close)
    assert [entry.icd10 for entry in result.entries] == [GOUT, None]
    (consult,) = rounds[1].questions.values()
    assert isinstance(consult, Consult)
    assert consult.about == Codes(("gout", "sore toe"), 8, fitting_only=True)
    assert not rounds[1].is_batch


@pytest.mark.parametrize(
    "given", [Icd10("Z99.99", "made up"), Icd10("M10.9", "another name"), Icd10("J18.9", "Pneumonia")]
)
def test_a_code_that_a_method_gave_is_corrected_and_noted_unless_it_fits(given: Icd10) -> None:
    entry = Entry(1, "gout", 1.0, icd10=given)
    result, rounds = driven(answer(entry), [[["M10.9", "Gout, unspecified", True]]])
    assert result.entries[0].icd10 == GOUT
    (note,) = rounds[-1].questions.values()
    assert isinstance(note, Note)
    assert given.code in note.detail
    assert "M10.9" in note.detail


def test_a_fitting_code_of_a_method_stays_even_if_another_comes_first() -> None:
    narrow = Icd10("M10", "Gout")
    entry = Entry(1, "gout", 1.0, icd10=narrow)
    result, rounds = driven(answer(entry), [[["M10.9", "Gout, unspecified", True], ["M10", "Gout", True]]])
    assert result.entries[0].icd10 == narrow
    assert len(rounds) == 2


def test_a_made_up_code_without_a_fitting_one_is_taken_away() -> None:
    result, rounds = driven(answer(Entry(1, "x", 1.0, icd10=Icd10("Z99.99", "made up"))), [[]])
    assert result.entries[0].icd10 is None
    assert "not coded" in next(iter(rounds[-1].questions.values())).detail  # type: ignore[union-attr]


def test_no_diagnosis_no_consultation() -> None:
    result, rounds = driven(answer(), [])
    assert result.entries == ()
    assert len(rounds) == 1


# In a run


def says(diagnosis: str) -> ScriptedEngine:
    reply = {"diagnosis": diagnosis, "evidence": ["red and hot."], "reason": "It fits"}
    return ScriptedEngine(lambda _: json.dumps({"differential": [reply]}))


def run(settings: Mapping[str, Any], diagnosis: str = "Acute gout") -> tuple[dict[str, Any], Store, str]:
    store, method = Store(None), METHODS["zero-shot"]
    job = jobs.Job(method, method.options(k=1), "scripted", "scripted", 0, settings, (CASE,))
    run_id = asyncio.run(jobs.start(job, Opened(says(diagnosis), consultants_of_files({})), store, None, 1))
    (document,) = jobs.documents(store, run_id)
    assert document["status"] == "finished", document["error"]
    return document, store, run_id


def test_every_methods_result_has_the_code_and_a_replay_needs_no_classification() -> None:
    document, store, run_id = run({"icd10": True}, "gout")
    assert document["differential"][0]["icd10"] == {"code": "M10.9", "name": "Gout, unspecified"}
    assert document["totals"]["batches"] == 1
    assert asyncio.run(jobs.replay(run_id, store)) == (document,)


@pytest.mark.parametrize("settings", [{"icd10": False}, {}])
def test_without_the_setting_nothing_is_coded_and_runs_of_before_replay_as_they_were(
    settings: Mapping[str, Any],
) -> None:
    document, store, run_id = run(settings, "gout")
    assert document["differential"][0]["icd10"] is None
    assert asyncio.run(jobs.replay(run_id, store)) == (document,)


def test_who_cannot_look_codes_up_gives_none() -> None:
    store, method = Store(None), METHODS["zero-shot"]
    job = jobs.Job(method, method.options(k=1), "scripted", "scripted", 0, {"icd10": True}, (CASE,))
    run_id = asyncio.run(jobs.start(job, Opened(says("gout"), {}), store, None, 1))
    (document,) = jobs.documents(store, run_id)
    assert document["status"] == "finished"
    assert jobs.recorded(store, run_id)[0].settings["icd10"] is False
