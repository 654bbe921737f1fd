"""One request and its reply: the checks in their order, then the handler, which is cancelled when the client goes.

Request id, Host and Origin, key, size, content type, rate, router, scope, body. A reply begins only when its audit record is
written. No error says a word of what was sent.
"""

import asyncio
import contextlib
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from ddx_local.audit import Audit
from ddx_local.errors import StoreError
from ddx_local.server import errors
from ddx_local.server.access import Door, check_scope
from ddx_local.server.errors import ApiError
from ddx_local.server.keeping import closed, ended, gone_from
from ddx_local.server.keys import SCOPES
from ddx_local.server.limits import Limits
from ddx_local.server.metrics import Metrics
from ddx_local.server.replies import SAFE, Call, Reply, Stream, as_error
from ddx_local.server.routes import Route, Table

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

_TYPES = {"json": "application/json", "form": "application/x-www-form-urlencoded"}


@dataclass(frozen=True, slots=True)
class Checks:
    """What every request passes.

    Args:
        table: The routes.
        door: Who may come in.
        limits: How much may be asked.
        audit: Where what was done is recorded.
        metrics: Where it is counted.
        login: Answers a browser that opens the panel without a key.
        report: Hears of faults, without a request's text.
    """

    table: Table
    door: Door
    limits: Limits
    audit: Audit
    metrics: Metrics
    login: Callable[[], Reply]
    report: Callable[[str], None]


class Exchange:
    """One request and its reply."""

    def __init__(self, checks: Checks, scope: Scope, receive: Receive, send: Send) -> None:
        self.checks = checks
        self.scope = scope
        self.receive = receive
        self.send = send
        self.began = time.perf_counter()
        raw = scope.get("raw_path") or scope["path"].encode()
        # Where this app is a part of another one.
        raw = raw.removeprefix(scope.get("root_path", "").encode())
        # httptools gives the query with the path, h11 does not.
        self.raw_path = raw.partition(b"?")[0].decode("latin-1")
        headers: dict[str, str] = {}
        for name, value in scope["headers"]:
            text = name.decode("latin-1").lower()
            headers[text] = (
                f"{headers[text]}, {value.decode('latin-1')}" if text in headers else value.decode("latin-1")
            )
        query = dict(parse_qsl(scope.get("query_string", b"").decode("latin-1")))
        self.call = Call(f"req_{secrets.token_hex(12)}", "", scope["method"], self.raw_path, {}, query, headers)
        self.action = "refused"
        self.recorded = False

    async def run(self) -> None:
        stack = contextlib.AsyncExitStack()
        async with stack:
            try:
                reply = await self._reply(stack)
            except ApiError as error:
                reply = self._refusal(error)
            except asyncio.CancelledError:
                raise
            except Exception as error:
                mapped = errors.of(error)
                if mapped.status >= 500:
                    self.checks.report(f"{self.call.request_id}: {self.action}: {type(error).__name__}{_place(error)}")
                reply = as_error(mapped)
            if reply is not None:
                await self._answer(reply)

    async def _reply(self, stack: contextlib.AsyncExitStack) -> Reply | Stream | None:
        checks, call = self.checks, self.call
        if len(self.scope["headers"]) > checks.limits.bounds.headers:
            raise ApiError(431, "The request has too many headers.", code="too_many_headers")
        checks.door.check_place(call.method, call.path, call.headers)
        key = None if checks.table.is_public(call.method, call.path) else checks.door.who(call.method, call.headers)
        call.actor = key.id if key else "nobody"
        route, values = self._check_form()
        self.action = route.action
        if key is not None:
            checks.limits.count(key.id)
            check_scope(key, route.scope)
            call.scopes = frozenset(scope for scope in SCOPES if key.may(scope))
        call.values = values
        if route.body:
            call.body = await self._read()
        if route.work:
            stack.enter_context(checks.limits.work(call.actor))
        return await self._handled(route)

    def _check_form(self) -> tuple[Route, Mapping[str, str]]:
        """Size and content type as they are announced, then the route; raises `ApiError`."""
        headers, bounds = self.call.headers, self.checks.limits.bounds
        length = headers.get("content-length", "0")
        if not length.isdigit() or len(length) > 18:
            raise errors.invalid("Content-Length is no number.")
        if int(length) > bounds.body_bytes:
            raise _too_large(bounds.body_bytes)
        route, values = self.checks.table.find(self.call.method, self.raw_path)
        if route.body:
            given = headers.get("content-type", "").partition(";")[0].strip().lower()
            if given != _TYPES[route.body]:
                raise ApiError(415, f"The Content-Type must be {_TYPES[route.body]}.", code="unsupported_media_type")
        return route, values

    async def _read(self) -> bytes:
        """The body, counted as it comes; raises `ApiError` 413 or 408."""
        bounds = self.checks.limits.bounds
        parts, size = [], 0
        try:
            async with asyncio.timeout(bounds.body_seconds):
                while True:
                    message = await self.receive()
                    if message["type"] == "http.disconnect":
                        raise ApiError(400, "The body ended early.")
                    part = message.get("body", b"")
                    size += len(part)
                    if size > bounds.body_bytes:
                        raise _too_large(bounds.body_bytes)
                    parts.append(part)
                    if not message.get("more_body"):
                        return b"".join(parts)
        except TimeoutError:
            raise ApiError(408, "The body took too long to come.", code="request_timeout") from None

    async def _handled(self, route: Route) -> Reply | Stream | None:
        """The handler's reply, or None where the client has gone meanwhile; the handler is then cancelled."""
        work = asyncio.ensure_future(route.handler(self.call))
        gone = asyncio.ensure_future(gone_from(self.receive))
        try:
            await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                return work.result()
            self._record("client_gone")
            return None
        finally:
            await ended(work, gone)

    def _refusal(self, error: ApiError) -> Reply:
        if error.status == 401 and self.call.path == "/" and "text/html" in self.call.headers.get("accept", ""):
            return self.checks.login()
        return as_error(error)

    async def _answer(self, reply: Reply | Stream) -> None:
        status = reply.status if isinstance(reply, Reply) else 200
        try:
            self._record(str(status))
        except StoreError:
            if isinstance(reply, Stream):
                await closed(reply)
            self.checks.report(f"{self.call.request_id}: the audit record could not be written")
            error = ApiError(
                503, "The audit record cannot be written; nothing is answered.", "server_error", "audit_failed"
            )
            reply = as_error(error)
            status = reply.status
        self.checks.metrics.requests.labels(self.action, str(status)).inc()
        self.checks.metrics.seconds.labels(self.action).observe(time.perf_counter() - self.began)
        if isinstance(reply, Reply):
            bare = status in (204, 304)
            length = {} if bare else {"content-length": str(len(reply.body))}
            await self._start(status, "" if bare else reply.content_type, {**reply.headers, **length})
            body = b"" if self.call.method == "HEAD" else reply.body
            await self.send({"type": "http.response.body", "body": body})
        else:
            await self._stream(reply)

    async def _start(self, status: int, content_type: str, headers: Mapping[str, str]) -> None:
        kind = {"content-type": content_type} if content_type else {}
        named = {**SAFE, **kind, "x-request-id": self.call.request_id, **headers}
        raw = [(name.encode(), value.encode("latin-1", "replace")) for name, value in named.items()]
        await self.send({"type": "http.response.start", "status": status, "headers": raw})

    async def _stream(self, reply: Stream) -> None:
        """Send the chunks for as long as someone listens."""
        await self._start(200, reply.content_type, {"x-accel-buffering": "no", **reply.headers})

        async def pump() -> None:
            async for chunk in reply.chunks:
                await self.send({"type": "http.response.body", "body": chunk, "more_body": True})

        pumping = asyncio.ensure_future(pump())
        gone = asyncio.ensure_future(gone_from(self.receive))
        try:
            await asyncio.wait({pumping, gone}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await ended(pumping, gone)
            await closed(reply)
        if pumping.done() and not pumping.cancelled() and (error := pumping.exception()) is not None:
            self.checks.report(
                f"{self.call.request_id}: {self.action}: {type(error).__name__} in a stream{_place(error)}"
            )
        with contextlib.suppress(Exception):
            await self.send({"type": "http.response.body", "body": b""})

    def _record(self, outcome: str) -> None:
        if self.action != "healthz" and not self.recorded:
            self.recorded = True
            facts = {"request": self.call.request_id, **self.call.facts}
            self.checks.audit.append(self.call.actor or "nobody", self.action, self.call.object_id, outcome, **facts)


def _too_large(most: int) -> ApiError:
    return ApiError(413, f"The body is larger than {most} bytes.", code="request_too_large")


def _place(error: BaseException) -> str:
    """Where in the program: its text may hold what was sent, and is left out."""
    last = error.__traceback__
    while last and last.tb_next:
        last = last.tb_next
    return f" in {last.tb_frame.f_globals.get('__name__')}, line {last.tb_lineno}" if last else ""
