"""Counts for Prometheus: requests, seconds, runs, tokens. Labels are names of ours: no case, prompt, key or path of a client."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)


class Metrics:
    """The server's own registry, so that two servers of one process (tests) do not share counts."""

    def __init__(self, ready: Callable[[], bool], working: Callable[[], int], running: Callable[[], int]) -> None:
        self._registry = CollectorRegistry()
        self.requests = Counter(
            "ddx_local_requests", "Requests by route and status.", ["route", "status"], registry=self._registry
        )
        self.seconds = Histogram(
            "ddx_local_request_seconds",
            "Seconds until a reply began.",
            ["route"],
            buckets=_SECONDS,
            registry=self._registry,
        )
        self.runs = Counter(
            "ddx_local_runs", "Runs by method and how they ended.", ["method", "status"], registry=self._registry
        )
        self.calls = Counter("ddx_local_calls", "Questions to the model.", ["surface"], registry=self._registry)
        self.tokens = Counter("ddx_local_tokens", "Tokens by kind.", ["kind"], registry=self._registry)
        for name, text, read in (
            ("ddx_local_ready", "1 when the engine answers.", lambda: float(ready())),
            ("ddx_local_requests_in_work", "Model requests in flight.", lambda: float(working())),
            ("ddx_local_runs_in_work", "Runs in flight.", lambda: float(running())),
        ):
            Gauge(name, text, registry=self._registry).set_function(read)

    def count(self, surface: str, calls: int, prompt_tokens: int, generated_tokens: int) -> None:
        """Count questions to the model: of `raw` requests, or of `ddx` methods."""
        self.calls.labels(surface).inc(calls)
        self.tokens.labels("prompt").inc(prompt_tokens)
        self.tokens.labels("generated").inc(generated_tokens)

    def text(self) -> bytes:
        """The exposition format."""
        return generate_latest(self._registry)
