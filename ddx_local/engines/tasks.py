"""One thing about asyncio: wait for several coroutines, and on the first failure stop the others and raise that failure."""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

T = TypeVar("T")


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
