"""No socket but loopback, in this process and its Python children; telemetry off.

Four layers, and `layers()` says which of them hold: the libraries' own switches, set before they are imported; an audit
hook that refuses and counts; a `.pth` file that starts the hook in Python children; and the kernel (a network namespace
or a container without network), which this file can only look at. Native code opens sockets that no audit hook sees
(uvloop, ZeroMQ, gRPC, gloo, Rust clients): only the kernel's layer covers it.

It knows the hook and the environment. Which socket events leave the machine is loopback.py's, which variables there
are offline_switches.py's; nothing here knows models, engines or commands. It is imported at the start of every guarded
Python child, so it costs under 10 ms: no typing, dataclasses or socket at import.
"""

from __future__ import annotations

import functools
import os
import sys
from _thread import allocate_lock
from collections import namedtuple
from contextlib import contextmanager
from types import MappingProxyType

from ddx_local.loopback import leaves, packed
from ddx_local.offline_switches import ENFORCED, QUIET, UNSET

TYPE_CHECKING = False  # the same meaning as typing's, without its import
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path
    from typing import Any

    from ddx_local.errors import OfflineViolation
    from ddx_local.offline_layers import Layer

MARK = "DDX_LOCAL_OFFLINE"
"""`1` tells a Python child of this environment to start guarded; anything else leaves it alone."""

PTH_NAME = "ddx_local_offline.pth"
"""Sorts after `_ddx_local.pth`, the file of an editable install, which has to be read first."""

OPENERS = ("models pull", "bundle create")
"""The two commands that may open the network."""

SWITCHES: Mapping[str, str] = MappingProxyType(ENFORCED | QUIET)
"""Environment variables that keep the libraries offline (a user's own value is replaced) and quiet (it is kept)."""

_READ_AT_IMPORT = {
    "huggingface_hub": ("HF_HUB_OFFLINE",),
    "transformers": ("HF_HUB_OFFLINE",),
    "vllm": ("HF_HUB_OFFLINE", "VLLM_NO_USAGE_STATS"),
}

_VERBS = {
    "socket.connect": "connect to",
    "socket.sendto": "send to",
    "socket.sendmsg": "send to",
    "socket.bind": "bind to",
    "socket.listen": "listen on",
    "socket.getaddrinfo": "look up",
    "socket.gethostbyname": "look up",
    "socket.gethostbyaddr": "look up",
    "socket.getnameinfo": "look up",
}

_TRANSPORTS = frozenset(
    ("httpcore", "httpcore2", "httpx", "httpx2", "requests", "urllib3", "aiohttp", "aiohappyeyeballs", "anyio", "dns")
)


class Refusal(namedtuple("Refusal", ("event", "host_class", "by", "count"))):
    """Attempts of one kind that were refused. It holds no address, name or text: those could carry what a case says.

    Attributes:
        event: The audit event, such as `socket.connect`.
        host_class: See `loopback.leaves`.
        by: The module that asked; the standard library and HTTP clients are looked through.
        count: How often.
    """

    __slots__ = ()
    event: str
    host_class: str
    by: str
    count: int


def go_offline(*, listen: Iterable[str] = ()) -> Guard:
    """Close the network for this process and its Python children. Call it before any library is imported.

    The first call sets `SWITCHES`, takes `offline_switches.UNSET` away and installs the audit hook, which stays until
    the process ends; later calls return the same guard.

    Args:
        listen: Numeric addresses besides loopback that may be bound and listened on, for a server that was asked to
            (`0.0.0.0` stands for every IPv4 address). It opens nothing outward. Later calls add to it.

    Raises:
        OfflineViolation: A library that reads its switches at import was imported without them.
        UsageError: An item of `listen` is no numeric address.
    """
    guard = _installed()
    guard.allow_listening(listen)
    return guard


def installed() -> Guard | None:
    """This process's guard, or None before the first `go_offline`."""
    return _installed() if _installed.cache_info().currsize else None


class Guard:
    """The process's one guard: what it refused, and the two ways of opening it. Made by `go_offline` alone."""

    def __init__(self, before: Mapping[str, str]) -> None:
        self._before = before
        self._opened_for: str | None = None
        self._listen: frozenset[bytes] = frozenset()
        self._counts: dict[tuple[str, str, str], int] = {}
        self._looks_first = False
        self._renew_lock()
        # A fork in the middle of a count would leave the child's lock taken for ever.
        os.register_at_fork(after_in_child=self._renew_lock)

    def _renew_lock(self) -> None:
        self._lock = allocate_lock()

    @property
    def refused(self) -> tuple[Refusal, ...]:
        """What this process was refused so far, most frequent first. Children count for themselves."""
        with self._lock:
            counts = dict(self._counts)
        return tuple(sorted((Refusal(*key, n) for key, n in counts.items()), key=lambda r: (-r.count, r)))

    @property
    def opened_for(self) -> str | None:
        """The command that has the network open now, or None."""
        return self._opened_for

    def allow_listening(self, addresses: Iterable[str]) -> None:
        """See `go_offline`."""
        for address in addresses:
            if (numeric := packed(address)) is None:
                from ddx_local.errors import UsageError

                raise UsageError(f"{address!r} is no address to listen on", "Give a numeric one, such as 127.0.0.1.")
            self._listen |= {numeric}

    @contextmanager
    def open_network(self, opener: str, say: Callable[[str], None] | None = None) -> Iterator[None]:
        """Open the network for a block, in the whole process, and say so at both ends.

        Inside, the environment is as it was before `go_offline`, proxies included. A library that is imported inside
        keeps the switches that it read there; the hook closes on it all the same.

        Args:
            opener: One of `OPENERS`.
            say: Takes the two lines; stderr by default.

        Raises:
            OfflineViolation: Another command asks, or the network is open already.
        """
        if opener not in OPENERS:
            raise _violation(f"{opener!r} asked for the network, which only {' and '.join(OPENERS)} may open")
        if self._opened_for is not None:
            raise _violation(f"{opener!r} asked for the network, which {self._opened_for!r} has open")
        say = say or _to_stderr
        say(f"network: open for `{opener}`")
        _apply(self._open_changes())
        self._opened_for = opener
        try:
            yield
        finally:
            self._opened_for = None
            _apply(closed_changes())
            say(f"network: closed again after `{opener}`")

    def child_env(self, *, open: bool = False) -> dict[str, str]:  # noqa: A002
        """The environment for a child process: guarded, or, inside `open_network`, an open one (for pip).

        Raises:
            OfflineViolation: An open one is asked for while the network is closed.
        """
        if open and self._opened_for is None:
            raise _violation("a child process with network was asked for outside of `open_network`")
        changes = self._open_changes() if open else closed_changes()
        merged: dict[str, str | None] = {**os.environ, **changes}
        return {name: value for name, value in merged.items() if value is not None}

    def _open_changes(self) -> dict[str, str | None]:
        # Where this process is itself a guarded child, its parent's switches are what was there before: lifted too.
        lifted = {n: None if self._before.get(n) == value else self._before.get(n) for n, value in ENFORCED.items()}
        return {MARK: None, **lifted, **{name: self._before.get(name) for name in UNSET}}

    def hook(self, event: str, args: tuple[Any, ...]) -> None:
        """The audit hook (PEP 578). Every event of the process comes by, so the way out is the first line."""
        if event[:7] != "socket.":
            return
        if event in _VERBS:
            self.check(event, args)
        elif event == "socket.__new__":
            self.look_first()

    def check(self, event: str, args: tuple[Any, ...]) -> None:
        """Count and raise if a socket event leaves this machine while the network is closed.

        Raises:
            OfflineViolation: No OSError, so that what shrugs off a network fault does not shrug off this.
        """
        if self._opened_for is not None or (host_class := leaves(event, args, self._listen)) is None:
            return
        key = (event, host_class, _who_asked(sys._getframe(1)))
        with self._lock:
            self._counts[key] = self._counts.get(key, 0) + 1
        raise _violation(f"the network is closed: {key[2]} tried to {_VERBS[event]} a host of the class `{host_class}`")

    def look_first(self) -> None:
        """Check before the methods of `socket.socket` that resolve a name in C, on the wire, before their audit event.

        It also gives `listen` the event that CPython lacks. Called at the process's first socket.
        """
        module = sys.modules.get("socket")
        if module is None or self._looks_first:
            return
        self._looks_first = True
        cls = module.socket
        for name, event, place in (
            ("connect", "socket.connect", 0),
            ("connect_ex", "socket.connect", 0),
            ("bind", "socket.bind", 0),
            ("sendto", "socket.sendto", -1),
            ("sendmsg", "socket.sendmsg", 3),
        ):
            setattr(cls, name, _looking_first(self.check, event, getattr(cls, name), place))
        cls.listen = _looking_at_own_address(self.check, cls.listen)


def layers() -> tuple[Layer, ...]:
    """Which layers hold now, in this process: environment, audit hook, children, kernel."""
    from ddx_local.offline_layers import layers_now

    return layers_now()


def pth_text() -> str:
    """The text of the `.pth` file: one line that does nothing unless `DDX_LOCAL_OFFLINE=1`.

    With it, a Python that cannot be guarded does not start: a line on stderr and exit code 9. (site prints and swallows
    the exceptions of a `.pth` line, hence `os._exit`.)
    """
    text = f"ddx-local: {MARK}=1, but the network guard does not start: %s: %s. Run scripts/setup, or unset {MARK}.\n"
    code = (
        "try:\n import ddx_local.offline as o; o.go_offline()\n"
        f"except BaseException as e:\n os.write(2, ({text!r} % (type(e).__name__, e)).encode()); os._exit(9)"
    )
    return f"import os; os.environ.get({MARK!r}) == '1' and exec({code!r})\n"


def install_pth(site_packages: Path) -> Path:
    """Write the `.pth` file into an environment, whole or not at all; a second time changes nothing.

    Args:
        site_packages: The environment's folder of pure Python packages.

    Returns:
        The file.

    Raises:
        UsageError: No such folder, or it cannot be written.
    """
    path = site_packages / PTH_NAME
    try:
        if not path.is_file() or path.read_text(encoding="utf-8") != pth_text():
            draft = path.with_suffix(".tmp")
            draft.write_text(pth_text(), encoding="utf-8")
            draft.replace(path)
    except OSError as error:
        from ddx_local.errors import UsageError

        raise UsageError(f"{path} cannot be written: {error.strerror}", "Name a site-packages folder.") from error
    return path


def closed_changes() -> dict[str, str | None]:
    """What the closed guard makes of the environment: name -> value, None for a variable that must not be there."""
    return {MARK: "1", **ENFORCED, **dict.fromkeys(UNSET)}


@functools.cache
def _installed() -> Guard:
    _refuse_late_call()
    guard = Guard({name: os.environ[name] for name in (*ENFORCED, *UNSET) if name in os.environ})
    _apply(closed_changes())
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    sys.addaudithook(guard.hook)
    guard.look_first()
    return guard


def _refuse_late_call() -> None:
    constants = sys.modules.get("huggingface_hub.constants")
    read = constants is None or constants.HF_HUB_OFFLINE  # what it made of the switch when it was imported
    for library, names in _READ_AT_IMPORT.items():
        missing = [name for name in names if os.environ.get(name, "").upper() not in ("1", "TRUE", "YES", "ON")]
        if library in sys.modules and (missing or not read):
            raise _violation(
                f"{library} was imported before the network was closed, without {' and '.join(missing or names)}",
                "Call `go_offline()` before the first import of vllm, transformers or huggingface_hub.",
            )


def _apply(changes: Mapping[str, str | None]) -> None:
    for name, value in changes.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def _looking_first(
    check: Callable[..., None], event: str, method: Callable[..., Any], place: int
) -> Callable[..., Any]:
    @functools.wraps(method)
    def looked(sock: Any, *args: Any) -> Any:
        address = args[place] if -len(args) <= place < len(args) else None
        if isinstance(address, tuple):
            check(event, (sock, address))
        return method(sock, *args)

    return looked


def _looking_at_own_address(check: Callable[..., None], listen: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(listen)
    def looked(sock: Any, *backlog: Any) -> None:
        check("socket.listen", (sock, sock.getsockname()))
        listen(sock, *backlog)

    return looked


def _who_asked(frame: Any) -> str:
    while frame is not None:
        name = str(frame.f_globals.get("__name__", "?"))
        root = name.partition(".")[0]
        if name != __name__ and root not in _TRANSPORTS and root not in sys.stdlib_module_names:
            return name
        frame = frame.f_back
    return "a thread of the standard library"


def _violation(message: str, hint: str | None = None) -> OfflineViolation:
    from ddx_local.errors import OfflineViolation

    return OfflineViolation(message, hint)


def _to_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    from ddx_local.offline_layers import install_here

    sys.exit(install_here(sys.argv[1:]))
