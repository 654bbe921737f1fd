"""Runs as users know them: start one, resume one, replay one, and the result documents of a recorded one."""

import contextlib
import json
import secrets
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ddx_local import __version__, options
from ddx_local import roles as bindings
from ddx_local.assets import Assets
from ddx_local.case import Case
from ddx_local.errors import ReplayMismatch, StoreError, UsageError, nearest
from ddx_local.events import CaseFailed, CaseFinished, Event, RunStarted, sha256
from ddx_local.flow import Codes
from ddx_local.launch import Opened
from ddx_local.methods.coding import with_codes
from ddx_local.methods.table import METHODS, Method
from ddx_local.recorder import Append, Context, now
from ddx_local.result import Json, document
from ddx_local.run import Gate, run_cases
from ddx_local.store import Store
from ddx_local.supervise import Supervisor
from ddx_local.view import RunView, fold

_METHODS = "See `ddx-local methods list`."

Listener = Callable[[Event, Mapping[str, str]], None]
"""Hears every event as it is recorded, with the texts that came with it by their addresses. Its faults end nothing."""


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
        raise UsageError(f"no method `{name}`: {nearest(name, list(METHODS))}", _METHODS)
    return METHODS[name]


def method_options(chosen: Method, settings: Mapping[str, Mapping[str, Any]], flags: Mapping[str, str]) -> Any:
    """A method's options: flags over what the settings hold by method.

    Raises:
        UsageError: An option that is none, or a value that it does not take, named with where it stands; in the settings a
            method that is none, whose options would apply to nothing.
    """
    for name in settings:
        if name not in METHODS:
            raise UsageError(f"settings, [method.{name}]: no method `{name}`: {nearest(name, list(METHODS))}", _METHODS)
    before = settings.get(chosen.name, {})
    with _from_settings(f"[method.{chosen.name}]", lambda: options.parse(chosen.options, flags, chosen.name)):
        return options.parse(chosen.options, {**before, **flags}, chosen.name)


@contextlib.contextmanager
def _from_settings(place: str, without: Callable[[], object]) -> Iterator[None]:
    """Name the place in the settings in an error that is gone `without` them, in place of a flag that nobody gave."""
    try:
        yield
    except UsageError as error:
        without()  # raises where the flags alone are wrong
        bare = error.message.removeprefix("--option ").removeprefix("--role ")
        raise UsageError(f"settings, {place}: {bare}", error.hint) from None


def roles(chosen: Method, settings: Mapping[str, str], flags: Mapping[str, str]) -> dict[str, str]:
    """Role -> model, of what flags and settings bind together (`settings`) what concerns the method.

    Raises:
        UsageError: A role that the method doesn't have; in the settings file one that no method has.
    """
    others = {role for item in METHODS.values() for role in item.roles}
    with _from_settings("[roles]", lambda: bindings.chosen(chosen.name, chosen.roles, flags)):
        return bindings.chosen(chosen.name, chosen.roles, settings, others - set(flags))


async def start(
    job: Job,
    opened: Opened,
    store: Store,
    listener: Listener | None,
    at_once: Gate,
    *,
    supervise: Supervisor | None = None,
    run_id: str = "",
) -> str:
    """Run a job to its end; returns the run's id. What ends the whole run (engine, store, Ctrl-C) is raised.

    Args:
        job: What to run.
        opened: The engine and who answers consultations.
        store: Where events go.
        listener: Hears every event.
        at_once: Cases in flight.
        supervise: Asked for a person's comments after each round of a case.
        run_id: From `new_run_id`, where the caller has to know it before the run begins.
    """
    run_id = run_id or new_run_id()
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
        # Who cannot look a code up gives none: what is recorded is what a replay does again.
        settings={**job.settings, **({"icd10": Codes in opened.consultants} if job.settings.get("icd10") else {})},
        prompts=_prompts(job.method, Assets()),
        roles={role: dict(engine.fingerprint) for role, engine in opened.bound.items()},
    )
    with store.claim(run_id):
        append = _appender(store, run_id, _isolated(listener))
        append([header], [case.text for case in job.cases])
        await _drive_all(header, job.cases, job.options, opened, store, append, at_once, supervise)
    return run_id


async def resume(
    run_id: str,
    opened: Opened,
    store: Store,
    listener: Listener | None,
    at_once: Gate,
    *,
    supervise: Supervisor | None = None,
) -> str:
    """Finish an interrupted run; no finished call is repeated. A run that owes nothing stays as it is.

    Raises:
        ReplayMismatch: The engine, the prompts or the options are no longer those of the run; it says which.
        StoreError: Another process works on the run.
    """
    header, cases = recorded(store, run_id)
    _same_engine(run_id, "the engine", header.fingerprint, opened.engine.fingerprint)
    for role in {**header.roles, **opened.bound}:
        now_here = opened.bound[role].fingerprint if role in opened.bound else {}
        _same_engine(run_id, f"the engine of role `{role}`", header.roles.get(role, {}), now_here)
    with store.claim(run_id):
        if is_whole(store, run_id):
            return run_id
        hear = _isolated(listener)
        for event in store.events(run_id):
            hear(event, {})
        append = _appender(store, run_id, hear)
        await _drive_all(header, cases, _options(header), opened, store, append, at_once, supervise)
    return run_id


def is_whole(store: Store, run_id: str) -> bool:
    """Whether a run has ended with every case finished, so that there is nothing to resume."""
    view = run_view(store, run_id)
    return view.status == "finished" and all(case.status == "finished" for case in view.cases.values())


async def replay(run_id: str, store: Store) -> tuple[Json, ...]:
    """Drive a recorded run again from its answers alone, without an engine, and check that the same comes out.

    Returns:
        The result documents.

    Raises:
        ReplayMismatch: A prompt, grammar or option changed, an answer is missing, or the outcome differs.
    """
    header, cases = recorded(store, run_id)
    scratch = Store(None)
    append = _appender(scratch, run_id, _isolated(None))
    append([header], [case.text for case in cases])
    await _drive_all(header, cases, _options(header), None, store, append, 1)
    before, after = _outcomes(store, run_id), _outcomes(scratch, run_id)
    scratch.close()
    for case in cases:
        if before.get(case.id) != after.get(case.id):
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
    at_once: Gate,
    supervise: Supervisor | None = None,
) -> None:
    """Drive what is owed of a run; without an engine (a replay) everything is driven again from its record."""
    chosen = method(header.method)
    assets = Assets()
    _same_prompts(header, _prompts(chosen, assets))
    past: dict[str, list[Event]] = {case.id: [] for case in cases}
    for event in store.events(header.run_id):
        if event.case_id in past:
            past[event.case_id].append(event)
    done = {case_id for case_id, events in past.items() if any(isinstance(event, CaseFinished) for event in events)}
    owed = [case for case in cases if opened is None or case.id not in done]

    coded = header.settings.get("icd10", False)

    def context(case: Case) -> Context:
        return Context(
            engine=opened.engine if opened else None,
            bound=opened.bound if opened else {},
            assets=assets,
            append=append,
            seed=header.seed,
            consultants=opened.consultants if opened else {},
            history=past[case.id],
            recorded_text=lambda address: store.text(header.run_id, address),
            supervise=supervise,
            budget=header.settings.get("budget_tokens"),
            recording=opened is not None,
        )

    await run_cases(
        owed,
        lambda case: with_codes(chosen.flow(case, values)) if coded else chosen.flow(case, values),
        context,
        append,
        at_once=at_once,
        finished_before=len(cases) - len(owed),
        counts=_counted(opened) if opened else dict,
    )


def _same_engine(run_id: str, which: str, before: Mapping[str, str], now_here: Mapping[str, str]) -> None:
    different = sorted(name for name in {*before, *now_here} if before.get(name) != now_here.get(name))
    if different:
        raise ReplayMismatch(f"run {run_id}: {which} differs from the recorded one in {', '.join(different)}")


def _counted(opened: Opened) -> Callable[[], Mapping[str, int]]:
    """What reached the engine from now on."""
    before = dict(opened.counts())
    return lambda: {name: count - before.get(name, 0) for name, count in opened.counts().items()}


def _options(header: RunStarted) -> Any:
    return options.parse(method(header.method).options, header.options, header.method)


def _prompts(chosen: Method, assets: Assets) -> dict[str, str]:
    """Step -> digest of its files, for all steps of a method."""
    return {name: assets.template(name).digest for folder in chosen.folders for name in assets.names(folder)}


def _same_prompts(header: RunStarted, now_here: Mapping[str, str]) -> None:
    before = header.prompts or now_here
    changed = [name for name in sorted({*before, *now_here}) if before.get(name) != now_here.get(name)]
    if changed:
        more = f" and {len(changed) - 3} more" if len(changed) > 3 else ""
        raise ReplayMismatch(
            f"run {header.run_id}: the prompt or grammar files are no longer those of the run: "
            f"{', '.join(changed[:3])}{more} (`_shared.md` counts for each)"
        )


def _outcomes(store: Store, run_id: str) -> dict[str, str]:
    """Case id -> the address of its answer, or the kind of its failure, whichever came last."""
    found: dict[str, str] = {}
    for event in store.events(run_id):
        if isinstance(event, CaseFinished):
            found[event.case_id] = event.answer
        elif isinstance(event, CaseFailed):
            found[event.case_id] = event.kind
    return found


def _appender(store: Store, run_id: str, hear: Listener) -> Append:
    def append(events: Sequence[Event], texts: Sequence[str]) -> None:
        store.append(run_id, events, texts)
        by_address = {sha256(text): text for text in texts}
        for event in events:
            hear(event, by_address)

    return append


def _isolated(listener: Listener | None) -> Listener:
    """A listener that cannot end a run: its first fault is one line on standard error, later ones are silent."""
    faults: list[str] = []

    def hear(event: Event, texts: Mapping[str, str]) -> None:
        if listener is None:
            return
        try:
            listener(event, texts)
        except Exception as error:
            if not faults:
                # Standard error may be what broke. The error's own text might quote a case.
                with contextlib.suppress(OSError, ValueError):
                    print(f"ddx-local: the view failed ({type(error).__name__}); the run goes on", file=sys.stderr)
            faults.append(type(error).__name__)

    return hear
