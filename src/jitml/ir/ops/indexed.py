"""Indexed access: gather and scatter by index arrays, with NumPy's rules (negative counts from the end, IndexError).

`axis` is the first indexed axis; k index arrays of one shape index the k axes from there. Arrays that are indexed on
axes that are not neighbours are transposed first, by `jitml.numpy`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jitml.errors import DTypeError, ShapeError, UnsupportedError
from jitml.ir.op import Op
from jitml.ir.types import Aval, is_complex, is_integer


def _indices_aval(name: str, x: Aval, indices: tuple[Aval, ...], axis: int) -> tuple[int, ...]:
    """The shape of x indexed."""
    if not indices or any(i.shape != indices[0].shape for i in indices):
        raise ShapeError(f"{name}: index arrays {indices} differ in shape")
    if not all(is_integer(i.dtype) for i in indices):
        raise DTypeError(f"{name}: index arrays must be integers, not {indices}")
    if not 0 <= axis <= x.ndim - len(indices):
        raise ShapeError(f"{name}: {len(indices)} index arrays from axis {axis} of {x}")
    return x.shape[:axis] + indices[0].shape + x.shape[axis + len(indices) :]


def _gather_aval(x: Aval, *indices: Aval, axis: int) -> Aval:
    return x.with_shape(_indices_aval("gather", x, indices, axis))


def _at(axis: int, indices: tuple[Any, ...]) -> tuple[Any, ...]:
    return (slice(None),) * axis + indices


# x[..., i, j, ...]: result shape x.shape[:axis] + index shape + x.shape[axis + k:]
gather = Op("gather", "indexed", _gather_aval, lambda x, *indices, axis: x[_at(axis, indices)])

COMBINE = {"add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}


def _scatter_aval(x: Aval, v: Aval, *indices: Aval, axis: int, combine: str) -> Aval:
    if combine != "set" and combine not in COMBINE:
        raise DTypeError(f"scatter: no combination {combine!r}")
    if is_complex(x.dtype) and combine not in ("set", "add"):
        raise UnsupportedError(f"complex numbers are scattered by set or add, not by {combine}")
    shape = _indices_aval("scatter", x, indices, axis)
    if v.shape != shape or v.dtype != x.dtype:
        raise ShapeError(f"scatter: {v} does not fit the indexed part {x.with_shape(shape)}")
    return x


def _evaluate_scatter(x: Any, v: Any, *indices: Any, axis: int, combine: str) -> Any:
    out = np.array(x)
    if combine == "set":
        out[_at(axis, indices)] = v
    else:
        COMBINE[combine].at(out, _at(axis, indices), v)
    return out


# x with v combined into the places that gather would read, in index order: "set" lets the last one win.
scatter = Op("scatter", "indexed", _scatter_aval, _evaluate_scatter)
