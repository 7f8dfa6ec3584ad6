"""Outlined operations: long ones as calls of functions that programs share, which quick code has in place of their instructions.

What LLVM makes of `sin` is the same in each program, and most of what there is to compile: a shared function is compiled once.
It computes the same bits. Full code has the instructions in place, where registers stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

_FROM = re.compile(r"%([-$\w.]+) \]")  # where a phi's value comes from


class Outline(NamedTuple):
    """A function that does one operation: `hidden double @name(double %x0)`, its blocks, and what these refer to."""

    head: str
    body: str
    declared: str

    @property
    def name(self) -> str:
        return self.head.partition("@")[2].partition("(")[0]

    def module(self, head: str, tail: str) -> str:
        """A module of its own, `head` and `tail` being those of any."""
        return "\n\n".join([head, f"define {self.head} #0 {{\n{self.body}\n}}", tail, self.declared, ""])


class Inlined(str):
    """The instructions of a long operation, written out.

    Attributes:
        call: what does the same by a function.
        begins, ends: the labels of the blocks that the instructions begin and end in.
    """

    call: str
    outline: Outline
    begins: str
    ends: str


def inlined(text: str, call: str, outline: Outline, begins: str, ends: str) -> Inlined:
    found = Inlined(text)
    found.call, found.outline, found.begins, found.ends = call, outline, begins, ends
    return found


def outlined(lines: Iterable[str]) -> tuple[str, tuple[Outline, ...]]:
    """The text of a function's body with calls for long operations, and the functions that these call; none: it is as it was."""
    places: dict[str, str] = {}  # a block that there is no more -> the one that its instructions are in
    called: dict[Outline, None] = {}
    found = []
    for line in lines:
        if isinstance(line, Inlined):
            called[line.outline] = None
            if line.ends != line.begins:
                places[line.ends] = line.begins
            found.append(line.call)
        else:
            found.append(line)
    text = "\n".join(found)
    return (_moved(text, places) if places else text), tuple(called)


def _moved(text: str, places: dict[str, str]) -> str:
    """The text with phis whose values come from where the blocks now are."""

    def place(match: re.Match[str]) -> str:
        label = match[1]
        while label in places:
            label = places[label]
        return f"%{label} ]"

    return "\n".join(_FROM.sub(place, line) if " = phi " in line else line for line in text.split("\n"))


__all__ = ["Inlined", "Outline", "inlined", "outlined"]
