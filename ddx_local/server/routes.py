"""The table of routes and the search in it: what is not listed here does not exist. Pure."""

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Literal
from urllib.parse import unquote

from ddx_local.server.errors import not_allowed, not_found
from ddx_local.server.replies import Call, Reply, Stream

Handler = Callable[[Call], Awaitable[Reply | Stream]]


@dataclass(frozen=True, slots=True)
class Route:
    """One route.

    Args:
        method: HTTP method; GET answers HEAD too.
        path: With `{name}` for a piece; `{name:path}` takes slashes as well.
        action: What the audit record and the metrics call it.
        scope: Which keys open it; `any` for all, `none` for nobody needed.
        handler: Does it.
        body: What it takes.
        work: Whether it asks the model, so that it counts as model work.
    """

    method: str
    path: str
    action: str
    scope: str
    handler: Handler
    body: Literal["", "json", "form"] = ""
    work: bool = False


class Table:
    """Routes by path."""

    def __init__(self, routes: Sequence[Route]) -> None:
        self.routes = tuple(routes)
        self._patterns = [(_pattern(route.path), route) for route in routes]

    def is_public(self, method: str, path: str) -> bool:
        """Whether a request needs no key, or brings it in its own way."""
        asked = "GET" if method == "HEAD" else method
        return any(route.scope == "none" and (route.method, route.path) == (asked, path) for route in self.routes)

    def find(self, method: str, raw_path: str) -> tuple[Route, dict[str, str]]:
        """The route of a request and the named pieces of its path.

        Args:
            method: HTTP method.
            raw_path: The path as it was sent, percent-encoded, so that `%2F` is no separator.

        Raises:
            ApiError: 404, or 405 with the methods of the path.
        """
        matches = [(route, found) for pattern, route in self._patterns if (found := pattern.fullmatch(raw_path))]
        if not matches:
            raise not_found()
        asked = "GET" if method == "HEAD" else method
        for route, found in matches:
            if route.method == asked:
                return route, {name: unquote(value) for name, value in found.groupdict().items()}
        methods = {route.method for route, _ in matches}
        raise not_allowed(sorted(methods | ({"HEAD"} if "GET" in methods else set())))


def _pattern(path: str) -> re.Pattern[str]:
    parts = re.split(r"(\{[a-z_]+(?::path)?\})", path)
    return re.compile(
        "".join(
            f"(?P<{part[1:-1].removesuffix(':path')}>{'.+' if part.endswith(':path}') else '[^/]+'})"
            if part.startswith("{")
            else re.escape(part)
            for part in parts
        )
    )
