"""Complex numbers: their parts, which are views that can be written, their angle, and the questions whether there are any."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from jitml.ir import ops
from jitml.ir.op import Op
from jitml.ir.types import BOOL, C64, C128, is_complex
from jitml.numpy.support.arguments import as_array, astype, full, kind_of, result_of, value_of
from jitml.trace.rewrite.driver_protocol import OpenType
from jitml.trace.values.boxing import laid_out, read, scalar, view
from jitml.trace.values.numbers import TracedNumber
from jitml.trace.values.registry import call, implements
from jitml.trace.values.tracers import TracedArray, Tracer
from jitml.trace.values.type_unions import doubt_of


def _part(op: Op, x: Tracer) -> Any:
    """x.real or x.imag of complex numbers."""
    return view(x, op) if isinstance(x, TracedArray) else scalar(op(read(x)))


@implements(np.ndarray.real)
def real_part(x: Tracer) -> Any:
    """Of real numbers: themselves."""
    return _part(ops.real, x) if is_complex(x.dtype) else x


@implements(np.ndarray.imag)
def imag_part(x: Tracer) -> Any:
    """Of real numbers: zeros that cannot be written."""
    if is_complex(x.dtype):
        return _part(ops.imag, x)
    zeros = full(x.aval.shape, 0, x.dtype)
    if not isinstance(x, TracedArray):
        return scalar(zeros)
    made = laid_out(zeros, x, "A")
    made.writeable = False
    return made


def _set_part(part: Any, x: TracedArray, value: Any) -> None:
    call(part, x)[...] = value


def _of_anything(name: str, val: Any) -> Any:
    """np.real and np.imag: the attribute, where there is one."""
    if doubt_of(val) is not None:
        raise OpenType(val)
    if isinstance(val, (Tracer, TracedNumber, int, float, complex, np.generic)):
        return getattr(val, name)
    return getattr(as_array(val), name)


implements(np.real)(functools.partial(_of_anything, "real"))
implements(np.imag)(functools.partial(_of_anything, "imag"))
implements(np.ndarray.real.__set__)(functools.partial(_set_part, np.ndarray.real))  # type: ignore[attr-defined]  # a descriptor
implements(np.ndarray.imag.__set__)(functools.partial(_set_part, np.ndarray.imag))  # type: ignore[attr-defined]  # a descriptor


@implements(np.angle)
def angle(z: Any, deg: bool = False) -> Any:
    x = value_of(z)
    if is_complex(x.dtype):
        turn = ops.arctan2(ops.imag(x), ops.real(x))
    else:
        dtype = np.arctan2.resolve_dtypes((int, x.dtype, None))[2]
        turn = ops.arctan2(full(x.shape, 0.0, dtype), astype(x, dtype))
    return result_of(turn * (180.0 / np.pi) if deg else turn)


@implements(np.isreal)
def isreal(x: Any) -> Any:
    if isinstance(x, (TracedNumber, int, float, complex)):
        return x.imag == 0
    value = value_of(x)
    return result_of(ops.eq(ops.imag(value), 0.0) if is_complex(value.dtype) else full(value.shape, True, BOOL))


@implements(np.iscomplex)
def iscomplex(x: Any) -> Any:
    value = value_of(x)
    return result_of(ops.ne(ops.imag(value), 0.0) if is_complex(value.dtype) else full(value.shape, False, BOOL))


@implements(np.iscomplexobj)
def iscomplexobj(x: Any) -> bool:
    kind = kind_of(x)
    return kind is complex or (isinstance(kind, np.dtype) and is_complex(kind))


@implements(np.isrealobj)
def isrealobj(x: Any) -> bool:
    return not iscomplexobj(x)


@implements(np.real_if_close)
def real_if_close(a: Any, tol: float = 100) -> Any:
    """Of real numbers: themselves. Else the values decide the dtype: it is that of the call that is traced."""
    x = as_array(a)
    if not is_complex(x.dtype):
        return x
    most = np.finfo(x.dtype).eps * tol if tol > 1 else tol
    return x.real if bool(call(np.all, call(np.less, call(np.absolute, x.imag), most))) else x


@implements(np.sort_complex)
def sort_complex(a: Any) -> Any:
    """Single precision of 8- and 16-bit integers, else double."""
    x = value_of(a)
    if not is_complex(x.dtype):
        x = astype(x, C64 if x.dtype.char in "bhBH" else C128)
    return call(np.sort, result_of(x))
