"""np.fft: padding or cutting to the length asked for, the transform, NumPy's factor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod, sqrt
from typing import Any

import numpy as np

from jitml.ir import ops
from jitml.ir.graph import Value
from jitml.ir.types import F32, F64, is_complex, part_dtype
from jitml.numpy.building.joining import roll
from jitml.numpy.reductions.reductions import is_given
from jitml.numpy.support.arguments import (
    as_array,
    as_int,
    astype,
    axes_of,
    full,
    no_truth,
    one_axis,
    require_no_objects,
    value_of,
)
from jitml.numpy.ufuncs.loops import conjugate
from jitml.numpy.ufuncs.ufunc import store
from jitml.trace.values.boxing import TracedArray, fresh
from jitml.trace.values.numbers import of_size
from jitml.trace.values.registry import implements

F16 = np.dtype(np.float16)
# What the direct transform is multiplied by, and the inverse one: of n.
_FACTORS: dict[str, tuple[Callable[[int], float], Callable[[int], float]]] = {
    "backward": (lambda n: 1.0, lambda n: 1.0 / n),
    "ortho": (lambda n: 1.0 / sqrt(n), lambda n: 1.0 / sqrt(n)),
    "forward": (lambda n: 1.0 / n, lambda n: 1.0),
}


def _factor(norm: str | None, n: int, *, inverse: bool) -> float:
    if norm not in (None, *_FACTORS):
        raise ValueError(f'Invalid norm value {norm}; should be "backward", "ortho" or "forward".')
    return _FACTORS[norm or "backward"][inverse](n)


def _operand(a: Any) -> Value:
    """In a dtype that is transformed: single precision of float16, double of integers."""
    x = value_of(a)
    if x.dtype == F16:
        return astype(x, F32)
    return x if x.dtype.kind in "fc" else astype(x, F64)


def _whole(x: Value) -> Value:
    return x if is_complex(x.dtype) else ops.complex(x, full(x.shape, 0.0, x.dtype))


def _fitted(x: Value, axis: int, n: int) -> Value:
    """x cut, or padded with zeros, to n elements along an axis."""
    if n < 1:
        raise ValueError(f"Invalid number of FFT data points ({n}) specified.")
    have = x.shape[axis]
    if n == have:
        return x
    if n < have:
        stop = (*x.shape[:axis], n, *x.shape[axis + 1 :])
        return ops.slice(x, start=(0,) * x.ndim, stop=stop, step=(1,) * x.ndim)
    high = tuple(n - have if a == axis else 0 for a in range(x.ndim))
    return ops.pad(x, full((), 0, x.dtype), low=(0,) * x.ndim, high=high, interior=(0,) * x.ndim)


def _finish(x: Value, factor: float, out: Any) -> Any:
    result = x if factor == 1.0 else _scaled(x, factor)
    return store(out, result) if is_given(out) else fresh(result)


def _scaled(x: Value, factor: float) -> Value:
    """Both parts by a real number."""
    scale = full(x.shape, factor, part_dtype(x.dtype))
    if not is_complex(x.dtype):
        return ops.mul(x, scale)
    return ops.complex(ops.mul(ops.real(x), scale), ops.mul(ops.imag(x), scale))


def _length(n: Any, size: int) -> int:
    length = size if n is None else as_int(no_truth(n))
    require_no_objects(length)
    return length


def _transform(*, inverse: bool) -> Callable[..., Any]:
    def function(a: Any, n: Any = None, axis: int = -1, norm: str | None = None, out: Any = None) -> Any:
        x = _operand(a)
        along = one_axis(axis, x.ndim)
        x = _fitted(x, along, _length(n, x.shape[along]))
        return _finish(ops.fft(x, axes=(along,), inverse=inverse), _factor(norm, x.shape[along], inverse=inverse), out)

    return function


fft, ifft = implements(np.fft.fft)(_transform(inverse=False)), implements(np.fft.ifft)(_transform(inverse=True))


def _real(x: Value, name: str) -> Value:
    if is_complex(x.dtype):
        raise TypeError(
            f"ufunc '{name}' did not contain a loop with signature matching types "
            f"({type(x.dtype)}, {type(np.dtype(part_dtype(x.dtype)))}) -> None"
        )
    return x


def _from_real(a: Any, n: Any, axis: Any) -> tuple[Value, int]:
    """The transform of real numbers, and their number."""
    x = _real(_operand(a), "rfft_n_even")
    along = one_axis(axis, x.ndim)
    x = _fitted(x, along, _length(n, x.shape[along]))
    return ops.rfft(x, axis=along), x.shape[along]


def _to_real(a: Any, n: Any, axis: Any, *, conj: bool = False) -> tuple[Value, int]:
    x = _whole(_operand(a))
    along = one_axis(axis, x.ndim)
    size = _length(n, (x.shape[along] - 1) * 2)
    if size < 1:
        raise ValueError(f"Invalid number of FFT data points ({size}) specified.")
    x = _fitted(conjugate(x) if conj else x, along, size // 2 + 1)
    return ops.irfft(x, axis=along, n=size), size


@implements(np.fft.rfft)
def rfft(a: Any, n: Any = None, axis: int = -1, norm: str | None = None, out: Any = None) -> Any:
    result, size = _from_real(a, n, axis)
    return _finish(result, _factor(norm, size, inverse=False), out)


@implements(np.fft.irfft)
def irfft(a: Any, n: Any = None, axis: int = -1, norm: str | None = None, out: Any = None) -> Any:
    result, size = _to_real(a, n, axis)
    return _finish(result, _factor(norm, size, inverse=True), out)


@implements(np.fft.hfft)
def hfft(a: Any, n: Any = None, axis: int = -1, norm: str | None = None, out: Any = None) -> Any:
    """The transform of what is symmetric in time; its factor is that of the direct one."""
    result, size = _to_real(a, n, axis, conj=True)
    return _finish(result, _factor(norm, size, inverse=False), out)


@implements(np.fft.ihfft)
def ihfft(a: Any, n: Any = None, axis: int = -1, norm: str | None = None, out: Any = None) -> Any:
    result, size = _from_real(a, n, axis)
    return _finish(conjugate(result), _factor(norm, size, inverse=True), out)


def _shape_and_axes(x: Value, s: Any, axes: Any, *, to_real: bool = False) -> tuple[list[int], list[int]]:
    """The lengths to transform, and along which axes: NumPy's defaults and messages."""
    if s is None:
        along = list(range(x.ndim)) if axes is None else [one_axis(a, x.ndim) for a in axes]
        shape = [x.shape[a] for a in along]
        if to_real and shape:
            shape[-1] = (x.shape[along[-1]] - 1) * 2
        return shape, along
    sizes = [as_int(no_truth(n)) for n in s]
    along = list(range(x.ndim - len(sizes), x.ndim)) if axes is None else [one_axis(a, x.ndim) for a in axes]
    if len(sizes) != len(along):
        raise ValueError("Shape and axes have different lengths.")
    kept = [x.shape[a] if n == -1 else n for n, a in zip(sizes, along)]
    if to_real and sizes[-1] == -1:
        kept[-1] = (x.shape[along[-1]] - 1) * 2
    return kept, along


def _over(x: Value, shape: Sequence[int], axes: Sequence[int], *, inverse: bool) -> Value:
    """The transform along several axes; one that is named twice is transformed twice, the last first."""
    for n, a in zip(shape, axes):
        x = _fitted(x, a, n)
    if len(set(axes)) == len(axes):
        return ops.fft(x, axes=tuple(axes), inverse=inverse) if axes else _whole(x)
    for a in reversed(axes):
        x = ops.fft(x, axes=(a,), inverse=inverse)
    return x


def _transform_n(*, inverse: bool, axes: tuple[int, ...] | None) -> Callable[..., Any]:
    def function(a: Any, s: Any = None, axes: Any = axes, norm: str | None = None, out: Any = None) -> Any:
        x = _operand(a)
        shape, along = _shape_and_axes(x, s, axes)
        return _finish(_over(x, shape, along, inverse=inverse), _factor(norm, prod(shape), inverse=inverse), out)

    return function


fftn = implements(np.fft.fftn)(_transform_n(inverse=False, axes=None))
ifftn = implements(np.fft.ifftn)(_transform_n(inverse=True, axes=None))
fft2 = implements(np.fft.fft2)(_transform_n(inverse=False, axes=(-2, -1)))
ifft2 = implements(np.fft.ifft2)(_transform_n(inverse=True, axes=(-2, -1)))


def _real_transform_n(axes: tuple[int, ...] | None) -> Callable[..., Any]:
    def function(a: Any, s: Any = None, axes: Any = axes, norm: str | None = None, out: Any = None) -> Any:
        x = _real(_operand(a), "rfft_n_even")
        shape, along = _shape_and_axes(x, s, axes)
        result = ops.rfft(_fitted(x, along[-1], shape[-1]), axis=along[-1])
        if along[:-1]:
            result = _over(result, shape[:-1], along[:-1], inverse=False)
        return _finish(result, _factor(norm, prod(shape), inverse=False), out)

    return function


def _real_inverse_n(axes: tuple[int, ...] | None) -> Callable[..., Any]:
    def function(a: Any, s: Any = None, axes: Any = axes, norm: str | None = None, out: Any = None) -> Any:
        x = _whole(_operand(a))
        shape, along = _shape_and_axes(x, s, axes, to_real=True)
        if along[:-1]:
            x = _over(x, shape[:-1], along[:-1], inverse=True)
        x = _fitted(x, along[-1], shape[-1] // 2 + 1)
        return _finish(ops.irfft(x, axis=along[-1], n=shape[-1]), _factor(norm, prod(shape), inverse=True), out)

    return function


rfftn, rfft2 = implements(np.fft.rfftn)(_real_transform_n(None)), implements(np.fft.rfft2)(_real_transform_n((-2, -1)))
irfftn, irfft2 = implements(np.fft.irfftn)(_real_inverse_n(None)), implements(np.fft.irfft2)(_real_inverse_n((-2, -1)))


@implements(np.fft.fftfreq)
def fftfreq(n: Any, d: Any = 1.0, device: Any = None) -> Any:
    """Of each term: multiples of 1 / (n d), the negative ones in the second half."""
    size = as_int(no_truth(n))
    return np.concatenate([np.arange(0, (size - 1) // 2 + 1), np.arange(-(size // 2), 0)]) * (1.0 / (size * d))


@implements(np.fft.rfftfreq)
def rfftfreq(n: Any, d: Any = 1.0, device: Any = None) -> Any:
    size = as_int(no_truth(n))
    return np.arange(0, size // 2 + 1) * (1.0 / (size * d))


def _shift_half(direction: int) -> Callable[..., TracedArray]:
    def function(x: Any, axes: Any = None) -> TracedArray:
        shape = as_array(x).sizes
        along = axes_of(axes, len(shape))
        halves = [of_size(shape[n]) // 2 for n in along]
        return roll(x, halves if direction > 0 else [-half for half in halves], along)

    return function


fftshift, ifftshift = implements(np.fft.fftshift)(_shift_half(1)), implements(np.fft.ifftshift)(_shift_half(-1))
