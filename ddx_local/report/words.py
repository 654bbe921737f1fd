"""Numbers and positions in words, the same in the terminal and on paper. Pure."""

from collections.abc import Mapping

SCORES: Mapping[str, str] = {
    "borda": "weighted Borda count",
    "probability": "probability among the candidates",
    "proposers": "how many proposed it",
    "reciprocal_place": "1 / place in the list",
    "share_of_samples": "share of the samples",
}

MARKS: Mapping[str, str] = {"support": "+", "challenge": "-", "neutral": "="}
"""A final position's sign, in the order in which they are told; a withdrawal has none."""


def score_kind(kind: str) -> str:
    """What a score is; a kind that has no words here speaks for itself."""
    return SCORES.get(kind, kind.replace("_", " "))


def ordinal(place: int) -> str:
    """1st, 2nd, 3rd, 4th, 11th ..."""
    ending = {1: "st", 2: "nd", 3: "rd"}.get(place % 10, "th") if place % 100 not in (11, 12, 13) else "th"
    return f"{place}{ending}"


def places(votes: Mapping[str, int]) -> dict[int, tuple[str, ...]]:
    """The places that were given, the best first, and by whom."""
    return {
        place: tuple(role for role, given in votes.items() if given == place) for place in sorted(set(votes.values()))
    }


def placed(votes: Mapping[str, int]) -> str:
    """For example "1st by 3 of 5, 2nd by 2"; '' without votes."""
    parts = [f"{ordinal(place)} by {len(roles)}" for place, roles in places(votes).items()]
    return ", ".join([f"{parts[0]} of {len(votes)}", *parts[1:]]) if parts else ""


def positions(stances: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Position -> who holds it, those that `MARKS` knows first."""
    order = list(dict.fromkeys([*MARKS, *stances.values()]))
    held = {name: tuple(role for role, position in stances.items() if position == name) for name in order}
    return {name: roles for name, roles in held.items() if roles}


def standing(stances: Mapping[str, str]) -> str:
    """For example "+3 -1 =1, 1 withdrawn"; '' without stances."""
    held = positions(stances)
    marks = " ".join(f"{MARKS[name]}{len(roles)}" for name, roles in held.items() if name in MARKS)
    others = [f"{len(roles)} {name}" for name, roles in held.items() if name not in MARKS]
    return ", ".join([*([marks] if marks else []), *others])


def signed(value: float) -> str:
    """A gap with its sign and two places: "+0.41", "-0.07", "+<0.01", and "0.00" for none at all."""
    if value == 0:
        return "0.00"
    return f"{value:+.2f}" if abs(value) >= 0.005 else f"{'+' if value > 0 else '-'}<0.01"
