"""Layouts: integers that are linear in the digits of an index, as the places of a window's elements are.

Each axis is a number of several digits, each with an extent and a stride of its own. So the axes of a strided array may be split
and joined by any reshape, and an axis may step through others' memory: a window's does. Index arrays have layouts, too, whose
integers are their elements.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import TypeAlias

from jitml.fusion.lower.gemm_operands import Axes
from jitml.fusion.lower.strided_views import Ints
from jitml.ir import ops
from jitml.ir.analysis.limits import dtype_limits
from jitml.ir.graph import Node, Value
from jitml.records import dataclass

Steps: TypeAlias = Sequence[tuple[int, Ints]]  # extents, and strides in several arrays
Digits: TypeAlias = tuple[tuple[int, int], ...]  # extents and strides, the outermost first


@dataclass(frozen=True, slots=True)
class Layout:
    """The integer at an index: `offset`, and each digit of the index times its stride.

    Args:
        axes: the digits of each.
    """

    axes: tuple[Digits, ...]
    offset: int = 0

    @staticmethod
    def strided(shape: Sequence[int], strides: Sequence[int], offset: int = 0) -> Layout:
        """
        >>> Layout.strided((6, 4), (8, 2)).reshaped((2, 12)).axes
        (((2, 24),), ((3, 8), (4, 2)))
        """
        return Layout(tuple(((n, step),) for n, step in zip(shape, strides, strict=True)), offset)

    @property
    def shape(self) -> Ints:
        return tuple(prod(n for n, _ in axis) for axis in self.axes)

    @property
    def bounds(self) -> tuple[int, int]:
        """The least and the largest integer; of no index none are asked for."""
        reaches = [(n - 1) * step for axis in self.axes for n, step in axis]
        return self.offset + sum(min(reach, 0) for reach in reaches), self.offset + sum(max(reach, 0) for reach in reaches)

    def digits(self, axes: Sequence[int]) -> Digits:
        """Those of some axes, taken as one."""
        return tuple(digit for axis in axes for digit in self.axes[axis])

    def scaled(self, by: int) -> Layout:
        return Layout(tuple(tuple((n, step * by) for n, step in axis) for axis in self.axes), self.offset * by)

    def plus(self, other: Layout) -> Layout | None:
        """The sum of two of one shape."""
        axes = [refined(x, y) for x, y in zip(self.axes, other.axes, strict=True)]
        found = [tuple((n, x + y) for n, (x, y) in axis) for axis in axes if axis is not None]
        return Layout(tuple(found), self.offset + other.offset) if len(found) == len(axes) else None

    def transposed(self, perm: Sequence[int]) -> Layout:
        return Layout(tuple(self.axes[a] for a in perm), self.offset)

    def spread(self, axes: Sequence[int], shape: Sequence[int]) -> Layout:
        """What `broadcast` makes of it."""
        own = {a: axis if prod(n for n, _ in axis) != 1 else ((shape[a], 0),) for a, axis in zip(axes, self.axes, strict=True)}
        return Layout(tuple(own.get(a, ((n, 0),)) for a, n in enumerate(shape)), self.offset)

    def flipped(self, axes: Sequence[int]) -> Layout:
        turned = {a: tuple((n, -step) for n, step in self.axes[a]) for a in axes}
        last = sum((n - 1) * step for a in axes for n, step in self.axes[a])
        return Layout(tuple(turned.get(a, axis) for a, axis in enumerate(self.axes)), self.offset + last)

    def sliced(self, start: Sequence[int], step: Sequence[int], shape: Sequence[int]) -> Layout | None:
        axes, offset = [], self.offset
        for axis, first, by, n in zip(self.axes, start, step, shape, strict=True):
            if (n, first, by) == (prod(extent for extent, _ in axis), 0, 1):
                axes.append(axis)
            elif len(joined := _joined(axis)) <= 1:
                stride = joined[0][1] if joined else 0
                axes.append(((n, stride * by),))
                offset += stride * first
            else:
                return None
        return Layout(tuple(axes), offset)

    def reshaped(self, shape: Sequence[int]) -> Layout | None:
        rest = list(self.digits(range(len(self.axes))))
        axes: list[Digits] = []
        for size in reversed(shape):
            axis: list[tuple[int, int]] = []
            while size > 1:
                n, step = rest.pop()
                inner = min(n, size)
                if n % inner or size % inner:
                    return None
                axis.insert(0, (inner, step))
                size //= inner
                if n > inner:
                    rest.append((n // inner, step * inner))
            axes.insert(0, tuple(axis) or ((1, 0),))
        return Layout(tuple(axes), self.offset)

    def gathered(self, indices: Sequence[Layout], axis: int) -> Layout | None:
        """What `gather` reads; None if an index may be outside, or counts from the end."""
        places: Layout | None = None
        for k, index in enumerate(indices, axis):
            own, (low, high) = _joined(self.axes[k]), index.bounds
            if len(own) > 1 or low < 0 or high >= self.shape[k]:
                return None
            step = index.scaled(own[0][1] if own else 0)
            places = step if places is None else places.plus(step)
            if places is None:
                return None
        assert places is not None
        axes = (*self.axes[:axis], *places.axes, *self.axes[axis + len(indices) :])
        return Layout(axes, self.offset + places.offset)

    def through(self, node: Node, index: Callable[[Value], Layout | None]) -> Layout | None:
        """What an index map makes of it; None if that is linear in no digits.

        Args:
            index: the layout of an index array.
        """
        params = node.params
        match node.op:
            case ops.transpose:
                return self.transposed(params["perm"])
            case ops.broadcast:
                return self.spread(params["axes"], node.output.shape)
            case ops.flip:
                return self.flipped(params["axes"])
            case ops.slice:
                return self.sliced(params["start"], params["step"], node.output.shape)
            case ops.reshape:
                return self.reshaped(node.output.shape)
            case ops.gather:
                indices = [index(v) for v in node.inputs[1:]]
                known = [each for each in indices if each is not None]
                return self.gathered(known, params["axis"]) if len(known) == len(indices) else None
        return None


class IndexArrays:
    """The layouts of integer arrays that a graph computes of constants alone.

    Attributes:
        makers: of each array that has one, the nodes that it takes.
    """

    def __init__(self, producers: Mapping[Value, Node]) -> None:
        self._producers = producers
        self._known: dict[Value, Layout | None] = {}
        self.makers: dict[Value, frozenset[Node]] = {}

    def layout(self, value: Value) -> Layout | None:
        if value not in self._known:
            node = self._producers.get(value)
            is_candidate = node is not None and value.dtype.kind in "iu" and value.aval.is_static and 0 not in value.shape
            found = self._made(node) if node is not None and is_candidate else None
            self._known[value] = found if found is None or _fits(found, value) else None
            if node is not None and self._known[value] is not None:
                self.makers[value] = frozenset((node,)).union(*(self.makers[v] for v in node.inputs))
        return self._known[value]

    def _made(self, node: Node) -> Layout | None:
        params, shape = node.params, node.output.shape
        if node.op is ops.iota:
            return Layout.strided(shape, [int(a == params["axis"]) for a in range(len(shape))])
        if node.op is ops.full:
            return Layout.strided(shape, [0] * len(shape), int(params["value"]))
        own = [self.layout(v) for v in node.inputs]
        known = [each for each in own if each is not None]
        if not known or len(known) < len(own):
            return None
        match node.op:
            case ops.convert:
                return known[0]
            case ops.neg:
                return known[0].scaled(-1)
            case ops.add:
                return known[0].plus(known[1])
            case ops.sub:
                return known[0].plus(known[1].scaled(-1))
            case ops.mul:
                factor, other = known if _is_constant(known[0]) else reversed(known)
                return other.scaled(factor.offset) if _is_constant(factor) else None
        return known[0].through(node, self.layout)


def _fits(layout: Layout, value: Value) -> bool:
    """Whether the integers are those of an array: none wraps."""
    (low, high), (least, most) = layout.bounds, dtype_limits(value.dtype)
    return least <= low and high <= most


def _is_constant(layout: Layout) -> bool:
    low, high = layout.bounds
    return low == high


def refined(*layouts: Digits) -> list[tuple[int, Ints]] | None:
    """Digits that several numbers of one extent have in common, with the strides of each, as few as can be; None if their extents
    do not divide each other.

    >>> refined(((6, 2),), ((2, 30), (3, 10))), refined(((6, 1),), ((2, 5), (3, 1)))
    ([(6, (2, 10))], [(2, (3, 5)), (3, (1, 1))])
    """
    rest = [[digit for digit in layout if digit[0] != 1] for layout in layouts]
    found: list[tuple[int, Ints]] = []
    while all(rest):
        n = min(digits[-1][0] for digits in rest)
        if any(digits[-1][0] % n for digits in rest):
            return None
        steps = tuple(digits[-1][1] for digits in rest)
        for digits in rest:
            extent, step = digits.pop()
            if extent > n:
                digits.append((extent // n, step * n))
        if found and all(outer == found[0][0] * inner for outer, inner in zip(steps, found[0][1], strict=True)):
            n, steps = n * found[0][0], found.pop(0)[1]
        found.insert(0, (n, steps))
    assert not any(rest), "numbers of one extent"
    return found


def _joined(digits: Digits) -> Digits:
    """The same with as few digits as can be."""
    return tuple((n, step) for n, (step,) in refined(digits) or ())


def equal_steps(places: Sequence[Ints]) -> list[tuple[int, Ints]] | None:
    """The digits of which numbered places are linear functions, if they are, the first of them aside.

    >>> equal_steps([(0, 0), (1, 5), (10, 10), (11, 15)]), equal_steps([(0,), (1,), (5,)])
    ([(2, (10, 10)), (2, (1, 5))], None)
    """
    if len(places) == 1:
        return []

    def steps(at: int, to: int) -> Ints:
        return tuple(b - a for a, b in zip(places[at], places[to], strict=True))

    n = 2
    while n < len(places) and steps(n - 1, n) == steps(0, 1):
        n += 1
    groups = range(0, len(places), n)
    if len(places) % n or any(steps(g + k, g + k + 1) != steps(0, 1) for g in groups for k in range(n - 1)):
        return None
    outer = equal_steps(places[::n])
    return None if outer is None else [*outer, (n, steps(0, 1))]


@dataclass(frozen=True, slots=True)
class MatrixDigits:
    """The layout of a stack of matrices: digits of their rows and of their columns, and of the stack those that others share."""

    batch: Ints
    rows: Digits
    columns: Digits
    offset: int

    @property
    def has_strides(self) -> bool:
        """Whether there is one stride along rows and one along columns."""
        return len(self.rows) <= 1 and len(self.columns) <= 1


@dataclass(frozen=True, slots=True)
class ProductDigits:
    """The layouts of both factors of a product."""

    batch: Ints
    x: MatrixDigits
    y: MatrixDigits

    @property
    def has_strides(self) -> bool:
        return self.x.has_strides and self.y.has_strides

    @staticmethod
    def of(x: Layout, y: Layout, of_x: Axes, of_y: Axes, terms: Steps = ()) -> ProductDigits | None:
        """None if the digits of what both share do not fit each other. Along the sum they may come in any order: here neighbours
        in memory come last.

        Args:
            terms: of several products that are added up, the digits of their numbers.
        """
        batch, deep = refined(x.digits(of_x.batch), y.digits(of_y.batch)), refined(x.digits(of_x.columns), y.digits(of_y.rows))
        if batch is None or deep is None:
            return None
        deep = sorted([*terms, *deep], key=lambda digit: -sum(map(abs, digit[1])))
        deep = refined(*(tuple((n, steps[k]) for n, steps in deep) for k in range(2))) or []
        left, right = (tuple((n, steps[k]) for n, steps in deep) for k in range(2))
        return ProductDigits(
            tuple(n for n, _ in batch),
            MatrixDigits(tuple(steps[0] for _, steps in batch), _joined(x.digits(of_x.rows)), left, x.offset),
            MatrixDigits(tuple(steps[1] for _, steps in batch), right, _joined(y.digits(of_y.columns)), y.offset),
        )
