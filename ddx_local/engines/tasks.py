"""Two things about asyncio: several coroutines of which the first failure stops the others, and answers from a thread."""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

T = TypeVar("T")

Deliver = Callable[[Any], None]
"""Receives what was waited for, or the exception that ended the wait; from any thread."""


async def all_or_first_error(work: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """The results in order. A failure or a cancel stops all of the work and waits for it to end before it is raised."""
    tasks = [asyncio.ensure_future(item) for item in work]
    try:
        return list(await asyncio.gather(*tasks))
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


async def from_thread(ask: Callable[[Deliver], None], give_up: Callable[[], None]) -> Any:
    """Wait for what another thread delivers.

    Args:
        ask: Hands the thread the question and where to deliver.
        give_up: Tells it that nobody waits any more; called when the caller is cancelled.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()

    def settle(result: Any) -> None:
        if future.done():
            return
        if isinstance(result, BaseException):
            future.set_exception(result)
        else:
            future.set_result(result)

    def deliver(result: Any) -> None:
        # A caller whose event loop is closed does not wait any more, and must not harm the others.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(settle, result)

    ask(deliver)
    try:
        return await future
    except asyncio.CancelledError:
        give_up()
        raise
