"""The part of a suite that says how predictions are matched, and the check of unknown keys that all parts share."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ddx_local.errors import UsageError, nearest
from ddx_local.evaluation.match import HIERARCHIES

MATCHERS = ("labels", "embedding", "bertscore", "judge")
RUBRICS = ("taxonomy", "safety")


@dataclass(frozen=True, slots=True)
class Match:
    """How predictions are matched; `model` and `engine` are the judge's or the encoder's own. `weigh` takes P(yes), too."""

    kind: str = "labels"
    threshold: float | None = None
    assignment: str = "optimal"
    hierarchy: str = "exact"
    model: str = ""
    engine: str = ""
    repeat: int = 2
    seed: int = 0
    layer: int | None = None
    weigh: bool = False
    rubrics: tuple[str, ...] = ()


def known(given: Mapping[str, Any], keys: Iterable[str], where: str) -> None:
    """Raise `UsageError` for a key that there is not; the nearest are shown."""
    names = list(keys)
    for key in given:
        if key not in names:
            raise UsageError(f"{where}: unknown key `{key}`: {nearest(key, names)}")


def match_of(given: Mapping[str, Any], judge: Mapping[str, Any], where: str) -> Match:
    """The matcher that `[match]` and `[judge]` name."""
    known(given, ("kind", "threshold", "assignment", "hierarchy", "model", "layer"), f"{where}, [match]")
    known(judge, ("model", "engine", "repeat", "seed", "hierarchy", "weigh", "rubrics"), f"{where}, [judge]")
    return checked_match({**({"kind": "judge"} if judge and "kind" not in given else {}), **given, **judge}, where)


def checked_match(given: Mapping[str, Any], where: str) -> Match:
    """A matcher's choice; raises `UsageError` for a name that there is not (the nearest are shown)."""
    found = Match(**{**given, "rubrics": tuple(given.get("rubrics", ()))})
    if wrong := [name for name in found.rubrics if name not in RUBRICS]:
        raise UsageError(f"{where}, [judge]: no rubric `{wrong[0]}`: {nearest(wrong[0], list(RUBRICS))}")
    for value, known, name in (
        (found.kind, MATCHERS, "kind"),
        (found.hierarchy, HIERARCHIES, "hierarchy"),
        (found.assignment, ("optimal", "greedy"), "assignment"),
    ):
        if value not in known:
            raise UsageError(f"{where}, [match]: no {name} `{value}`: {nearest(value, list(known))}")
    if found.hierarchy != "exact" and found.kind != "judge":
        raise UsageError(
            f"{where}, [match]: hierarchy `{found.hierarchy}` needs the judge", "Other matchers know no hierarchy."
        )
    if found.repeat not in (1, 2):
        raise UsageError(f"{where}, [judge]: repeat must be 1 or 2")
    return found
