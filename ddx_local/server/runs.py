"""The runs of a server: begun, joined, followed, cancelled. Many at once share the engine; all are recorded in one store."""

import asyncio
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ddx_local import __version__, jobs, launch
from ddx_local.audit import Audit
from ddx_local.case import Case
from ddx_local.engines.salt import SALT
from ddx_local.errors import DdxLocalError, EngineError
from ddx_local.events import Answered, RunFinished
from ddx_local.methods.table import Method
from ddx_local.server.access import LOCAL
from ddx_local.server.engine_room import EngineRoom
from ddx_local.server.errors import busy
from ddx_local.server.live_run import LiveRun
from ddx_local.server.metrics import Metrics
from ddx_local.settings import Settings
from ddx_local.store import Store


@dataclass(frozen=True, slots=True)
class Wish:
    """A run that someone asks for; `digest` is of the whole request, so that a repeated one can be told."""

    method: Method
    options: Any
    case: Case
    seed: int
    pausing: bool = False
    digest: str = ""


class Runs:
    """All runs that this server has begun and that are not over."""

    def __init__(
        self,
        settings: Settings,
        room: EngineRoom,
        store: Store,
        audit: Audit,
        at_once: int,
        metrics: Metrics | None = None,
    ) -> None:
        self._settings = settings
        self._room = room
        self._store = store
        self._audit = audit
        self._at_once = at_once
        self.metrics = metrics
        self.live: dict[str, LiveRun] = {}
        self._by_digest: dict[tuple[str, str], LiveRun] = {}

    def begin(self, wish: Wish, actor: str) -> LiveRun:
        """Begin a run; it goes on by itself.

        Raises:
            ApiError: 429 where too many are under way, 503 without an engine.
            StoreError: The audit record cannot be written; nothing was begun.
        """
        running = self._room.running()
        if len(self.live) >= self._at_once:
            raise busy(f"{len(self.live)} runs are under way already.", 10, "too_many_runs")
        run = LiveRun(jobs.new_run_id(), wish.method.name, actor, wish.pausing)
        fingerprint = running.opened.engine.fingerprint
        self._audit.append(
            actor, "run.start", run.run_id, "ok", method=wish.method.name, app=__version__, **_digests(fingerprint)
        )
        job = jobs.Job(
            method=wish.method,
            options=wish.options,
            model=self.model,
            engine=self._settings.engine,
            seed=wish.seed,
            settings=launch.engine_settings(self._settings),
            cases=(wish.case,),
        )
        self.live[run.run_id] = run
        if wish.digest:
            self._by_digest[(actor, wish.digest)] = run

        async def work() -> None:
            SALT.set(self.salt(actor))
            failure: BaseException | None = None
            try:
                await jobs.start(
                    job, running.opened, self._store, run.hear, 1, supervise=run.supervise, run_id=run.run_id
                )
            except asyncio.CancelledError as error:
                failure = error
            except Exception as error:
                failure = error
                if isinstance(error, EngineError):
                    self._room.died(error.message)
            finally:
                self.live.pop(run.run_id, None)
                if wish.digest and self._by_digest.get((actor, wish.digest)) is run:
                    del self._by_digest[(actor, wish.digest)]
                self._account(run, failure)
                run.end(failure)

        run.task = asyncio.ensure_future(work())
        return run

    def same(self, actor: str, digest: str) -> LiveRun | None:
        """The run that an identical request of the same key has begun and that goes on."""
        return self._by_digest.get((actor, digest))

    def salt(self, actor: str) -> str:
        """What keeps one key's prefixes and probabilities apart from another's; '' where there are no keys.

        No client can choose it: it is made of who asks, and the fields that would set it are refused.
        """
        return "" if actor == LOCAL.id else hashlib.blake2b(actor.encode(), digest_size=16).hexdigest()

    @property
    def model(self) -> str:
        """The served model's id."""
        return self._settings.model if self._settings.engine != "scripted" else "scripted"

    async def aclose(self) -> None:
        """Stop all runs; each is recorded as cancelled and can be resumed."""
        tasks = [run.task for run in self.live.values() if run.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _account(self, run: LiveRun, failure: BaseException | None) -> None:
        """One audit record for the end, and the counts; a full disk must not hide why the run ended."""
        ended = next((event for _, event, _ in reversed(run.items) if isinstance(event, RunFinished)), None)
        status = ended.status if ended else "failed"
        if ended is not None and ended.failed:
            status = "failed"
        kind = failure.kind if isinstance(failure, DdxLocalError) else "" if failure is None else type(failure).__name__
        counts = dict(ended.counts) if ended else {}
        try:
            facts = {"seconds": round(ended.seconds, 3) if ended else 0.0, "kind": kind, **counts}
            self._audit.append(run.actor, "run.end", run.run_id, status, method=run.method, **facts)
        except DdxLocalError as error:
            run.failure = error
        if self.metrics is not None:
            self.metrics.runs.labels(run.method, status).inc()
            answers = [event for _, event, _ in run.items if isinstance(event, Answered) and event.finish_reason]
            self.metrics.count(
                "ddx",
                len(answers),
                sum(event.prompt_tokens for event in answers),
                sum(event.generated_tokens for event in answers),
            )


def digest_of(body: bytes) -> str:
    """Names a request's content."""
    return hashlib.sha256(body).hexdigest()


def case_of(text: str) -> Case:
    """A case under a name that the same text gets again, so that the same seed gives the same run."""
    return Case(f"case-{hashlib.sha256(text.encode(errors='replace')).hexdigest()[:12]}", text)


def _digests(fingerprint: Mapping[str, str]) -> dict[str, str]:
    names = ("model", "weights_sha256", "engine_version", "dtype")
    return {name: fingerprint[name] for name in names if name in fingerprint}
