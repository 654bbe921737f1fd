"""The Memory Agent: the counts are the program's, the words the model's, and no case text reaches either."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from ddx_local import jobs, memory, options
from ddx_local.case import Case
from ddx_local.engines.scripted import ScriptedEngine, by_policy
from ddx_local.errors import ContextLengthExceeded
from ddx_local.launch import Opened
from ddx_local.request import Request
from ddx_local.store import Store
from tests.command import Command
from tests.toy import CANARY

CASES = tuple(Case(name, f"{name} has {CANARY} fever and a cough for two days, no rash.") for name in ("ann", "bea"))


def run(store: Store, seed: int, reply: object = None) -> str:
    method = jobs.method("zero-shot")
    job = jobs.Job(
        method, options.parse(method.options, {"k": "2"}, "zero-shot"), "scripted", "scripted", seed, {}, CASES
    )
    engine = ScriptedEngine(reply or by_policy("walk"))  # type: ignore[arg-type]
    return asyncio.run(jobs.start(job, Opened(engine, {}), store, None, 2))


def one_fails(request: Request) -> str:
    return "" if "bea has" in request.messages[-1].content else by_policy("walk")(request)


def said(_: Request) -> str:
    return json.dumps({"tried": "two runs", "ended": "well", "failed": "nothing"})


def test_the_record_shows_settings_diagnoses_and_failures_and_no_case_text() -> None:
    store = Store(None)
    ids = [run(store, 1), run(store, 2, one_fails)]
    engine = ScriptedEngine(said)
    found = asyncio.run(memory.summarize(store, ids, Opened(engine, {})))
    assert found.counts == memory.Counts(runs=2, cases=4, finished=3, failed=1, open=0)
    assert (found.tried, found.ended, found.failed, found.left_out) == ("two runs", "well", "nothing", 0)
    (request,) = engine.requests
    prompt = request.messages[-1].content
    assert CANARY not in prompt
    assert "zero-shot on scripted, seed 2 (k=2, temperature=0.3)" in prompt
    assert "bea: failed, EmptyAnswer" in prompt
    first = jobs.documents(store, ids[0])[0]["differential"][0]["diagnosis"]
    assert f"ann: {first}" in prompt


def test_what_does_not_fit_is_left_out_from_the_oldest_end_and_said() -> None:
    store = Store(None)
    ids = [run(store, seed) for seed in range(6)]
    whole = ScriptedEngine(said)
    asyncio.run(memory.summarize(store, ids, Opened(whole, {})))
    room = len(whole.requests[0].messages[-1].content.encode()) + whole.requests[0].sampling.max_tokens
    engine = ScriptedEngine(said, context=room - 100)
    found = asyncio.run(memory.summarize(store, ids, Opened(engine, {})))
    assert 0 < found.left_out < 6
    assert found.counts.runs == 6, "what is counted is never cut"
    prompt = engine.requests[0].messages[-1].content
    assert "seed 0 " in prompt
    assert "seed 5 " not in prompt


def test_a_run_that_does_not_fit_at_all_is_refused_with_the_numbers() -> None:
    store = Store(None)
    ids = [run(store, 1)]
    with pytest.raises(ContextLengthExceeded, match="runs summarize"):
        asyncio.run(memory.summarize(store, ids, Opened(ScriptedEngine(said, context=1200), {})))


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Command]:
    found = Command(tmp_path_factory.mktemp("streams"))
    yield found
    found.close()


def test_the_command_counts_lists_and_summarizes(command: Command, tmp_path: Path) -> None:
    case, store = tmp_path / "a.txt", tmp_path / "runs.sqlite"
    case.write_text(CASES[0].text)
    quick = ("--engine", "scripted", "--method", "zero-shot", "--store", store, "--quiet")
    assert command.run("diagnose", case, *quick).code == 0
    assert command.run("diagnose", case, *quick, "--seed", "1").code == 0
    listed = command.run("runs", "list", "--store", store)
    assert listed.out.count("(1 finished)") == 2
    rows = command.run("runs", "list", "--store", store, "--json").json
    assert [(row["finished"], row["failed"]) for row in rows] == [(1, 0), (1, 0)]
    done = command.run("runs", "summarize", "--store", store, "--engine", "scripted")
    assert done.code == 0, done.err
    assert "2 runs, 2 cases: 2 finished, 0 failed, 0 open" in done.out
    assert "not a medical device" in done.out
    as_json = command.run("runs", "summarize", "last", "--store", store, "--engine", "scripted", "--json").json
    assert as_json["counts"] == {"runs": 1, "cases": 1, "finished": 1, "failed": 0, "open": 0}
    none = command.run("runs", "summarize", "--engine", "scripted", env={"DDX_LOCAL_STORE": str(tmp_path / "none")})
    assert none.code == 2
    assert "there are no runs yet" in none.paragraph
