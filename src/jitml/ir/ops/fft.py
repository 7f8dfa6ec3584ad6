"""Fourier transforms along axes, without a factor: NumPy's norms are products beside them.

fft    sum over j of x[j] exp(∓2πi jk/n), for each of the axes; of real numbers too
rfft   the first n // 2 + 1 terms of the transform of real numbers along one axis
irfft  the n real numbers along one axis whose transform (the inverse one) begins with x
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jitml.errors import DTypeError, ShapeError, UnsupportedError
from jitml.ir.op import Op
from jitml.ir.ops.complex import whole_dtype
from jitml.ir.types import Aval, is_complex, part_dtype

Ints = tuple[int, ...]


def _require(name: str, x: Aval, axes: Ints) -> None:
    if not x.is_static:
        raise UnsupportedError(f"{name} of {x}, whose size only the running program knows")
    if len(set(axes)) != len(axes) or any(not 0 <= a < x.ndim for a in axes):
        raise ShapeError(f"{name}: axes {axes} of {x}")


def _resized(x: Aval, axis: int, n: int) -> tuple[int, ...]:
    return (*x.shape[:axis], n, *x.shape[axis + 1 :])


def _fft_aval(x: Aval, *, axes: Ints, inverse: bool) -> Aval:
    _require("fft", x, axes)
    return x if is_complex(x.dtype) else x.with_dtype(whole_dtype(x.dtype))


# `out`: a tuple of the array that is to hold the result, where there is one.
def _evaluate_fft(x: Any, *, axes: Ints, inverse: bool, out: Any = (None,)) -> Any:
    if len(axes) == 1:  # the same, with less around it
        one = np.fft.ifft if inverse else np.fft.fft
        return one(x, axis=axes[0], norm="forward" if inverse else None, out=out[0])
    return np.fft.ifftn(x, axes=axes, norm="forward", out=out[0]) if inverse else np.fft.fftn(x, axes=axes, out=out[0])


def _rfft_aval(x: Aval, *, axis: int) -> Aval:
    _require("rfft", x, (axis,))
    if is_complex(x.dtype):
        raise DTypeError(f"rfft is defined for real numbers, not {x}")
    return Aval(_resized(x, axis, x.shape[axis] // 2 + 1), whole_dtype(x.dtype))


def _irfft_aval(x: Aval, *, axis: int, n: int) -> Aval:
    _require("irfft", x, (axis,))
    if not is_complex(x.dtype) or x.shape[axis] != n // 2 + 1:
        raise ShapeError(f"irfft: {x} is no transform of {n} numbers along axis {axis}")
    return Aval(_resized(x, axis, n), part_dtype(x.dtype))


fft = Op("fft", "fft", _fft_aval, _evaluate_fft)
rfft = Op("rfft", "fft", _rfft_aval, lambda x, *, axis, out=(None,): np.fft.rfft(x, axis=axis, out=out[0]))
irfft = Op("irfft", "fft", _irfft_aval, lambda x, *, axis, n, out=(None,): np.fft.irfft(x, n, axis, "forward", out[0]))
