"""Past cases with their diagnoses, and which of them are most like a case. A case is never retrieved for itself.

A base is a JSON Lines file; each line has `text` (or `case`), `diagnoses` (or `gold`; a list, the main one first) and
maybe `id`. This file knows the base and how alike two texts must be to be one case; it knows no model and no method.
"""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from ddx_local.clinical import intake_json
from ddx_local.clinical.taken import is_text
from ddx_local.errors import InputError
from ddx_local.flow import Retrieve, Similarity
from ddx_local.home import expanded

Alike = Callable[[Similarity], Awaitable[Sequence[float]]]

RUN = 8
"""Words in a row by which two texts are compared."""

SAME_CASE = 0.4
"""Share of the shorter text's runs of words in the other one, from which on the two are one case."""

_HINT = "A case base is a JSON Lines file; each line an object with `text` and `diagnoses` (a list of names)."


@dataclass(frozen=True, slots=True)
class Past:
    """One past case of a base."""

    id: str
    text: str
    diagnoses: tuple[str, ...]


def read_base(path: Path) -> tuple[Past, ...]:
    """The cases of a file.

    Raises:
        InputError: The file cannot be read, or a line of it is no past case; the line is named, its text is not shown.
    """
    try:
        # Split at line feeds alone: JSON strings may hold the other line separators of Unicode as they are.
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, ValueError) as error:
        reason = "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else "no file can have that name"
        reason = str(error.strerror) if isinstance(error, OSError) else reason
        raise InputError(f"case base {path}: cannot be read: {reason}", _HINT) from None
    found = tuple(_past(path, number, line) for number, line in enumerate(lines, start=1) if line.strip())
    if not found:
        raise InputError(f"case base {path}: holds no case", _HINT)
    return found


def _past(path: Path, number: int, line: str) -> Past:
    place = f"case base {path}, line {number}"
    data = intake_json.parse(line, place, _HINT)
    if not isinstance(data, Mapping):
        raise InputError(f"{place}: is not an object", _HINT)
    text = data.get("text", data.get("case"))
    names = data.get("diagnoses", data.get("gold"))
    names = [names] if isinstance(names, str) else names
    if not isinstance(text, str) or not text.strip():
        raise InputError(f"{place}: `text` is missing or no text", _HINT)
    if not is_text(text):
        raise InputError(f"{place}: `text` holds characters that are no text (lone surrogates or NUL)", _HINT)
    if (
        not isinstance(names, list)
        or not names
        or not all(isinstance(name, str) and name.strip() and is_text(name) for name in names)
    ):
        raise InputError(f"{place}: `diagnoses` is missing or no list of names", _HINT)
    return Past(str(data.get("id", number)), text, tuple(name.strip() for name in names))


def one_case(a: str, b: str) -> bool:
    """Whether two texts tell the same case: the one is the other, an excerpt of it, or a slightly changed copy."""
    one, two = _runs(a), _runs(b)
    return len(one & two) >= SAME_CASE * min(len(one), len(two))


@lru_cache(maxsize=4096)
def _runs(text: str) -> frozenset[tuple[str, ...]]:
    words = re.findall(r"\w+", text.casefold())
    return frozenset(tuple(words[at : at + RUN]) for at in range(max(1, len(words) - RUN + 1)))


class CaseBases:
    """Answers `Retrieve` consultations: [id, text, diagnoses, similarity in [-1, 1]] of each, the most similar first.

    Args:
        alike: Compares two texts in meaning.
    """

    def __init__(self, alike: Alike) -> None:
        self.alike = alike
        self._bases: dict[str, tuple[Past, ...]] = {}

    async def __call__(self, about: Retrieve) -> list[list[Any]]:
        if about.base not in self._bases:
            self._bases[about.base] = read_base(expanded(about.base))
        others = [
            past
            for past in self._bases[about.base]
            if past.id not in about.without and not one_case(past.text, about.text)
        ]
        scores = await self.alike(Similarity(tuple((about.text, past.text) for past in others))) if others else []
        best = sorted(range(len(others)), key=lambda place: (-scores[place], place))[: about.count]
        return [[others[place].id, others[place].text, list(others[place].diagnoses), scores[place]] for place in best]
