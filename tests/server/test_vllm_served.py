"""The server on vLLM with the real small model: openai-python against vLLM's own app and the methods, batched together;
clients that go, an engine that is killed, and the panel's full run.
"""

import base64
import json
import os
import re
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import jsonschema
import openai
import pytest

from tests.conftest import MODELS, PROJECT
from tests.server.browser import chromium, page_of
from tests.server.checking import check, events
from tests.server.conftest import CASE

pytestmark = [
    pytest.mark.engine,
    pytest.mark.slow,
    pytest.mark.skipif(
        os.environ.get("DDX_LOCAL_TEST_SERVED") != "1",
        reason="two more engines and whole runs take a quarter of an hour; DDX_LOCAL_TEST_SERVED=1 runs it",
    ),
]

MODEL = "smollm2-135m"
HI: list[Any] = [{"role": "user", "content": "Name three causes of fever."}]
ANSWER = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 30}, "sure": {"type": "boolean"}},
    "required": ["name", "sure"],
    "additionalProperties": False,
}


@dataclass
class Real:
    """A server in a process of its own, on vLLM."""

    process: subprocess.Popen[str]
    url: str

    def client(self) -> openai.OpenAI:
        return openai.OpenAI(base_url=f"{self.url}/v1", api_key="none", max_retries=0, timeout=900)

    def http(self) -> httpx.Client:
        return httpx.Client(base_url=self.url, timeout=900, trust_env=False)


def began(folder: Path) -> Real:
    """A server that is ready."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("DDX_LOCAL_", "PYTEST"))}
    env = {**kept, "XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder), "DDX_LOCAL_MODELS": str(MODELS),
           "PYTHONPATH": str(PROJECT)}  # fmt: skip
    line = [sys.executable, "-m", "ddx_local.cli.main", "serve", "--model", MODEL, "--port", "0"]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(line, env=env, cwd=PROJECT, stderr=log, text=True)
    for _ in range(3000):
        said = (folder / "log").read_text()
        if found := re.search(r"serving on (http\S+)", said):
            real = Real(process, found[1])
            with real.http() as http:
                if http.get("/readyz").status_code == 200:
                    return real
        assert process.poll() is None, said
        time.sleep(0.1)
    raise AssertionError("never ready")


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Real]:
    found = began(tmp_path_factory.mktemp("real"))
    yield found
    found.process.send_signal(signal.SIGTERM)
    assert found.process.wait(60) == 0


def posted(real: Real, path: str = "/v1/chat/completions", **body: Any) -> Any:
    with real.http() as http:
        return http.post(path, json={"model": MODEL, **body})


def test_chat_and_its_stream_say_the_same_and_fit_the_schemas(real: Real, schemas: Any) -> None:
    body = {"messages": HI, "temperature": 0, "max_tokens": 24}
    whole = posted(real, **body)
    check(whole.json(), "CreateChatCompletionResponse", schemas)
    stream = posted(real, **body, stream=True, stream_options={"include_usage": True})
    *chunks, done = events(stream.text)
    assert done == "[DONE]"
    for chunk in chunks:
        check(chunk, "CreateChatCompletionStreamResponse", schemas)
    assert len({chunk["id"] for chunk in chunks}) == 1
    assert chunks[0]["choices"][0]["delta"]["role"] == "assistant"
    assert chunks[-1]["choices"] == []
    said = "".join(chunk["choices"][0]["delta"].get("content") or "" for chunk in chunks[:-1])
    assert said == whole.json()["choices"][0]["message"]["content"]
    assert chunks[-1]["usage"]["completion_tokens"] == whole.json()["usage"]["completion_tokens"] == 24


def test_logprobs_are_one_for_each_token(real: Real, schemas: Any) -> None:
    body = {"messages": HI, "temperature": 0, "max_tokens": 8, "logprobs": True, "top_logprobs": 3}
    reply = posted(real, **body).json()
    check(reply, "CreateChatCompletionResponse", schemas)
    logprobs = reply["choices"][0]["logprobs"]["content"]
    assert len(logprobs) == reply["usage"]["completion_tokens"]
    assert all(len(item["top_logprobs"]) == 3 and item["logprob"] >= -9999.0 for item in logprobs)
    for chunk in events(posted(real, **body, stream=True).text)[:-1]:
        check(chunk, "CreateChatCompletionStreamResponse", schemas)


def test_schema_n_stop_seed_and_completions_are_vllms_own(real: Real, schemas: Any) -> None:
    client = real.client()
    wanted: Any = {"type": "json_schema", "json_schema": {"name": "answer", "schema": ANSWER, "strict": True}}
    said = client.chat.completions.create(
        model=MODEL, messages=HI, response_format=wanted, max_tokens=80, temperature=0
    )
    jsonschema.validate(json.loads(str(said.choices[0].message.content)), ANSWER)
    two = client.chat.completions.create(model=MODEL, messages=HI, n=2, temperature=1, seed=3, max_tokens=12)
    again = client.chat.completions.create(model=MODEL, messages=HI, n=2, temperature=1, seed=3, max_tokens=12)
    assert [c.message.content for c in two.choices] == [c.message.content for c in again.choices]
    stopped = client.chat.completions.create(model=MODEL, messages=HI, temperature=0, max_tokens=40, stop=["e"])
    assert "e" not in str(stopped.choices[0].message.content)
    assert stopped.choices[0].finish_reason == "stop"
    text = posted(real, "/v1/completions", prompt="Fever is", max_tokens=8, temperature=0, logprobs=2)
    check(text.json(), "CreateCompletionResponse", schemas)
    assert posted(real, "/v1/completions", prompt=[1, 2, 3], max_tokens=2).status_code == 200


def test_embeddings_are_the_local_models(real: Real, schemas: Any) -> None:
    client = real.client()
    one, two, far = client.embeddings.create(
        model="all-minilm-l6-v2",
        input=["myocardial infarction", "heart attack", "a broken toe"],
        encoding_format="float",
    ).data
    assert len(one.embedding) == 384
    near = sum(a * b for a, b in zip(one.embedding, two.embedding, strict=True))
    assert near > sum(a * b for a, b in zip(one.embedding, far.embedding, strict=True))
    body = {"model": "all-minilm-l6-v2", "input": "heart attack"}
    with real.http() as http:
        check(http.post("/v1/embeddings", json=body).json(), "CreateEmbeddingResponse", schemas)
        packed = http.post("/v1/embeddings", json={**body, "encoding_format": "base64"})
    data = base64.b64decode(packed.json()["data"][0]["embedding"])
    assert struct.unpack(f"<{len(data) // 4}f", data) == pytest.approx(two.embedding, abs=1e-4)


def test_errors_are_openais_and_echo_nothing(real: Real) -> None:
    client = real.client()
    with pytest.raises(openai.BadRequestError) as long:
        client.chat.completions.create(model=MODEL, messages=HI, max_tokens=1_000_000)
    assert long.value.code == "context_length_exceeded"
    for field in ("vllm_xargs", "prompt_logprobs", "echo", "cache_salt", "structured_outputs"):
        reply = posted(real, messages=HI, **{field: {"a": "xyzzy"}})
        assert (reply.status_code, reply.json()["error"]["code"]) == (400, "unsupported_parameter")
        assert "xyzzy" not in reply.text
    tool = {"type": "function", "function": {"name": "xyzzy", "parameters": {"type": "nonsense"}}}
    reply = posted(real, messages=HI, tools=[tool], tool_choice="required", max_tokens=20)
    assert reply.status_code < 500
    assert reply.status_code == 200 or "xyzzy" not in reply.text


@pytest.mark.parametrize("method", ["scot", "counterfactual"])
def test_methods_answer_streamed_and_not(real: Real, schemas: Any, method: str) -> None:
    options = {"agents": 2} if method == "scot" else {}
    body = {"model": f"ddx/{method}", "messages": [{"role": "user", "content": CASE}], "ddx": options}
    whole = posted(real, **body)
    assert whole.status_code == 200, whole.text
    check(whole.json(), "CreateChatCompletionResponse", schemas)
    *chunks, done = events(posted(real, **body, stream=True).text)
    assert done == "[DONE]"
    text = "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks)
    said = whole.json()["choices"][0]["message"]["content"]
    assert said[: said.index("Method ")] in text


def test_eight_clients_batch_together(real: Real) -> None:
    def one(seed: int) -> int:
        body = {"messages": [{"role": "user", "content": f"{seed}: tell a story."}], "max_tokens": 128, "seed": seed}
        return int(posted(real, **body).json()["usage"]["completion_tokens"])

    one(0)
    start = time.perf_counter()
    alone = one(1) / (time.perf_counter() - start)
    start = time.perf_counter()
    with ThreadPoolExecutor(8) as pool:
        together = sum(pool.map(one, range(2, 10))) / (time.perf_counter() - start)
    print(f"tokens/s: 1 client {alone:.0f}, 8 clients {together:.0f}, ratio {together / alone:.1f}")
    assert together >= 3 * alone


def test_a_client_that_goes_stops_the_engines_work(real: Real) -> None:
    with real.http() as http:
        body = {"model": MODEL, "messages": HI, "max_tokens": 1500, "stream": True, "temperature": 1}
        with http.stream("POST", "/v1/chat/completions", json=body) as reply:
            next(reply.iter_bytes())
        start = time.monotonic()
        while "ddx_local_requests_in_work 0.0" not in http.get("/metrics").text:
            assert time.monotonic() - start < 5
        assert time.monotonic() - start < 1
        body = {"model": "ddx/scot", "messages": [{"role": "user", "content": CASE}], "stream": True}
        with http.stream("POST", "/v1/chat/completions", json=body) as reply:
            next(reply.iter_bytes())
        start = time.monotonic()
        while "ddx_local_runs_in_work 0.0" not in http.get("/metrics").text:
            assert time.monotonic() - start < 5
        assert time.monotonic() - start < 1.2


def test_an_engine_that_is_killed_ends_the_server_with_75(tmp_path: Path) -> None:
    real = began(tmp_path)
    children = subprocess.run(
        ["pgrep", "-P", str(real.process.pid)], capture_output=True, text=True, check=True
    ).stdout.split()
    with real.http() as http:
        for child in children:
            if b"EngineCore" in Path(f"/proc/{child}/cmdline").read_bytes() + Path(f"/proc/{child}/comm").read_bytes():
                os.kill(int(child), signal.SIGKILL)
        start = time.monotonic()
        while (reply := http.get("/readyz")).status_code == 200:
            assert time.monotonic() - start < 5
            time.sleep(0.05)
        assert reply.status_code == 503
        assert posted(real, messages=HI, max_tokens=4).status_code == 503
    assert real.process.wait(60) == 75


def test_the_panel_shows_a_full_run_of_the_real_model(real: Real) -> None:
    with chromium() as browser, page_of(browser, real.url) as seen:
        page = seen.page
        page.set_default_timeout(900_000)
        page.goto("/")
        page.get_by_label("Case text").fill(CASE)
        page.get_by_label("Method", exact=True).select_option("scot")
        page.get_by_role("button", name="Start", exact=True).click()
        page.wait_for_selector("h2:has-text('Result')")
        with real.http() as http:
            found = http.get(f"/ddx/v1/runs/{page.url.rpartition('/')[2]}").json()
        entries = found["results"][0]["differential"]
        assert page.locator("ol.ranking h4 > bdi").all_text_contents() == [entry["diagnosis"] for entry in entries]
        assert found["cases"][0]["text"] == CASE
        assert seen.hosts == {real.url.removeprefix("http://")}
        assert seen.errors == []
