"""Roles that another model answers for: which role a question has, who is bound to it, and whether a method knows it.

It knows names only; engines are opened elsewhere (`ddx_local.launch`) and asked elsewhere (`ddx_local.rounds`).
"""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeVar

from ddx_local.errors import UsageError, nearest
from ddx_local.flow import Ask

E = TypeVar("E")

_NUMBER = re.compile(r" \d+$")


def name_of(question: Ask[Any]) -> str:
    """Who answers: the question's role without its number (`presenter 2`), or its step's name where it has no role."""
    return _NUMBER.sub("", question.role) or question.step.name.rpartition("/")[2]


def bound_to(question: Ask[Any], bound: Mapping[str, E], otherwise: E) -> E:
    """What is bound to the question's role."""
    return bound.get(name_of(question), otherwise) if bound else otherwise


def chosen(
    method: str, known: Sequence[str], given: Mapping[str, str], elsewhere: Collection[str] = ()
) -> dict[str, str]:
    """The bindings that concern a method.

    Args:
        method: Its name, for messages.
        known: The roles that it states.
        given: Role -> model.
        elsewhere: Roles of other methods, which a settings file for all of them may bind: they are left out.

    Raises:
        UsageError: A role that the method doesn't have (the nearest names are shown), or an empty model.
    """
    found = {role: model.strip() for role, model in given.items() if role in known or role not in elsewhere}
    for role, model in found.items():
        if not known:
            raise UsageError(
                f"--role {role}={model}: method `{method}` has no roles that another model can answer for",
                "Leave --role out, or see `ddx-local methods show NAME` for the roles of others.",
            )
        if role not in known:
            raise UsageError(
                f"--role {role}={model}: method `{method}` has no role `{role}`: {nearest(role, list(known))}",
                f"See `ddx-local methods show {method}`.",
            )
        if not model:
            raise UsageError(f"--role {role}=: names no model", "Write it as ROLE=MODEL; see `ddx-local models list`.")
    return found
