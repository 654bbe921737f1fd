"""Events as values: what goes into JSON comes out again, of every type."""

import dataclasses
import json
import subprocess
import sys

import pytest

from ddx_local import events
from ddx_local.events import TYPES, Event, from_json, sha256, to_json

HEAD = {"at": "2026-01-01T00:00:00.000+00:00", "case_id": "ann"}

EXAMPLES: tuple[Event, ...] = (
    events.RunStarted(
        at=HEAD["at"],
        run_id="r1",
        method="scot",
        options={"k": 5, "without": ["triage"], "same_at": 0.9},
        model="m",
        fingerprint={"dtype": "float32"},
        engine="vllm",
        seed=7,
        package_version="0.1.0",
        cases={"ann": "aa", "bea": "bb"},
        settings={"max_model_len": None, "compiled": False},
        prompts={"scot/panel": "cc"},
    ),
    events.CaseStarted(**HEAD, text="aa"),
    events.RoundStarted(**HEAD, round=3, name="scot/triage", questions=5, batch=True),
    events.Asked(
        **HEAD,
        round=3,
        key=("branch", "Hématologie"),
        step="scot/triage",
        role="Hématologie",
        slots={"case": "aa", "entries": ["bb", "cc"]},
        seed=11,
        temperature=0.3,
        digest="dd",
        engine="vllm",
    ),
    events.Answered(
        **HEAD,
        round=3,
        key=("",),
        digest="dd",
        text="ee",
        thoughts="ff",
        value=[["flu", -1.25, 2], [0.5]],
        finish_reason="stop",
        prompt_tokens=100,
        cached_tokens=64,
        generated_tokens=9,
        seconds=0.125,
    ),
    events.Noted(**HEAD, round=4, kind="tie", detail="a “tie”", degraded=True),
    events.Commented(**HEAD, round=4, by="reader", text="no\nfever", about="judge"),
    events.CaseFinished(**HEAD, answer="aa", seconds=1.5),
    events.CaseFailed(**HEAD, kind="LengthStop", message="cut", hint="report it", seconds=0.5),
    events.RunFinished(at=HEAD["at"], status="finished", finished=2, failed=1, seconds=2.0, counts={"merged": 1}),
)


def test_there_is_an_example_of_every_type_with_every_field_set_to_something_of_its_own() -> None:
    assert {type(event).__name__ for event in EXAMPLES} == set(TYPES)
    for event in EXAMPLES:
        for field in dataclasses.fields(event):
            if field.name != "case_id" and field.default is not dataclasses.MISSING:
                assert getattr(event, field.name) != field.default, f"{type(event).__name__}.{field.name}"


@pytest.mark.parametrize("event", EXAMPLES, ids=lambda event: type(event).__name__)
def test_an_event_comes_back_from_json_as_it_was(event: Event) -> None:
    assert from_json(json.loads(json.dumps(to_json(event)))) == event


def test_a_field_of_a_later_version_is_left_out_and_a_type_of_one_is_refused() -> None:
    data = to_json(EXAMPLES[1])
    assert from_json({**data, "mood": "sunny"}) == EXAMPLES[1]
    with pytest.raises(KeyError):
        from_json({**data, "type": "CaseSlept"})


def test_an_event_of_an_earlier_version_without_a_later_field_is_read() -> None:
    data = to_json(EXAMPLES[0])
    del data["prompts"], data["settings"]
    assert from_json(data) == dataclasses.replace(EXAMPLES[0], prompts={}, settings={})  # type: ignore[call-arg]


@pytest.mark.parametrize("text", ["", "a", "é 漢字 🫀\r\n\0", "lone \ud800 surrogate"])
def test_the_address_of_a_text_is_its_sha256_in_any_process(text: str) -> None:
    code = f"from ddx_local.events import sha256; print(sha256({text!r}))"
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert sha256(text) == child.stdout.strip()
    assert len(sha256(text)) == 64


def test_events_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        EXAMPLES[1].at = "later"  # type: ignore[misc]
