"""A page as a tree of elements, with the standard library's parser alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Final

VOID: Final = frozenset({"meta", "link", "br", "path", "use", "rect"})


@dataclass
class Element:
    """An element with what it holds."""

    tag: str
    attributes: dict[str, str]
    held: list[Element | str] = field(default_factory=list)

    def all(self, tag: str, **attributes: str) -> Iterator[Element]:
        """Yield the elements within of a tag; `kind` is one of their classes."""
        kind = attributes.pop("kind", None)
        for each in self.held:
            if isinstance(each, Element):
                classes = each.attributes.get("class", "").split()
                named = all(each.attributes.get(name) == value for name, value in attributes.items())
                if each.tag == tag and named and (kind is None or kind in classes):
                    yield each
                yield from each.all(tag, **attributes, **({} if kind is None else {"kind": kind}))

    def first(self, tag: str, **attributes: str) -> Element | None:
        """Return the first of them."""
        return next(self.all(tag, **attributes), None)

    @property
    def text(self) -> str:
        """Return its text with single blanks; a line break is one."""
        parts = (each if isinstance(each, str) else each._inner for each in self.held)
        return " ".join("".join(parts).split())

    @property
    def _inner(self) -> str:
        return " " if self.tag == "br" else "".join(e if isinstance(e, str) else e._inner for e in self.held)

    @property
    def rows(self) -> list[list[str]]:
        """Return the cells of a table's rows."""
        return [
            [cell.text for cell in row.held if isinstance(cell, Element) and cell.tag in ("td", "th")]
            for row in self.all("tr")
        ]


class PageReader(HTMLParser):
    """Builds the tree."""

    def __init__(self) -> None:
        super().__init__()
        self.open = [Element("page", {})]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        made = Element(tag, {name: value or "" for name, value in attrs})
        self.open[-1].held.append(made)
        if tag not in VOID:
            self.open.append(made)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open[-1].held.append(Element(tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID:
            return
        while len(self.open) > 1 and self.open.pop().tag != tag:
            pass

    def handle_data(self, data: str) -> None:
        self.open[-1].held.append(data)


def page_of(text: str) -> Element:
    """Return the tree of a page."""
    reader = PageReader()
    reader.feed(text)
    reader.close()
    return reader.open[0]
