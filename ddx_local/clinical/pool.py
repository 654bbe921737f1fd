"""The specialists that a panel may be drawn from. It knows their names, groups and near-duplicates, which `pool.toml` holds.

It doesn't know how a panel is chosen, nor what a specialist is asked.
"""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files


@dataclass(frozen=True, slots=True)
class Specialist:
    """One role of the pool.

    Args:
        name: Lower case, unique in the pool: what a model reads and writes.
        group: The field that the role belongs to, such as `surgery`.
        near_duplicate_of: The role that this one repeats under another name, which a panel takes instead; None mostly.
    """

    name: str
    group: str
    near_duplicate_of: str | None = None


@cache
def pool() -> tuple[Specialist, ...]:
    """All 43 roles, group by group, in the order of the method's table.

    Source: the counterfactual method's specialist pool (the paper's table 7).
    """
    data = tomllib.loads((files(__package__) / "pool.toml").read_text(encoding="utf-8"))
    repeats: dict[str, str] = data["near_duplicates"]
    groups: dict[str, list[str]] = data["groups"]
    return tuple(Specialist(name, group, repeats.get(name)) for group, names in groups.items() for name in names)


def panel_choices() -> tuple[str, ...]:
    """The 41 names that a panel may hold, in the pool's order: of each pair of near-duplicates only one is there.

    Any number of different names out of these is a panel without near-duplicates, so a grammar that asks for different
    names needs no further rule.
    """
    return tuple(specialist.name for specialist in pool() if specialist.near_duplicate_of is None)
