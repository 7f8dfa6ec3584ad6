"""GEMM operands: what does a library's `gemm` see of a contraction?

Stacks of matrices, read and written where they lie if their strides allow it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from jitml.fusion.lower.strided_views import Ints, Strided, one_stride
from jitml.ir.graph import Node, Value
from jitml.ir.ops.contraction import free_axes
from jitml.kernels.ir import Expr
from jitml.kernels.target import Accepts
from jitml.records import dataclass


@dataclass(frozen=True, slots=True)
class Axes:
    """The axes of an operand or a result, by what they are to BLAS."""

    batch: Ints
    rows: Ints
    columns: Ints

    @property
    def in_order(self) -> Ints:
        return (*self.batch, *self.rows, *self.columns)


def product_axes(node: Node) -> tuple[Axes, Axes, Axes]:
    """Of a `dot_general`'s operands and its result."""
    (xb, yb), (xc, yc) = node.params["batch"], node.params["contract"]
    xf, yf = (free_axes(v.ndim, b, c) for v, b, c in zip(node.inputs, (xb, yb), (xc, yc)))
    rows, columns = len(xb), len(xb) + len(xf)
    places = range(rows), range(rows, columns), range(columns, columns + len(yf))
    return Axes(xb, xf, xc), Axes(yb, yc, yf), Axes(*map(tuple, places))


@dataclass(frozen=True, slots=True)
class MatrixStack:
    """Matrices by their strides; the batch may have several axes."""

    batch: Ints
    row: int
    col: int
    offset: Expr

    @staticmethod
    def of(view: Strided, axes: Axes, gemm: Accepts) -> MatrixStack | None:
        """None if there is no one stride along rows and one along columns, or the library's `gemm` does not take such."""
        extents = [prod(view.shape[a] for a in part) for part in (axes.rows, axes.columns)]
        row, col = (
            one_stride(tuple(view.shape[a] for a in part), tuple(view.strides[a] for a in part))
            for part in (axes.rows, axes.columns)
        )
        if row is None or col is None or not gemm.takes_matrices((row, col), extents):
            return None
        return MatrixStack(tuple(view.strides[a] for a in axes.batch), row, col, view.offset)


def operand_view(memory: Strided, maps: Sequence[Node], place: Callable[[Value], Expr]) -> Strided | None:
    """What index maps, the first one first, leave of an array."""
    view: Strided | None = memory
    for node in maps:
        view = view.through(node, place) if view is not None else None
    return view


def result_view(memory: Strided, transposed: Node | None) -> Strided:
    """Where a product's result lies, given the memory of its transpose, if only that is wanted."""
    if transposed is None:
        return memory
    perm = transposed.params["perm"]
    return memory.transposed(sorted(range(len(perm)), key=perm.__getitem__))


def merged_batch(extents: Ints, *steps: Ints) -> tuple[Ints, tuple[Ints, ...]]:
    """The same batch with as few axes as all strides allow.

    >>> merged_batch((4, 3, 1), (60, 20, 5), (6, 2, 2), (0, 0, 0))
    ((12,), ((20,), (2,), (0,)))
    """
    levels: list[tuple[int, Ints]] = []
    for n, *strides in zip(extents, *steps, strict=True):
        if n == 1:
            continue
        if levels and all(outer == n * inner for outer, inner in zip(levels[-1][1], strides)):
            n *= levels.pop()[0]
        levels.append((n, tuple(strides)))
    return tuple(n for n, _ in levels), tuple(tuple(strides[k] for _, strides in levels) for k in range(len(steps)))
