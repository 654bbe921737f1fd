"""Requests that are wrong on purpose: each is a 4xx in OpenAI's shape, none a 5xx, and none says back what was sent."""

import contextlib
import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ddx_local.server.limits import Bounds
from tests.server.conftest import CASE, Served, serving

SENT = "xyzzy-not-to-be-repeated"
CHAT = "/v1/chat/completions"


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server of short patience."""
    bounds = Bounds(body_seconds=0.5, body_bytes=5000)
    with serving(tmp_path_factory.mktemp("quick"), bounds=bounds) as found:
        yield found


def raw(served: Served, request: bytes, *, wait: float = 10) -> bytes:
    """What comes back for bytes as they are."""
    host, port = served.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=wait) as link:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            link.sendall(request)
        parts = []
        while True:
            try:
                part = link.recv(65536)
            except (TimeoutError, ConnectionResetError):
                break
            if not part:
                break
            parts.append(part)
            if b"\r\n\r\n" in b"".join(parts) and b"content-length" in b"".join(parts).lower():
                break
    return b"".join(parts)


def message(text: str = SENT) -> str:
    return f'{{"model":"scripted","messages":[{{"role":"user","content":"{text}"}}]'


@pytest.mark.parametrize(
    "body",
    [
        "",
        "null",
        "[]",
        "7",
        f'"{SENT}"',
        f"{{{SENT}",
        f'{message()},"temperature":NaN}}',
        f'{message()},"temperature":1e400}}',
        f'{message()},"temperature":-Infinity}}',
        f'{message()},"seed":{"9" * 400}}}',
        f'{message()},"model":"scripted"}}',
        message("\\ud800") + "}",
        message("a\\u0000b") + "}",
        f'{message()},"ddx":{"[" * 40}{"]" * 40}}}',
        "[" * 100_000,
        f'{message()},"temperature":"{SENT}"}}',
        f'{message()},"temperature":true}}',
        f'{message()},"temperature":3}}',
        f'{message()},"stream":"{SENT}"}}',
        f'{message()},"max_tokens":0}}',
        f'{message()},"n":0}}',
        f'{message()},"n":1000000}}',
        f'{message()},"stop":["a","b","c","d","e"]}}',
        f'{message()},"stop":[""]}}',
        f'{message()},"{SENT}":1}}',
        f'{message()},"response_format":{{"type":"{SENT}"}}}}',
        f'{message()},"response_format":{{"type":"json_schema","json_schema":{{"name":"a","schema":{{"type":"{SENT}"}}}}}}}}',
        f'{message()},"stream_options":{{"include_usage":true}}}}',
        f'{{"model":"{SENT}","messages":[]}}',
        '{"model":"scripted","messages":[]}',
        f'{{"model":"scripted","messages":"{SENT}"}}',
        f'{{"model":"scripted","messages":[{{"role":"{SENT}","content":"a"}}]}}',
        f'{{"model":"scripted","messages":[{{"role":"user","content":{{"{SENT}":1}}}}]}}',
        f'{{"model":"scripted","messages":[{{"role":"user","content":[{{"type":"image_url","image_url":"{SENT}"}}]}}]}}',
        f'{{"model":"scripted","messages":["{SENT}"]}}',
        '{"model":"scripted","messages":[' + ",".join(['{"role":"user","content":"a"}'] * 257) + "]}",
        f'{{"model":["{SENT}"],"messages":[]}}',
        f'{{"model":"ddx/scot","messages":[{{"role":"user","content":"  "}}],"user":"{SENT}"}}',
        f'{{"model":"ddx/scot","messages":[{{"role":"user","content":"a"}}],"ddx":{{"{SENT}":1}}}}',
        f'{{"model":"ddx/scot","messages":[{{"role":"user","content":"a"}}],"ddx":{{"agents":"{SENT}"}}}}',
        f'{{"model":"ddx/scot","messages":[{{"role":"user","content":"a"}}],"ddx":"{SENT}"}}',
    ],
)
def test_a_wrong_body_is_refused_without_an_echo(served: Served, body: str) -> None:
    with served.http() as http:
        reply = http.post(CHAT, content=body.encode(), headers={"content-type": "application/json"})
    assert 400 <= reply.status_code < 500
    assert set(reply.json()["error"]) == {"message", "type", "param", "code"}
    assert SENT not in reply.text
    assert all(SENT not in value for value in reply.headers.values())
    assert not any(SENT in line for line in served.reports)


def test_a_body_that_is_no_utf_8_is_refused(served: Served) -> None:
    with served.http() as http:
        reply = http.post(CHAT, content=b'{"model":"\xff"}', headers={"content-type": "application/json"})
    assert reply.status_code == 400


@pytest.mark.parametrize(
    "path",
    [f"/{SENT}", f"/v1/models/{SENT}", "/v1/models/..%2f..%2fetc", f"/ddx/v1/runs/{SENT}", f"/ddx/v1/runs/{SENT}/events",
     "/panel/../../audit.py", "/panel/%2e%2e/app.py", "/v1", "/v1/models/%00", "/ddx/v1/runs?limit=x&limit=99999999999",
     "/ddx/v1/runs?limit=" + "9" * 5000, "/invocations", "/v1/load_lora_adapter", "/server_info", "/tokenize"],
)  # fmt: skip
def test_a_wrong_path_is_refused_without_an_echo(served: Served, path: str) -> None:
    with served.http() as http:
        reply = http.get(path)
    assert 400 <= reply.status_code < 500
    assert SENT not in reply.text


def test_ten_thousand_headers_are_refused(served: Served) -> None:
    head = f"GET /v1/models HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {served.keys['raw']}\r\n"
    few = raw(served, (head + "".join(f"x-{n}: 1\r\n" for n in range(200)) + "\r\n").encode())
    assert few.startswith(b"HTTP/1.1 431")
    many = raw(served, (head + "".join(f"x-{n}: {n}\r\n" for n in range(10_000)) + "\r\n").encode())
    assert many.startswith(b"HTTP/1.1 4")


@pytest.mark.parametrize(
    "request_",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n",
        b"\x00\x01\x02\r\n\r\n",
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999999\r\n\r\n",
        b"GET " + b"/" * 100_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ],
)
def test_broken_http_is_refused(served: Served, request_: bytes) -> None:
    assert raw(served, request_).startswith(b"HTTP/1.1 4")


def _post(served: Served, *more: str) -> bytes:
    lines = ["POST /v1/chat/completions HTTP/1.1", "Host: localhost", "Content-Type: application/json",
             f"Authorization: Bearer {served.keys['raw']}", *more]  # fmt: skip
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def test_a_slow_body_is_given_up(quick: Served) -> None:
    began = time.perf_counter()
    reply = raw(quick, _post(quick, "Content-Length: 1000") + b'{"mod')
    assert reply.startswith(b"HTTP/1.1 408")
    assert time.perf_counter() - began < 5


def test_a_body_is_counted_as_it_comes_not_as_it_is_announced(quick: Served) -> None:
    chunk = b"400\r\n" + b" " * 1024 + b"\r\n"
    assert raw(quick, _post(quick, "Transfer-Encoding: chunked") + chunk * 6).startswith(b"HTTP/1.1 413")
    assert raw(quick, _post(quick, "Content-Length: 6000")).startswith(b"HTTP/1.1 413")


def test_too_many_requests_are_told_when_to_come_back(tmp_path: Path) -> None:
    with serving(tmp_path, bounds=Bounds(per_minute=30)) as served, served.http("raw") as http:
        codes = [http.get("/v1/models").status_code for _ in range(40)]
        assert codes[:30] == [200] * 30
        last = http.get("/v1/models")
        assert last.status_code == 429
        assert last.json()["error"]["code"] == "rate_limit_exceeded"
        assert 1 <= int(last.headers["retry-after"]) <= 3
        with served.http("ddx") as other:  # another key has a count of its own
            assert other.get("/v1/models").status_code == 200


def test_too_much_work_at_once_is_told_when_to_come_back(tmp_path: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    bounds = Bounds(at_once=2, runs_at_once=1)
    with serving(tmp_path, bounds=bounds, delay=0.6) as served, served.http() as http, ThreadPoolExecutor(5) as pool:
        body = {"model": "scripted", "messages": [{"role": "user", "content": "a"}]}
        found = list(pool.map(lambda _: http.post(CHAT, json=body), range(5)))
        assert sorted(reply.status_code for reply in found) == [200, 200, 429, 429, 429]
        assert all(int(reply.headers["retry-after"]) >= 1 for reply in found if reply.status_code == 429)
        first = http.post("/ddx/v1/runs", json={"text": CASE, "method": "scot"})
        assert first.status_code == 201
        second = http.post("/ddx/v1/runs", json={"text": CASE, "method": "scot"})
        assert (second.status_code, second.json()["error"]["code"]) == (429, "too_many_runs")


def test_what_is_no_text_of_a_case_is_refused(served: Served) -> None:
    with served.http("panel") as http:
        for body in (
            {}, {"text": ""}, {"text": " \n"}, {"text": 7}, {"text": "a", "sections": {}}, {"sections": {SENT: "a"}},
            {"sections": []}, {"text": "a\0b"}, {"text": "a" * 300_000}, {"text": "a", "method": SENT},
            {"text": "a", "options": {SENT: 1}}, {"text": "a", "options": [SENT]}, {"text": "a", "seed": -1},
            {"text": "a", SENT: 1},
        ):  # fmt: skip
            content = json.dumps(body)
            reply = http.post("/ddx/v1/runs", content=content, headers={"content-type": "application/json"})
            assert reply.status_code == 400, body
            assert SENT not in reply.text


def test_none_of_it_was_a_fault_of_the_server(served: Served, quick: Served) -> None:
    assert served.reports == []
    assert quick.reports == []
    with served.http() as http:
        text = http.get("/metrics").text
    assert not [line for line in text.splitlines() if 'status="5' in line]
