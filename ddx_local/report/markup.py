"""HTML that cannot be broken by what it shows: plain strings are escaped, only `Html` goes in as it is. Pure."""

import html
import re
from collections.abc import Iterable

# What HTML does not allow in a document, and surrogates, which have no UTF-8 form. One character for one: places stay.
_UNFIT = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_VOID = ("meta", "br")


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


def escaped(text: str) -> Html:
    """A string as markup that shows it."""
    return text if isinstance(text, Html) else Html(html.escape(_UNFIT.sub("\ufffd", text)))


def join(parts: Iterable[str], between: str = "") -> Html:
    """Several parts as one; strings are escaped."""
    return Html(escaped(between).join(escaped(part) for part in parts))


def el(tag: str, /, *children: str, **attributes: str | None) -> Html:
    """An element.

    Args:
        tag: Its name.
        children: Its content; plain strings are escaped.
        attributes: By name, `class_` for class and `_` for `-`; None leaves one out, '' gives it without a value.
    """
    pairs = "".join(
        f" {key.rstrip('_').replace('_', '-')}" + (f'="{escaped(value)}"' if value else "")
        for key, value in attributes.items()
        if value is not None
    )
    end = "" if tag in _VOID else f"</{tag}>"
    return Html(f"<{tag}{pairs}>{join(children)}{end}")


def said(text: str) -> Html:
    """What somebody or a model wrote, apart from the direction of the text around it."""
    return el("bdi", text)


def listed(names: Iterable[str]) -> Html:
    """Names with commas between them, each apart."""
    return join((said(name) for name in names), ", ")
