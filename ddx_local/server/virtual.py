"""`ddx/<method>` as a model: a chat request becomes a run, its report the answer, its rounds what is streamed.

The case is the last user message; earlier user messages stand before it as context. Options are under `ddx`.
"""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

from ddx_local import jobs
from ddx_local.errors import EngineError, StoreError
from ddx_local.events import CaseFailed
from ddx_local.methods.table import METHODS, Method
from ddx_local.request import Message
from ddx_local.server import errors, wire
from ddx_local.server import fields as f
from ddx_local.server.errors import ApiError, invalid
from ddx_local.server.live_run import LiveRun
from ddx_local.server.markdown import plain, report
from ddx_local.server.messages import read_format, read_messages
from ddx_local.server.replies import DONE, dumped, event
from ddx_local.server.runs import Wish, case_of
from ddx_local.server.telling import Teller, line
from ddx_local.server.wire import Usage
from ddx_local.server.wishes import LONGEST_CASE, wanted
from ddx_local.settings import Settings
from ddx_local.store import Store

Json = dict[str, Any]

PREFIX = "ddx/"

_IGNORED = ("temperature", "top_p", "max_tokens", "max_completion_tokens", "parallel_tool_calls")
"""What chat programs send of themselves and a method decides for itself; the answer says that they did nothing."""

_WHY = "does nothing with a ddx model; leave it out"


@dataclass(frozen=True, slots=True)
class Asked:
    """A run that a chat request asks for, and how the answer is to look."""

    wish: Wish
    as_json: bool
    stream: bool
    usage: bool
    ignored: tuple[str, ...]


def names() -> list[str]:
    """Ids of the virtual models."""
    return [f"{PREFIX}{name}" for name in METHODS]


def read(given: Mapping[str, Any], method: Method, settings: Settings, digest: str) -> Asked:
    """Read a request.

    Raises:
        ApiError: 400; a field is wrong, or asks for what a method cannot do.
    """
    f.refuse(
        given,
        {
            "tools": f.is_off,
            "tool_choice": lambda value: value == "none",
            "logprobs": f.is_off,
            "top_logprobs": f.is_off,
            "n": f.is_one,
            "stop": f.is_off,
            "logit_bias": f.is_off,
            "reasoning_effort": f.never,
            "modalities": lambda value: value == ["text"],
            "store": f.is_off,
            **dict.fromkeys(f.PENALTIES, f.is_off),
        },
        _WHY,
    )
    f.number(given, "temperature", 0, 2, 0)
    f.number(given, "top_p", 0, 1, 1)
    messages = read_messages(given)
    kind, _ = read_format(given)
    stream, usage = f.flag(given, "stream"), f.includes_usage(given)
    extra = given.get("ddx", {})
    if not isinstance(extra, dict):
        raise invalid("`ddx` must be an object of options.", "ddx")
    wish = wanted(
        case=case_of(_case_text(messages)),
        method=method,
        values={name: value for name, value in extra.items() if name != "supervise" and value is not None},
        seed=f.whole(given, "seed", 0, (1 << 63) - 1, settings.seed),
        pausing=f.flag(extra, "supervise"),
        digest=digest,
        settings=settings,
    )
    ignored = [name for name in _IGNORED if name in given]
    ignored += ["response_format.json_schema"] if kind == "json_schema" else []
    ignored += [f"{role} messages" for role in ("system", "assistant") if any(item.role == role for item in messages)]
    return Asked(wish, kind != "text", stream, usage, tuple(ignored))


def method_of(model: str) -> Method | None:
    """The method that a virtual model's id names."""
    return METHODS.get(model.removeprefix(PREFIX)) if model.startswith(PREFIX) else None


def outcome(run: LiveRun, store: Store) -> Json:
    """The result document of a run that is over.

    Raises:
        ApiError: The run did not come to an answer; the status says whose fault that is.
    """
    if isinstance(run.failure, EngineError | StoreError):
        raise errors.of(run.failure)
    failed = next((event_ for _, event_, _ in run.items if isinstance(event_, CaseFailed)), None)
    if failed is not None:
        if failed.kind == "ContextLengthExceeded":
            raise ApiError(400, f"The case and its longest answer do not fit the model's context. {failed.hint}",
                           code="context_length_exceeded", param="messages")  # fmt: skip
        raise ApiError(422, f"The case failed ({failed.kind}). {failed.hint}", "case_error", "case_failed")
    if run.failure is not None:
        raise ApiError(503, "The run was cancelled.", "server_error", "cancelled", headers={"Retry-After": "5"})
    return jobs.documents(store, run.run_id)[0]


def answer(asked: Asked, chat: wire.Chat, document: Json) -> Json:
    """The whole reply."""
    return chat.whole([(content(asked, document), "stop")], usage_of(document), ddx=beside(asked, document))


def content(asked: Asked, document: Json) -> str:
    """The answer's text: the report, or the document."""
    return dumped(document).decode() if asked.as_json else report(document)


def usage_of(document: Mapping[str, Any]) -> Usage:
    """Tokens of all calls of the method."""
    totals = document["totals"]
    cached = totals["prompt_tokens"] - totals["prompt_tokens_computed"]
    return Usage(totals["prompt_tokens"], totals["generated_tokens"], max(0, cached))


def beside(asked: Asked, document: Mapping[str, Any]) -> Json:
    """The extra object: what ran and what it cost."""
    totals = document["totals"]
    return {
        "run_id": document["run_id"],
        "method": document["method"],
        "calls": totals["calls"],
        "rounds": totals["batches"],
        "tokens": totals["prompt_tokens"] + totals["generated_tokens"],
        "seconds": totals["seconds"],
        "degraded": document["degraded"],
        "ignored": list(asked.ignored),
        "disclaimer": document["disclaimer"],
    }


async def chunks(asked: Asked, run: LiveRun, store: Store, chat: wire.Chat) -> AsyncIterator[bytes]:
    """The stream: each round as it is finished, then the answer; JSON is streamed without the rounds."""
    run.join()
    try:
        yield event(chat.begin(0))
        if not asked.as_json:
            yield event(chat.chunk(0, {"content": f"Run {run.run_id}, method {run.method}.\n\n"}))
        async for text in _rounds(run):
            if not asked.as_json:
                yield event(chat.chunk(0, {"content": text}))
        try:
            document = outcome(run, store)
        except Exception as error:
            yield event(errors.of(error).body())
            yield DONE
            return
        for piece in wire.pieces(content(asked, document)):
            yield event(chat.chunk(0, {"content": piece}))
        yield event(chat.chunk(0, {}, "stop", ddx=beside(asked, document)))
        if asked.usage:
            yield event(chat.usage(usage_of(document)))
        yield DONE
    finally:
        run.leave()


async def _rounds(run: LiveRun) -> AsyncIterator[str]:
    teller = Teller()
    name, said = "", list[str]()
    async for _, what, texts in run.follow():
        message = teller.tell(what, lambda address, texts=texts: texts.get(address, ""))  # type: ignore[misc]
        if message is None:
            continue
        if message["type"] == "round":
            name, said = message["name"], []
        elif message["type"] == "answer":
            said += [line(message)] if message["text"] else []
            if message["last"]:
                shown = said or ["probabilities were measured"]
                yield f"**{name}**\n\n" + "".join(f"- {plain(item)}\n" for item in shown) + "\n"
        elif message["type"] == "waits":
            yield f"*Waiting for a comment after round {message['round']} (panel, or /ddx/v1/runs/{run.run_id}).*\n\n"


def _case_text(messages: tuple[Message, ...]) -> str:
    users = [message.content for message in messages if message.role == "user" and message.content.strip()]
    if not users or messages[-1].role != "user" or not messages[-1].content.strip():
        raise invalid("The last message must be the user's, and hold the case.", "messages")
    text = users[0] if len(users) == 1 else "\n\n".join(users)
    if len(text) > LONGEST_CASE:
        raise ApiError(
            400, f"The case is longer than {LONGEST_CASE} characters.", code="context_length_exceeded", param="messages"
        )
    return text
