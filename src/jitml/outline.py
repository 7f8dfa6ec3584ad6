"""Outlines: the reports that people read, as lines with lines below them.

`Explanation` is such a report. It is a text; a notebook shows it as HTML (`notebook/`), which is imported then.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from jitml.errors import Source
from jitml.records import dataclass


@dataclass(frozen=True)
class OutlineEntry:
    """A line of a report, and what belongs to it: indented in the text, folded in HTML.

    bars: numbers of bytes that HTML shows as bars, each with what it counts; empty if the text says that.
    sources: the user's lines it comes from.
    code: what HTML shows below it, and the text does not.
    """

    text: str
    inner: tuple[OutlineEntry, ...] = ()
    bars: tuple[tuple[str, int], ...] = ()
    sources: tuple[Source, ...] = ()
    code: str = ""

    def lines(self, indent: str = "") -> Iterator[str]:
        yield indent + self.text
        for entry in self.inner:
            yield from entry.lines(indent + "  ")


class Explanation(str):
    """The report of `jitml.explain`: a text, which notebooks show as HTML.

    Attributes:
        entries: the outline that the text is written from.
    """

    entries: tuple[OutlineEntry, ...]

    def __new__(cls, *entries: OutlineEntry) -> Explanation:
        self = super().__new__(cls, "\n".join(line for entry in entries for line in entry.lines()))
        self.entries = entries
        return self

    def __reduce__(self) -> Any:
        return Explanation, self.entries

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """In IPython without HTML it is seen as lines."""
        printer.text(str(self))

    def _repr_html_(self) -> str:
        html: str = import_module("jitml.notebook.pages").explanation(self)  # few programs run in a notebook
        return html


def entries_of(lines: list[str]) -> tuple[OutlineEntry, ...]:
    """Lines that are indented by two blanks a level, as an outline.

    >>> [(entry.text, [inner.text for inner in entry.inner]) for entry in entries_of(["a", "  b", "    c", "d"])]
    [('a', ['b']), ('d', [])]
    """
    heads = [n for n, line in enumerate(lines) if not line.startswith("  ") or n == 0]
    groups = [lines[start:end] for start, end in zip(heads, [*heads[1:], len(lines)])]
    return tuple(OutlineEntry(head, entries_of([line[2:] for line in rest])) for head, *rest in groups)


def file_name(file: str) -> str:
    """What people call a file: its name, or a notebook's cell (`In[3]`).

    >>> file_name("/home/me/model.py")
    'model.py'
    """
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    named = getattr(getattr(shell, "compile", None), "format_code_name", lambda file: None)(file)
    return file.rsplit("/", 1)[-1] if named is None else named[1]


__all__ = ["Explanation", "OutlineEntry", "entries_of", "file_name"]
