"""A request replayed into an ASGI app inside this one: what it answers comes back as a reply or a stream of ours.

It knows ASGI and no vLLM. Cancelling whoever waits cancels the app's work; closing the stream does too.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from typing import Any

from ddx_local.server import normalise
from ddx_local.server.errors import ApiError
from ddx_local.server.keeping import kept_alive
from ddx_local.server.replies import DONE, Reply, Stream, as_json, dumped, event

App = Callable[..., Awaitable[None]]


async def replay(app: App, path: str, body: dict[str, Any], keep_alive: float) -> Reply | Stream:
    """POST a JSON body to a path of the app.

    Raises:
        ApiError: The app's own error, in our words.
    """
    exchange = _Exchange(app, path, dumped(body))
    try:
        status, kind = await exchange.begun()
        if status == 200 and kind.startswith("text/event-stream"):
            return Stream(kept_alive(exchange.events(), keep_alive))
        data = b"".join([part async for part in exchange.parts()])
    except BaseException:
        await exchange.aclose()
        raise
    await exchange.aclose()
    if status >= 400:
        raise normalise.error(status, data)
    return as_json(normalise.whole(json.loads(data)))


class _Exchange:
    """One request inside."""

    def __init__(self, app: App, path: str, body: bytes) -> None:
        self._sent: asyncio.Queue[MutableMapping[str, Any] | None] = asyncio.Queue(64)
        self._gone = asyncio.Event()
        self._body: bytes | None = body
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": "POST",
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "root_path": "",
            "headers": [(b"host", b"localhost"), (b"content-type", b"application/json"),
                        (b"content-length", str(len(body)).encode())],
            "client": ("127.0.0.1", 0),
            "server": ("127.0.0.1", 0),
            "state": {},
        }  # fmt: skip
        self._task = asyncio.ensure_future(self._run(app, scope))

    async def begun(self) -> tuple[int, str]:
        """Status and content type."""
        message = await self._sent.get()
        if message is None:
            raise self._failed()
        headers = {name.lower(): value for name, value in message.get("headers", [])}
        return int(message["status"]), headers.get(b"content-type", b"").decode("latin-1")

    async def parts(self) -> AsyncIterator[bytes]:
        """The body as it comes."""
        while (message := await self._sent.get()) is not None:
            if message["type"] == "http.response.body":
                yield message.get("body", b"")
                if not message.get("more_body"):
                    return

    async def events(self) -> AsyncIterator[bytes]:
        """The server-sent events, each whole and in OpenAI's shape; a fault becomes an error and the end."""
        rest, ended = b"", False
        try:
            async for part in self.parts():
                rest += part
                while b"\n\n" in rest:
                    block, rest = rest.split(b"\n\n", 1)
                    out = normalise.sent(block)
                    ended = ended or out == DONE
                    yield out
            if not ended:
                yield event(self._failed().body())
                yield DONE
        except ApiError as error:
            yield event(error.body())
            yield DONE
        finally:
            await self.aclose()

    async def aclose(self) -> None:
        """Stop the work inside."""
        self._gone.set()
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self, app: App, scope: dict[str, Any]) -> None:
        try:
            with contextlib.suppress(Exception):  # its words may quote the request; what is missing tells
                await app(scope, self._receive, self._sent.put)
        finally:
            with contextlib.suppress(asyncio.QueueFull):
                self._sent.put_nowait(None)

    async def _receive(self) -> dict[str, Any]:
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    def _failed(self) -> ApiError:
        return ApiError(500, "The engine failed on this request.", "server_error", "engine_error")
