"""Derivatives of functions that run in NumPy or SciPy, of which nothing is known: of those whose slope can be written down."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from jitml.autograd.core.hidden_dependences import ON_HOST
from jitml.autograd.core.jvp import JvpRule, Tangent, jvp_of_many
from jitml.autograd.core.transpose import zeros
from jitml.autograd.rules.index_maps import part_of, recorded_size
from jitml.autograd.rules.pointwise import remainder_jvp
from jitml.errors import DerivativeError
from jitml.ir import ops
from jitml.ir.dims import Dim
from jitml.ir.graph import Node, Value
from jitml.ir.ops.host import HostFunction, padded, unpadded
from jitml.ir.types import Aval, is_inexact

# Of the operand and the result.
Slope = Callable[[Value, Value], Value]


def _called(name: str, *first: int) -> Callable[[Value], Value]:
    """A function of SciPy's, applied where the program is; known by its name, so that it has a slope too."""

    def apply(x: Value) -> Value:
        room = Aval(x.aval.bounds, x.dtype)
        open_axes = [axis for axis, n in enumerate(x.shape) if isinstance(n, Dim)]

        def call(given: np.ndarray[Any, Any], *sizes: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], ...]:
            true = list(room.shape)
            for axis, n in zip(open_axes, sizes, strict=True):
                true[axis] = int(n)
            result = getattr(import_module("scipy.special"), name)(*first, unpadded(given, tuple(true)))
            return (padded(np.asarray(result, x.dtype), room.shape),)

        told = ", ".join([f"scipy.special.{name}", *map(str, first)])
        sizes = (recorded_size(x.shape[axis]) for axis in open_axes)
        (result,) = ops.host_call(x, *sizes, function=HostFunction(told, call, (room,)))
        return _within(result, x)

    return apply


def _within(whole: Value, x: Value) -> Value:
    """What a call made of x, of memory for the largest shape."""
    return whole if whole.shape == x.shape else part_of(whole, (0,) * x.ndim, x.shape, (1,) * x.ndim)


def _density(x: Value, lower: Value | float) -> Value:
    """exp(-x²/2 - lower) / sqrt(2 pi)"""
    bell: Value = ops.exp(x * x * -0.5 - lower) * (1 / math.sqrt(2 * math.pi))
    return bell


def _by_x(numerator: Value, x: Value, at_zero: float) -> Value:
    """numerator / x, and its limit at 0."""
    is_zero, one = ops.eq(x, 0.0), ops.full(value=1.0, shape=x.shape, dtype=x.dtype)
    ratio: Value = ops.select(is_zero, one * at_zero, numerator / ops.select(is_zero, one, x))
    return ratio


_psi, _i0, _i1, _i0e, _i1e, _j0, _j1 = map(_called, ("psi", "i0", "i1", "i0e", "i1e", "j0", "j1"))
_SLOPES: dict[str, Slope] = {
    "np.i0": lambda x, out: _i1(x),
    "scipy.special.i0": lambda x, out: _i1(x),
    "scipy.special.i1": lambda x, out: _i0(x) - _by_x(out, x, 0.5),
    "scipy.special.i0e": lambda x, out: _i1e(x) - ops.sign(x) * out,
    "scipy.special.i1e": lambda x, out: _i0e(x) - ops.sign(x) * out - _by_x(out, x, 0.5),
    "scipy.special.j0": lambda x, out: -_j1(x),
    "scipy.special.j1": lambda x, out: _j0(x) - _by_x(out, x, 0.5),
    "scipy.special.gammaln": lambda x, out: _psi(x),
    "scipy.special.gamma": lambda x, out: out * _psi(x),
    "scipy.special.psi": lambda x, out: _called("polygamma", 1)(x),
    **{f"scipy.special.polygamma, {n}": lambda x, out, n=n: _called("polygamma", n + 1)(x) for n in range(1, 8)},  # type: ignore[misc]  # a default binds n
    "scipy.special.erfc": lambda x, out: ops.exp(-(x * x)) * (-2 / math.sqrt(math.pi)),
    "scipy.special.erfinv": lambda x, out: ops.exp(out * out) * (math.sqrt(math.pi) / 2),
    "scipy.special.ndtr": lambda x, out: _density(x, 0.0),
    "scipy.special.log_ndtr": _density,
    "scipy.special.entr": lambda x, out: -ops.log(x) - 1.0,
    "math.lgamma": lambda x, out: _psi(x),
    "math.gamma": lambda x, out: out * _psi(x),
    "math.erf": lambda x, out: ops.exp(-(x * x)) * (2 / math.sqrt(math.pi)),
    "math.erfc": lambda x, out: ops.exp(-(x * x)) * (-2 / math.sqrt(math.pi)),
    "math.exp2": lambda x, out: out * math.log(2),
    "math.cbrt": lambda x, out: 1.0 / (out * out * 3.0),
    "scipy.special.expm1": lambda x, out: ops.exp(x),
    "scipy.special.log1p": lambda x, out: 1.0 / (x + 1.0),
    "scipy.special.exp2": lambda x, out: out * math.log(2),
    "scipy.special.cbrt": lambda x, out: 1.0 / (out * out * 3.0),
}

# Steps: their slope is 0.
_FLAT = ("round", "np.spacing", "math.ulp")

# Of two operands, each a value or a number of Python's in the call.
_OF_TWO: dict[str, JvpRule] = {
    "math.remainder": remainder_jvp,
    **dict.fromkeys(("np.nextafter", "math.nextafter"), lambda out, primals, tangents: tangents[0]),
}


def _operands(node: Node, tangents: Sequence[Tangent], out: Value) -> tuple[list[Value], list[Tangent]] | None:
    """The arguments, in their order, in the shape and dtype of the result, and their tangents; None if that is not known."""
    arguments = node.params["function"].arguments or ()
    inputs = iter(zip(node.inputs, tangents))
    if arguments.count(...) != len(node.inputs):
        return None
    given: list[tuple[Any, Tangent]] = [next(inputs) if x is ... else (x, None) for x in arguments]
    if any(isinstance(x, Value) and x.shape not in ((), out.shape) for x, _ in given):
        return None

    def as_result(x: Any) -> Value:
        if not isinstance(x, Value):
            return ops.full(value=float(x), shape=out.shape, dtype=out.dtype)
        x = x if x.dtype == out.dtype else ops.convert(x, dtype=out.dtype)
        return x if x.shape == out.shape else ops.broadcast(x, shape=out.shape, axes=())

    return [as_result(x) for x, _ in given], [None if dx is None else as_result(dx) for _, dx in given]


def _moved(node: Node, x: Value, dx: Value, results: Sequence[Value]) -> Tangent:
    """The tangent of the first result, if the function is known."""
    name, out = node.params["function"].name, results[0]
    short = name.rpartition(".")[2]
    if name in _SLOPES:
        return dx * _SLOPES[name](x, out)
    if short == "ldexp":
        (scale,) = node.op(ops.full(value=1.0, shape=x.shape, dtype=node.inputs[0].dtype), *node.inputs[1:], **node.params)
        return dx * scale
    if short == "frexp":
        return dx * ops.exp2(-ops.convert(results[1], dtype=x.dtype))
    return dx if short == "modf" else None


@jvp_of_many.rule(ops.host_call, ops.draw)
def host_jvp(node: Node, tangents: Sequence[Tangent]) -> tuple[Sequence[Value], Sequence[Tangent]]:
    name = node.params["function"].name
    x, dx = node.inputs[0], tangents[0]
    results = node.op(*node.inputs, **node.params)
    out, *others = results
    if name in _FLAT:
        return results, tuple(None for _ in results)
    if name in _OF_TWO and (known := _operands(node, tangents, out)) is not None:
        return results, (_OF_TWO[name](out, *known),)
    is_first_alone = dx is not None and not any(is_inexact(v.dtype) for v in node.inputs[1:])
    if dx is not None and is_first_alone and is_inexact(out.dtype):
        # Python's own functions give float64 of any float.
        wide, moved = (v if v.dtype == out.dtype else ops.convert(v, dtype=out.dtype) for v in (x, dx))
        if name == "math.fsum" and len(node.inputs) == 1:
            return results, (ops.reduce_sum(moved, axes=tuple(range(x.ndim))),)
        if out.shape == x.shape and (tangent := _moved(node, wide, moved, results)) is not None:
            return results, (tangent, *(None for _ in others))
        if out.shape == x.aval.bounds and name in _SLOPES:
            tangent = moved * _SLOPES[name](wide, _within(out, wide))
            room = zeros(Aval(out.shape, tangent.dtype))
            return results, (ops.update_slice(room, tangent, start=(0,) * x.ndim, step=(1,) * x.ndim), *(None for _ in others))
    why = ", here of an array whose size only data decide," if any(not v.aval.is_static for v in node.inputs) else ""
    raise DerivativeError(
        f"{name}{why} runs in NumPy and has no derivative",
        source=node.source,
        remedy=ON_HOST,
    )
