"""Streams that must not look dead (a comment line whenever nothing was said for a while), and clients that go away."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from ddx_local.server.replies import KEEP_ALIVE, Stream


async def kept_alive(chunks: AsyncIterator[bytes], seconds: float) -> AsyncIterator[bytes]:
    """The chunks, with a comment after each pause of so many seconds; closing it closes them."""
    waiting: asyncio.Future[bytes] | None = None
    try:
        while True:
            waiting = waiting or asyncio.ensure_future(anext(chunks))
            done, _ = await asyncio.wait({waiting}, timeout=seconds)
            if not done:
                yield KEEP_ALIVE
                continue
            finished, waiting = waiting, None
            try:
                yield finished.result()
            except StopAsyncIteration:
                return
    finally:
        if waiting is not None:
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
        close = getattr(chunks, "aclose", None)
        if close is not None:
            with contextlib.suppress(RuntimeError):
                await close()


async def gone_from(receive: Callable[[], Awaitable[Any]]) -> None:
    """Wait until the client has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def ended(*tasks: "asyncio.Future[Any]") -> None:
    """Cancel tasks and wait for them."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def closed(reply: Stream) -> None:
    """End the work behind a stream."""
    close = getattr(reply.chunks, "aclose", None)
    if close is not None:
        with contextlib.suppress(Exception):
            await close()
