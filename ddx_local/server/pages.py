"""The panel's files, the page that asks for a key, and the session that a key opens. No file comes from anywhere else."""

import base64
import hashlib
from importlib import resources
from urllib.parse import parse_qsl

from ddx_local.server.access import COOKIE, SESSION_SECONDS, Sessions, cookie
from ddx_local.server.errors import forbidden, unauthorized
from ddx_local.server.keys import Keys
from ddx_local.server.replies import Call, Reply
from ddx_local.server.routes import Handler, Route

POLICY = (
    "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'; "
    "require-trusted-types-for 'script'"
)

_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}

_STYLE = (
    "body{font:17px/1.5 system-ui,sans-serif;margin:0;background:#f4f6f8;color:#16202a}main{max-width:30rem;margin:12vh auto;"
    "padding:0 1rem}h1{font-size:1.5rem}input,button{font:inherit;padding:.6rem .8rem;border-radius:.4rem;border:1px solid #5b6b7a}"
    "input{width:100%;box-sizing:border-box;margin:.3rem 0 .9rem}button{background:#0b5a8f;color:#fff;border-color:#0b5a8f}"
    ":focus-visible{outline:3px solid #0b5a8f;outline-offset:2px}p.wrong{color:#a3141f}"
)

_LOGIN = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>ddx-local: access key</title><style>{style}</style></head>
<body><main><h1>ddx-local</h1><p>{why}</p>
<form method="post" action="/ddx/v1/session"><label for="key">Access key</label>
<input id="key" name="key" type="password" autocomplete="off" required autofocus>
<button>Open the panel</button></form>
<p>Keys are made with <code>ddx-local keys add</code>. Research and decision support, not a medical device.</p></main></body></html>
"""


def files() -> dict[str, tuple[bytes, str]]:
    """The panel's files by the path that they are served under."""
    found = {}
    for item in resources.files("ddx_local.server").joinpath("panel").iterdir():
        kind = item.name.rpartition(".")[2]
        if kind in _TYPES:
            path = "/" if item.name == "index.html" else f"/panel/{item.name}"
            found[path] = (item.read_bytes(), _TYPES[kind])
    return found


def routes() -> list[Route]:
    """One route for each file."""
    return [Route("GET", path, "panel", "panel", _file(data, kind)) for path, (data, kind) in sorted(files().items())]


def _file(data: bytes, kind: str) -> Handler:
    tag = f'"{hashlib.sha256(data).hexdigest()[:16]}"'

    async def handler(call: Call) -> Reply:
        headers = {"content-security-policy": POLICY, "etag": tag, "cache-control": "no-cache"}
        if call.headers.get("if-none-match") == tag:
            return Reply(status=304, content_type=kind, headers=headers)
        return Reply(data, content_type=kind, headers=headers)

    return handler


def login(why: str = "This server needs an access key.", status: int = 401) -> Reply:
    """The page that asks for a key: a form without script."""
    digest = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'sha256-{digest}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )
    headers = {"content-security-policy": policy, "www-authenticate": 'Bearer realm="ddx-local"'}
    body = _LOGIN.format(style=_STYLE, why=why).encode()
    return Reply(body, status, "text/html; charset=utf-8", headers)


class SessionRoutes:
    """Begin and end a browser's session."""

    def __init__(self, keys: Keys, sessions: Sessions, secure: bool) -> None:
        self._keys = keys
        self._sessions = sessions
        self._secure = "; Secure" if secure else ""

    async def begin(self, call: Call) -> Reply:
        """A form with a key that opens the panel; it carries its key itself, so that no other is needed."""
        given = dict(parse_qsl(call.body[:4096].decode("latin-1"))).get("key", "").strip()
        key = self._keys.found(given)
        if key is None:
            if "text/html" in call.headers.get("accept", ""):
                return login("That is not one of this server's keys.")
            raise unauthorized("The API key is not one of this server's.")
        if not key.may("panel"):
            raise forbidden("This API key has no scope `panel`.", "missing_scope")
        call.actor = key.id
        token = self._sessions.begin(given)
        return self._to_panel(f"{COOKIE}={token}; Max-Age={SESSION_SECONDS}")

    async def end(self, call: Call) -> Reply:
        self._sessions.end(cookie(call.headers))
        return Reply(status=204, headers={"set-cookie": self._cookie(f"{COOKIE}=; Max-Age=0")})

    def _to_panel(self, value: str) -> Reply:
        return Reply(status=303, headers={"location": "/", "set-cookie": self._cookie(value)})

    def _cookie(self, value: str) -> str:
        return f"{value}; Path=/; HttpOnly; SameSite=Strict{self._secure}"
