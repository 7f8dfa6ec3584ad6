"""Rounding: how far may results be apart that are computed in another order?  Tolerances, and nudges by a unit in the last place.

A result that differs by more is not wrong yet: `tanh(x) + tanh(-x)` is nothing but rounding, and so is the sine of a power of
1e25. Where other numbers come out as soon as what may round otherwise is moved by a unit in the last place, nothing can be said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from jitml.ir.graph import Graph, Node
from jitml.ir.types import F64

Array = np.ndarray[Any, Any]
Close = Callable[[Array, Array], bool]

# By the precision of what an array was computed in: rounding errors, as a share of the largest number, that some thousand
# operations of moderate condition leave. A float has 52, 23 or 10 bits.
ROUNDING = {np.dtype(np.float64): 3e-10, np.dtype(np.float32): 1e-4, np.dtype(np.float16): 3e-2}


def within(relative: float, precision: np.dtype[Any] | None = None) -> Close:
    """Inexact arrays agree if they differ by less than `relative` times their largest number; for f32, by its precision more.

    Args:
        precision: the least precise dtype on the way to them, whatever they are now: `np.cbrt(int16).astype(float)` is no better
            than the float32 that NumPy computes in.
    """

    def close(got: Array, expected: Array) -> bool:
        known = [x for x in (_of_parts(expected.dtype), precision) if x in ROUNDING] or [F64]
        slack = relative * max(ROUNDING[x] for x in known) / ROUNDING[F64]
        finite = np.abs(expected[np.isfinite(expected)])
        scale = float(finite.max(initial=0.0))
        return bool(np.allclose(got, expected, rtol=slack, atol=slack * scale, equal_nan=True))

    return close


def _of_parts(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Of a complex number's real part."""
    return np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype


def precision(graphs: Iterable[Graph]) -> np.dtype[Any]:
    """The least precise floating dtype in graphs and the bodies of their regions."""
    found = [F64]
    for graph in graphs:
        values = (*graph.inputs, *(v for node in graph.nodes for v in node.outputs))
        dtypes = {_of_parts(v.dtype) for v in values}
        found += [dtype for dtype in dtypes if dtype in ROUNDING]
        found.append(precision(body for node in graph.nodes for body in node.bodies.values()))
    return max(found, key=lambda dtype: ROUNDING[dtype])


def moved(x: Array, rng: np.random.Generator) -> Array:
    """Each number moved up or down, by chance, to the next one."""
    if x.dtype.kind == "c":
        parts = (moved(np.asarray(x.real), rng), moved(np.asarray(x.imag), rng))
        return (parts[0] + 1j * parts[1]).astype(x.dtype)
    away = rng.choice([-np.inf, np.inf], x.shape).astype(x.dtype)
    with np.errstate(all="ignore"):
        return np.asarray(np.nextafter(x, away))


# The compiled program gives NumPy's own bits of these; whatever else there is of floats may be rounded otherwise.
_EXACT = {
    *("add", "sub", "mul", "div", "floor_divide", "remainder", "fmod", "maximum", "minimum", "fmax", "fmin", "copysign", "neg"),
    *("abs", "sign", "floor", "ceil", "trunc", "rint", "sqrt", "from_bits", "select", "convert", "stop_gradient"),
    *("raise_divide", "raise_overflow", "raise_underflow", "raise_invalid", "real", "imag", "conj", "complex"),
    *("reduce_max", "reduce_min", "cummax", "cummin", "sort"),
}
_ROUNDED_FAMILIES = {"pointwise", "complex", "contraction", "reductions", "fft", "linalg"}
_SUMS = {"reduce_sum", "dot_general", "cumsum"}


def nudge_results(seed: int, every_op: bool) -> Callable[[Node, Sequence[Array], Sequence[Array]], None]:
    """What moves, as a graph is interpreted, each result that may be rounded otherwise.

    What is a whole number is taken for exact. Of sums the unit is that of the sum of magnitudes, which may be much larger.

    Args:
        every_op: with fast arithmetic nothing is exact.
    """
    rng = np.random.default_rng(seed)

    def nudge(node: Node, operands: Sequence[Array], results: Sequence[Array]) -> None:
        if node.op.family not in _ROUNDED_FAMILIES:
            return
        for result in results:
            kind = result.dtype.kind
            if kind not in "fc" or (node.op.name in _EXACT and not every_op and kind == "f") or not result.flags.writeable:
                continue
            other = moved(result, rng)
            if node.op.name in _SUMS and kind == "f" and (size := _size_of_sum(node, operands)) is not None:
                unit = np.finfo(result.dtype).eps * size.astype(result.dtype)
                other = (result + unit * rng.uniform(-2, 2, result.shape)).astype(result.dtype)
            with np.errstate(all="ignore"):
                whole = (result == np.rint(result)) if kind == "f" else np.zeros(result.shape, bool)
            np.copyto(result, other, where=~whole)

    return nudge


def _size_of_sum(node: Node, operands: Sequence[Array]) -> Array | None:
    """The sum of magnitudes."""
    with np.errstate(all="ignore"):
        size = np.asarray(node.op.run(tuple(np.abs(x) for x in operands), {**node.params}))
    return size if np.isfinite(size).all() else None


def nudged_inputs(inputs: Sequence[Any], seed: int) -> list[Any]:
    """Arguments of a graph, those that are floats moved."""
    rng = np.random.default_rng(seed)
    return [moved(x, rng) if isinstance(x, np.ndarray) and x.dtype.kind in "fc" else x for x in inputs]
