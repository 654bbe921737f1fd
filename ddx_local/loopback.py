"""Which socket events leave this machine. Pure rules over the arguments of CPython's audit events; it changes nothing.

It knows addresses and socket families; not who asks, nor what happens to an event that leaves. It is loaded at the start
of every guarded Python child, so it imports nothing that costs.
"""

from __future__ import annotations

import _socket
import os

TYPE_CHECKING = False  # the same meaning as typing's, without its import
if TYPE_CHECKING:
    from typing import Any

_INET = (int(_socket.AF_INET), int(_socket.AF_INET6))
# Sockets that reach this machine's kernel and processes only.
_LOCAL = tuple(int(getattr(_socket, f)) for f in ("AF_UNIX", "AF_NETLINK", "AF_ALG") if hasattr(_socket, f))
_LOOPBACK_NAMES = ("localhost", "ip6-localhost", "ip6-loopback")
_HERE = ("loopback", "any", "own name")
_NAME_SERVER = 53


def leaves(event: str, args: tuple[Any, ...], listen: frozenset[bytes] = frozenset()) -> str | None:
    """The class of host that makes a socket event leave this machine, or None where it stays.

    Allowed are Unix and kernel sockets, loopback (IPv4-mapped IPv6 too), and the wildcards `0.0.0.0` and `::` as a
    target, which the kernel takes for loopback. Names: `localhost` and this host's own, which process groups look up;
    a numeric address is on no wire until someone connects. A wildcard may be bound with port 0, how libraries look for
    a free port, but not listened on.

    Args:
        event: `socket.connect`, `sendto`, `sendmsg`, `bind`, `getaddrinfo`, `gethostbyname`, `gethostbyaddr` or
            `getnameinfo` of CPython's audit events table, or `socket.listen` with the arguments of `bind`.
        args: The event's arguments.
        listen: Packed addresses besides loopback that may be bound and listened on; a wildcard stands for its family.

    Returns:
        `public address`, `private address`, `link-local address`, `multicast address`, `any` (a wildcard to listen on),
        `own name` (to bind: it may stand for an outer address), `name`, `name server` (port 53, on loopback as well: it
        would pass the question on) or `family N`.
    """
    if event in ("socket.getaddrinfo", "socket.gethostbyname"):
        return "name" if args[0] in ("", b"") or host_class(args[0]) == "name" else None
    if event in ("socket.gethostbyaddr", "socket.getnameinfo"):
        found = host_class(args[0] if event == "socket.gethostbyaddr" else args[0][0])
        return None if found in _HERE else found
    family, address = int(args[0].family), args[1]
    if address is None or family in _LOCAL:  # None: sendmsg on a socket whose connect was looked at
        return None
    if family not in _INET:
        return f"family {family}"
    host, port = (*address, None, None)[:2] if isinstance(address, tuple) else (address, None)
    found = host_class(host)
    if event in ("socket.bind", "socket.listen"):
        looks_for_port = event == "socket.bind" and found == "any" and port == 0
        wildcard = "::" if family == _INET[1] else "0.0.0.0"
        return None if found == "loopback" or looks_for_port or _listed(host or wildcard, listen) else found
    if found in _HERE:
        return "name server" if port == _NAME_SERVER else None
    return found


def host_class(host: str | bytes | bytearray | None) -> str:
    """What kind of place a host is: `loopback`, `any`, `own name`, or one of the classes that `leaves` gives."""
    text = _text(host)
    if not text:
        return "any"
    address = packed(text)
    if address is None:
        name = text.lower()
        return "loopback" if name in _LOOPBACK_NAMES else "own name" if name == os.uname().nodename.lower() else "name"
    if (len(address) == 4 and address[0] == 127) or address == b"\0" * 15 + b"\1":
        return "loopback"
    if not any(address):
        return "any"
    from ipaddress import ip_address

    outer = ip_address(address)
    if outer.is_multicast:
        return "multicast address"
    if outer.is_link_local:
        return "link-local address"
    return "public address" if outer.is_global else "private address"


def packed(text: str) -> bytes | None:
    """A numeric address as 4 or 16 bytes (IPv4-mapped IPv6 as 4), or None for a name.

    It takes what getaddrinfo takes for numeric: `127.1`, `0x7f000001` and `2130706433` as well, and a scope after `%`.
    """
    if text == "<broadcast>":
        return b"\xff" * 4
    try:
        # inet_aton reads no further than a space, hence the look at the characters.
        if set(text.lower()) <= set("0123456789abcdefx."):
            return _socket.inet_aton(text)
        six = _socket.inet_pton(_socket.AF_INET6, text.partition("%")[0])
    except (OSError, ValueError):
        return None
    return six[12:] if six[:12] == b"\0" * 10 + b"\xff\xff" else six


def _text(host: str | bytes | bytearray | None) -> str:
    return host.decode("ascii", "replace") if isinstance(host, bytes | bytearray) else host or ""


def _listed(host: str | bytes | bytearray, listen: frozenset[bytes]) -> bool:
    address = packed(_text(host))
    return address is not None and (address in listen or b"\0" * len(address) in listen)
