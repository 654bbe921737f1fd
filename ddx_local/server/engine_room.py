"""The one engine of a server: loading, ready, or gone, and why. Everything that asks the model goes through `opened`."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from ddx_local.errors import DdxLocalError, EngineError
from ddx_local.launch import Opened
from ddx_local.server.errors import unavailable
from ddx_local.server.replies import Call, Reply, Stream


class Inner(Protocol):
    """What answers raw requests itself, with the engine's own server code behind it."""

    async def answer(self, call: Call, path: str, body: dict[str, object], salt: str) -> Reply | Stream: ...


@dataclass(frozen=True, slots=True)
class Running:
    """An engine that answers, and the inner app beside it where the engine has one; `dead` says why it is gone, or ''."""

    opened: Opened
    inner: Inner | None = None
    dead: Callable[[], str] = lambda: ""


class EngineRoom:
    """Loads the engine behind an open socket, and watches it.

    Args:
        open_engine: Opens it.
        linger: Seconds that a server whose engine is gone still answers that, before it ends.
    """

    def __init__(self, open_engine: Callable[[], Awaitable[Running]], linger: float = 5.0) -> None:
        self._open_engine = open_engine
        self._linger = linger
        self._running: Running | None = None
        self.reason = "The engine is loading."
        self.failure: DdxLocalError | None = None
        """What the process ends with, once the engine could not be opened or is gone."""
        self.died_running = False
        """Whether it had answered before."""
        self.over = asyncio.Event()
        """Set when the server is to end."""

    @property
    def ready(self) -> bool:
        return self._running is not None and not self.reason

    def running(self) -> Running:
        """The engine.

        Raises:
            ApiError: 503 with the reason while there is none.
        """
        if self._running is None or self.reason:
            raise unavailable(self.reason)
        return self._running

    async def run(self) -> None:
        """Open the engine, then look whether it lives, until cancelled."""
        try:
            self._running = await self._open_engine()
        except DdxLocalError as error:
            self.reason = f"The engine did not start ({error.kind})."
            self.failure = error
            self.over.set()
            return
        except Exception as error:
            self.reason = "The engine did not start."
            self.failure = EngineError(f"the engine did not start: {type(error).__name__}")
            self.over.set()
            return
        self.reason = ""
        while not self.failure:
            await asyncio.sleep(0.5)
            if why := self._running.dead():
                self.died(why)
        await asyncio.sleep(self._linger)
        self.over.set()

    def died(self, why: str) -> None:
        """Say that the engine is gone; what is asked from now on is refused."""
        if self.failure is None:
            self.died_running = True
            self.reason = "The engine is gone; the server is about to end and has to be started again."
            self.failure = EngineError(why, "Start the server again; systemd does it on exit code 75.")

    async def aclose(self) -> None:
        if self._running is not None:
            await self._running.opened.aclose()
