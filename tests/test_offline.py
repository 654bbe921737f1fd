"""The hook: what it refuses, what it lets by, and how it is opened."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ddx_local.offline import OPENERS
from tests.guarded import GUARDED, NOBODY, PRELUDE, REFUSED, answer, clean_env, run


@pytest.mark.parametrize(
    ("attempt", "event", "host_class"),
    [
        ("socket.create_connection((HOST, 80), 2)", "socket.connect", "private address"),
        ("tcp().connect((HOST, 80))", "socket.connect", "private address"),
        ("tcp().connect_ex((HOST, 80))", "socket.connect", "private address"),
        ("_socket.socket().connect((HOST, 80))", "socket.connect", "private address"),
        ("tcp().connect(('8.8.8.8', 53))", "socket.connect", "public address"),
        ("tcp().connect(('example.com', 80))", "socket.connect", "name"),
        ("tcp().connect(('127.0.0.1', 53))", "socket.connect", "name server"),
        ("socket.socket(socket.AF_INET6).connect((HOST6, 80))", "socket.connect", "private address"),
        ("socket.socket(socket.AF_INET6).connect(('::ffff:' + HOST, 80))", "socket.connect", "private address"),
        ("udp().sendto(b'x', (HOST, 9))", "socket.sendto", "private address"),
        ("udp().sendto(b'x', 0, (HOST, 9))", "socket.sendto", "private address"),
        ("udp().sendto(b'x', ('224.0.0.251', 5353))", "socket.sendto", "multicast address"),
        ("udp().sendmsg([b'x'], [], 0, (HOST, 9))", "socket.sendmsg", "private address"),
        ("socket.getaddrinfo('example.com', 443)", "socket.getaddrinfo", "name"),
        ("socket.gethostbyname('example.com')", "socket.gethostbyname", "name"),
        ("socket.gethostbyname_ex('example.com')", "socket.gethostbyname", "name"),
        ("socket.gethostbyaddr(HOST)", "socket.gethostbyaddr", "private address"),
        ("socket.getfqdn(HOST)", "socket.gethostbyaddr", "private address"),
        ("socket.getnameinfo((HOST, 80), 0)", "socket.getnameinfo", "private address"),
        ("tcp().bind(('0.0.0.0', 8123))", "socket.bind", "any"),
        ("socket.create_server(('', 0))", "socket.listen", "any"),
        ("http.client.HTTPConnection(HOST, timeout=2).request('GET', '/')", "socket.connect", "private address"),
        ("urllib.request.urlopen('https://example.com/', timeout=2)", "socket.getaddrinfo", "name"),
        ("asyncio.run(asyncio.open_connection(HOST, 80))", "socket.connect", "private address"),
        ("asyncio.run(asyncio.open_connection('example.com', 80))", "socket.getaddrinfo", "name"),
        ("importlib.import_module('httpx').get('https://example.com/', timeout=2)", "socket.getaddrinfo", "name"),
        ("importlib.import_module('requests').get('https://example.com/', timeout=2)", "socket.getaddrinfo", "name"),
    ],
)
def test_what_leaves_this_machine_is_refused_and_counted_once(attempt: str, event: str, host_class: str) -> None:
    message, refused = answer(GUARDED + REFUSED + f"refused(lambda: {attempt})")
    assert message is not None, "it was let through"
    ((got_event, got_class, by, count),) = refused
    assert (got_event, got_class, count) == (event, host_class, 1)
    assert by in ("__main__", "a thread of the standard library")


def test_attempts_in_many_threads_are_all_refused_and_all_counted() -> None:
    code = f"""
import threading
def many():
    for _ in range(50):
        try:
            socket.socket().connect(("{NOBODY}", 80))
        except OfflineViolation:
            pass
threads = [threading.Thread(target=many) for _ in range(8)]
[t.start() for t in threads], [t.join() for t in threads]
print(json.dumps(guard.refused))
"""
    assert answer(GUARDED + code) == [["socket.connect", "private address", "__main__", 400]]


def test_a_library_that_shrugs_off_the_refusal_is_named_in_the_count(tmp_path: Path) -> None:
    (tmp_path / "telemetry.py").write_text(
        "import urllib.request\ndef send():\n"
        "    try:\n        urllib.request.urlopen('https://stats.example.com/?text=gout')\n"
        "    except Exception:\n        pass\n"
    )
    code = (
        f"sys.path.insert(0, {str(tmp_path)!r})\nimport telemetry; telemetry.send(); print(json.dumps(guard.refused))"
    )
    assert answer(GUARDED + code) == [["socket.getaddrinfo", "name", "telemetry", 1]]


def test_neither_the_error_nor_the_count_repeats_the_host() -> None:
    seen = answer(GUARDED + REFUSED + "refused(lambda: socket.getaddrinfo('sudden-gout.example.com', 443))")
    assert "gout" not in json.dumps(seen)
    assert "look up" in seen[0]


def test_a_forked_child_is_guarded_too() -> None:
    code = f"""
pid = os.fork()
if pid == 0:
    try:
        socket.socket().connect(("{NOBODY}", 80))
    except OfflineViolation:
        os._exit(len(guard.refused))
    os._exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""
    assert answer(GUARDED + code) == 1


@pytest.mark.parametrize(
    ("family", "bound", "target"),
    [
        ("AF_INET", "127.0.0.1", "127.0.0.1"),
        ("AF_INET", "127.0.0.1", "localhost"),
        ("AF_INET", "127.0.0.1", "0.0.0.0"),
        ("AF_INET6", "::1", "::1"),
        ("AF_INET6", "::ffff:127.0.0.1", "::ffff:127.0.0.1"),
    ],
)
def test_loopback_tcp_works_in_every_spelling(family: str, bound: str, target: str) -> None:
    code = f"""
server = socket.socket(socket.{family}); server.bind(("{bound}", 0)); server.listen(1)
client = socket.socket(socket.{family}); client.connect(("{target}", server.getsockname()[1]))
client.sendall(b"hello")
print(json.dumps([server.accept()[0].recv(5).decode(), guard.refused]))
"""
    assert answer(GUARDED + code) == ["hello", []]


def test_unix_sockets_asyncio_servers_and_loopback_udp_work(tmp_path: Path) -> None:
    code = f"""
import asyncio
async def echo(reader, writer):
    writer.write(await reader.readline()); await writer.drain(); writer.close()
async def main():
    path = {str(tmp_path / "s")!r}
    tcp = await asyncio.start_server(echo, "localhost", 0)
    unix = await asyncio.start_unix_server(echo, path)
    said = []
    for reader, writer in (
        await asyncio.open_connection(*tcp.sockets[0].getsockname()[:2]), await asyncio.open_unix_connection(path)
    ):
        writer.write(b"hi\\n")
        said.append((await reader.readline()).decode())
        writer.close()
    return said
said = asyncio.run(main())
a = socket.socket(type=socket.SOCK_DGRAM); a.bind(("127.0.0.1", 0))
socket.socket(type=socket.SOCK_DGRAM).sendto(b"udp\\n", a.getsockname())
said.append(a.recv(9).decode())
print(json.dumps([said, guard.refused]))
"""
    assert answer(GUARDED + code) == [["hi\n", "hi\n", "udp\n"], []]


def test_a_free_port_is_looked_for_and_the_own_name_looked_up_without_a_refusal() -> None:
    code = """
s = socket.socket(); s.bind(("", 0)); s.close()
try:
    socket.getaddrinfo(socket.gethostname(), 0)
except socket.gaierror:
    pass  # this machine does not know its name; that was not the guard
print(json.dumps(guard.refused))
"""
    assert answer(GUARDED + code) == []


def test_a_server_may_listen_on_an_address_that_was_named_and_still_reaches_nothing() -> None:
    code = """
go_offline(listen=("0.0.0.0",))
server = socket.create_server(("0.0.0.0", 0)); server.close()
refused(lambda: tcp().connect((HOST, 80)))
"""
    assert answer(GUARDED + REFUSED + code)[1] == [["socket.connect", "private address", "__main__", 1]]


def test_an_address_to_listen_on_has_to_be_numeric() -> None:
    done = run(PRELUDE + "go_offline(listen=('ward-3.example.com',))")
    assert "UsageError: 'ward-3.example.com' is no address to listen on" in done.stderr


# No query reaches a name server: the resolver's own datagrams are caught, below every Python layer.

_TRAP = """
import socket, subprocess, sys, threading
trap = socket.socket(type=socket.SOCK_DGRAM); trap.bind(("127.0.0.1", 53)); questions = []
def serve():
    while True:
        question, who = trap.recvfrom(512)
        questions.append(question)
        trap.sendto(question[:2] + b"\\x81\\x83" + question[4:], who)  # no such name
threading.Thread(target=serve, daemon=True).start()
subprocess.run([sys.executable, "-c", QUESTIONS], check=True)
print(len(questions))
"""
_QUESTIONS = """
import contextlib, socket, urllib.request
udp = socket.socket(type=socket.SOCK_DGRAM)
for call in (
    lambda: socket.getaddrinfo("a.example.com", 80),
    lambda: socket.gethostbyname("b.example.com"),
    lambda: socket.getfqdn("192.0.2.7"),
    lambda: socket.socket().connect(("c.example.com", 80)),
    lambda: socket.socket().connect_ex(("d.example.com", 80)),
    lambda: socket.socket().bind(("e.example.com", 0)),
    lambda: udp.sendto(b"x", ("f.example.com", 9)),
    lambda: udp.sendmsg([b"x"], [], 0, ("g.example.com", 9)),
    lambda: urllib.request.urlopen("http://h.example.com/"),
    lambda: socket.getaddrinfo("", 80),
):
    with contextlib.suppress(Exception):
        call()
"""


@pytest.mark.usefixtures("netns")
@pytest.mark.parametrize(("guarded", "asked"), [(False, True), (True, False)])
def test_no_question_reaches_a_name_server(guarded: bool, asked: bool, tmp_path: Path) -> None:
    (tmp_path / "resolv.conf").write_text("nameserver 127.0.0.1\noptions timeout:1 attempts:1\n")
    over = f'ip link set lo up && mount --bind {tmp_path}/resolv.conf /etc/resolv.conf && exec "$@"'
    prefix = ("unshare", "-rnm", "sh", "-c", over, "sh")
    if subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode:
        pytest.skip("a mount over /etc/resolv.conf is not permitted here")
    before = "from ddx_local.offline import go_offline; go_offline()" if guarded else ""
    assert (answer(f"QUESTIONS = {before + _QUESTIONS!r}\n" + _TRAP, prefix=prefix) > 0) == asked


# Opening the network.

_PASSES = f"""
def passes():
    try:
        sys.audit("socket.connect", socket.socket(), ("{NOBODY}", 80))  # as a connect would, without one
    except OfflineViolation:
        return False
    return True
"""


def test_the_network_is_open_inside_the_block_and_closed_after_it_and_both_are_said() -> None:
    code = """
said = []
seen = [passes()]
with guard.open_network("models pull", said.append):
    seen += [passes(), guard.opened_for]
seen += [passes(), guard.opened_for]
print(json.dumps([seen, said]))
"""
    seen, said = answer(GUARDED + _PASSES + code)
    assert seen == [False, True, "models pull", False, None]
    assert said == ["network: open for `models pull`", "network: closed again after `models pull`"]


def test_an_exception_inside_the_block_closes_the_network_as_well() -> None:
    code = """
try:
    with guard.open_network("bundle create"):
        raise KeyboardInterrupt
except KeyboardInterrupt:
    print(json.dumps([passes(), os.environ["HF_HUB_OFFLINE"]]))
"""
    done = run(GUARDED + _PASSES + code)
    assert json.loads(done.stdout) == [False, "1"]
    assert done.stderr.splitlines() == [
        "network: open for `bundle create`",
        "network: closed again after `bundle create`",
    ]


@pytest.mark.parametrize("openers", [["diagnose"], ["models pull", "bundle create"]])
def test_nobody_else_and_nobody_twice_opens_the_network(openers: list[str]) -> None:
    done = run(
        GUARDED
        + "import contextlib\nwith contextlib.ExitStack() as stack:\n"
        + "".join(f"    stack.enter_context(guard.open_network({opener!r}))\n" for opener in openers)
    )
    assert re.search(r"OfflineViolation: '[a-z ]+' asked for the network, which", done.stderr)
    assert OPENERS == ("models pull", "bundle create")


def test_the_users_own_environment_is_back_inside_the_block_and_gone_after_it() -> None:
    code = """
names = ("https_proxy", "NO_PROXY", "HF_HUB_OFFLINE", "HF_HUB_DISABLE_TELEMETRY", "DDX_LOCAL_OFFLINE")
look = lambda env: [env.get(name) for name in names]
seen = [look(os.environ)]
with guard.open_network("models pull", lambda line: None):
    seen += [look(os.environ), look(guard.child_env(open=True)), look(guard.child_env())]
seen += [look(os.environ)]
print(json.dumps(seen))
"""
    proxy = "http://127.0.0.1:3128"
    closed, opened = [None, "*", "1", "1", "1"], [proxy, "intranet", None, None, None]
    mine = clean_env(https_proxy=proxy, NO_PROXY="intranet", HF_HUB_OFFLINE="1")
    assert answer(GUARDED + code, env=mine) == [closed, opened, opened, closed, closed]


def test_an_open_child_is_refused_while_the_network_is_closed() -> None:
    assert "OfflineViolation: a child process with network" in run(GUARDED + "guard.child_env(open=True)").stderr


def test_importing_the_guard_costs_under_ten_milliseconds_and_only_the_standard_library(tmp_path: Path) -> None:
    env = clean_env(PYTHONPYCACHEPREFIX=str(tmp_path))
    heavy = ("typing", "dataclasses", "socket", "platformdirs")
    code = f"import ddx_local.offline, sys; print([m for m in {heavy!r} if m in sys.modules])"

    def milliseconds() -> float:
        done = subprocess.run(
            [sys.executable, "-X", "importtime", "-c", code], env=env, capture_output=True, text=True, check=True
        )
        assert done.stdout == "[]\n"
        (row,) = (row for row in done.stderr.splitlines() if row.endswith(" ddx_local.offline"))
        return int(row.split("|")[1]) / 1000

    milliseconds()  # compiles
    assert min(milliseconds() for _ in range(5)) < 10


def test_this_very_session_has_the_guard() -> None:
    import socket

    from ddx_local.errors import OfflineViolation

    with socket.socket() as sock, pytest.raises(OfflineViolation):
        sock.connect((NOBODY, 80))
