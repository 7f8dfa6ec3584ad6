"""Native random draws: which draws need no Python?  Those whose algorithm NumPy exports, and what is a sum or product of them.

`native_draw` records `ops.random` for a generator's method, or says that it cannot (None): then Python draws (`generators.py`).
It takes real numbers and arrays of them as parameters, known or traced. What NumPy would refuse is left to NumPy, or checked at
run time.
"""

from __future__ import annotations

import inspect
import math
import platform
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from jitml.ir import ops
from jitml.ir.analysis.limits import dtype_limits
from jitml.ir.dims import Dim, Size
from jitml.ir.graph import Value
from jitml.ir.types import BOOL, DTYPES, F32, F64, I64, DType, is_integer
from jitml.records import dataclass
from jitml.trace.record.recording import active_trace
from jitml.trace.storage.storage import Storage
from jitml.trace.symbolic.broadcasting import common_sizes, stretch
from jitml.trace.symbolic.sizes import number, span
from jitml.trace.values.boxing import TracedArray, TracedScalar, fresh, read, scalar
from jitml.trace.values.numbers import TracedNumber, size_of
from jitml.trace.values.python_arithmetic import unheard

# Elsewhere NumPy's own code may round `low + range * u` once, where ours rounds twice.
_ROUNDS_TWICE = platform.machine() in ("x86_64", "AMD64")
_LEAST, _GREATEST = -(2**63), 2**63 - 1


class _Unable(Exception):
    """Python is to draw."""


@dataclass(frozen=True)
class _DrawStream:
    """A generator in a trace."""

    storage: Storage
    legacy: bool

    def draw(self, distribution: str, size: Any, dtype: DType, *limits: Value) -> Any:
        """Numbers of that size: a Python number for None, else an array."""
        shape = _shape(size)
        flat = () if not shape else (math.prod(shape),)
        params = {"distribution": distribution, "legacy": self.legacy, "shape": flat, "dtype": dtype}
        address, numbers = ops.random(self.storage.load(), *limits, **params)
        self.storage.store(address)
        if shape is None:
            return TracedNumber.of_value(active_trace(), numbers) if dtype in (F64, I64, BOOL) else scalar(numbers)
        return fresh(numbers if shape == flat else ops.reshape(numbers, shape=shape))


def _shape(size: Any) -> tuple[Size, ...] | None:
    if size is None:
        return None
    shape = tuple(_extent(n) for n in size) if type(size) in (tuple, list) else (_extent(size),)
    if any(type(n) is not int for n in shape[1:]):  # what counts would not lie side by side
        raise _Unable
    return shape


def _extent(n: Any) -> Size:
    if type(n) is TracedNumber and n.kind is int and n.slot is not None:
        n = n.known()
    size = n if type(n) in (int, Dim) else size_of(n) if type(n) is TracedNumber else None
    if size is None or span(size)[0] < 0:
        raise _Unable
    return size


def _parameter(x: Any) -> Any:
    """A parameter that is a real number, as a float if it is known, else as f64 values: a number, or an array of them."""
    if issubclass(type(x), (int, float, np.integer, np.floating)):
        if math.isfinite(x):
            return float(x)
    elif type(x) is TracedNumber and x.kind is not complex:
        return x.as_value(F64)
    elif type(x) in (TracedArray, TracedScalar) and x.dtype.kind in "biuf":
        value = read(x)
        return value if value.dtype == F64 else ops.convert(value, dtype=F64)
    raise _Unable


def _values(*parameters: Any) -> tuple[Value, ...]:
    return tuple(ops.full(value=x, shape=(), dtype=F64) if type(x) is float else x for x in parameters)


def _dtype_of(dtype: Any) -> DType:
    found = np.dtype(dtype)
    if found not in (F32, F64):
        raise _Unable
    return found


# ---------------------------------------------------------------------------------- methods, with NumPy's parameters


def _uniform01(stream: _DrawStream, size: Any = None, dtype: Any = np.float64) -> Any:
    return _floats(stream, "uniform", size, dtype)


def _normal01(stream: _DrawStream, size: Any = None, dtype: Any = np.float64) -> Any:
    return _floats(stream, "normal", size, dtype)


def _exponential01(stream: _DrawStream, size: Any = None, dtype: Any = np.float64, method: Any = "zig") -> Any:
    if method != "zig":
        raise _Unable
    return _floats(stream, "exponential", size, dtype)


def _floats(stream: _DrawStream, distribution: str, size: Any, dtype: Any) -> Any:
    found = _dtype_of(dtype)
    if size is None and found != F64:  # NumPy makes a Python float of it
        raise _Unable
    return stream.draw(distribution, size, found)


def _uniform(stream: _DrawStream, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
    low, high = _parameter(low), _parameter(high)
    if type(low) is float and type(high) is float:
        return _scaled(stream, "uniform", size, low, high - low, "high - low")
    with unheard():
        low, high = _values(low, high)
        shape = _common(low, high)
        span = ops.sub(stretch(high, shape), stretch(low, shape))
        message = "Range exceeds valid bounds" if shape or stream.legacy else "high - low range exceeds valid bounds"
        span = ops.check(span, _all(ops.lt(ops.abs(span), np.inf)), error="OverflowError", message=message)
    return _scaled(stream, "uniform", size, low, span, None if stream.legacy else "high - low")


def _normal(stream: _DrawStream, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
    return _scaled(stream, "normal", size, _parameter(loc), _parameter(scale), "scale")


def _exponential(stream: _DrawStream, scale: Any = 1.0, size: Any = None) -> Any:
    return _scaled(stream, "exponential", size, None, _parameter(scale), "scale")


def _scaled(stream: _DrawStream, distribution: str, size: Any, start: Any, span: Any, name: str | None) -> Any:
    """`start + span * u`; no start is none at all.

    Args:
        name: of the span, in the error that it is negative; None if it may be.
    """
    if start is not None and not _ROUNDS_TWICE:
        raise _Unable
    if type(span) is float and (start is None or type(start) is float):
        if not math.isfinite(span) or math.copysign(1.0, span) < 0:
            raise _Unable
        drawn = stream.draw(distribution, size, F64)
        return drawn * span if start is None else start + span * drawn
    with unheard():
        parameters = _values(span) if start is None else _values(span, start)
        shape = _common(*parameters)
        if size is not None and shape and not _fills(_shape(size), shape):
            raise _Unable
        factor = parameters[0]
        if name is not None:
            valid = ops.bit_or(ops.ne(factor, factor), ops.bit_not(ops.signbit(factor)))
            factor = ops.check(factor, _all(valid), error="ValueError", message=f"{name} < 0")
        drawn = stream.draw(distribution, shape if size is None and shape else size, F64)
        number = drawn.as_value(F64) if type(drawn) is TracedNumber else read(drawn)
        result = ops.mul(stretch(factor, number.shape), number)
        if start is not None:
            result = ops.add(stretch(parameters[1], number.shape), result)
    return fresh(result) if result.ndim or size is not None else TracedNumber.of_value(active_trace(), result)


def _common(*values: Value) -> tuple[int, ...]:
    try:
        return tuple(common_sizes(*(x.shape for x in values)))
    except ValueError as error:  # NumPy says it better
        raise _Unable from error


def _fills(size: tuple[Size, ...] | None, shape: tuple[int, ...]) -> bool:
    """Whether parameters of a shape are known to fit into a size."""
    assert size is not None
    ends = size[len(size) - len(shape) :]
    return len(size) >= len(shape) and all(n in (1, m) for n, m in zip(shape, ends, strict=True))


def _all(claims: Value) -> Value:
    return ops.reduce_all(claims, axes=tuple(range(claims.ndim))) if claims.ndim else claims


def _rand(stream: _DrawStream, *shape: Any) -> Any:
    return stream.draw("uniform", shape or None, F64)


def _randn(stream: _DrawStream, *shape: Any) -> Any:
    return stream.draw("normal", shape or None, F64)


def _randint(stream: _DrawStream, low: Any, high: Any = None, size: Any = None, dtype: Any = int) -> Any:
    return _integers(stream, low, high, size, dtype)


def _integers(
    stream: _DrawStream, low: Any, high: Any = None, size: Any = None, dtype: Any = np.int64, endpoint: bool = False
) -> Any:
    if high is None:
        low, high = 0, low
    found = np.dtype(dtype)
    if found not in DTYPES.values() or found.kind not in "biu" or type(endpoint) is not bool:
        raise _Unable
    limits = _limits(low, high, found, endpoint)
    drawn = stream.draw("integers", size, found, *limits)
    if size is not None or dtype is int or dtype is bool:
        return drawn
    return scalar(read(drawn)) if type(drawn) is TracedNumber else drawn


def _whole(x: Any) -> Any:
    """A limit that is one integer: an int if it is known, else an i64 value."""
    if issubclass(type(x), (int, np.integer)):
        return int(x)
    if type(x) is TracedNumber and x.kind is int:
        return x.as_value(I64)
    if type(x) in (TracedArray, TracedScalar) and not x.ndim and is_integer(x.dtype) and np.can_cast(x.dtype, I64):
        value = read(x)
        return value if value.dtype == I64 else ops.convert(value, dtype=I64)
    raise _Unable


def _limits(low: Any, high: Any, dtype: DType, endpoint: bool) -> tuple[Value, Value]:
    """The least and the greatest integer, both included."""
    low, high = _whole(low), _whole(high)
    least, greatest = dtype_limits(dtype)
    if type(low) is int and type(high) is int:
        last = high - (not endpoint)
        if not least <= low <= last <= greatest:
            raise _Unable
        bits = [n - 2**64 if n > _GREATEST else n for n in (low, last)]
        return number(bits[0]), number(bits[1])
    if dtype != I64 or any(type(x) is int and not _LEAST < x <= _GREATEST for x in (low, high)):
        raise _Unable
    first, end = (number(x) if type(x) is int else x for x in (low, high))
    ok = ops.le(first, end) if endpoint else ops.lt(first, end)
    end = ops.check(end, ok, error="ValueError", message="low > high" if endpoint else "low >= high")
    return first, end if endpoint else ops.sub(end, number(1))


_OF_GENERATOR: Mapping[str, Callable[..., Any]] = {
    "random": _uniform01,
    "uniform": _uniform,
    "standard_normal": _normal01,
    "normal": _normal,
    "standard_exponential": _exponential01,
    "exponential": _exponential,
    "integers": _integers,
}


def _legacy_uniform01(stream: _DrawStream, size: Any = None) -> Any:
    return stream.draw("uniform", size, F64)


def _legacy_normal01(stream: _DrawStream, size: Any = None) -> Any:
    return stream.draw("normal", size, F64)


_OF_RANDOM_STATE: Mapping[str, Callable[..., Any]] = {
    "random": _legacy_uniform01,
    "random_sample": _legacy_uniform01,
    "rand": _rand,
    "uniform": _uniform,
    "standard_normal": _legacy_normal01,
    "randn": _randn,
    "normal": _normal,
    "randint": _randint,
}


def native_draw(storage: Storage, kind: type, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any | None:
    """What a generator's method returns, drawn without Python; None if that cannot be."""
    legacy = kind is np.random.RandomState
    method = (_OF_RANDOM_STATE if legacy else _OF_GENERATOR).get(name)
    if method is None:
        return None
    try:
        inspect.signature(method).bind(None, *args, **kwargs)
    except TypeError:  # NumPy says it better
        return None
    try:
        return method(_DrawStream(storage, legacy), *args, **kwargs)
    except _Unable:
        return None
