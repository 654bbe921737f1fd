"""Runs as users know them: start one, resume one, replay one, and the result documents of a recorded one."""

import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ddx_local import __version__, options
from ddx_local.assets import Assets
from ddx_local.case import Case
from ddx_local.errors import ReplayMismatch, StoreError, UsageError, nearest
from ddx_local.events import CaseFinished, Event, RunStarted, sha256
from ddx_local.launch import Opened
from ddx_local.methods.table import METHODS, Method
from ddx_local.result import Json, document
from ddx_local.rounds import Append, Context, now
from ddx_local.run import run_cases
from ddx_local.store import Store
from ddx_local.view import RunView, fold

Listener = Callable[[Event, Mapping[str, str]], None]
"""Hears every event as it is recorded, with the texts that came with it by their addresses."""


@dataclass(frozen=True, slots=True)
class Job:
    """What is to be run."""

    method: Method
    options: Any
    model: str
    engine: str
    seed: int
    settings: Mapping[str, Any]
    cases: tuple[Case, ...]


def method(name: str) -> Method:
    """A method by name; raises `UsageError` with the nearest names."""
    if name not in METHODS:
        raise UsageError(f"no method `{name}`: {nearest(name, list(METHODS))}", "See `ddx-local methods list`.")
    return METHODS[name]


async def start(job: Job, opened: Opened, store: Store, listener: Listener | None, at_once: int) -> str:
    """Run a job to its end; returns the run's id. What ends the whole run (engine, store, Ctrl-C) is raised."""
    run_id = new_run_id()
    header = RunStarted(
        at=now(),
        run_id=run_id,
        method=job.method.name,
        options=options.as_json(job.options),
        model=job.model,
        fingerprint=dict(opened.engine.fingerprint),
        engine=job.engine,
        seed=job.seed,
        package_version=__version__,
        cases={case.id: sha256(case.text) for case in job.cases},
        settings=dict(job.settings),
    )
    append = _appender(store, run_id, listener)
    append([header], [case.text for case in job.cases])
    await _drive_all(header, job.cases, job.options, opened, store, append, at_once)
    return run_id


async def resume(run_id: str, opened: Opened, store: Store, listener: Listener | None, at_once: int) -> str:
    """Finish an interrupted run; no finished call is repeated.

    Raises:
        ReplayMismatch: The engine, the prompts or the options are no longer those of the run; it says which.
    """
    header, cases = recorded(store, run_id)
    different = [
        name
        for name in {*header.fingerprint, *opened.engine.fingerprint}
        if header.fingerprint.get(name) != opened.engine.fingerprint.get(name)
    ]
    if different:
        raise ReplayMismatch(
            f"run {run_id}: the engine differs from the recorded one in {', '.join(sorted(different))}"
        )
    append = _appender(store, run_id, listener)
    _tell(listener, store.events(run_id), {})
    await _drive_all(header, cases, _options(header), opened, store, append, at_once)
    return run_id


async def replay(run_id: str, store: Store) -> tuple[Json, ...]:
    """Drive a recorded run again from its answers alone, without an engine, and check that the same comes out.

    Returns:
        The result documents.

    Raises:
        ReplayMismatch: A prompt, grammar or option changed, an answer is missing, or the outcome differs.
    """
    header, cases = recorded(store, run_id)
    scratch = Store(None)
    append = _appender(scratch, run_id, None)
    append([header], [case.text for case in cases])
    await _drive_all(header, cases, _options(header), None, store, append, 1)
    before, after = _answers(store, run_id), _answers(scratch, run_id)
    for case in cases:
        if case.id in before and before[case.id] != after.get(case.id):
            raise ReplayMismatch(f"run {run_id}, case `{case.id}`: the same answers now lead to another result")
    return documents(store, run_id)


def documents(store: Store, run_id: str) -> tuple[Json, ...]:
    """The result documents of a run, one for each case, in the run's order."""
    header, _ = recorded(store, run_id)
    view = run_view(store, run_id)
    found = []
    for case in view.cases.values():
        answer = json.loads(store.text(run_id, case.answer)) if case.answer else None
        found.append(document(header, case, answer))
    return tuple(found)


def run_view(store: Store, run_id: str) -> RunView:
    """A recorded run, folded."""
    return fold(store.events(run_id))


def recorded(store: Store, run_id: str) -> tuple[RunStarted, tuple[Case, ...]]:
    """A run's settings and cases."""
    header = next((event for event in store.events(run_id, "") if isinstance(event, RunStarted)), None)
    if header is None:
        raise StoreError(f"run {run_id}: its beginning is not in the store")
    return header, tuple(Case(case_id, store.text(run_id, address)) for case_id, address in header.cases.items())


def new_run_id() -> str:
    """UTC time and four random bytes: sorts by time, says nothing of the case."""
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(4)}"


async def _drive_all(
    header: RunStarted,
    cases: Sequence[Case],
    values: Any,
    opened: Opened | None,
    store: Store,
    append: Append,
    at_once: int,
) -> None:
    """Drive what is owed of a run; without an engine (a replay) everything is driven again from its record."""
    chosen = method(header.method)
    assets = Assets()
    past: dict[str, list[Event]] = {case.id: [] for case in cases}
    for event in store.events(header.run_id):
        if event.case_id in past:
            past[event.case_id].append(event)
    owed = [c for c in cases if opened is None or not any(isinstance(event, CaseFinished) for event in past[c.id])]

    def context(case: Case) -> Context:
        return Context(
            engine=opened.engine if opened else None,
            assets=assets,
            append=append,
            seed=header.seed,
            consultants=opened.consultants if opened else {},
            history=past[case.id],
            recorded_text=lambda address: store.text(header.run_id, address),
            recording=opened is not None,
        )

    await run_cases(owed, lambda case: chosen.flow(case, values), context, append, at_once=at_once)


def _options(header: RunStarted) -> Any:
    return options.parse(method(header.method).options, header.options, header.method)


def _answers(store: Store, run_id: str) -> dict[str, str]:
    return {event.case_id: event.answer for event in store.events(run_id) if isinstance(event, CaseFinished)}


def _appender(store: Store, run_id: str, listener: Listener | None) -> Append:
    def append(events: Sequence[Event], texts: Sequence[str]) -> None:
        store.append(run_id, events, texts)
        _tell(listener, events, {sha256(text): text for text in texts})

    return append


def _tell(listener: Listener | None, events: Sequence[Event], texts: Mapping[str, str]) -> None:
    if listener is not None:
        for event in events:
            listener(event, texts)
