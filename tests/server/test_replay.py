"""What goes to vLLM's own app and what comes back, on an app that answers as vLLM 0.32 does; and the names that we import of it."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, StreamingResponse
from starlette.routing import Route

from ddx_local.server import normalise
from ddx_local.server.errors import ApiError
from ddx_local.server.replay import replay
from ddx_local.server.replies import Call, Reply, Stream
from ddx_local.server.vllm_inner import Inner, checked
from tests.server.checking import check, events

SENT = "xyzzy-not-to-be-repeated"
CHAT = "/v1/chat/completions"
HI = [{"role": "user", "content": "hi"}]

WHOLE = {
    "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m", "service_tier": None,
    "system_fingerprint": None, "prompt_logprobs": None, "prompt_token_ids": None, "prompt_text": None,
    "kv_transfer_params": None, "ec_transfer_params": None, "metrics": None,
    "choices": [{
        "index": 0, "finish_reason": "stop", "stop_reason": None, "token_ids": None, "routed_experts": None,
        "message": {"role": "assistant", "content": "hello", "refusal": None, "annotations": None, "audio": None,
                    "function_call": None, "reasoning": None},
        "logprobs": {"content": [{"token": "a", "logprob": -9999.0, "bytes": [97], "top_logprobs": []}]},
    }],
    "usage": {"prompt_tokens": 3, "total_tokens": 4, "completion_tokens": 1, "prompt_tokens_details": None},
}  # fmt: skip
CHUNK = {
    "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "prompt_token_ids": None, "usage": None,
    "choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}, "logprobs": None, "finish_reason": None,
                 "stop_reason": None, "token_ids": None}],
}  # fmt: skip


class Like:
    """An app that answers as vLLM does, in the way that the last message asks for; it keeps what it got."""

    def __init__(self) -> None:
        self.got: list[Any] = []
        self.stopped = False
        self.app = Starlette(routes=[Route(CHAT, self.answer, methods=["POST"])])

    async def answer(self, request: Request) -> Any:
        body = await request.json()
        self.got.append(body)
        how = body["messages"][-1]["content"]
        if how == "error":
            inner = {"message": f"bad {SENT}", "type": "BadRequestError", "param": "max_tokens", "code": 400}
            return JSONResponse({"error": inner}, 400)
        if how == "long":
            text = f"This model's maximum context length is 2048 tokens. However {SENT}"
            return JSONResponse(
                {"error": {"message": text, "type": "BadRequestError", "param": None, "code": 400}}, 400
            )
        if how == "detail":
            return JSONResponse({"detail": SENT}, 404)
        if how == "crash":
            raise RuntimeError(SENT)
        if how == "wait":
            await self.wait()
        if body.get("stream"):
            return StreamingResponse(self.parts(how), media_type="text/event-stream")
        return JSONResponse(WHOLE)

    async def wait(self) -> None:
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            self.stopped = True
            raise

    async def parts(self, how: str) -> AsyncIterator[str]:
        yield f"data: {json.dumps(CHUNK)}\n\n"
        yield ": keep-alive\n\n"
        if how == "wait inside":
            await self.wait()
        if how == "break":
            raise RuntimeError(SENT)
        if how == "error inside":
            yield f"data: {json.dumps({'error': {'message': SENT, 'type': 'x', 'param': None, 'code': 500}})}\n\n"
        yield "data: [DONE]\n\n"


def call() -> Call:
    return Call("r", "a", "POST", CHAT, {}, {}, {})


def body(text: str, **more: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": text}], **more}


async def told(like: Like, text: str, **more: Any) -> str:
    reply = await replay(like.app, CHAT, body(text, stream=True, **more), 10)
    assert isinstance(reply, Stream)
    return b"".join([part async for part in reply.chunks]).decode()


async def test_a_reply_of_vllm_fits_openais_schema_once_it_is_normalised(schemas: Any) -> None:
    reply = await replay(Like().app, CHAT, body("hi"), 10)
    assert isinstance(reply, Reply)
    found = json.loads(reply.body)
    check(found, "CreateChatCompletionResponse", schemas)
    assert found["choices"][0]["message"]["content"] == "hello"
    assert found["choices"][0]["logprobs"]["content"][0]["logprob"] == -9999.0
    assert "prompt_token_ids" not in found


async def test_a_stream_of_vllm_fits_openais_schema_and_ends(schemas: Any) -> None:
    text = await told(Like(), "hi")
    first, done = events(text)
    check(first, "CreateChatCompletionStreamResponse", schemas)
    assert done == "[DONE]"
    assert ": keep-alive\n\n" in text


@pytest.mark.parametrize(
    ("how", "status", "code", "param"),
    [
        ("error", 400, None, "max_tokens"),
        ("long", 400, "context_length_exceeded", "messages"),
        ("detail", 400, None, None),
        ("crash", 500, "engine_error", None),
    ],
)
async def test_errors_of_vllm_come_in_openais_shape_without_their_text(
    how: str, status: int, code: str, param: str
) -> None:
    with pytest.raises(ApiError) as caught:
        await replay(Like().app, CHAT, body(how), 10)
    assert (caught.value.status, caught.value.code, caught.value.param) == (status, code, param)
    assert SENT not in json.dumps(caught.value.body())
    if how == "long":
        assert "2048" in caught.value.message


@pytest.mark.parametrize("how", ["error inside", "break"])
async def test_an_error_within_a_stream_is_an_error_chunk_and_then_the_end(how: str) -> None:
    text = await told(Like(), how)
    assert SENT not in text
    _, error, *_ = events(text)
    assert set(error["error"]) == {"message", "type", "param", "code"}
    assert events(text)[-1] == "[DONE]"


async def test_who_goes_away_stops_the_work_inside() -> None:
    like = Like()
    task = asyncio.ensure_future(replay(like.app, CHAT, body("wait"), 10))
    await asyncio.sleep(0.05)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert like.stopped
    like = Like()
    reply = await replay(like.app, CHAT, body("wait inside", stream=True), 10)
    assert isinstance(reply, Stream)
    await anext(reply.chunks)
    waiting = asyncio.ensure_future(anext(reply.chunks))  # type: ignore[arg-type]
    await asyncio.sleep(0.05)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    await reply.chunks.aclose()  # type: ignore[attr-defined]
    assert like.stopped


async def test_each_keys_prefixes_are_salted_and_ignored_fields_are_left_out() -> None:
    like = Like()
    inner = Inner(like.app, "m")
    await inner.answer(call(), CHAT, body("hi", user="someone", metadata={"a": "b"}, store=False), "salt-1")
    (got,) = like.got
    assert got["cache_salt"] == "salt-1"
    await inner.answer(call(), CHAT, body("hi"), "")
    assert "cache_salt" not in like.got[1]
    assert not {"user", "metadata", "store"} & set(got)


@pytest.mark.parametrize(
    ("more", "param"),
    [
        ({"temperature": 9}, "temperature"), ({"top_p": -1}, "top_p"), ({"n": 99}, "n"), ({"seed": 1 << 70}, "seed"),
        ({"stop": [""]}, "stop"), ({"max_tokens": 0}, "max_tokens"), ({"top_logprobs": 21}, "top_logprobs"),
        ({"presence_penalty": 3}, "presence_penalty"), ({"store": True}, "store"), ({"messages": []}, "messages"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "file:///x"}}]}]}, "messages"),
        ({"response_format": {"type": "grammar"}}, "response_format"), ({"modalities": ["audio"]}, "modalities"),
    ],
)  # fmt: skip
def test_what_vllm_must_not_see_is_refused_before_it(more: dict[str, Any], param: str) -> None:
    with pytest.raises(ApiError) as caught:
        checked({"model": "m", "messages": HI, **more}, chat=True)
    assert (caught.value.status, caught.value.param) == (400, param)


@pytest.mark.parametrize("prompt", [None, [], {}, 7, [1, "a"], [True], [-1], [[]], ["a"] * 65])
def test_a_prompt_is_a_text_token_ids_or_a_list_of_them(prompt: Any) -> None:
    with pytest.raises(ApiError):
        checked({"prompt": prompt}, chat=False)
    for good in ("a", ["a", "b"], [1, 2, 3], [[1], [2]]):
        checked({"prompt": good}, chat=False)


def test_an_answer_that_the_engine_broke_off_is_no_answer() -> None:
    with pytest.raises(ApiError):
        normalise.whole({"choices": [{"finish_reason": "abort", "message": {"content": "half"}}]})


@pytest.mark.slow
def test_vllm_has_the_names_that_the_inner_app_is_made_of() -> None:
    import inspect

    pytest.importorskip("vllm")
    from vllm.entrypoints.launchers.api_server.app_state import init_app_state
    from vllm.entrypoints.launchers.app import build_app
    from vllm.entrypoints.launchers.cli_args import make_arg_parser
    from vllm.plugins.endpoint_plugins.interface import EndpointPlugin
    from vllm.utils.argparse_utils import FlexibleArgumentParser
    from vllm.v1.engine.async_llm import AsyncLLM

    from ddx_local.server.plugin import DdxEndpoints

    assert list(inspect.signature(build_app).parameters) == ["args", "supported_tasks", "model_config"]
    assert list(inspect.signature(init_app_state).parameters) == ["engine_client", "state", "args", "supported_tasks"]
    assert {"errored", "generate", "shutdown", "get_supported_tasks", "reset_prefix_cache"} <= set(dir(AsyncLLM))
    args = make_arg_parser(FlexibleArgumentParser()).parse_args([])
    names = ("served_model_name", "disable_fastapi_docs", "enable_prompt_tokens_details", "enable_log_requests", "model",
             "disable_log_stats", "fingerprint_mode", "log_error_stack", "structured_outputs_config")  # fmt: skip
    assert all(hasattr(args, name) for name in names)
    args.disable_fastapi_docs = True
    paths = {getattr(route, "path", "") for route in build_app(args, ("generate",), None).routes}
    assert {"/v1/chat/completions", "/v1/completions"} <= paths
    assert isinstance(DdxEndpoints(), EndpointPlugin)


@pytest.mark.parametrize(
    "said",
    [
        "max_tokens=1000000 cannot be greater than max_model_len=8192. Please request fewer output tokens.",
        "This model's maximum context length is 8192 tokens. However, your prompt contains 9000 input tokens",
        "Input length (9000) exceeds model's maximum context length (8192).",
        "The decoder prompt (length 9000) is longer than the maximum model length of 8192. Make sure that",
    ],
)
def test_every_way_in_which_vllm_says_that_a_context_is_too_short_has_openais_code(said: str) -> None:
    body = json.dumps({"error": {"message": said, "type": "BadRequestError", "param": "max_tokens", "code": 400}})
    found = normalise.error(400, body.encode())
    assert (found.status, found.code, found.param) == (400, "context_length_exceeded", "max_tokens")
    assert "8192" in found.message
    assert "9000" not in found.message
