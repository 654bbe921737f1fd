"""One thing that the doctor looked at. It knows no machine."""

from dataclasses import dataclass
from typing import Literal

Level = Literal["ok", "warning", "error"]


@dataclass(frozen=True, slots=True)
class Check:
    """What was found.

    Args:
        name: What was looked at, one or two words.
        level: An error keeps the program from working; a warning does not.
        found: One sentence.
        todo: What to do; empty where nothing is.
    """

    name: str
    level: Level
    found: str
    todo: str = ""


def ok(name: str, found: str) -> Check:
    return Check(name, "ok", found)


def worst(checks: tuple[Check, ...]) -> int:
    """The exit code: 0 all is well, 1 something should be looked at, 2 something does not work."""
    levels = {check.level for check in checks}
    return 2 if "error" in levels else 1 if "warning" in levels else 0
