"""What complex numbers have that no others do: two parts, and a conjugate. All else about them stands with the real ops.

Below the graph there are no complex numbers: fusion begins by writing each as two real values (`fusion/parts`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jitml.errors import DTypeError, ShapeError
from jitml.ir.op import Op
from jitml.ir.types import C64, C128, F32, F64, Aval, DType, is_complex, part_dtype

_WHOLE: dict[DType, DType] = {F32: C64, F64: C128}


def whole_dtype(dtype: DType) -> DType:
    """The complex dtype whose parts are of a float dtype."""
    if dtype not in _WHOLE:
        raise DTypeError(f"no complex number is made of {dtype}")
    return _WHOLE[dtype]


def _whole(re: Aval, im: Aval) -> Aval:
    if re.shape != im.shape or re.dtype != im.dtype:
        raise ShapeError(f"complex: {re} and {im} are not alike")
    return re.with_dtype(whole_dtype(re.dtype))


def _evaluate_whole(re: Any, im: Any) -> Any:
    whole = np.empty(np.broadcast(re, im).shape, whole_dtype(np.asarray(re).dtype))
    whole.real, whole.imag = re, im  # re + 1j * im would lose signs of zeros, and make nan of infinities
    return whole


def _of_whole(name: str, result: Callable[[DType], DType], evaluate: Callable[[Any], Any]) -> Op:
    def aval(x: Aval) -> Aval:
        if not is_complex(x.dtype):
            raise DTypeError(f"{name} is defined for complex numbers, not {x}")
        return x.with_dtype(result(x.dtype))

    return Op(name, "complex", aval, evaluate)


complex = Op("complex", "complex", _whole, _evaluate_whole)
real = _of_whole("real", part_dtype, np.real)
imag = _of_whole("imag", part_dtype, np.imag)
conj = _of_whole("conj", lambda dtype: dtype, np.conjugate)
