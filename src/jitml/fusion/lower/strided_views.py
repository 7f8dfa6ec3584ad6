"""Strided views: which part of an array's memory is another array?

Shape, offset and strides in elements, as NumPy's views have them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from jitml.fusion.lower.index_maps import aligned_blocks
from jitml.ir import ops
from jitml.ir.graph import Node, Value
from jitml.ir.types import F64
from jitml.kernels.ir import Buffer, Const, Expr, add, mul
from jitml.records import dataclass, field

Ints: TypeAlias = tuple[int, ...]
VIEWS = (ops.transpose, ops.slice, ops.reshape, ops.broadcast)  # that may be read where their operand lies


@dataclass(frozen=True, slots=True)
class Strided:
    """Element i lies at offset + sum(i * strides)."""

    shape: Ints
    strides: Ints
    offset: Expr = field(default_factory=lambda: Const(0))

    @classmethod
    def dense(cls, shape: Ints) -> Strided:
        return cls(shape, Buffer("", F64, shape).element_strides)

    @classmethod
    def whole(cls, buffer: Buffer) -> Strided:
        return cls(buffer.shape, buffer.element_strides)

    def through(self, node: Node, place: Callable[[Value], Expr]) -> Strided | None:
        """What an index map makes of it; None where that is no view.

        Args:
            place: of a window's start.
        """
        params = node.params
        match node.op:
            case ops.transpose:
                return self.transposed(params["perm"])
            case ops.broadcast:
                steps = dict(zip(params["axes"], (0 if n == 1 else s for n, s in zip(self.shape, self.strides))))
                return Strided(node.output.shape, tuple(steps.get(a, 0) for a in range(node.output.ndim)), self.offset)
            case ops.slice:
                return self._window(node, tuple(map(Const, params["start"])))
            case ops.dynamic_slice:
                return self._window(node, tuple(map(place, node.inputs[1:])))
            case ops.reshape:
                return self._reshaped(node.output.shape)
        return None

    def transposed(self, perm: Sequence[int]) -> Strided:
        return Strided(tuple(self.shape[a] for a in perm), tuple(self.strides[a] for a in perm), self.offset)

    def _window(self, node: Node, start: Sequence[Expr]) -> Strided:
        offset = self.offset
        for first, stride in zip(start, self.strides, strict=True):
            offset = add(offset, mul(first, stride))
        steps = tuple(stride * by for stride, by in zip(self.strides, node.params["step"], strict=True))
        return Strided(node.output.shape, steps, offset)

    def _reshaped(self, shape: Ints) -> Strided | None:
        steps = [0] * len(shape)
        for (x0, x1), (y0, y1) in aligned_blocks(self.shape, shape):
            step = one_stride(self.shape[x0:x1], self.strides[x0:x1])
            if step is None:
                return None
            for k in reversed(range(y0, y1)):
                steps[k] = step
                step *= shape[k]
        return Strided(shape, tuple(steps), self.offset)


def one_stride(shape: Ints, strides: Ints) -> int | None:
    """The stride of several axes taken as one, outer first; None if there is none.

    >>> one_stride((2, 3), (12, 4)), one_stride((2, 3), (16, 4)), one_stride((), ())
    (4, None, 0)
    """
    step, size = 0, 1
    for n, stride in zip(reversed(shape), reversed(strides), strict=True):
        if n == 1:
            continue
        if size == 1:
            step = stride
        elif stride != step * size:
            return None
        size *= n
    return step
