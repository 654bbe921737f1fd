"""OpenAI's routes: models, chat, text completions, embeddings. Which model is asked decides who answers.

A virtual model's answer comes from a run, the served model's from the engine's own server code where it has one (vLLM), and
from `raw` where it has none.
"""

import secrets
import time
from dataclasses import dataclass, field
from typing import Any

from ddx_local.errors import EngineError
from ddx_local.server import embeddings, raw, virtual, wire
from ddx_local.server import fields as f
from ddx_local.server.engine_room import EngineRoom
from ddx_local.server.errors import forbidden, no_model
from ddx_local.server.keeping import kept_alive
from ddx_local.server.live_run import LiveRun
from ddx_local.server.metrics import Metrics
from ddx_local.server.replies import Call, Reply, Stream, as_json
from ddx_local.server.runs import Runs, digest_of
from ddx_local.server.strict_json import read_object
from ddx_local.settings import Settings
from ddx_local.store import Store


@dataclass
class OpenAI:
    """The handlers; `keep_alive` is in seconds."""

    settings: Settings
    room: EngineRoom
    runs: Runs
    store: Store
    embed: embeddings.Embedder
    embedding_model: str
    keep_alive: float
    metrics: Metrics
    created: int = field(default_factory=lambda: int(time.time()))

    @property
    def ids(self) -> list[str]:
        return [self.runs.model, *virtual.names(), self.embedding_model]

    async def models(self, _: Call) -> Reply:
        return as_json({"object": "list", "data": [wire.model(name, self.created) for name in self.ids]})

    async def model(self, call: Call) -> Reply:
        name = call.values["id"]
        if name not in self.ids:
            raise no_model(self.ids, name)
        return as_json(wire.model(name, self.created))

    async def chat(self, call: Call) -> Reply | Stream:
        body = read_object(call.body)
        given = f.given(body, f.CHAT)
        name = self._asked_model(given)
        method = virtual.method_of(name)
        if method is not None:
            self._check(call, "ddx")
            call.facts["model"] = name
            asked = virtual.read(given, method, self.settings, digest_of(call.body))
            return await self._run(call, asked, wire.Chat(f"chatcmpl-{secrets.token_hex(12)}", name))
        self._served(call, name)
        running = self.room.running()
        salt = self.runs.salt(call.actor)
        if running.inner is not None:
            given.pop("ddx", None)
            return await running.inner.answer(call, "/v1/chat/completions", given, salt)
        wanted = raw.chat(given)
        found, usage = await self._answers(wanted)
        chat = wire.Chat(f"chatcmpl-{secrets.token_hex(12)}", name)
        if wanted.stream:
            return Stream(kept_alive(raw.chat_chunks(chat, found, usage if wanted.usage else None), self.keep_alive))
        return as_json(chat.whole([(item.text, item.finish_reason) for item in found], usage))

    async def completions(self, call: Call) -> Reply | Stream:
        given = f.given(read_object(call.body), f.COMPLETION)
        name = self._asked_model(given)
        self._served(call, name)
        running = self.room.running()
        salt = self.runs.salt(call.actor)
        if running.inner is not None:
            return await running.inner.answer(call, "/v1/completions", given, salt)
        wanted = raw.completion(given)
        found, usage = await self._answers(wanted)
        text = wire.Text(f"cmpl-{secrets.token_hex(12)}", name)
        if wanted.stream:
            return Stream(kept_alive(raw.text_chunks(text, found, usage if wanted.usage else None), self.keep_alive))
        return as_json(text.part([(i, item.text, item.finish_reason) for i, item in enumerate(found)], usage))

    async def embeddings(self, call: Call) -> Reply:
        given = f.given(read_object(call.body), f.EMBEDDING)
        name = f.text(given, "model", 500)
        if name != self.embedding_model:
            raise no_model([self.embedding_model], name)
        self._check(call, "raw")
        call.facts["model"] = name
        self.room.running()
        return as_json(await embeddings.answer(given, name, self.embed))

    async def _run(self, call: Call, asked: virtual.Asked, chat: wire.Chat) -> Reply | Stream:
        run = self._begun(call, asked)
        call.object_id = run.run_id
        if asked.stream:
            return Stream(kept_alive(virtual.chunks(asked, run, self.store, chat), self.keep_alive))
        run.join()
        try:
            await run.result()
        finally:
            run.leave()
        return as_json(virtual.answer(asked, chat, virtual.outcome(run, self.store)))

    def _begun(self, call: Call, asked: virtual.Asked) -> LiveRun:
        """A new run, or for a client's repeated request the one that goes on."""
        if call.headers.get("x-stainless-retry-count", "0") not in ("", "0"):
            same = self.runs.same(call.actor, asked.wish.digest)
            if same is not None:
                return same
        return self.runs.begin(asked.wish, call.actor)

    async def _answers(self, wanted: raw.Asked) -> tuple[list[raw.Answer], wire.Usage]:
        try:
            found, usage = await raw.answers(self.room.running().opened.engine, wanted)
            self.metrics.count("raw", len(found), usage.prompt, usage.completion)
            return found, usage
        except EngineError as error:
            self.room.died(error.message)
            raise

    def _asked_model(self, given: dict[str, Any]) -> str:
        name = f.text(given, "model", 500)
        if name not in self.ids or name == self.embedding_model:
            raise no_model([item for item in self.ids if item != self.embedding_model], name)
        return name

    def _served(self, call: Call, name: str) -> None:
        if name != self.runs.model:
            raise no_model([self.runs.model], name)
        self._check(call, "raw")
        call.facts["model"] = name

    def _check(self, call: Call, scope: str) -> None:
        if scope not in call.scopes:
            raise forbidden(f"This API key has no scope `{scope}`.", "missing_scope")
