"""One run while it goes on: what has happened so far, who listens, and where it waits for a person. It lives in one event loop."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field

from ddx_local.events import Event, RunFinished
from ddx_local.supervise import Comment, RoundDone

GRACE = 0.55
"""Seconds that a run goes on when its last listener went: a client's retry comes within half a second and joins it."""


@dataclass(frozen=True, slots=True)
class Waits:
    """The run waits for a person, or, with `round` None, goes on again."""

    round: RoundDone | None


Item = tuple[int, Event | Waits, Mapping[str, str]]
"""How many events there are up to here, what happened, and the texts that came with it."""


@dataclass
class LiveRun:
    """A run in this process.

    Args:
        run_id: Its id.
        method: Its method's name.
        actor: The key that began it.
        pausing: Whether it waits after every round.
    """

    run_id: str
    method: str
    actor: str
    pausing: bool = False
    items: list[Item] = field(default_factory=list)
    comments: list[Comment] = field(default_factory=list)
    failure: BaseException | None = None
    over: bool = False
    task: "asyncio.Task[None] | None" = None
    waiting: RoundDone | None = None
    _listeners: int = 0
    _owned: bool = False
    _news: asyncio.Event = field(default_factory=asyncio.Event)
    _go_on: asyncio.Event = field(default_factory=asyncio.Event)

    def hear(self, event: Event, texts: Mapping[str, str]) -> None:
        """A `jobs.Listener`."""
        if not isinstance(event, RunFinished):
            self._add(event, texts)
            return
        # The texts of a whole run may be many; who comes later reads them in the store.
        self._add(event, {})

    async def supervise(self, done: RoundDone) -> Sequence[Comment]:
        """A `Supervisor`: waits for a person where the run is to pause, and hands over what was said."""
        if self.pausing:
            self.waiting = done
            self._go_on.clear()
            self._add(Waits(done), {})
            try:
                await self._go_on.wait()
            finally:
                self.waiting = None
                self._add(Waits(None), {})
        said, self.comments = tuple(self.comments), []
        return said

    def go_on(self, *, pausing: bool) -> None:
        """Let a waiting run go on; `pausing` says whether it waits again after the next round."""
        self.pausing = pausing
        self._go_on.set()

    def end(self, failure: BaseException | None) -> None:
        """Nothing more will happen."""
        self.failure = failure
        self.over = True
        self._wake()

    async def follow(self, after: int = 0) -> AsyncIterator[Item]:
        """What happened behind the first `after` events, then what happens, until the run is over."""
        place = next((index for index, item in enumerate(self.items) if item[0] > after), len(self.items))
        if place == len(self.items) and self.waiting is not None:
            yield len(self.items), Waits(self.waiting), {}
        while True:
            while place < len(self.items):
                yield self.items[place]
                place += 1
            if self.over:
                return
            news = self._news
            await news.wait()

    async def begun(self) -> None:
        """Wait until the run is recorded, or over."""
        while not self.items and not self.over:
            await self._news.wait()

    async def result(self) -> None:
        """Wait until the run is over, as one of those for whose sake it goes on (see `listening`)."""
        while not self.over:
            await self._news.wait()

    def join(self) -> None:
        """Someone waits for this run; when all who did have gone, it is cancelled."""
        self._owned = True
        self._listeners += 1

    def leave(self) -> None:
        """Someone waits no longer."""
        self._listeners -= 1
        if self._listeners == 0 and self._owned and not self.over:
            asyncio.get_running_loop().call_later(GRACE, self._cancel_if_alone)

    def cancel(self) -> None:
        """Stop the run; what is finished stays recorded."""
        if self.task is not None:
            self.task.cancel()

    def _cancel_if_alone(self) -> None:
        if self._listeners == 0 and not self.over:
            self.cancel()

    def _add(self, what: Event | Waits, texts: Mapping[str, str]) -> None:
        count = self.items[-1][0] if self.items else 0
        self.items.append((count + (not isinstance(what, Waits)), what, texts))
        self._wake()

    def _wake(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()
