"""Objects of real code as templates: how one is made, read, written, and changed behind a program's back.

In the texts `$o` is the object, `$k` a small number that differs from call to call, `$x` an array, `$n` a number, `$e` an exact
integer, `$i` a small index, `$v` a fresh name.
"""

from __future__ import annotations

from dataclasses import dataclass
from string import Template

from programs.drawn.scope import ROUNDED


@dataclass(frozen=True)
class Thing:
    """A kind of object.

    Args:
        made: an expression that makes one.
        reads: expressions, mostly of numbers and arrays.
        writes: statements.
        changed: statements that make one differ from before, in place.
        above: imports, classes and functions that it needs.
        level: how exact the floats are that it gives.
    """

    name: str
    made: tuple[str, ...]
    reads: tuple[str, ...]
    writes: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    above: str = ""
    level: int = ROUNDED


def filled(text: str, **words: str) -> str:
    """The template with words in the place of its marks; those that have none yet stay."""
    return Template(text).safe_substitute(words)
