"""Runs over the API: watched, commented, cancelled, joined by a retry, exported, deleted; clients that go, engines that die."""

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from ddx_local.errors import EngineError
from ddx_local.server.serving import exit_code_of
from tests.server.checking import events
from tests.server.conftest import CASE, Served, serving


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server whose engine takes its time, so that runs can be disturbed."""
    with serving(tmp_path_factory.mktemp("slow"), delay=0.4) as found:
        yield found


def began(http: httpx.Client, **more: Any) -> str:
    reply = http.post("/ddx/v1/runs", json={"text": CASE, "method": "scot", **more})
    assert reply.status_code == 201, reply.text
    return str(reply.json()["run_id"])


def until(http: httpx.Client, run: str, key: str, value: Any, seconds: float = 30) -> Any:
    """Until a run's state says so; returns the state."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = http.get(f"/ddx/v1/runs/{run}").json()
        if found[key] == value:
            return found
        time.sleep(0.02)
    raise AssertionError(f"{key} never became {value}: {found[key]}")


def test_a_run_is_watched_from_its_beginning_and_from_its_middle_the_same(served: Served) -> None:
    with served.http("panel") as http:
        run = began(http)
        live = events(http.get(f"/ddx/v1/runs/{run}/events").text)
        again = events(http.get(f"/ddx/v1/runs/{run}/events").text)
        late = http.get(f"/ddx/v1/runs/{run}/events", headers={"last-event-id": "40"}).text
    assert live == again
    assert [live[0]["type"], live[1]["type"], live[-1]["type"]] == ["run", "case", "end"]
    assert live[-1]["status"] == "finished"
    answers = [item for item in live if item["type"] == "answer"]
    assert {"scot/panel", "scot/vote"} <= {item["step"] for item in answers}
    assert all(item["text"] for item in answers)
    numbers = [int(line[4:]) for line in late.split("\n") if line.startswith("id: ")]
    assert min(numbers) == 41
    assert events(late) == live[-len(events(late)) :]


def test_a_comment_between_rounds_enters_the_run_and_its_result(served: Served) -> None:
    with served.http("panel") as http:
        run = began(http, supervise=True, options={"agents": 2})
        until(http, run, "waiting", True)
        comment = http.post(f"/ddx/v1/runs/{run}/comments", json={"text": "Ask about diuretics.", "by": "Dr X"})
        assert comment.status_code == 202
        assert http.get(f"/ddx/v1/runs/{run}").json()["waiting"]
        http.post(f"/ddx/v1/runs/{run}/continue", json={"pause": False})
        found = until(http, run, "status", "finished")
    comments = found["results"][0]["comments"]
    assert [(item["by"], item["text"]) for item in comments] == [("Dr X", "Ask about diuretics.")]
    assert any(
        "Ask about diuretics." in message.content for request in served.engine.requests for message in request.messages
    )


def test_a_running_run_can_be_paused_and_cancelled(slow: Served) -> None:
    with slow.http("panel") as http:
        run = began(http)
        assert http.post(f"/ddx/v1/runs/{run}/pause").status_code == 202
        until(http, run, "waiting", True)
        assert http.delete(f"/ddx/v1/runs/{run}").status_code == 409
        start = time.monotonic()
        assert http.post(f"/ddx/v1/runs/{run}/cancel").json() == {"status": "cancelled"}
        assert time.monotonic() - start < 1
        assert http.get(f"/ddx/v1/runs/{run}").json()["status"] == "cancelled"
        for path in ("cancel", "pause"):
            assert http.post(f"/ddx/v1/runs/{run}/{path}").status_code == 409
        stream = events(http.get(f"/ddx/v1/runs/{run}/events").text)
        assert stream[-1] == {"type": "end", "status": "cancelled", "seconds": stream[-1]["seconds"]}


def test_a_run_is_listed_exported_summarised_and_deleted(served: Served) -> None:
    with served.http("panel") as http:
        run = began(http, method="counterfactual")
        until(http, run, "status", "finished")
        assert http.get("/ddx/v1/runs").json()["runs"][0]["run_id"] == run
        found = http.get(f"/ddx/v1/runs/{run}").json()
        text = found["cases"][0]["text"]
        assert text == CASE
        heat = found["heat"][0]
        assert any(piece["gap"] is not None for pieces in heat.values() for piece in pieces)
        whole = json.loads(http.get(f"/ddx/v1/runs/{run}/export.json").text)
        assert whole["schema"] == "ddx-local/run/1"
        page = http.get(f"/ddx/v1/runs/{run}/export.html")
        assert page.headers["content-disposition"].startswith("attachment")
        assert "<!doctype html>" in page.text
        assert "src=" not in page.text
        summary = http.post(f"/ddx/v1/runs/{run}/summary").json()
        assert summary["tried"]
        assert summary["counts"]["finished"] == 1
        assert len(http.post("/ddx/v1/summary", json={"last": 2}).json()["runs"]) == 2
        assert http.delete(f"/ddx/v1/runs/{run}").status_code == 204
        assert http.get(f"/ddx/v1/runs/{run}").status_code == 404
    assert CASE[:30].encode() not in Path(str(served.store.path)).read_bytes()


def test_the_information_editor_splits_and_joins_without_losing_a_character(served: Served) -> None:
    text = "History: fever for 3 days.\nExamination: rash.\nLabs: CRP 80 mg/L. 😀 é"
    with served.http("panel") as http:
        found = http.post("/ddx/v1/cases", json={"text": text}).json()
        pieces = [text[span["start"] : span["end"]] for span in found["sections"]]
        assert "".join(pieces) == text
        form = {"medical_history": "fever for 3 days", "initial_test_results": "CRP 80 mg/L"}
        joined = http.post("/ddx/v1/cases", json={"sections": form}).json()
        assert joined["text"] == "Medical history:\nfever for 3 days\n\nInitial test results:\nCRP 80 mg/L\n"


def _gone(served: Served, body: dict[str, Any]) -> float:
    """Begin a request and go away in the middle of it; seconds until the engine works no more."""
    with served.http("admin") as http:
        if body.get("stream"):
            with http.stream("POST", "/v1/chat/completions", json=body) as reply:
                next(reply.iter_bytes())
                left = time.monotonic()
        else:
            with pytest.raises(httpx.ReadTimeout):
                http.post("/v1/chat/completions", json=body, timeout=0.9)
            left = time.monotonic()
    while served.server.runs.live or served.server.limits.working:
        assert time.monotonic() - left < 5
        time.sleep(0.01)
    return time.monotonic() - left


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_goes_stops_its_run_within_a_second(slow: Served, stream: bool) -> None:
    body = {"model": "ddx/scot", "messages": [{"role": "user", "content": CASE}], "stream": stream}
    assert _gone(slow, body) < 1.0
    asked = len(slow.engine.requests)
    time.sleep(1.2)
    assert len(slow.engine.requests) == asked
    assert slow.store.runs()[0].status == "cancelled"


def test_a_client_that_goes_stops_a_raw_request(slow: Served) -> None:
    body = {"model": "scripted", "messages": [{"role": "user", "content": "a"}]}
    slow.engine.pause, before = 30.0, slow.engine.pause
    try:
        assert _gone(slow, body) < 1.0
    finally:
        slow.engine.pause = before


def test_a_repeated_request_joins_the_run_that_goes_on(slow: Served) -> None:
    body = {"model": "ddx/zero-shot", "messages": [{"role": "user", "content": CASE}], "seed": 77}
    found: list[Any] = []

    def ask(retry: str) -> None:
        with slow.http("ddx") as http:
            reply = http.post("/v1/chat/completions", json=body, headers={"x-stainless-retry-count": retry})
            found.append(reply.json()["ddx"]["run_id"])

    first = threading.Thread(target=ask, args=("0",))
    first.start()
    time.sleep(0.15)
    ask("1")
    first.join()
    assert found[0] == found[1]
    ask("1")  # it is over: a new one
    assert found[2] != found[0]


def test_a_retry_after_a_broken_connection_finds_its_run_alive(slow: Served) -> None:
    content = json.dumps({"model": "ddx/scot", "messages": [{"role": "user", "content": CASE}], "seed": 78}).encode()
    headers = {"content-type": "application/json"}
    with slow.http("ddx") as http:
        with pytest.raises(httpx.ReadTimeout):
            http.post("/v1/chat/completions", content=content, headers=headers, timeout=0.3)
        (run,) = slow.server.runs.live
        time.sleep(0.4)
        retry = http.post("/v1/chat/completions", content=content, headers={**headers, "x-stainless-retry-count": "1"})
    assert retry.json()["ddx"]["run_id"] == run


def test_silence_is_kept_alive(tmp_path: Path) -> None:
    from ddx_local.server.limits import Bounds

    with serving(tmp_path, delay=0.5, bounds=Bounds(keep_alive_seconds=0.1)) as served, served.http() as http:
        body = {"model": "ddx/zero-shot", "messages": [{"role": "user", "content": CASE}], "stream": True}
        text = http.post("/v1/chat/completions", json=body).text
    assert text.count(": keep-alive\n\n") >= 2
    assert text.endswith("data: [DONE]\n\n")


def test_an_engine_that_dies_is_told_and_ends_the_server_with_75(tmp_path: Path) -> None:
    with serving(tmp_path, delay=0.3, linger=1.5) as served:
        with served.http() as http:
            run = began(http, method="scot")
            asyncio.run(served.engine.aclose())
            assert http.get("/healthz").status_code == 200
            start = time.monotonic()
            while (reply := http.get("/readyz")).status_code == 200:
                assert time.monotonic() - start < 3
                time.sleep(0.02)
            assert reply.status_code == 503
            assert "gone" in reply.json()["error"]["message"]
            body = {"model": "scripted", "messages": [{"role": "user", "content": "a"}]}
            refused = http.post("/v1/chat/completions", json=body)
            assert (refused.status_code, "retry-after" in refused.headers) == (503, True)
            assert http.get(f"/ddx/v1/runs/{run}").json()["status"] == "cancelled"
        for _ in range(500):
            if served.errors:
                break
            time.sleep(0.02)
        (error,) = served.errors
        assert isinstance(error, EngineError)
        assert exit_code_of(served.server, error) == 75


def test_an_engine_that_does_not_start_ends_the_server_with_its_own_code() -> None:
    from ddx_local.errors import ModelError
    from ddx_local.server.engine_room import EngineRoom, Running

    async def fails() -> Running:
        raise ModelError("no such weights")

    async def whole() -> EngineRoom:
        room = EngineRoom(fails)
        assert not room.ready
        await room.run()
        return room

    room = asyncio.run(whole())
    assert room.over.is_set()
    assert not room.died_running
    assert isinstance(room.failure, ModelError)
    assert "ModelError" in room.reason
