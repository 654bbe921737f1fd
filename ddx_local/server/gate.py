"""The outer ASGI app: every request goes through `exchange`; the server's life is that of its lifespan."""

import contextlib
from collections.abc import Callable

from ddx_local.server.exchange import Checks, Exchange, Receive, Scope, Send


class Gate:
    """The app."""

    def __init__(self, checks: Checks, lifespan: Callable[[], contextlib.AbstractAsyncContextManager[None]]) -> None:
        self._checks = checks
        self._lifespan = lifespan

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            await Exchange(self._checks, scope, receive, send).run()
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008})

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        async with self._lifespan():
            await send({"type": "lifespan.startup.complete"})
            await receive()
        await send({"type": "lifespan.shutdown.complete"})
