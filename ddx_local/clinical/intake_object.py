"""One JSON object or table row as a case: a text, our own split, the section form, or an object of strings.

It knows keys. It doesn't know files, nor FHIR.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any, cast

from ddx_local.case import Case
from ddx_local.clinical.section_headings import OTHER, section_of
from ddx_local.clinical.sections import NAMES, TITLES, UNASSIGNED, Section, check, laid_out
from ddx_local.clinical.taken import (
    ANSWER,
    IDENTITY,
    Reading,
    Remark,
    Taken,
    counted,
    holds_answer,
    key_words,
    says_who,
    shown,
)
from ddx_local.errors import InputError, UsageError, nearest

OWN_FORM = "ddx-local/sections/"
"""What the `schema` of a case begins with that `case split` has written."""

TEXT_KEYS = ("text", "case")
"""Keys of our own form."""

LIKELY_TEXT = (
    "case_text", "case text", "casetext", "vignette", "note", "clinical note", "clinical_note", "clinical_text", "case_report",
    "case report", "description", "case description", "question", "input", "prompt", "content", "body", "narrative", "patient",
)  # fmt: skip
"""Keys that are taken for the case text where nothing else is there, the likeliest first."""

PARTS = ("text", "id", *NAMES)
"""What `--column` may give a column for."""


def parse_columns(pairs: Sequence[str]) -> dict[str, str]:
    """`--column text=NAME,id=NAME` as part -> column.

    Raises:
        UsageError: Not of this form, an unknown part, a part twice, or a text beside sections.
    """
    found: dict[str, str] = {}
    for pair in (part for value in pairs for part in value.split(",")):
        part, mark, column = (word.strip() for word in pair.partition("="))
        if not mark or not column:
            raise UsageError(
                f"--column {shown(pair)}: is not of the form PART=COLUMN", "For example --column text=note,id=case."
            )
        if part not in PARTS:
            raise UsageError(f"--column: no part `{shown(part)}` of a case: {nearest(part, list(PARTS))}")
        if part in found:
            raise UsageError(f"--column: `{part}` is given twice")
        found[part] = column
    if found and "text" in found and set(found) - {"text", "id"}:
        raise UsageError("--column: a case has either a text or sections", "Leave `text` out, or the sections.")
    if found and not set(found) - {"id"}:
        raise UsageError("--column: names no column for the text", "Add text=NAME, or a section's name.")
    return found


def from_object(item: Any, where: str, reading: Reading, form: str = "JSON") -> Taken:
    """A case from an object; its id is empty where the object has none.

    Args:
        item: Any JSON value.
        where: The file, and the line or place in it, for errors.
        reading: How to read it.
        form: What to call the input.

    Raises:
        InputError: It has no case text, its sections are no split of its text, or it is a result of this program.
        UsageError: A column that is asked for is not there, or holds an answer.
    """
    if not isinstance(item, dict):
        raise InputError(f"{where}: has no text field `text`")
    schema = item.get("schema")
    if isinstance(schema, str) and schema.startswith("ddx-local/") and not schema.startswith(OWN_FORM):
        raise InputError(
            f"{where}: is no case but what this program has written (`{shown(schema)}`)",
            "Give the case that it was made from, and keep results out of a folder of cases.",
        )
    key = reading.columns.get("id", "id")
    return _with_id(_from_dict(item, where, reading, form), key, item.get(key))


def _with_id(taken: Taken, key: str, case_id: Any) -> Taken:
    """With a remark where an id is given that the case does not have, or not whole."""
    if case_id is None or taken.case.id == str(case_id).strip():
        return taken
    whole = taken.case.id and len(taken.case.id) < LONGEST_ID
    why = (
        "some of its characters cannot be shown"
        if whole
        else f"an id is a text or a whole number, {LONGEST_ID} characters at most"
    )
    return replace(
        taken, remarks=counted([*taken.remarks, Remark("left out", f"`{shown(key)}`, or a part of it", why)])
    )


def _from_dict(item: Mapping[str, Any], where: str, reading: Reading, form: str) -> Taken:
    case_id = item.get(reading.columns.get("id", "id"))
    if reading.columns:
        return _mapped(item, case_id, where, reading, form)
    key = next((key for key in TEXT_KEYS if key in item), None)
    if key is not None:
        if not isinstance(item[key], str):
            raise InputError(f"{where}: has no text field `text`", f"`{key}` must be a string.")
        if isinstance(item.get("sections"), list) and item["sections"] and isinstance(item["sections"][0], dict):
            return _divided(
                item[key], item["sections"], case_id, where, _rest(item, (key, "form", "remarks", "sections"))
            )
        return _taken(item[key], case_id, form, _rest(item, (key, "id")))
    inner = item.get("sections")
    if isinstance(inner, dict):
        return _form(inner, case_id, where, _rest(item, ("sections", "id")))
    strings = {name: value for name, value in item.items() if _as_text(value) is not None and name != "id"}
    if any(section_of(_spaced(name)) in NAMES for name in strings):
        return _form({name: value for name, value in item.items() if name != "id"}, case_id, where, [])
    return _guessed(item, strings, case_id, where, form)


def _mapped(item: Mapping[str, Any], case_id: Any, where: str, reading: Reading, form: str) -> Taken:
    """As `--column` says."""
    columns = reading.columns
    for part, column in columns.items():
        if part != "id" and (holds_answer(column) or says_who(column)) and column not in NAMES:
            raise UsageError(
                f"--column {part}={shown(column)}: {ANSWER if holds_answer(column) else IDENTITY}",
                "Name a column that holds what was known before the diagnosis.",
            )
        if column not in item:
            known = ", ".join(shown(key) for key in list(item)[:12])
            raise UsageError(f"--column {part}={shown(column)}: {where} has no such column", f"It has {known}.")
    rest = _rest(item, list(columns.values()))
    texts = {part: _as_text(item[column]) or "" for part, column in columns.items() if part != "id"}
    if "text" in texts:
        return _taken(texts["text"], case_id, form, rest)
    return _formed(texts, case_id, rest)


def _divided(text: str, spans: Sequence[Any], case_id: Any, where: str, remarks: list[Remark]) -> Taken:
    """Our own split: a text with its sections as spans."""
    sections = []
    for number, span in enumerate(spans, 1):
        found = (span.get("name"), span.get("start"), span.get("end")) if isinstance(span, dict) else ()
        if len(found) != 3 or not isinstance(found[0], str) or not all(type(place) is int for place in found[1:]):
            raise InputError(f"{where}, section {number}: needs `name`, `start` and `end`", "See `case split --json`.")
        sections.append(Section(found[0], cast("int", found[1]), cast("int", found[2]), "given"))
    if text.strip() and (faults := check(text, sections)):
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        raise InputError(
            f"{where}: its sections do not divide its text: {faults[0]}{more}",
            "Every character belongs to exactly one section or to `unassigned`; `case split --json` makes such a form.",
        )
    ordered = tuple(sorted(sections, key=lambda section: section.start))
    return Taken(_case(case_id, text), "text with sections", counted(remarks), ordered)


def _form(form: Mapping[str, Any], case_id: Any, where: str, remarks: list[Remark]) -> Taken:
    """The section form: section -> its text; keys that are no section's come last, under their own names."""
    texts: dict[str, list[str]] = {}
    for key, value in form.items():
        text = _as_text(value)
        section = key if key in TITLES else section_of(_spaced(key))
        if text is None:
            if value is not None:
                remarks.append(
                    Remark("not understood", f"`{shown(key)}`", "it holds neither a text nor a list of texts")
                )
        elif section in NAMES:
            texts.setdefault(section, []).append(text)
        elif section == UNASSIGNED or _is_free(key):
            texts.setdefault(UNASSIGNED, []).append(text if section == UNASSIGNED else f"{_spaced(key)}: {text}")
        else:
            remarks.append(_out(key))
    if not any(text.strip() for parts in texts.values() for text in parts):
        raise InputError(f"{where}: is empty", f"Fill in at least one of {', '.join(NAMES)}.")
    return _formed(
        {name: "\n".join(part for part in parts if part.strip()) for name, parts in texts.items()}, case_id, remarks
    )


def _formed(texts: Mapping[str, str], case_id: Any, remarks: list[Remark]) -> Taken:
    text, sections = laid_out(texts)
    return Taken(_case(case_id, text), "section form", counted(remarks), sections)


def _guessed(item: Mapping[str, Any], strings: Mapping[str, Any], case_id: Any, where: str, form: str) -> Taken:
    """No key says which it is: the likeliest one, or all of them as lines. A single key is too little to guess from."""
    names = {" ".join(key_words(name)): name for name in strings}
    for likely in LIKELY_TEXT:
        name = names.get(" ".join(key_words(likely)))
        if name is not None and isinstance(item[name], str) and len(item) > 1:
            guess = Remark(
                "guessed", f"`{shown(name)}`", "it is taken for the case text; --column text=NAME names another"
            )
            return _taken(item[name], case_id, form, [guess, *_rest(item, (name, "id"))])
    kept = [name for name in strings if _is_free(name)]
    if len(item) < 2 or not any(isinstance(item[name], str) and item[name].strip() for name in kept):
        raise InputError(f"{where}: has no text field `text`", "Give `text`, or name it: `--column text=NAME`.")
    lines = [f"{_spaced(name)}: {_as_text(item[name])}" for name in kept]
    guess = Remark(
        "guessed",
        f"{len(kept)} key{'s' * (len(kept) != 1)}",
        "each is a line of the case text; --column text=NAME names one of them",
    )
    return _taken("\n".join(lines) + "\n", case_id, "object of texts", [guess, *_rest(item, ("id", *kept))])


def _rest(item: Mapping[str, Any], used: Iterable[str]) -> list[Remark]:
    """What stands beside the case text and is not read."""
    return [_out(key) for key in item if key not in {"id", "schema", *used}]


def _out(key: str) -> Remark:
    answer = holds_answer(key) or section_of(_spaced(key)) == OTHER
    why = ANSWER if answer else IDENTITY if says_who(key) else "it stands beside the case text"
    return Remark("left out", f"`{shown(key)}`", why)


def _is_free(key: str) -> bool:
    """Whether a key without a section of its own may become case text."""
    free = section_of(_spaced(key)) != OTHER or key_words(key)[:1] in (("note",), ("notes",), ("other",), ("comments",))
    return free and not holds_answer(key) and not says_who(key)


def _as_text(value: Any) -> str | None:
    """A string, a number, or a list of strings as text; None for anything else."""
    if isinstance(value, str):
        return value
    if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, list) and value and all(isinstance(part, str) for part in value):
        return "\n".join(value)
    return None


def _spaced(key: str) -> str:
    return " ".join(key.replace("_", " ").split())


def _taken(text: str, case_id: Any, form: str, remarks: list[Remark]) -> Taken:
    return Taken(_case(case_id, text), form, counted(remarks))


def _case(case_id: Any, text: str) -> Case:
    """An id that can be stored and shown anywhere: printable, not empty, not long; empty where none is given."""
    if isinstance(case_id, bool) or not isinstance(case_id, str | int):
        return Case("", text)
    return Case(printable(str(case_id)), text)


LONGEST_ID = 100
"""Characters of a case's id."""


def printable(given: str) -> str:
    return "".join(letter if letter.isprintable() else "_" for letter in given[:LONGEST_ID]).strip()
