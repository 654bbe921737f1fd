"""Streams that must not look dead: a comment line whenever nothing was said for a while, for proxies and clients."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from ddx_local.server.replies import KEEP_ALIVE


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
