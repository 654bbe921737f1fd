"""What a method says of itself: its options from their dataclass, its differences from the docstring of its module. Pure.

A module's docstring holds, as paragraphs: a title; `Source: ...`; `The paper says / we do:` with a list of `- theirs / ours`;
`Differs from the authors' program:` with a list, or in prose; anything else is a remark.
"""

import dataclasses
import inspect
import re
from collections.abc import Iterable, Sequence
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from ddx_local.methods.table import Method


@dataclasses.dataclass(frozen=True, slots=True)
class OptionAbout:
    """One option: what it may be, in words; its default as a JSON value; what it means, in one line."""

    type: str
    default: Any
    meaning: str


@dataclasses.dataclass(frozen=True, slots=True)
class About:
    """`paper` holds (what the paper says, what we do), either of which may be empty; `program` and `remarks` are texts."""

    source: str
    paper: tuple[tuple[str, str], ...]
    program: tuple[str, ...]
    remarks: tuple[str, ...]


def options_about(method: Method) -> dict[str, OptionAbout]:
    """A method's options by name, in order."""
    hints = get_type_hints(method.options)
    meanings = _arguments(inspect.getdoc(method.options) or "")
    found = {}
    for field in dataclasses.fields(method.options):
        default = list(field.default) if isinstance(field.default, tuple) else field.default
        found[field.name] = OptionAbout(_words(hints[field.name]), default, meanings.get(field.name, ""))
    return found


def about(method: Method) -> About:
    """What the docstring of a method's module says."""
    return read(inspect.getdoc(inspect.getmodule(method.flow)) or "")


def read(doc: str) -> About:
    """The parts of a docstring."""
    source, remarks = "", list[str]()
    paper: list[tuple[str, str]] = []
    program: list[str] = []
    for paragraph in doc.split("\n\n")[1:]:
        lines = paragraph.strip().splitlines()
        head = lines[0] if lines else ""
        if head.startswith(("Source:", "Sources:")):
            source = " ".join(lines).partition(": ")[2]
        elif head.startswith(("The paper says", "The papers say")):
            for item in _items(lines):
                if item.lower().startswith("the authors' program"):
                    program.append(item)
                else:
                    theirs, mark, ours = item.partition(" / ")
                    paper.append((theirs, ours) if mark else ("", theirs))
        elif head.startswith("Differs from"):
            program += _items(lines) or [re.sub(r"^Differs from the authors' \w+: ", "", " ".join(lines))]
        elif lines:
            remarks.append(" ".join(lines))
    return About(source, tuple(paper), tuple(program), tuple(remarks))


def _items(lines: Iterable[str]) -> list[str]:
    """The items of a list, each in one line."""
    found: list[str] = []
    for line in lines:
        if line.startswith("- "):
            found.append(line[2:])
        elif found:
            found[-1] += " " + line.strip()
    return found


def _arguments(doc: str) -> dict[str, str]:
    """The `Args:` section of a docstring, by name."""
    found: dict[str, str] = {}
    name = ""
    for line in doc.partition("Args:")[2].splitlines():
        head, mark, rest = line.strip().partition(": ")
        if mark and head.isidentifier():
            name, found[head] = head, rest
        elif name and line.strip():
            found[name] += " " + line.strip()
    return found


_WORDS = {bool: "on or off", int: "whole number", float: "number", str: "text"}


def _words(kind: Any) -> str:
    """A type in words."""
    inner: Sequence[Any] = get_args(kind)
    if get_origin(kind) is Literal:
        return "one of " + ", ".join(str(item) for item in inner)
    if get_origin(kind) is tuple:
        return "names with commas between them"
    if get_origin(kind) in (Union, UnionType):
        return " or ".join(_words(item) for item in inner if item is not type(None)) + ", or none"
    return _WORDS.get(kind, "text")
