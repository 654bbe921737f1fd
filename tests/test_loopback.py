import socket
from types import SimpleNamespace

import pytest

from ddx_local.loopback import host_class, leaves, packed

INET = SimpleNamespace(family=socket.AF_INET)
INET6 = SimpleNamespace(family=socket.AF_INET6)


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", "loopback"),
        ("127.255.255.254", "loopback"),
        (b"127.0.0.1", "loopback"),
        (bytearray(b"127.0.0.1"), "loopback"),
        ("127.1", "loopback"),
        ("2130706433", "loopback"),
        ("0x7f000001", "loopback"),
        ("::1", "loopback"),
        ("0:0:0:0:0:0:0:1", "loopback"),
        ("::1%lo", "loopback"),
        ("::ffff:127.0.0.1", "loopback"),
        ("localhost", "loopback"),
        ("LocalHost", "loopback"),
        (None, "any"),
        ("", "any"),
        ("0.0.0.0", "any"),
        ("::", "any"),
        ("::ffff:0.0.0.0", "any"),
        ("8.8.8.8", "public address"),
        ("2001:4860:4860::8888", "public address"),
        ("::ffff:8.8.8.8", "public address"),
        ("134744072", "public address"),
        ("10.1.2.3", "private address"),
        ("192.168.0.1", "private address"),
        ("192.0.2.1", "private address"),
        ("fd00::1", "private address"),
        ("128.0.0.1", "public address"),
        ("169.254.169.254", "link-local address"),
        ("fe80::1%eth0", "link-local address"),
        ("224.0.0.251", "multicast address"),
        ("ff02::1", "multicast address"),
        ("<broadcast>", "private address"),
        ("255.255.255.255", "private address"),
        ("example.com", "name"),
        ("localhost.example.com", "name"),
        ("a.localhost", "name"),
        ("127.0.0.1.example.com", "name"),
        ("127.0.0.1 example.com", "name"),
        ("::1.example.com", "name"),
        ("1.2.3.4.5", "name"),
        ("dead.beef", "name"),
        ("127.0.0.1\0.example.com", "name"),
        ("ⓛocalhost", "name"),
        (socket.gethostname(), "own name"),
        (socket.gethostname().upper(), "own name"),
    ],
)
def test_a_host_is_of_one_class(host: str | bytes | bytearray | None, expected: str) -> None:
    assert host_class(host) == expected


def test_the_old_form_of_an_ipv4_address_inside_ipv6_is_not_loopback() -> None:
    assert host_class("::127.0.0.1").endswith("address")


def test_an_ipv4_address_inside_ipv6_is_the_ipv4_address() -> None:
    assert packed("::ffff:10.0.0.7") == packed("10.0.0.7") == bytes([10, 0, 0, 7])


@pytest.mark.parametrize("event", ["socket.connect", "socket.sendto", "socket.sendmsg"])
@pytest.mark.parametrize(
    ("sock", "address", "expected"),
    [
        (INET, ("127.0.0.1", 80), None),
        (INET, ("0.0.0.0", 80), None),
        (INET, ("localhost", 80), None),
        (INET, (socket.gethostname(), 80), None),
        (INET, ("192.168.0.1", 80), "private address"),
        (INET, ("example.com", 80), "name"),
        (INET, ("127.0.0.1", 53), "name server"),
        (INET6, ("::1", 80, 0, 0), None),
        (INET6, ("::ffff:127.0.0.1", 80, 0, 0), None),
        (INET6, ("::ffff:192.0.2.1", 80, 0, 0), "private address"),
        (INET6, ("2001:4860:4860::8888", 80, 0, 0), "public address"),
        (SimpleNamespace(family=socket.AF_UNIX), "/run/x.sock", None),
        (SimpleNamespace(family=socket.AF_UNIX), b"\0abstract", None),
        (SimpleNamespace(family=socket.AF_NETLINK), (0, 0), None),
        (SimpleNamespace(family=socket.AF_PACKET), ("eth0", 0x0800), f"family {int(socket.AF_PACKET)}"),
        (SimpleNamespace(family=socket.AF_VSOCK), (2, 1024), f"family {int(socket.AF_VSOCK)}"),
    ],
)
def test_a_target_leaves_unless_it_is_this_machine(
    event: str, sock: object, address: object, expected: str | None
) -> None:
    assert leaves(event, (sock, address)) == expected


def test_a_message_on_a_connected_socket_was_looked_at_when_it_connected() -> None:
    assert leaves("socket.sendmsg", (INET, None)) is None


@pytest.mark.parametrize(
    ("event", "address", "listen", "expected"),
    [
        ("socket.bind", ("127.0.0.1", 8000), (), None),
        ("socket.bind", ("localhost", 8000), (), None),
        ("socket.bind", ("", 0), (), None),
        ("socket.bind", ("0.0.0.0", 0), (), None),
        ("socket.bind", ("0.0.0.0", 8000), (), "any"),
        ("socket.bind", ("192.168.0.1", 0), (), "private address"),
        ("socket.bind", (socket.gethostname(), 0), (), "own name"),
        ("socket.bind", ("192.168.0.1", 8000), ("192.168.0.1",), None),
        ("socket.bind", ("192.168.0.2", 8000), ("192.168.0.1",), "private address"),
        ("socket.bind", ("192.168.0.2", 8000), ("0.0.0.0",), None),
        ("socket.bind", ("", 8000), ("0.0.0.0",), None),
        ("socket.bind", ("", 8000), ("::",), "any"),
        ("socket.listen", ("0.0.0.0", 40001), (), "any"),
        ("socket.listen", ("0.0.0.0", 0), (), "any"),
        ("socket.listen", ("127.0.0.1", 40001), (), None),
        ("socket.listen", ("0.0.0.0", 40001), ("0.0.0.0",), None),
    ],
)
def test_only_loopback_is_listened_on_unless_an_address_is_named(
    event: str, address: tuple[str, int], listen: tuple[str, ...], expected: str | None
) -> None:
    allowed = frozenset(filter(None, map(packed, listen)))
    assert leaves(event, (INET, address), allowed) == expected


@pytest.mark.parametrize(
    ("event", "argument", "expected"),
    [
        ("socket.getaddrinfo", "example.com", "name"),
        ("socket.getaddrinfo", b"example.com", "name"),
        ("socket.getaddrinfo", "", "name"),
        ("socket.getaddrinfo", None, None),
        ("socket.getaddrinfo", "localhost", None),
        ("socket.getaddrinfo", "192.0.2.1", None),
        ("socket.getaddrinfo", socket.gethostname(), None),
        ("socket.gethostbyname", "example.com", "name"),
        ("socket.gethostbyaddr", "127.0.0.1", None),
        ("socket.gethostbyaddr", "192.0.2.1", "private address"),
        ("socket.gethostbyaddr", "example.com", "name"),
        ("socket.getnameinfo", ("127.0.0.1", 80), None),
        ("socket.getnameinfo", ("192.0.2.1", 80), "private address"),
    ],
)
def test_a_look_up_leaves_unless_it_is_answered_here(event: str, argument: object, expected: str | None) -> None:
    assert leaves(event, (argument,)) == expected
