"""A griffe extension: what docstrings say in text for readers of code becomes what the reference has for it.

Examples, which begin with `>>>`, are a section of examples. Pages (`docs/gpu.md`) are links.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

_PAGE = re.compile(r"\bdocs/([a-z/-]+)\.md\b")
_FIRST = re.compile(r"(?:(?<=\n\n)|\A)(?=>>> )")


class Doctests(griffe.Extension):
    """Put `Examples:` before the first example of each docstring that has no such section, and link pages before it."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        if obj.docstring is None or "Examples:" in obj.docstring.value:
            return
        before, *examples = _FIRST.split(obj.docstring.value, maxsplit=1)
        before = _PAGE.sub(r"[\1](../\1.md)", before)
        obj.docstring.value = before
        if examples:
            indented = "\n".join(f"    {line}".rstrip() for line in examples[0].splitlines())
            obj.docstring.value = f"{before}Examples:\n{indented}\n"
