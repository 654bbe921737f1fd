"""A run that someone wishes for: a method with options over those of the settings file. Pure."""

from collections.abc import Mapping
from typing import Any

from ddx_local import options
from ddx_local.case import Case
from ddx_local.errors import UsageError, nearest
from ddx_local.methods.table import Method
from ddx_local.server.errors import invalid
from ddx_local.server.runs import Wish
from ddx_local.settings import Settings

FILES = frozenset(("cases", "pool"))
"""Options that name a file of this machine. Its settings may: a client could read with them what it has no key for."""

LONGEST_CASE = 200_000
"""Characters of a case; no supported context holds more."""


def wanted(
    case: Case,
    method: Method,
    values: Mapping[str, Any],
    seed: int,
    settings: Settings,
    *,
    pausing: bool = False,
    digest: str = "",
) -> Wish:
    """A run of a method with these options over those of the settings file.

    Raises:
        ApiError: 400 for an option that the method does not have, a value that it does not take, or the name of a file.
    """
    known = list(method.options.__dataclass_fields__)
    for name in values:
        if name not in known:
            raise invalid(
                f"Method {method.name} has no such option under `ddx`: {nearest(name[:100], known)}.",
                "ddx",
                "unsupported_parameter",
            )
    set_before = settings.method.get(method.name, {})
    usual = options.as_json(method.options()) | set_before
    for name in sorted(FILES & values.keys()):
        if values[name] != usual[name]:
            raise invalid(
                f"`ddx.{name}` names a file of the server, which only the server's settings can.", f"ddx.{name}"
            )
    try:
        chosen = options.parse(method.options, {**set_before, **values}, method.name)
    except UsageError:
        wrong = next((name for name in values if not _takes(method, name, values[name], set_before)), None)
        named = f"ddx.{wrong}" if wrong else "ddx"
        raise invalid(f"`{named}` is not a value that method {method.name} takes.", named) from None
    return Wish(method, chosen, case, seed, pausing, digest)


def _takes(method: Method, name: str, value: Any, others: Mapping[str, Any]) -> bool:
    try:
        options.parse(method.options, {**others, name: value}, method.name)
    except UsageError:
        return False
    return True
