"""How a name of the ICD-10-CM table can be read: without what is optional, without `unspecified`, by its alias in brackets.

It knows the table's ways of writing. It knows no code and compares nothing.
"""

import re
from collections.abc import Iterator
from itertools import combinations
from typing import Final

_ALIAS: Final = re.compile(r"\s*\[([^\[\]]*)\]")
_OPTIONAL: Final = re.compile(r"\s*(?<=\s)\(([^()]*)\)")
_PLURAL: Final = re.compile(r"(?<=\w)\((?:s|es)\)")
_ABBREVIATION: Final = re.compile(r"[A-Z][A-Za-z0-9]*[A-Z0-9]")

# Only of these can a name be silent: a hand that is not said to be the left one is still no foot.
_SILENT: Final = (
    "site organism eye ear side trimester severity stage depth degree cause level type etiology laterality form part "
    "class location course duration episode origin chronicity extent nature morphology cell status"
).split()
_NOUN: Final = rf"(?:{'|'.join(_SILENT)})"
_UNSAID: Final = re.compile(
    rf"(?:(?:{_NOUN} )?unspecified(?: (?:as to )?{_NOUN})?|{_NOUN} not specified|"
    r"not otherwise specified|not elsewhere classified|nos|nec)",
    re.I,
)
_END: Final = re.compile(
    r"\s+(?:nos|nec)$|\s+not (?:otherwise specified|elsewhere classified)$|\s+of unspecified site$", re.I
)
_CANCER: Final = re.compile(r"^malignant neoplasm of\b", re.I)
_PLAIN: Final = re.compile(r",?\s+(?:without (?:mention of )?complications?|uncomplicated)$", re.I)
_VAGUE: Final = re.compile(r"\b(?:other|others|elsewhere|specified|multiple sites|suspected)\b", re.I)

MOST_OPTIONAL: Final = 3
"""Of more brackets than that, all or none are read, or one."""


def readings(name: str) -> tuple[str, ...]:
    """The texts that mean what a table's name means.

    Args:
        name: A description, an inclusion term or an entry under `Includes`.

    Returns:
        Without square brackets, without `unspecified` and the like, with and without what stands in round brackets; then
        the aliases at the name's end. A malignant neoplasm is also called cancer. None of a name that stands for what is left
        over (`Other ...`) or not certain (`suspected`).
    """
    if _VAGUE.search(name) and _VAGUE.search(_UNSAID.sub("", name)):
        return ()
    text = name.strip(" .:")
    if _CANCER.match(text):
        return (*_readings(text), *_readings(_CANCER.sub("cancer of", text)))
    return _readings(text)


def _readings(text: str) -> tuple[str, ...]:
    if "(" not in text and "[" not in text:
        return (_said(text),)
    text = _PLURAL.sub("", text)
    aliases = tuple(part.strip() for part in _ALIAS.findall(text)) if text.endswith("]") else ()
    text = _ALIAS.sub("", text)
    found = [_said(_spaces(reading)) for reading in _with_and_without(text)]
    found += [alias for alias in aliases if _names_the_whole(alias, found[0])]
    return tuple(dict.fromkeys(reading for reading in found if reading))


def uncomplicated(reading: str) -> str | None:
    """A reading without its `without complications` or `uncomplicated`; None where it has none."""
    shorter = _PLAIN.sub("", reading)
    return shorter if shorter and shorter != reading else None


def _with_and_without(text: str) -> Iterator[str]:
    """The text with every choice of its round brackets (few), or all, none and each one (many)."""
    count = len(_OPTIONAL.findall(text))
    sizes = range(count + 1) if count <= MOST_OPTIONAL else (0, 1, count)
    for size in sizes:
        for kept in combinations(range(count), size):
            places = iter(range(count))
            yield _OPTIONAL.sub(lambda match: f" {match[1]}" if next(places) in kept else "", text)  # noqa: B023


def _names_the_whole(alias: str, text: str) -> bool:
    """Whether a bracket is another name of the whole: the last word alone may be meant (`screening for ... [HIV]`)."""
    if not _ABBREVIATION.fullmatch(alias):
        return " " in alias or " " not in text
    letters = iter(text.casefold())
    return text[:1] == alias[:1].upper() and all(letter in letters for letter in alias.casefold())


def _said(text: str) -> str:
    """The text without the parts between commas that say nothing; the first part always stays."""
    first, *rest = text.split(", ")
    if not rest:
        return _END.sub("", text)
    parts = [_END.sub("", first), *(_END.sub("", part) for part in rest if not _UNSAID.fullmatch(part.strip()))]
    return ", ".join(parts)


def _spaces(text: str) -> str:
    return " ".join(text.split()).replace(" ,", ",")
