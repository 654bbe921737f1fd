"""Behind `ddx-local serve`: checks what is cheap, opens the socket, then the engine, and says where to look."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from ddx_local import retention
from ddx_local.audit import Audit, beside
from ddx_local.cli.failure import say
from ddx_local.errors import DdxLocalError, UsageError
from ddx_local.server import keys as keys_
from ddx_local.server.app import Server, Setup
from ddx_local.server.engine_room import Running
from ddx_local.server.limits import Bounds
from ddx_local.server.opening import opener
from ddx_local.server.serving import Place, check, exit_code_of, listen, serve
from ddx_local.settings import Settings, load
from ddx_local.store import Store


@dataclass(frozen=True, slots=True)
class Wished:
    """The command line of `serve`; `flags` holds settings by name, `keeps` whether runs are kept on disk."""

    host: str
    port: int
    uds: Path | None
    certificate: Path | None
    private_key: Path | None
    hosts: tuple[str, ...]
    keys: Path | None
    demo: bool
    demo_delay: float
    keeps: bool
    per_minute: int
    at_once: int
    runs_at_once: int
    body_bytes: int
    flags: Mapping[str, Any]


def run(wished: Wished) -> None:
    """Serve until told to end; exits with 75 when the engine died."""
    from ddx_local import offline

    settings = load(**wished.flags)
    place = Place(wished.host, wished.port, wished.uds, wished.certificate, wished.private_key)
    offline.go_offline(listen=() if place.local else (str(place.address),))
    key_path = wished.keys or keys_.default_path()
    # The demonstration shows made-up answers to whoever is at this machine.
    keys = keys_.Keys(None if wished.demo and place.local and wished.keys is None else key_path)
    if wished.keys is not None and not keys.needed:
        raise UsageError(
            f"--keys {wished.keys}: holds no key", "Add one: `ddx-local keys add --name NAME --keys FILE`."
        )
    check(place, has_keys=keys.needed, key_path=key_path)
    open_engine = opener(settings, demo=wished.demo, delay=wished.demo_delay, say=_say, keeps=wished.keeps)
    opened = listen(place)
    store = Store(settings.store_path if wished.keeps else None)
    retention.apply(store, settings.retention_days)
    server = Server(_setup(wished, settings, place, keys, store, open_engine))
    port = opened.getsockname()[1] if place.uds is None else 0
    try:
        asyncio.run(serve(server, place, opened, lambda: _greet(wished, place, port, has_keys=keys.needed)))
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    except DdxLocalError as error:
        say(error.message, error.hint)
        raise typer.Exit(exit_code_of(server, error)) from None
    finally:
        store.close()
        opened.close()


def _setup(
    wished: Wished,
    settings: Settings,
    place: Place,
    keys: keys_.Keys,
    store: Store,
    open_engine: Callable[[], Awaitable[Running]],
) -> Setup:
    named = {name.lower() for name in wished.hosts}
    own = {place.host.lower(), f"[{place.host.lower()}]"} if place.uds is None else set()
    return Setup(
        settings=settings,
        open_engine=open_engine,
        store=store,
        audit=Audit(beside(store.path)),
        keys=keys,
        hosts=frozenset({"localhost", "127.0.0.1", "[::1]", *named, *own}),
        bounds=Bounds(
            per_minute=wished.per_minute,
            at_once=wished.at_once,
            at_once_per_key=wished.at_once,
            runs_at_once=wished.runs_at_once,
            body_bytes=wished.body_bytes,
        ),
        demo=wished.demo,
        secure=place.tls,
        report=_say,
    )


def _greet(wished: Wished, place: Place, port: int, *, has_keys: bool) -> None:
    if place.uds is not None:
        where = f"the Unix socket {place.uds}"
    else:
        name = f"[{place.address}]" if place.address.version == 6 else str(place.address)
        where = f"{'https' if place.tls else 'http'}://{name}:{port}"
    _say(f"serving on {where} (panel: /, OpenAI clients: /v1)")
    if not has_keys:
        _say("no API key is needed: it answers this machine alone")
    if wished.demo:
        _say("demonstration: the answers are made up, by no model")


def _say(line: str) -> None:
    print(f"ddx-local: {line}", file=sys.stderr, flush=True)
