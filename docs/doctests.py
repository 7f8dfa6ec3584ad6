"""A griffe extension: a docstring's examples, which begin with `>>>`, are a section of examples in the reference."""

from __future__ import annotations

import re
from typing import Any

import griffe

_FIRST = re.compile(r"(?:(?<=\n\n)|\A)(?=>>> )")


class Doctests(griffe.Extension):
    """Put `Examples:` before the first example of each docstring that has no such section."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        if obj.docstring is None or "Examples:" in obj.docstring.value:
            return
        before, *examples = _FIRST.split(obj.docstring.value, maxsplit=1)
        if examples:
            indented = "\n".join(f"    {line}".rstrip() for line in examples[0].splitlines())
            obj.docstring.value = f"{before}Examples:\n{indented}\n"
