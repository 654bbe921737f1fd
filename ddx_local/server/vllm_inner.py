"""vLLM's own app inside ours: chat templates, tools, structured outputs, logprobs, streams of the raw model are vLLM's.

The one file that imports `vllm.entrypoints`, of the version that is pinned. Two paths of the app are reached, with bodies that
were checked; its other routes, its own keys and its docs are not.
"""

import os
from argparse import Namespace
from pathlib import Path
from typing import Any

from ddx_local.engines.vllm_served import ServedVllmEngine
from ddx_local.launch import open_all
from ddx_local.server import fields as f
from ddx_local.server.engine_room import Running
from ddx_local.server.errors import invalid
from ddx_local.server.messages import read_format
from ddx_local.server.replay import App, replay
from ddx_local.server.replies import Call, Reply, Stream
from ddx_local.settings import Settings

PATHS = ("/v1/chat/completions", "/v1/completions")
MOST_LOGPROBS = 20
KEEP_ALIVE = 10.0


async def open_vllm(settings: Settings, say: Any, beside: Path | None) -> Running:
    """Open the engine and vLLM's app over it; raises as `open_all`."""
    served = settings.model_copy(update={"engine": "vllm_served"})
    opened = await open_all(served, embedding=True, say=say, store=beside)
    engine = _writer(opened.engine)
    inner = Inner(await build(engine), engine.settings.card.name)
    return Running(opened, inner, lambda: engine.dead)


class Inner:
    """Answers raw requests by vLLM's app."""

    def __init__(self, app: App, model: str) -> None:
        self._app = app
        self._model = model

    async def answer(self, call: Call, path: str, body: dict[str, Any], salt: str) -> Reply | Stream:  # noqa: ARG002
        """Check what vLLM would take for a way into its own arguments, then replay the rest."""
        if path not in PATHS:
            raise invalid("The route is not served.")
        checked(body, chat=path == PATHS[0])
        kept = {name: value for name, value in body.items() if name not in (*f.IGNORED, "store")}
        # One key's prefixes in the KV cache tell another key nothing.
        salted = {"cache_salt": salt} if salt else {}
        return await replay(self._app, path, {**kept, "model": self._model, **salted}, KEEP_ALIVE)


def checked(body: dict[str, Any], *, chat: bool) -> None:
    """Bounds that vLLM does not set, or sets with words of its own.

    Raises:
        ApiError: 400.
    """
    f.number(body, "temperature", 0, 2, 1)
    f.number(body, "top_p", 0, 1, 1)
    f.whole(body, "n", 1, f.MOST_CHOICES, 1)
    f.whole(body, "seed", -(1 << 63), (1 << 63) - 1, 0)
    f.flag(body, "stream")
    f.includes_usage(body)
    f.stops(body)
    for name in ("max_tokens", "max_completion_tokens"):
        f.whole(body, name, 1, 1 << 20, 1)
    for name in f.PENALTIES:
        f.number(body, name, -2, 2, 0)
    if chat:
        f.flag(body, "logprobs")
        f.whole(body, "top_logprobs", 0, MOST_LOGPROBS, 0)
        read_format(body)
        _messages(body)
        f.refuse(body, {"store": f.is_off, "modalities": lambda value: value == ["text"]}, "is not supported here")
    else:
        f.whole(body, "logprobs", 0, MOST_LOGPROBS, 0)
        _prompt(body.get("prompt"))


def _messages(body: dict[str, Any]) -> None:
    items = body.get("messages")
    if not isinstance(items, list) or not 1 <= len(items) <= f.MOST_MESSAGES:
        raise invalid(f"`messages` must be a list of 1 to {f.MOST_MESSAGES} messages.", "messages")
    for item in items:
        if not isinstance(item, dict) or not isinstance(item.get("role"), str):
            raise invalid("Each of `messages` must be an object with a `role`.", "messages")
        content = item.get("content")
        # Anything but text would be fetched or decoded.
        if isinstance(content, list) and not all(isinstance(p, dict) and p.get("type") == "text" for p in content):
            raise invalid("`messages` may hold text only.", "messages", "unsupported_parameter")


def _prompt(value: Any) -> None:
    items = value if isinstance(value, list) else [value]
    texts = all(isinstance(item, str) for item in items)
    ids = isinstance(value, list) and all(
        isinstance(item, int) and not isinstance(item, bool) and item >= 0 for item in items
    )
    lists = all(isinstance(item, list) and item and all(type(i) is int and i >= 0 for i in item) for item in items)
    if not items or not (texts or ids or lists) or (len(items) > 64 and not ids):
        raise invalid("`prompt` must be a text, a list of token ids, or a list of up to 64 of these.", "prompt")


async def build(engine: ServedVllmEngine) -> App:
    """VLLM's app over the engine that runs."""
    from vllm.entrypoints.launchers.api_server.app_state import init_app_state
    from vllm.entrypoints.launchers.app import build_app

    # Keys are the outer app's; vLLM would guard some routes with one of the environment.
    os.environ.pop("VLLM_API_KEY", None)
    # Our own entry point must not be attached to our own inner app.
    os.environ["VLLM_PLUGINS"] = ""
    client = engine.client
    args = arguments(engine)
    tasks = await client.get_supported_tasks()
    app = build_app(args, tasks, client.model_config)
    await init_app_state(client, app.state, args, tasks)
    found: App = app
    return found


def arguments(engine: ServedVllmEngine) -> Namespace:
    """The arguments that `vllm serve` would have parsed."""
    from vllm.entrypoints.launchers.cli_args import make_arg_parser
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    args: Namespace = make_arg_parser(FlexibleArgumentParser()).parse_args([])
    settings = engine.settings
    changes = {
        "model": str(settings.folder),
        "served_model_name": [settings.card.name],
        "disable_fastapi_docs": True,
        "enable_prompt_tokens_details": True,
        "enable_log_requests": False,
        "disable_log_stats": True,
        "fingerprint_mode": "hash",
        "log_error_stack": False,
        "structured_outputs_config": engine.client.vllm_config.structured_outputs_config,
    }
    for name, value in changes.items():
        setattr(args, name, value)
    return args


def _writer(engine: Any) -> ServedVllmEngine:
    """The engine that writes, out of what is wrapped around it."""
    while not isinstance(engine, ServedVllmEngine):
        engine = engine.engine if hasattr(engine, "engine") else engine.writer
    return engine
