"""How much one key and all keys together may ask for: requests a minute, and model work at once. In memory, by key id."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ddx_local.server.errors import busy


@dataclass(frozen=True, slots=True)
class Bounds:
    """The limits. `per_minute` is of one key, `at_once` of all; `body_bytes` and `body_seconds` of one request."""

    per_minute: int = 3000
    at_once: int = 64
    at_once_per_key: int = 48
    runs_at_once: int = 8
    body_bytes: int = 1 << 20
    body_seconds: float = 20.0
    headers: int = 100
    keep_alive_seconds: float = 10.0


class Limits:
    """Counts what is asked; an answer that is refused says when to come back."""

    def __init__(self, bounds: Bounds, clock: Callable[[], float] = time.monotonic) -> None:
        self.bounds = bounds
        self._clock = clock
        self._buckets: dict[str, tuple[float, float]] = {}
        self._working: dict[str, int] = {}

    @property
    def working(self) -> int:
        """Model requests in flight."""
        return sum(self._working.values())

    def count(self, key: str) -> None:
        """Count a request; a full minute's worth may come at once, then one after the other.

        Raises:
            ApiError: 429 with Retry-After.
        """
        rate = self.bounds.per_minute / 60
        now = self._clock()
        left, at = self._buckets.get(key, (float(self.bounds.per_minute), now))
        left = min(float(self.bounds.per_minute), left + (now - at) * rate)
        if left < 1:
            raise busy(f"More than {self.bounds.per_minute} requests a minute.", (1 - left) / rate)
        self._buckets[key] = (left - 1, now)

    @contextmanager
    def work(self, key: str) -> Iterator[None]:
        """Hold a place for model work; raises `ApiError` 429 where there is none."""
        own = self._working.get(key, 0)
        if self.working >= self.bounds.at_once or own >= self.bounds.at_once_per_key:
            raise busy(f"{self.working} requests are being worked on already.", 1)
        self._working[key] = own + 1
        try:
            yield
        finally:
            left = self._working[key] - 1
            if left:
                self._working[key] = left
            else:
                del self._working[key]
