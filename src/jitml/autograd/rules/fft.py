"""Transposes of Fourier transforms, which are symmetric: each is another one."""

from __future__ import annotations

from jitml.autograd.core.transpose import Cotangent, Operand, transpose
from jitml.ir import ops
from jitml.ir.graph import Value
from jitml.ir.types import I64, is_complex, part_dtype

Ints = tuple[int, ...]


@transpose.rule(ops.fft)
def fft_transpose(ct: Value, x: Operand, *, axes: Ints, inverse: bool) -> tuple[Cotangent, ...]:
    back = ops.fft(ct, axes=axes, inverse=inverse)
    return (back if is_complex(x.dtype) else ops.real(back),)


@transpose.rule(ops.rfft)
def rfft_transpose(ct: Value, x: Operand, *, axis: int) -> tuple[Cotangent, ...]:
    """The terms that were left out have no cotangent."""
    missing = tuple(x.shape[axis] - ct.shape[axis] if a == axis else 0 for a in range(x.ndim))
    none = (0,) * x.ndim
    whole = ops.pad(ct, ops.full(value=0, shape=(), dtype=ct.dtype), low=none, high=missing, interior=none)
    return (ops.real(ops.fft(whole, axes=(axis,), inverse=False)),)


@transpose.rule(ops.irfft)
def irfft_transpose(ct: Value, x: Operand, *, axis: int, n: int) -> tuple[Cotangent, ...]:
    """A term stands for its conjugate too, but for the first, and the last of an even number."""
    terms = ops.conj(ops.rfft(ct, axis=axis))
    place = ops.iota(shape=x.shape, axis=axis, dtype=I64)
    alone = ops.eq(place, 0)
    if n % 2 == 0:
        alone = ops.bit_or(alone, ops.eq(place, n // 2))
    dtype = part_dtype(x.dtype)
    one, two = (ops.full(value=number, shape=x.shape, dtype=dtype) for number in (1.0, 2.0))
    times = ops.select(alone, one, two)
    return (ops.complex(ops.real(terms) * times, ops.imag(terms) * times),)
