"""Whole runs: killed at any moment, resumed, replayed, tampered with; and who listens to them."""

import asyncio
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from ddx_local import jobs
from ddx_local.assets import Assets
from ddx_local.case import Case
from ddx_local.clinical.similarity import spelling_similarity
from ddx_local.data import data_dir
from ddx_local.engines.scripted import ScriptedEngine, by_policy
from ddx_local.errors import EngineError, ReplayMismatch, StoreError, UsageError
from ddx_local.events import (
    Answered,
    Asked,
    CaseFailed,
    CaseFinished,
    Event,
    RunFinished,
    RunStarted,
    from_json,
    sha256,
    to_json,
)
from ddx_local.flow import Similarity
from ddx_local.launch import Opened, consultants_of_files
from ddx_local.methods.table import METHODS
from ddx_local.recorder import Consultant
from ddx_local.request import Request
from ddx_local.result import schema
from ddx_local.store import Store
from tests.command import ROOT, Command
from tests.test_rounds import timeless

NAMES = ("sudden-painful-toe", "exertional-chest-pressure")
FILES = tuple(ROOT / "bench" / "cases" / f"{name}.txt" for name in NAMES)
CASES = tuple(Case(file.stem, file.read_text("utf-8")) for file in FILES)


def job(method: str = "scot", cases: tuple[Case, ...] = CASES, **changes: Any) -> jobs.Job:
    chosen = METHODS[method]
    values = {"agents": 2, "k": 2, "without": ("refinement",)} if method == "scot" else {}
    options = chosen.options(**{**values, **changes})
    return jobs.Job(chosen, options, "scripted", "scripted", 0, {}, cases)


def opened(engine: ScriptedEngine | None = None) -> Opened:
    alike: dict[type, Consultant] = {Similarity: spelling_similarity}
    return Opened(engine or ScriptedEngine(by_policy("walk")), {**alike, **consultants_of_files(alike)})


def start(what: jobs.Job, store: Store, engine: ScriptedEngine | None = None, **more: Any) -> str:
    return asyncio.run(jobs.start(what, opened(engine), store, more.get("listener"), more.get("at_once", 2)))


def resume(run_id: str, store: Store, engine: ScriptedEngine | None = None, listener: Any = None) -> str:
    return asyncio.run(jobs.resume(run_id, opened(engine), store, listener, 2))


def replay(run_id: str, store: Store) -> Any:
    return asyncio.run(jobs.replay(run_id, store))


def cut_short(store: Store, what: jobs.Job, answers: int) -> str:
    """A run whose engine dies after so many answers; its id."""
    left = answers

    def reply(request: Request) -> str:
        nonlocal left
        left -= 1
        if left < 0:
            raise EngineError("it died")
        return by_policy("walk")(request)

    with pytest.raises(EngineError):
        start(what, store, ScriptedEngine(reply))
    return store.runs()[0].run_id


def lasting(documents: Any) -> list[Any]:
    """Result documents without what no two runs share: the run's id, the hour and the seconds."""

    def strip(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {key: strip(item) for key, item in value.items() if key not in ("seconds", "created_at", "run_id")}
        return [strip(item) for item in value] if isinstance(value, list | tuple) else value

    return [strip(document) for document in documents]


def history(store: Store, run_id: str) -> dict[str, list[Event]]:
    """The events of each case and of the run, without times, the run's id and the counts of the engine's process."""
    found: dict[str, list[Event]] = {case_id: timeless(store.events(run_id, case_id)) for case_id in ("", *NAMES)}
    own: Mapping[type[Event], Mapping[str, Any]] = {RunStarted: {"run_id": ""}, RunFinished: {"counts": {}}}
    found[""] = [replace(event, **own.get(type(event), {})) for event in found[""]]
    return found


# --- kill -9 ------------------------------------------------------------------------------------------------------------


SETTINGS = {"agents": "2", "k": "2", "without": "refinement"}
DIAGNOSE: tuple[str | Path, ...] = (
    "diagnose",
    *FILES,
    "--engine",
    "scripted",
    *[f"--option={k}={v}" for k, v in SETTINGS.items()],
)


class Disturbed:
    """The command line with a slow scripted engine and a store of its own."""

    def __init__(self, folder: Path) -> None:
        self.store = folder / "runs.sqlite"
        self.command = Command(folder)

    def begin(self, *words: str | Path) -> int:
        """Start a verb; returns the process's number as soon as its run is recorded."""
        pid = self.command.begin(*words, "--store", self.store, env={"DDX_TEST_DELAY": "0.005"})
        self.command.wait_for(" on scripted: ")
        return pid

    def end(self) -> int:
        return self.command.end().code


@pytest.fixture(scope="module")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Disturbed]:
    found = Disturbed(tmp_path_factory.mktemp("disturbed"))
    yield found
    found.command.close()


@pytest.fixture(scope="module")
def undisturbed(cli: Disturbed) -> tuple[Store, str]:
    """A run that nobody disturbed: its store and its id."""
    cli.begin(*DIAGNOSE)
    assert cli.end() == 0
    store = Store(cli.store)
    return store, store.find("last").run_id


def check_as_undisturbed(store: Store, run_id: str, undisturbed: tuple[Store, str]) -> None:
    whole, whole_id = undisturbed
    for kind in (Asked, Answered):
        calls = Counter((item.case_id, item.round, item.key) for item in store.events(run_id) if isinstance(item, kind))
        assert set(calls.values()) == {1}, f"{kind.__name__}: a finished call was repeated"
    assert lasting(jobs.documents(store, run_id)) == lasting(jobs.documents(whole, whole_id))
    after, expected = history(store, run_id), history(whole, whole_id)
    for case_id in NAMES:
        assert after[case_id] == expected[case_id], "an event is lost, doubled or out of place"
    assert after[""] == expected[""]


def test_a_run_killed_at_20_random_moments_resumes_to_what_an_undisturbed_one_gives(
    cli: Disturbed, undisturbed: tuple[Store, str]
) -> None:
    store, whole_id = undisturbed
    total = len(store.events(whole_id))
    chance = random.Random(20260101)
    depths: list[int] = []
    for number in range(20):
        pid = cli.begin(*DIAGNOSE)
        # One in each twentieth of the run, so that all of it is covered, and there at any moment of an answer.
        run_id = wait_for(store, whole_id, total * (number + chance.random()) / 20)
        time.sleep(chance.random() * 0.006)
        os.kill(pid, signal.SIGKILL)
        cli.end()
        before = store.events(run_id)
        depths.append(len(before))
        engine = ScriptedEngine(by_policy("walk"))
        resume(run_id, store, engine)
        assert store.events(run_id)[: len(before)] == before, "what was recorded was changed"
        assert len(engine.requests) == model_answers(store.events(run_id)) - model_answers(before)
        check_as_undisturbed(store, run_id, undisturbed)
    assert len(set(depths)) >= 10, f"the kills were not spread over the run: {depths}"


def wait_for(store: Store, whole_id: str, events: float) -> str:
    """Until the newest run has so many events; its id."""
    for _ in range(20_000):
        run_id = next(row.run_id for row in store.runs() if row.run_id != whole_id)
        (count,) = store._connection.execute("SELECT count(*) FROM events WHERE run_id = ?", (run_id,)).fetchone()
        if count >= events:
            return run_id
        time.sleep(0.003)
    raise AssertionError("the run stands still")


def model_answers(events: tuple[Event, ...]) -> int:
    return sum(isinstance(event, Answered) and event.text != "" for event in events)


def test_a_run_killed_again_and_again_by_the_command_line_alone_ends_as_undisturbed(
    cli: Disturbed, undisturbed: tuple[Store, str]
) -> None:
    store, whole_id = undisturbed
    pid = cli.begin(*DIAGNOSE)
    for part in (0.2, 0.5, 0.8):
        wait_for(store, whole_id, part * len(store.events(whole_id)))
        os.kill(pid, signal.SIGKILL)
        assert cli.end() == -signal.SIGKILL
        pid = cli.begin("runs", "resume", "last")
    assert cli.end() == 0
    check_as_undisturbed(store, store.find("last").run_id, undisturbed)


# --- resuming -----------------------------------------------------------------------------------------------------------


def test_cases_that_are_finished_are_not_driven_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path / "runs.sqlite")
    what = job("zero-shot")
    run_id = cut_short(store, what, 1)
    finished = [event.case_id for event in store.events(run_id) if isinstance(event, CaseFinished)]
    assert len(finished) == 1
    driven = []

    def watched(case: Case, options: Any) -> Any:
        driven.append(case.id)
        return what.method.flow(case, options)

    monkeypatch.setattr(jobs, "METHODS", {"zero-shot": replace(what.method, flow=watched)})
    resume(run_id, store)
    assert driven == [name for name in NAMES if name not in finished]
    documents = jobs.documents(store, run_id)
    assert [document["status"] for document in documents] == ["finished", "finished"]


def test_a_whole_run_is_not_touched_by_a_resume(tmp_path: Path) -> None:
    store = Store(tmp_path / "runs.sqlite")
    run_id = start(job("zero-shot"), store)
    before = store.events(run_id)
    assert jobs.is_whole(store, run_id)
    engine = ScriptedEngine(by_policy("walk"))
    assert resume(run_id, store, engine) == run_id
    assert engine.requests == []
    assert store.events(run_id) == before


def test_a_run_whose_end_alone_is_missing_gets_it(tmp_path: Path) -> None:
    store = Store(tmp_path / "runs.sqlite")
    run_id = start(job("zero-shot"), store)
    last = store._connection.execute("SELECT max(sequence) FROM events").fetchone()[0]
    store._connection.execute("DELETE FROM events WHERE sequence = ?", (last,))
    assert not jobs.is_whole(store, run_id)
    resume(run_id, store)
    end = store.events(run_id)[-1]
    assert isinstance(end, RunFinished)
    assert (end.status, end.finished, end.failed) == ("finished", 2, 0)
    assert jobs.is_whole(store, run_id)


def test_a_resumed_run_that_fails_is_not_whole(tmp_path: Path) -> None:
    store = Store(tmp_path / "runs.sqlite")
    run_id = start(job("zero-shot"), store, ScriptedEngine(lambda _: ""))
    assert {document["status"] for document in jobs.documents(store, run_id)} == {"failed"}
    assert not jobs.is_whole(store, run_id)


@pytest.fixture
def own_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Copies of prompts and grammars that a test may change."""
    for name in ("prompts", "grammars"):
        shutil.copytree(data_dir(name), tmp_path / "files" / name)
    files = tmp_path / "files"
    monkeypatch.setattr(jobs, "Assets", lambda: Assets(files / "prompts", files / "grammars"))
    return files


@pytest.mark.parametrize(
    ("file", "named"),
    [
        ("prompts/scot/panel.md", r"scot/panel \("),
        ("prompts/scot/cant_miss.md", r"scot/cant_miss \("),  # a step that the run has not reached
        ("grammars/scot/vote.lark", r"scot/vote \("),
        ("prompts/scot/_shared.md", r"scot/cant_miss, scot/differential, scot/exchange and \d+ more"),
    ],
)
def test_a_resume_after_one_byte_of_a_file_changed_is_refused_and_names_the_step(
    file: str, named: str, tmp_path: Path, own_files: Path
) -> None:
    store = Store(tmp_path / "runs.sqlite")
    run_id = cut_short(store, job(), 6)
    before = store.events(run_id)
    path = own_files / file
    path.write_bytes(path.read_bytes().replace(b" ", b"  ", 1))
    engine = ScriptedEngine(by_policy("walk"))
    with pytest.raises(ReplayMismatch, match=named):
        resume(run_id, store, engine)
    with pytest.raises(ReplayMismatch, match=named):
        replay(run_id, store)
    assert engine.requests == []
    assert store.events(run_id) == before


def test_a_step_that_came_or_went_is_a_change_too(tmp_path: Path, own_files: Path) -> None:
    store = Store(tmp_path / "runs.sqlite")
    run_id = cut_short(store, job("zero-shot"), 1)
    shutil.copy(own_files / "prompts/zero_shot/differential.md", own_files / "prompts/zero_shot/more.md")
    shutil.copy(own_files / "grammars/zero_shot/differential.lark", own_files / "grammars/zero_shot/more.lark")
    with pytest.raises(ReplayMismatch, match="zero_shot/more"):
        resume(run_id, store)


def rewrite(store: Store, kind: type[Event], change: Any) -> None:
    """Change recorded events in the file, as one who tampers with it would."""
    rows = store._connection.execute("SELECT run_id, sequence, body FROM events").fetchall()
    for run_id, sequence, body in rows:
        event = from_json(json.loads(zlib.decompress(body)))
        if isinstance(event, kind):
            changed = zlib.compress(json.dumps(to_json(change(event))).encode())
            store._connection.execute(
                "UPDATE events SET body = ? WHERE run_id = ? AND sequence = ?", (changed, run_id, sequence)
            )


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (
            {"options": {"agents": 3, "k": 2, "without": ["refinement"]}},
            r"round 0 `scot/panel`.*changed: slot `agents`",
        ),
        ({"seed": 1}, r"round 0 `scot/panel`.*changed: seed"),
        (
            {"options": {"agents": 2, "k": 2, "without": ["refinement"], "temperature_conservative": 0.9}},
            "changed: temperature",
        ),
        ({"options": {"agents": 2, "k": 2, "without": ["relevance"]}}, r"round 1 `size`: .* what is consulted about"),
    ],
)
def test_a_resume_after_the_run_s_settings_changed_is_refused_and_says_what(
    change: dict[str, Any], named: str, tmp_path: Path
) -> None:
    store = Store(tmp_path / "runs.sqlite")
    run_id = cut_short(store, job(cases=CASES[:1]), 8)
    rewrite(store, RunStarted, lambda header: replace(header, **change))
    engine = ScriptedEngine(by_policy("walk"))
    with pytest.raises(ReplayMismatch, match=named) as caught:
        resume(run_id, store, engine)
    assert engine.requests == []
    assert caught.value.exit_code == 8
    assert caught.value.hint


def test_a_resume_with_another_engine_is_refused_and_says_in_what_it_differs(tmp_path: Path) -> None:
    store = Store(tmp_path / "runs.sqlite")
    run_id = cut_short(store, job(), 3)
    before = store.events(run_id)
    engine = ScriptedEngine(by_policy("walk"), context=99_999)
    with pytest.raises(ReplayMismatch, match="differs from the recorded one in context"):
        resume(run_id, store, engine)
    assert engine.requests == []
    assert store.events(run_id) == before


def test_a_run_of_a_version_that_recorded_no_prompts_is_still_resumed(tmp_path: Path) -> None:
    store = Store(tmp_path / "runs.sqlite")
    run_id = cut_short(store, job("zero-shot"), 1)
    rewrite(store, RunStarted, lambda header: replace(header, prompts={}))
    resume(run_id, store)
    assert jobs.is_whole(store, run_id)


def test_two_at_once_cannot_resume_one_run(tmp_path: Path) -> None:
    store = Store(tmp_path / "runs.sqlite")
    run_id = cut_short(store, job("zero-shot"), 1)
    code = (
        "import sys; from pathlib import Path; from ddx_local.store import Store\n"
        "with Store(Path(sys.argv[1])).claim(sys.argv[2]):\n    print('held', flush=True); sys.stdin.read()\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "runs.sqlite"), run_id]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) as child:
        assert child.stdout is not None
        child.stdout.readline()
        engine = ScriptedEngine(by_policy("walk"))
        with pytest.raises(StoreError, match=f"another process works on run {run_id}"):
            resume(run_id, store, engine)
        assert engine.requests == []
        child.kill()
    resume(run_id, store)


def test_unknown_runs_and_methods_are_named(tmp_path: Path) -> None:
    store = Store(tmp_path / "runs.sqlite")
    with pytest.raises(StoreError, match="run nowhere: its beginning is not in the store"):
        jobs.recorded(store, "nowhere")
    with pytest.raises(UsageError, match="no method `scott`: did you mean scot"):
        jobs.method("scott")


# --- replay -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def recorded(tmp_path: Path) -> Iterator[tuple[Store, str]]:
    store = Store(tmp_path / "runs.sqlite")
    yield store, start(job(), store)
    store.close()


def test_a_replay_gives_the_same_without_an_engine_and_adds_nothing(recorded: tuple[Store, str]) -> None:
    store, run_id = recorded
    before = store.events(run_id)
    assert replay(run_id, store) == jobs.documents(store, run_id)
    assert store.events(run_id) == before


def test_a_replay_finds_an_answer_that_was_exchanged_for_another(recorded: tuple[Store, str]) -> None:
    store, run_id = recorded
    ballots = {
        event.key: event.text
        for event in store.events(run_id, NAMES[0])
        if isinstance(event, Answered)
        and any(
            isinstance(asked, Asked)
            and asked.step == "scot/vote"
            and (asked.round, asked.key) == (event.round, event.key)
            for asked in store.events(run_id, NAMES[0])
        )
    }
    (key, old), *_ = ballots.items()
    ballot = json.loads(store.text(run_id, old))
    new = json.dumps({**ballot, "ballot": ballot["ballot"][::-1]})
    assert new != store.text(run_id, old)
    store.append(run_id, [], [new])
    rewrite(store, Answered, lambda event: replace(event, text=sha256(new)) if event.text == old else event)
    with pytest.raises(ReplayMismatch, match=f"case `{NAMES[0]}`"):
        replay(run_id, store)
    assert key


def test_a_replay_finds_a_result_that_was_exchanged_for_another(recorded: tuple[Store, str]) -> None:
    store, run_id = recorded
    answers = {event.case_id: event.answer for event in store.events(run_id) if isinstance(event, CaseFinished)}
    rewrite(
        store,
        CaseFinished,
        lambda event: replace(event, answer=answers[NAMES[1]]) if event.case_id == NAMES[0] else event,
    )
    with pytest.raises(ReplayMismatch, match=f"case `{NAMES[0]}`: the same answers now lead to another result"):
        replay(run_id, store)


def test_a_replay_finds_a_text_that_was_changed_in_place(recorded: tuple[Store, str]) -> None:
    store, run_id = recorded
    address = next(event.text for event in store.events(run_id) if isinstance(event, Answered) and event.text)
    body = zlib.compress(store.text(run_id, address).replace("a", "e").encode())
    store._connection.execute("UPDATE texts SET body = ? WHERE address = ?", (body, address))
    with pytest.raises(StoreError, match="was changed"):
        replay(run_id, store)


def test_a_replay_of_an_interrupted_run_is_refused(tmp_path: Path) -> None:
    store = Store(tmp_path / "runs.sqlite")
    run_id = cut_short(store, job(), 3)
    with pytest.raises(ReplayMismatch, match="it was interrupted"):
        replay(run_id, store)


def test_a_replay_of_a_failed_case_gives_the_same_failure_and_finds_one_that_was_made_up(tmp_path: Path) -> None:
    store = Store(tmp_path / "runs.sqlite")
    run_id = start(job("zero-shot"), store, ScriptedEngine(by_policy("walk"), context=50))
    documents = replay(run_id, store)
    assert [document["error"]["kind"] for document in documents] == ["ContextLengthExceeded"] * 2
    run_id = start(job("zero-shot"), store, ScriptedEngine(lambda _: ""))
    assert [document["error"]["kind"] for document in replay(run_id, store)] == ["EmptyAnswer"] * 2
    rewrite(store, CaseFailed, lambda event: replace(event, kind="LengthStop"))
    with pytest.raises(ReplayMismatch, match="another result"):
        replay(run_id, store)


# --- results ------------------------------------------------------------------------------------------------------------


def test_a_run_gives_one_document_a_case_in_the_run_s_order_whatever_ends_first() -> None:
    documents = []
    for at_once in (1, 2, 4):
        store = Store(None)
        documents.append(jobs.documents(store, start(job(), store, at_once=at_once)))
    assert [document["case_id"] for document in documents[0]] == list(NAMES)
    assert lasting(documents[0]) == lasting(documents[1]) == lasting(documents[2])


def test_ids_of_runs_sort_by_time_and_are_never_the_same() -> None:
    ids = [jobs.new_run_id() for _ in range(200)]
    assert len(set(ids)) == 200
    stamps = [run_id[:15] for run_id in ids]
    assert stamps == sorted(stamps)


# --- who listens --------------------------------------------------------------------------------------------------------


def test_a_listener_hears_every_event_once_after_it_is_recorded_with_its_texts(tmp_path: Path) -> None:
    store = Store(tmp_path / "runs.sqlite")
    heard: list[Event] = []
    durable: list[bool] = []
    said: list[bool] = []

    def listen(event: Event, texts: Mapping[str, str]) -> None:
        heard.append(event)
        durable.append(event in store.events(store.runs()[0].run_id))
        if isinstance(event, Answered) and event.text:
            said.append(sha256(texts[event.text]) == event.text)

    run_id = start(job("zero-shot"), store, listener=listen)
    assert tuple(heard) == store.events(run_id)
    assert durable == [True] * len(heard)
    assert said == [True, True]


@pytest.mark.parametrize("error", [RuntimeError("fever"), BrokenPipeError(), UsageError("x"), KeyError("fever")])
def test_a_listener_that_raises_breaks_no_run_and_is_reported_in_one_line_once(
    error: Exception, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    calls = 0

    def listen(_: Event, __: Mapping[str, str]) -> None:
        nonlocal calls
        calls += 1
        raise error

    store = Store(tmp_path / "runs.sqlite")
    run_id = start(job("zero-shot"), store, listener=listen)
    assert [document["status"] for document in jobs.documents(store, run_id)] == ["finished", "finished"]
    assert calls == len(store.events(run_id)), "it is asked again: one fault may pass"
    out, err = capsys.readouterr()
    assert out == ""
    assert err == f"ddx-local: the view failed ({type(error).__name__}); the run goes on\n"


def test_a_listener_that_raises_breaks_no_run_even_where_standard_error_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def listen(_: Event, __: Mapping[str, str]) -> None:
        raise ValueError

    gone = (tmp_path / "gone").open("w")
    gone.close()
    monkeypatch.setattr(sys, "stderr", gone)
    store = Store(tmp_path / "runs.sqlite")
    run_id = start(job("zero-shot"), store, listener=listen)
    assert jobs.is_whole(store, run_id)


def test_a_listener_of_a_resumed_run_hears_what_was_before(tmp_path: Path) -> None:
    store = Store(tmp_path / "runs.sqlite")
    run_id = cut_short(store, job("zero-shot"), 1)
    heard: list[Event] = []
    resume(run_id, store, listener=lambda event, _: heard.append(event))
    assert tuple(heard) == store.events(run_id)


# --- the document's schema ----------------------------------------------------------------------------------------------


def test_documents_of_finished_failed_and_cancelled_runs_obey_the_schema(tmp_path: Path) -> None:
    check = jsonschema.Draft202012Validator(schema(), format_checker=jsonschema.FormatChecker()).validate
    store = Store(tmp_path / "runs.sqlite")
    runs = [
        ("finished", start(job(without=()), store)),
        ("finished", start(job("best-of-n", n=3), store)),
        ("failed", start(job("zero-shot"), store, ScriptedEngine(lambda _: ""))),
    ]
    runs.append(("cancelled", cut_short(store, job(), 5)))
    for status, run_id in runs:
        for document in jobs.documents(store, run_id):
            assert document["status"] == status
            check(document)
            check(json.loads(json.dumps(document)))
