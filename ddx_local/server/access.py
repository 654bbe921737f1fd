"""Who may come in: the Host and Origin of a request, its key or its session, and forged requests from other pages. Pure but
for the sessions, which live in memory and end with the server.
"""

import base64
import binascii
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie

from ddx_local.server.errors import forbidden, invalid, unauthorized
from ddx_local.server.keys import SCOPES, Key, Keys

COOKIE = "ddx_local_session"
LOCAL = Key("local", "this machine", SCOPES, "", "")
"""Who comes in where no key is needed: someone on this machine."""

SESSION_SECONDS = 12 * 3600
SAFE_METHODS = ("GET", "HEAD")


@dataclass
class Sessions:
    """Browsers that have shown a key; `clock` in seconds."""

    clock: Callable[[], float] = time.monotonic
    _open: dict[str, tuple[str, float]] = field(default_factory=dict)

    def begin(self, key: str) -> str:
        """A new session for a key as the client gave it; returns its token."""
        now = self.clock()
        self._open = {token: item for token, item in self._open.items() if item[1] > now}
        token = secrets.token_urlsafe(32)
        self._open[token] = (key, now + SESSION_SECONDS)
        return token

    def key_of(self, token: str) -> str | None:
        """The key of a session that is still open; a revoked key opens nothing even so, since it is looked up again."""
        found = self._open.get(token)
        return found[0] if found and found[1] > self.clock() else None

    def end(self, token: str) -> None:
        self._open.pop(token, None)


@dataclass(frozen=True)
class Door:
    """The rules of one server.

    Args:
        keys: The keys.
        sessions: Open sessions.
        hosts: Names that a Host header may hold, without port.
    """

    keys: Keys
    sessions: Sessions
    hosts: frozenset[str]

    def check_place(self, method: str, path: str, headers: Mapping[str, str]) -> None:
        """Refuse a Host that is not ours (DNS rebinding) and a page of another origin (CSRF, reading across sites).

        Raises:
            ApiError: 400 without a Host, 403 otherwise.
        """
        host = headers.get("host", "")
        if not host:
            raise invalid("The request has no Host header.")
        if host_name(host) not in self.hosts:
            raise forbidden("This Host is not served here; the server's --allow-host adds a name.", "host_not_allowed")
        origin = headers.get("origin")
        if origin is not None and origin.partition("://")[2].lower() != host.lower():
            raise forbidden("Pages of other origins may not use this server.", "origin_not_allowed")
        site = headers.get("sec-fetch-site", "none")
        opened = method == "GET" and path == "/" and headers.get("sec-fetch-mode", "navigate") == "navigate"
        if site not in ("same-origin", "none") and not opened:
            raise forbidden("Pages of other sites may not use this server.", "origin_not_allowed")

    def who(self, method: str, headers: Mapping[str, str]) -> Key:
        """Whose request it is.

        Raises:
            ApiError: 401 without a key that is ours, 403 for a browser's request that the panel did not make.
        """
        if not self.keys.needed:
            return LOCAL
        given = headers.get("authorization", "")
        if given:
            key = self.keys.found(_secret(given))
            if key is None:
                raise unauthorized("The API key is not one of this server's. See `ddx-local keys list`.")
            return key
        token = cookie(headers)
        known = self.sessions.key_of(token) if token else None
        key = self.keys.found(known) if known else None
        if key is None:
            raise unauthorized("No API key was given: send `Authorization: Bearer KEY`.")
        if method not in SAFE_METHODS and headers.get("x-ddx-panel") != "1":
            raise forbidden("A session changes things only through the panel.", "csrf")
        return key


def check_scope(key: Key, scope: str) -> None:
    """Raises `ApiError` 403 where a key does not open a scope."""
    if not key.may(scope):
        raise forbidden(f"This API key has no scope `{scope}`.", "missing_scope")


def host_name(host: str) -> str:
    """A Host header without its port."""
    text = host.strip().lower()
    if text.startswith("["):
        return text.partition("]")[0] + "]"
    return text.rpartition(":")[0] if ":" in text else text


def cookie(headers: Mapping[str, str]) -> str:
    """The session's token, or ''."""
    try:
        found = SimpleCookie(headers.get("cookie", "")[:4096]).get(COOKIE)
    except CookieError:
        return ""
    return found.value if found else ""


def _secret(authorization: str) -> str:
    kind, _, rest = authorization.strip().partition(" ")
    if kind.lower() == "basic":  # user name as you like, the key as password
        try:
            return base64.b64decode(rest.strip(), validate=True).decode().partition(":")[2]
        except (binascii.Error, ValueError):
            return ""
    return rest.strip() if kind.lower() == "bearer" else ""
