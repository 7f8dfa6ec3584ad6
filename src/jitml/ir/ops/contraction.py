"""Contraction: `dot_general`, which matmul, dot, tensordot, inner, outer and einsum are written in."""

from __future__ import annotations

from typing import Any

import numpy as np

from jitml.errors import DTypeError, ShapeError
from jitml.ir.op import Op
from jitml.ir.types import Aval

Ints = tuple[int, ...]


def free_axes(ndim: int, batch: Ints, contract: Ints) -> Ints:
    """The axes that are neither batch nor contracted, in order."""
    return tuple(a for a in range(ndim) if a not in batch and a not in contract)


def _dot_general_aval(x: Aval, y: Aval, *, batch: tuple[Ints, Ints], contract: tuple[Ints, Ints]) -> Aval:
    if x.dtype != y.dtype:
        raise DTypeError(f"dot_general: {x} and {y} differ in dtype")
    for aval, axes in ((x, (*batch[0], *contract[0])), (y, (*batch[1], *contract[1]))):
        if len(set(axes)) != len(axes) or any(not 0 <= a < aval.ndim for a in axes):
            raise ShapeError(f"dot_general: axes {axes} of {aval}")
    for (xa, ya), what in ((batch, "batch"), (contract, "contracted")):
        if len(xa) != len(ya) or any(x.shape[a] != y.shape[b] for a, b in zip(xa, ya)):
            raise ShapeError(f"dot_general: {what} axes {xa} of {x} and {ya} of {y} do not match")
    return x.with_shape(
        [x.shape[a] for a in batch[0]]
        + [x.shape[a] for a in free_axes(x.ndim, batch[0], contract[0])]
        + [y.shape[a] for a in free_axes(y.ndim, batch[1], contract[1])]
    )


def _evaluate_dot_general(x: Any, y: Any, *, batch: tuple[Ints, Ints], contract: tuple[Ints, Ints]) -> Any:
    out = _dot_general_aval(Aval(np.shape(x), x.dtype), Aval(np.shape(y), y.dtype), batch=batch, contract=contract)
    nb, nc = len(batch[0]), len(contract[0])
    x = np.transpose(x, (*batch[0], *free_axes(x.ndim, batch[0], contract[0]), *contract[0]))
    y = np.transpose(y, (*batch[1], *contract[1], *free_axes(y.ndim, batch[1], contract[1])))
    depth = int(np.prod(x.shape[x.ndim - nc :], dtype=int))
    rows, columns = int(np.prod(x.shape[nb : x.ndim - nc], dtype=int)), int(np.prod(y.shape[nb + nc :], dtype=int))
    product = np.matmul(x.reshape(*x.shape[:nb], rows, depth), y.reshape(*y.shape[:nb], depth, columns))
    return product.reshape(out.shape)


# Result axes: batch, then x's free axes, then y's. bool contracts by or-of-ands, as NumPy's matmul.
dot_general = Op("dot_general", "contraction", _dot_general_aval, _evaluate_dot_general)
