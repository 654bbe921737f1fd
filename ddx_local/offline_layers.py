"""Which layers of the offline guarantee hold in this process, and the setup command of the one for children.

It looks at the environment, the guard of offline.py, the `.pth` file and the interfaces that the kernel shows; it
changes nothing but, when told to install, the `.pth` file.
"""

import os
import socket
import struct
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

from ddx_local.errors import DdxLocalError
from ddx_local.offline import MARK, PTH_NAME, closed_changes, install_pth, installed, pth_text

_NATIVE = "native code (uvloop, ZeroMQ, gRPC, gloo, Rust) goes past it"
_INSTALL = "python -m ddx_local.offline install"
_SIOCGIFFLAGS, _IFF_UP = 0x8913, 0x1  # <linux/sockios.h>, <linux/if.h>


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer of the offline guarantee, as it stands now.

    Attributes:
        name: `environment`, `audit hook`, `children` or `kernel`.
        holds: Whether it is in force for this process.
        detail: What was found, one sentence.
        todo: What to do; empty where nothing is.
    """

    name: str
    holds: bool
    detail: str
    todo: str


def layers_now() -> tuple[Layer, ...]:
    """The four layers, the weakest first."""
    return (_environment(), _audit_hook(), _children(), _kernel())


def _environment() -> Layer:
    wanted = closed_changes()
    wrong = sorted(name for name, value in wanted.items() if os.environ.get(name) != value)
    return Layer(
        name="environment",
        holds=not wrong,
        detail=f"not as they should be: {', '.join(wrong)}" if wrong else f"all {len(wanted)} variables are in place",
        todo="Call go_offline() at the start of the program, and change these variables nowhere else." if wrong else "",
    )


def _audit_hook() -> Layer:
    guard = installed()
    if guard is None:
        return Layer(
            "audit hook", False, "not installed in this process", "Call go_offline() at the start of the program."
        )
    if guard.opened_for is not None:
        return Layer("audit hook", False, f"open for `{guard.opened_for}`", "Wait until that command has ended.")
    refused = sum(refusal.count for refusal in guard.refused)
    return Layer("audit hook", True, f"Python sockets are watched, {refused} attempts refused; {_NATIVE}", "")


def _children() -> Layer:
    path = _site_packages() / PTH_NAME
    try:
        same = path.read_text(encoding="utf-8") == pth_text()
    except OSError:
        same = False
    marked = os.environ.get(MARK) == "1"
    if same and marked:
        return Layer(
            "children", True, "every Python that this environment starts is guarded; other programs are not", ""
        )
    detail = f"{MARK} is not 1" if same else f"{PTH_NAME} of this version is not in this environment"
    todo = "Call go_offline() at the start of the program." if same else f"Run `{_INSTALL}`, which scripts/setup does."
    return Layer("children", False, detail, todo)


def _kernel() -> Layer:
    up = _interfaces_up()
    outer = sorted(up - {"lo"})
    if outer:
        return Layer(
            name="kernel",
            holds=False,
            detail=f"{', '.join(outer)} is up{_where()}, so a native program could use it",
            todo="Run in a network namespace (`unshare -rn`), in a container with `--network none`, or as the systemd unit "
            "(its IPAddressDeny cannot be seen from inside: `systemctl show -p IPAddressDeny UNIT`).",
        )
    if "lo" not in up:
        return Layer("kernel", True, f"no interface is up{_where()}, not even loopback", "Run `ip link set lo up`.")
    return Layer("kernel", True, f"loopback is the only interface that is up{_where()}", "")


def _interfaces_up() -> set[str]:
    """Asked of the kernel for this process's namespace: /sys/class/net may show that of whoever mounted it."""
    import fcntl

    up = set()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, name in socket.if_nameindex():
            answer = fcntl.ioctl(probe, _SIOCGIFFLAGS, struct.pack("16sH14x", name.encode(), 0))
            if struct.unpack("16xH14x", answer)[0] & _IFF_UP:
                up.add(name)
    return up


def _where() -> str:
    if Path("/run/.containerenv").exists() or Path("/.dockerenv").exists() or "container" in os.environ:
        return " in this container"
    return " under systemd" if "INVOCATION_ID" in os.environ else ""


def _site_packages() -> Path:
    return Path(sysconfig.get_path("purelib"))


def install_here(argv: list[str]) -> int:
    """`python -m ddx_local.offline install`: the `.pth` file into this environment, and the proof that it works.

    Returns:
        0, 2 for a wrong call, 1 where a child of this environment does not start guarded.
    """
    if argv != ["install"]:
        print(f"usage: {_INSTALL}", file=sys.stderr)
        return 2
    try:
        path = install_pth(_site_packages())
    except DdxLocalError as error:
        print(f"{error.message}. {error.hint}", file=sys.stderr)
        return error.exit_code
    proof = "import sys; m = sys.modules.get('ddx_local.offline'); sys.exit(not (m and m.installed()))"
    # From `/`, so that it is the installed package that answers and not the folder that setup was called in.
    child = subprocess.run([sys.executable, "-c", proof], env=os.environ | {MARK: "1"}, cwd="/", check=False)
    if child.returncode:
        print(
            f"{path} is there, but no child starts guarded: is ddx-local installed in it (`pip install`)?",
            file=sys.stderr,
        )
        return 1
    print(f"{path.name}: Python children of this environment start guarded when {MARK}=1")
    return 0
