"""A thread that owns an engine: it builds it, feeds it from a queue between its steps, and ends with it.

Stepping an engine in another thread than the building one is slower. It knows work by name; what the work is about, and what
steps it, is the subclass's. What went wrong comes out in one line that quotes neither prompt nor grammar.
"""

import asyncio
import queue
import threading
from abc import abstractmethod
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

from ddx_local.engines.causes import root_cause
from ddx_local.engines.tasks import Deliver
from ddx_local.errors import EngineError, EngineStartError

E = TypeVar("E")


class OwnerThread(threading.Thread, Generic[E]):
    """Builds, steps and ends an engine of type `E`. `ready` is settled when it is built, or could not be."""

    gather = 0.0
    """Seconds that an idle engine waits for more after a request, where those of a round come one by one."""

    def __init__(self, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self.ready: Future[None] = Future()
        # From here on nobody can cancel it: who gives up waiting closes the owner instead.
        self.ready.set_running_or_notify_cancel()
        self._inbox: queue.SimpleQueue[Callable[[E], None] | None] = queue.SimpleQueue()
        self._waiting: dict[str, Deliver] = {}
        self._ended = ""
        self._state = threading.Lock()

    async def started(self) -> None:
        """Start, and wait until the engine is built; who is cancelled meanwhile leaves nothing running.

        Raises:
            EngineStartError: It could not be built.
        """
        self.start()
        try:
            await asyncio.wrap_future(self.ready)
        except asyncio.CancelledError:
            self.close()
            raise

    def put(self, name: str, command: Callable[[E], None], deliver: Deliver) -> None:
        """Have something done; `deliver` gets what is delivered under this name, which is unique and has no hyphen."""
        with self._state:
            if not self._ended:
                self._waiting[name] = deliver
                self._inbox.put(command)
                return
        deliver(EngineError(self._ended))

    def close(self) -> None:
        """End after the current step; who waits gets an `EngineError`, and so does who comes later."""
        self._inbox.put(None)

    @abstractmethod
    def abort(self, name: str) -> None:
        """Stop work that nobody waits for any more."""

    @abstractmethod
    def build(self) -> E:
        """Make the engine; whatever it raises ends in `start_error`."""

    @abstractmethod
    def work(self, engine: E) -> None:
        """Step the engine for as long as `take` says so."""

    @abstractmethod
    def start_error(self, error: BaseException) -> EngineStartError:
        """What kept the engine from starting, in one line, and what to do about it."""

    def tear_down(self, engine: E) -> None:
        """Free what the engine holds."""

    def run(self) -> None:
        try:
            engine = self.build()
        except BaseException as error:
            self._end("the engine did not start")
            self.ready.set_exception(self.start_error(error))
            return
        self.ready.set_result(None)
        try:
            self.work(engine)
        except BaseException as error:
            self._end(f"the engine died: {root_cause(error)}")
        else:
            self._end("the engine is closed")
        finally:
            self.tear_down(engine)

    def take(self, engine: E, *, idle: bool) -> bool:
        """Do what is in the inbox; waits only while the engine is idle. False: the owner is to end."""
        wait = None if idle else 0.0
        while True:
            try:
                command = self._inbox.get(timeout=wait) if wait != 0.0 else self._inbox.get_nowait()
            except queue.Empty:
                return True
            if command is None:
                return False
            command(engine)
            wait = self.gather if wait != 0.0 else 0.0

    def deliver(self, name: str, result: Any) -> None:
        """Give who waits under this name the result, where somebody still does."""
        if deliver := self._waiting.pop(name, None):
            deliver(result)

    def _end(self, reason: str) -> None:
        with self._state:
            self._ended = reason
            waiting = list(self._waiting.values())
            self._waiting.clear()
        for deliver in waiting:
            deliver(EngineError(reason))
