"""A server put together: engine room, store, keys, audit, limits, routes, and the gate in front of them all."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

from ddx_local.audit import Audit
from ddx_local.server import metrics as metrics_
from ddx_local.server import openapi, pages
from ddx_local.server.access import Door, Sessions
from ddx_local.server.cases_api import Cases
from ddx_local.server.embeddings import Embedder, LocalModel, made_up
from ddx_local.server.engine_room import EngineRoom, Running
from ddx_local.server.errors import unavailable
from ddx_local.server.exchange import Checks
from ddx_local.server.gate import Gate
from ddx_local.server.keys import Keys
from ddx_local.server.limits import Bounds, Limits
from ddx_local.server.metrics import Metrics
from ddx_local.server.openai_api import OpenAI
from ddx_local.server.replies import Call, Reply, as_error, as_json
from ddx_local.server.routes import Route, Table
from ddx_local.server.runs import Runs
from ddx_local.server.runs_api import RunRoutes
from ddx_local.settings import Settings
from ddx_local.store import Store


@dataclass(frozen=True)
class Setup:
    """What a server is made of.

    Args:
        settings: Model and engine, as for `diagnose`.
        open_engine: Opens the engine.
        store: The run store.
        audit: The audit chain.
        keys: API keys.
        hosts: Names that a Host header may hold.
        bounds: Limits.
        demo: Whether answers are made up.
        secure: Whether it speaks TLS.
        report: Hears of faults, in words without any text of a request.
        linger: Seconds that it still answers when its engine is gone.
    """

    settings: Settings
    open_engine: Callable[[], Awaitable[Running]]
    store: Store
    audit: Audit
    keys: Keys
    hosts: frozenset[str] = frozenset(("localhost", "127.0.0.1", "[::1]"))
    bounds: Bounds = field(default_factory=Bounds)
    demo: bool = False
    secure: bool = False
    report: Callable[[str], None] = lambda _: None
    linger: float = 5.0


class Server:
    """The app (`gate`, ASGI) with what stands behind it."""

    def __init__(self, setup: Setup) -> None:
        settings = setup.settings
        self.setup = setup
        self.room = EngineRoom(setup.open_engine, setup.linger)
        self.limits = Limits(setup.bounds)
        self.runs = Runs(settings, self.room, setup.store, setup.audit, setup.bounds.runs_at_once)
        self.metrics = Metrics(lambda: self.room.ready, lambda: self.limits.working, lambda: len(self.runs.live))
        self.runs.metrics = self.metrics
        scripted = settings.engine == "scripted"
        embed: Embedder = made_up if scripted else LocalModel(settings.embedding_model)
        keep_alive = setup.bounds.keep_alive_seconds
        self.openai = OpenAI(
            settings=settings,
            room=self.room,
            runs=self.runs,
            store=setup.store,
            embed=embed,
            embedding_model="scripted-embedding" if scripted else settings.embedding_model,
            keep_alive=keep_alive,
            metrics=self.metrics,
        )
        self.run_routes = RunRoutes(settings, self.room, self.runs, setup.store, setup.audit, keep_alive)
        self.cases = Cases(settings, self.room, self.runs, setup.demo, setup.keys.needed)
        self.sessions = Sessions()
        self.session_routes = pages.SessionRoutes(setup.keys, self.sessions, setup.secure)
        self.table = Table(self._routes())
        checks = Checks(
            table=self.table,
            door=Door(setup.keys, self.sessions, setup.hosts),
            limits=self.limits,
            audit=setup.audit,
            metrics=self.metrics,
            login=pages.login,
            report=setup.report,
        )
        self.gate = Gate(checks, self._lifespan)

    def _routes(self) -> list[Route]:
        openai, runs, cases = self.openai, self.run_routes, self.cases
        one = "/ddx/v1/runs/{run_id}"
        return [
            Route("GET", "/healthz", "healthz", "none", self._alive),
            Route("GET", "/readyz", "readyz", "any", self._ready),
            Route("GET", "/metrics", "metrics", "metrics", self._metrics),
            Route("GET", "/v1/models", "models", "any", openai.models),
            Route("GET", "/v1/models/{id:path}", "model", "any", openai.model),
            Route("POST", "/v1/chat/completions", "chat", "any", openai.chat, "json", work=True),
            Route("POST", "/v1/completions", "completions", "raw", openai.completions, "json", work=True),
            Route("POST", "/v1/embeddings", "embeddings", "raw", openai.embeddings, "json", work=True),
            Route("GET", "/ddx/v1/openapi.json", "openapi", "any", self._openapi),
            Route("GET", "/ddx/v1/status", "status", "any", cases.state),
            Route("GET", "/ddx/v1/methods", "methods", "any", cases.methods),
            Route("POST", "/ddx/v1/cases", "case.split", "panel", cases.split, "json"),
            Route("GET", "/ddx/v1/runs", "runs.list", "panel", runs.history),
            Route("POST", "/ddx/v1/runs", "run.create", "panel", runs.create, "json", work=True),
            Route("POST", "/ddx/v1/summary", "runs.summary", "panel", runs.summaries, "json", work=True),
            Route("GET", one, "run.show", "panel", runs.show),
            Route("DELETE", one, "run.delete", "panel", runs.delete),
            Route("GET", f"{one}/events", "run.watch", "panel", runs.events),
            Route("POST", f"{one}/comments", "run.comment", "panel", runs.comment, "json"),
            Route("POST", f"{one}/continue", "run.continue", "panel", runs.go_on, "json"),
            Route("POST", f"{one}/pause", "run.pause", "panel", runs.pause),
            Route("POST", f"{one}/cancel", "run.cancel", "panel", runs.cancel),
            Route("POST", f"{one}/summary", "run.summary", "panel", runs.summary, work=True),
            Route("GET", f"{one}/export.json", "run.export", "panel", runs.export_json),
            Route("GET", f"{one}/export.html", "run.export", "panel", runs.export_html),
            Route("POST", "/ddx/v1/session", "session.begin", "none", self.session_routes.begin, "form"),
            Route("DELETE", "/ddx/v1/session", "session.end", "panel", self.session_routes.end),
            *pages.routes(),
        ]

    @contextlib.asynccontextmanager
    async def _lifespan(self) -> AsyncIterator[None]:
        opening = asyncio.ensure_future(self.room.run())
        try:
            yield
        finally:
            opening.cancel()
            await asyncio.gather(opening, return_exceptions=True)
            await self.runs.aclose()
            await self.room.aclose()

    async def _alive(self, _: Call) -> Reply:
        return as_json({"status": "alive"})

    async def _ready(self, _: Call) -> Reply:
        if self.room.ready:
            return as_json({"status": "ready", "model": self.runs.model})
        return as_error(unavailable(self.room.reason))

    async def _metrics(self, _: Call) -> Reply:
        return Reply(self.metrics.text(), content_type=metrics_.CONTENT_TYPE)

    async def _openapi(self, _: Call) -> Reply:
        return as_json(openapi.document(self.table))
