"""A server as a process: the socket that it may listen on, uvicorn around the app, and how it ends."""

import asyncio
import contextlib
import ipaddress
import os
import signal
import socket
import stat
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ddx_local.errors import UsageError
from ddx_local.server.app import Server

BACKLOG = 256


@dataclass(frozen=True, slots=True)
class Place:
    """Where to listen: a numeric address and a port, or a Unix socket; TLS by a certificate and its key."""

    host: str = "127.0.0.1"
    port: int = 8000
    uds: Path | None = None
    certificate: Path | None = None
    private_key: Path | None = None

    @property
    def local(self) -> bool:
        """Whether only this machine reaches it."""
        return self.uds is not None or self.address.is_loopback

    @property
    def address(self) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
        try:
            return ipaddress.ip_address("127.0.0.1" if self.host == "localhost" else self.host.strip("[]"))
        except ValueError:
            raise UsageError(
                f"--host {self.host}: is no numeric address", "Give one such as 127.0.0.1 or 0.0.0.0."
            ) from None

    @property
    def tls(self) -> bool:
        return self.certificate is not None


def check(place: Place, *, has_keys: bool, key_path: Path) -> None:
    """Refuse what would let others in; raises `UsageError`."""
    if (place.certificate is None) != (place.private_key is None):
        raise UsageError("--ssl-certfile and --ssl-keyfile go together", "Give both, or none.")
    if place.uds is None and not place.local:
        missing = {"API key": "add a key with `ddx-local keys add`"} if not has_keys else {}
        missing |= {"TLS": "give --ssl-certfile and --ssl-keyfile"} if not place.tls else {}
        if missing:
            raise UsageError(
                f"--host {place.host}: other machines reach it, but there is no {' and no '.join(missing)}",
                f"To listen there, {' and '.join(missing.values())}; or listen on 127.0.0.1. Keys: {key_path}.",
            )
    if place.certificate is not None and place.private_key is not None:
        for flag, path in (("--ssl-certfile", place.certificate), ("--ssl-keyfile", place.private_key)):
            if not path.is_file():
                raise UsageError(f"{flag} {path}: no such file", "Give a PEM file.")
        if place.private_key.stat().st_mode & 0o077:
            raise UsageError(
                f"--ssl-keyfile {place.private_key}: others may read it", f"Run `chmod 600 {place.private_key}`."
            )


def listen(place: Place) -> socket.socket:
    """Open the socket; raises `UsageError` where it cannot be."""
    if place.uds is not None:
        return _unix(place.uds)
    family = socket.AF_INET6 if place.address.version == 6 else socket.AF_INET
    # asyncio turns Nagle's algorithm off only where the protocol is named; else a reply waits 40 ms for an acknowledgement.
    found = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((str(place.address), place.port))
        found.listen(BACKLOG)
    except OSError as error:
        found.close()
        raise UsageError(
            f"--host {place.host} --port {place.port}: cannot be listened on: {os.strerror(error.errno or 0)}",
            "Another program may have the port: give another --port, or 0 for any that is free.",
        ) from None
    return found


def _unix(path: Path) -> socket.socket:
    with contextlib.suppress(OSError):
        if stat.S_ISSOCK(path.stat().st_mode):
            _refuse_used(path)
            path.unlink()
    found = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        found.bind(str(path))
        found.listen(BACKLOG)
    except OSError as error:
        found.close()
        raise UsageError(
            f"--uds {path}: cannot be listened on: {error.strerror}", "Give a path in a folder of your own."
        ) from None
    finally:
        os.umask(before)
    return found


def _refuse_used(path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            return
    raise UsageError(f"--uds {path}: another server listens there", "Stop it, or give another path.")


async def serve(server: Server, place: Place, opened: socket.socket, begun: Callable[[], None] = lambda: None) -> None:
    """Answer on a socket until the process is told to end, or the engine is gone.

    Raises:
        DdxLocalError: The engine did not start, or is gone; see `exit_code_of`.
    """
    import uvicorn

    config = uvicorn.Config(
        server.gate,
        loop="asyncio",
        http="h11",
        ws="none",
        lifespan="on",
        log_config=None,
        log_level="critical",
        access_log=False,
        server_header=False,
        date_header=True,
        proxy_headers=False,
        timeout_keep_alive=20,
        timeout_graceful_shutdown=5,
        h11_max_incomplete_event_size=64 << 10,
        ssl_certfile=str(place.certificate) if place.certificate else None,
        ssl_keyfile=str(place.private_key) if place.private_key else None,
    )
    uvicorn_server = _server(config)

    async def watch() -> None:
        while not uvicorn_server.started:
            await asyncio.sleep(0.01)
        begun()
        await server.room.over.wait()
        uvicorn_server.should_exit = True

    watching = asyncio.ensure_future(watch())
    try:
        await uvicorn_server.serve(sockets=[opened])
    finally:
        if place.uds is not None:
            place.uds.unlink(missing_ok=True)
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
    if server.room.failure is not None:
        raise server.room.failure


def _server(config: Any) -> Any:
    """Uvicorn's server, which is told to end by SIGINT and SIGTERM and does not send itself the signal once more."""
    import uvicorn

    class Ending(uvicorn.Server):
        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            if threading.current_thread() is not threading.main_thread():
                yield
                return
            before = {name: signal.signal(name, self.handle_exit) for name in (signal.SIGINT, signal.SIGTERM)}
            try:
                yield
            finally:
                for name, handler in before.items():
                    signal.signal(name, handler)

    return Ending(config)


def exit_code_of(server: Server, error: Any) -> int:
    """75 when the engine died, so that systemd starts the server again; else the error's own."""
    return 75 if server.room.died_running else int(getattr(error, "exit_code", 1))
