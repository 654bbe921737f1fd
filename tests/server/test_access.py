"""Who may come in: every route wants a key, scopes, foreign hosts and pages, sessions of the panel, the key file."""

import os
from pathlib import Path

import pytest

from ddx_local.errors import UsageError
from ddx_local.server import keys as keys_
from ddx_local.server.serving import Place, check, listen
from tests.server.conftest import CASE, Served, serving


def _filled(path: str) -> str:
    return path.replace("{run_id}", "20260101-000000-00000000").replace("{id:path}", "scripted")


def test_every_route_but_healthz_refuses_without_a_key(served: Served) -> None:
    refused = 0
    with served.http(None) as http:
        assert http.get("/healthz").status_code == 200
        for route in served.server.table.routes:
            if route.path == "/healthz":
                continue
            body = {"json": {"json": {}}, "form": {"data": {"key": "ddx_00000000_" + "a" * 43}}, "": {}}[route.body]
            reply = http.request(route.method, _filled(route.path), **body)  # type: ignore[arg-type]
            assert reply.status_code == 401, route.path
            assert CASE not in reply.text
            refused += 1
        for path in ("/", "/unknown", "/docs", "/invocations", "/metrics"):
            assert http.get(path).status_code == 401
            assert http.get(path, headers={"authorization": "Bearer ddx_00000000_" + "a" * 43}).status_code == 401
    assert refused >= 25


def test_a_key_opens_what_its_scopes_say_and_no_more(served: Served) -> None:
    wanted = {
        "/metrics": ("metrics", "admin"),
        "/ddx/v1/runs": ("panel", "admin"),
        "/": ("panel", "admin"),
        "/v1/models": keys_.SCOPES,
        "/readyz": keys_.SCOPES,
    }
    for path, scopes in wanted.items():
        for scope in keys_.SCOPES:
            with served.http(scope) as http:
                assert http.get(path).status_code == (200 if scope in scopes else 403), (path, scope)


def test_a_key_may_come_as_a_password_and_a_wrong_one_opens_nothing(served: Served) -> None:
    with served.http(None) as http:
        assert http.get("/v1/models", auth=("anyone", served.keys["raw"])).status_code == 200
        for header in (
            "",
            "Bearer",
            f"Bearer {served.keys['raw'][:-1]}",
            "Basic !!!",
            f"Token {served.keys['raw']}",
        ):
            assert http.get("/v1/models", headers={"authorization": header}).status_code == 401


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 403),
        ({"host": "127.0.0.1.evil.example"}, 403),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
        ({"sec-fetch-site": "same-origin"}, 200),
        ({"host": "localhost"}, 200),
        ({"host": "LOCALHOST:9"}, 200),
    ],
)
def test_other_hosts_and_pages_of_other_sites_are_refused(served: Served, headers: dict[str, str], status: int) -> None:
    with served.http() as http:
        assert http.get("/v1/models", headers=headers).status_code == status


def test_without_keys_it_answers_this_machine_but_no_page_of_another_site(tmp_path: Path) -> None:
    with serving(tmp_path, with_keys=False) as served, served.http(None) as http:
        assert http.get("/").status_code == 200
        assert http.get("/ddx/v1/status").json()["needs_key"] is False
        text = {"text": CASE, "method": "zero-shot"}
        assert http.post("/ddx/v1/runs", json=text, headers={"origin": "https://evil.example"}).status_code == 403
        assert http.post("/ddx/v1/runs", json=text, headers={"origin": served.url}).status_code == 201
        # A link from elsewhere may open the panel; a script may not read from it.
        far = {"sec-fetch-site": "cross-site"}
        assert http.get("/", headers={**far, "sec-fetch-mode": "navigate"}).status_code == 200
        assert http.get("/", headers={**far, "sec-fetch-mode": "no-cors"}).status_code == 403
        assert http.get("/ddx/v1/runs", headers={**far, "sec-fetch-mode": "no-cors"}).status_code == 403


def test_a_browser_shows_a_key_once_and_changes_things_through_the_panel_alone(tmp_path: Path) -> None:
    with serving(tmp_path) as served, served.http(None) as http:
        page = http.get("/", headers={"accept": "text/html"})
        assert page.status_code == 401
        assert '<form method="post" action="/ddx/v1/session">' in page.text
        assert "script" not in page.headers["content-security-policy"]
        assert http.post("/ddx/v1/session", data={"key": "wrong"}).status_code == 401
        assert http.post("/ddx/v1/session", data={"key": served.keys["raw"]}).status_code == 403
        opened = http.post("/ddx/v1/session", data={"key": served.keys["panel"]})
        assert (opened.status_code, opened.headers["location"]) == (303, "/")
        cookie = opened.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=Strict" in cookie
        assert served.keys["panel"] not in cookie
        assert http.get("/").status_code == 200
        assert http.get("/metrics").status_code == 403
        body = {"text": CASE, "method": "zero-shot"}
        forged = http.post("/ddx/v1/runs", json=body)
        assert (forged.status_code, forged.json()["error"]["code"]) == (403, "csrf")
        panel = {"x-ddx-panel": "1", "origin": served.url, "sec-fetch-site": "same-origin"}
        assert http.post("/ddx/v1/runs", json=body, headers=panel).status_code == 201
        keys_.revoke(tmp_path / "keys.json", "panel")
        assert http.get("/").status_code == 401


def test_pages_allow_nothing_from_elsewhere(served: Served) -> None:
    with served.http() as http:
        page = http.get("/")
        assert "default-src 'self'" in page.headers["content-security-policy"]
        assert "unsafe" not in page.headers["content-security-policy"]
        assert "access-control-allow-origin" not in page.headers
        assert http.options("/v1/models", headers={"origin": "https://a.example"}).status_code == 403
        for header, value in (
            ("x-content-type-options", "nosniff"),
            ("x-frame-options", "DENY"),
            ("cache-control", "no-store"),
        ):
            assert http.get("/v1/models").headers[header] == value


def test_keys_are_kept_as_hashes_in_a_file_that_only_its_owner_reads(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "keys.json"
    key, secret = keys_.add(path, "ward 3", ["ddx"])
    assert path.stat().st_mode & 0o777 == 0o600
    assert secret.rpartition("_")[2] not in path.read_text()
    assert len(secret.removeprefix(f"ddx_{key.id}_")) == 43
    path.chmod(0o644)
    with pytest.raises(UsageError, match="others may read"):
        keys_.read(path)
    with pytest.raises(UsageError, match="others may read"):
        keys_.Keys(path)


def test_a_key_file_that_becomes_readable_to_others_opens_nothing(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    _, secret = keys_.add(path, "a", ["raw"])
    keys = keys_.Keys(path)
    assert keys.found(secret)
    path.chmod(0o644)
    os.utime(path, (1, 1))
    assert keys.found(secret) is None
    assert keys.needed
    path.unlink()
    assert keys.found(secret) is None
    assert keys.needed


@pytest.mark.parametrize("scopes", [[], ["raww"], ["raw", "root"]])
def test_an_unknown_scope_is_refused(tmp_path: Path, scopes: list[str]) -> None:
    with pytest.raises(UsageError, match="scope"):
        keys_.add(tmp_path / "keys.json", "a", scopes)


@pytest.mark.parametrize(
    ("has_keys", "tls", "missing"),
    [(False, False, "API key and no TLS"), (True, False, "no TLS"), (False, True, "no API key")],
)
def test_listening_to_others_needs_a_key_and_tls(tmp_path: Path, has_keys: bool, tls: bool, missing: str) -> None:
    for name in ("c.pem", "k.pem"):
        (tmp_path / name).touch(0o600)
    more = {"certificate": tmp_path / "c.pem", "private_key": tmp_path / "k.pem"} if tls else {}
    for host in ("0.0.0.0", "::", "192.0.2.1"):
        with pytest.raises(UsageError, match=missing):
            check(Place(host, 0, **more), has_keys=has_keys, key_path=tmp_path / "keys.json")
    check(Place("127.0.0.1", 0), has_keys=False, key_path=tmp_path)
    check(Place("::1", 0), has_keys=False, key_path=tmp_path)
    check(Place(uds=tmp_path / "s"), has_keys=False, key_path=tmp_path)


def test_a_private_key_that_others_may_read_is_refused(tmp_path: Path) -> None:
    for name in ("c.pem", "k.pem"):
        (tmp_path / name).touch(0o644)
    place = Place("127.0.0.1", 0, None, tmp_path / "c.pem", tmp_path / "k.pem")
    with pytest.raises(UsageError, match="others may read"):
        check(place, has_keys=True, key_path=tmp_path)


def test_a_port_or_socket_that_is_taken_is_told(tmp_path: Path) -> None:
    first = listen(Place("127.0.0.1", 0))
    with pytest.raises(UsageError, match="in use"):
        listen(Place("127.0.0.1", first.getsockname()[1]))
    first.close()
    path = tmp_path / "socket"
    taken = listen(Place(uds=path))
    assert path.stat().st_mode & 0o077 == 0
    with pytest.raises(UsageError, match="another server"):
        listen(Place(uds=path))
    taken.close()
    listen(Place(uds=path)).close()  # left behind by a server that was killed
    (tmp_path / "file").write_text("kept")
    with pytest.raises(UsageError):
        listen(Place(uds=tmp_path / "file"))
    assert (tmp_path / "file").read_text() == "kept"
