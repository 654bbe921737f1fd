"""A report as a browser's parser would read it, for tests: elements in balance, attributes, text by class."""

from collections.abc import Callable
from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "br"}


@dataclass
class Element:
    tag: str
    attributes: dict[str, str | None]
    children: list["Element | str"] = field(default_factory=list)

    def text(self, skip: str = "") -> str:
        """The text within, without what is in elements of a class to be skipped."""
        parts = []
        for child in self.children:
            if isinstance(child, str):
                parts.append(child)
            elif not (skip and skip in child.classes):
                parts.append(child.text(skip))
        return "".join(parts)

    @property
    def classes(self) -> list[str]:
        return (self.attributes.get("class") or "").split()

    def all(self, wanted: Callable[["Element"], bool] = lambda _: True) -> list["Element"]:
        """The elements within, in order, that are wanted."""
        found = []
        for child in self.children:
            if isinstance(child, Element):
                found += [*([child] if wanted(child) else []), *child.all(wanted)]
        return found

    def by_class(self, name: str) -> list["Element"]:
        return self.all(lambda element: name in element.classes)

    def by_tag(self, name: str) -> list["Element"]:
        return self.all(lambda element: element.tag == name)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Element("", {})
        self.open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len({name for name, _ in attrs}) == len(attrs), f"<{tag}> has an attribute twice"
        element = Element(tag, dict(attrs))
        self.open[-1].children.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_endtag(self, tag: str) -> None:
        assert self.open[-1].tag == tag, f"</{tag}> ends <{self.open[-1].tag}>"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment of {len(data)} characters")

    def handle_pi(self, data: str) -> None:
        raise AssertionError(f"a processing instruction of {len(data)} characters")

    def unknown_decl(self, data: str) -> None:
        raise AssertionError(f"a declaration of {len(data)} characters")


def read(html: str) -> Element:
    """The whole page; fails where elements are out of balance."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    assert reader.open == [reader.root], f"<{reader.open[-1].tag}> is never closed"
    return reader.root
