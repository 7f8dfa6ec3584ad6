"""Strided loops in templates: axes that two buffers share, as few as they can be, and the places that positions stand for."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from jitml.codegen.cuda.calls.text import index_text
from jitml.fusion.lower.layouts import Digits
from jitml.kernels.ir import Buffer, Const, Expr, mul
from jitml.records import dataclass

_FAR = 1 << 30  # elements that 32 bits count with room for a grid's step


@dataclass(frozen=True, slots=True)
class SharedAxis:
    """An axis of both sides; `size` is the largest that `extent` may be."""

    extent: Expr
    size: int
    target: int
    source: int

    def holds(self, inner: SharedAxis) -> bool:
        """Whether one step here is as far as all of the inner axis, on both sides."""
        n = inner.size
        return isinstance(inner.extent, Const) and (self.target, self.source) == (inner.target * n, inner.source * n)


@dataclass(frozen=True, slots=True)
class PlacedExtents:
    """Extents of axes, of which those that only the run knows are `x` and a number."""

    most: tuple[int, ...]
    texts: tuple[str, ...]

    @property
    def total(self) -> str:
        return "(" + (" * ".join(f"{text}" for text in self.texts) or "1") + ")"

    def place(self, position: str, steps: Sequence[int]) -> str:
        """Where in memory the element at a position lies."""
        terms, rest = [], position
        for k in reversed(range(len(steps))):
            at = rest if k == 0 else f"{rest} % {self.texts[k]}"
            terms.append(f"({at}) * {steps[k]}LL")
            rest = f"{rest} / {self.texts[k]}"
        return " + ".join(terms) or "0"


def shared_axes(target: Buffer, source: Buffer, extents: Sequence[Expr]) -> list[SharedAxis]:
    """The axes of a copy, the densest of the target last, as few as they can be."""
    steps = zip(extents, target.shape, target.element_strides, source.element_strides, strict=True)
    axes = [SharedAxis(*each) for each in steps if each[0] != Const(1)]
    found: list[SharedAxis] = []
    for axis in sorted(axes, key=lambda axis: -abs(axis.target)):
        if found and found[-1].holds(axis):
            outer = found.pop()
            axis = SharedAxis(mul(outer.extent, axis.extent), outer.size * axis.size, axis.target, axis.source)
        found.append(axis)
    return found or [SharedAxis(Const(1), 1, 1, 1)]


def index_type(axes: Sequence[SharedAxis], *buffers: Buffer) -> str:
    far = max(prod(axis.size for axis in axes), *(buffer.reach for buffer in buffers))
    return "int" if far < _FAR else "long long"


def extents_text(axes: Sequence[SharedAxis], index: str) -> list[str]:
    return [f"const {index} n{k} = {index_text(axis.extent)};" for k, axis in enumerate(axes)]


def total_text(axes: Sequence[SharedAxis]) -> str:
    return " * ".join(f"n{k}" for k in range(len(axes)))


def place_text(name: str, steps: Sequence[int], index: str, first: int = 0) -> str:
    """A function from the position among axes n0, n1, ... in their order to a place in memory.

    Args:
        first: how many of the axes come before those of the steps.
    """
    terms, rest = [], "i"
    for k in reversed(range(len(steps))):
        at = rest if k == 0 else f"{rest} % n{first + k}"
        if steps[k]:
            terms.append(f"({at})" if steps[k] == 1 else f"({at}) * {number_text(steps[k], index)}")
        rest = f"{rest} / n{first + k}"
    return f"const auto {name} = [=]({index} i) {{ return ({index})({' + '.join(terms) or '0'}); }};"


def digits_text(digits: Digits, reach: int) -> str:
    """A function from a number to the place that its digits stand for.

    Args:
        reach: elements of the memory.
    """
    total = prod(n for n, _ in digits)
    index, place = ("unsigned", "int") if max(total, reach) < _FAR else ("unsigned long long", "long long")
    terms, inner = [], 1
    for k, (n, step) in enumerate(reversed(digits), 1):
        digit = "i" if inner == 1 else f"i / {inner}"
        terms.append(f"({place})({digit if k == len(digits) else f'{digit} % {n}'}) * {step}")
        inner *= n
    return f"[=]({index} i) {{ return {' + '.join(terms) or '0'}; }}"


def number_text(n: int, index: str) -> str:
    return f"{n}" if index == "int" else f"{n}LL"


def indented(lines: Sequence[str]) -> list[str]:
    return [f"  {line}" for line in lines]
