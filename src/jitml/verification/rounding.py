"""Rounding: how far may results be apart that are computed in another order?  Tolerances, and nudges by a unit in the last place.

A result that differs by more is not wrong yet: `tanh(x) + tanh(-x)` is nothing but rounding, and so is the sine of a power of
1e25. Where other numbers come out as soon as what may round otherwise is moved by a unit in the last place, nothing can be said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from jitml.ir.graph import Graph, Node
from jitml.ir.types import F64, part_dtype
from jitml.verification.blockwise_comparison import blocks

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
        known = [x for x in (part_dtype(expected.dtype), precision) if x in ROUNDING] or [F64]
        slack = relative * max(ROUNDING[x] for x in known) / ROUNDING[F64]
        scale: float | None = None
        for a, b in blocks(got, expected):
            if bool((np.abs(a - b) <= slack * np.abs(b)).all()):
                continue
            scale = _scale(expected) if scale is None else scale
            if not np.allclose(a, b, rtol=slack, atol=slack * scale, equal_nan=True):
                return False
        return True

    return close


def _scale(x: Array) -> float:
    """The largest magnitude that is finite."""
    return max((float(np.abs(part[np.isfinite(part)]).max(initial=0.0)) for part, _ in blocks(x, x)), default=0.0)


def precision(graphs: Iterable[Graph]) -> np.dtype[Any]:
    """The least precise floating dtype in graphs and the bodies of their regions."""
    found = [F64]
    for graph in graphs:
        values = (*graph.inputs, *(v for node in graph.nodes for v in node.outputs))
        dtypes = {part_dtype(v.dtype) for v in values}
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
_VECTORS = {"eigh": (1,), "svd": (0, 2)}  # results that have signs of their own: as columns, and as rows
_SUMS = {"reduce_sum", "dot_general", "cumsum"}


def nudge_results(
    seed: int, every_op: bool, *, has_own_phases: bool = False
) -> Callable[[Node, Sequence[Array], Sequence[Array]], None]:
    """What moves, as a graph is interpreted, each result that may be rounded otherwise.

    What is a whole number is taken for exact. Of sums the unit is that of the sum of magnitudes, which may be much larger.

    Args:
        every_op: with fast arithmetic nothing is exact.
        has_own_phases: whether another library than NumPy's chooses the signs of eigenvectors and singular vectors.
    """
    rng = np.random.default_rng(seed)

    def nudge(node: Node, operands: Sequence[Array], results: Sequence[Array]) -> None:
        if node.op.family not in _ROUNDED_FAMILIES:
            return
        if has_own_phases and node.op.name in _VECTORS and all(x.flags.writeable for x in results):
            _turn([results[k] for k in _VECTORS[node.op.name]], rng, all_of_them=seed == 0)
        is_exact = node.op.name in _EXACT and not every_op
        for result in results:
            if result.flags.writeable and (result.dtype.kind == "c" or (result.dtype.kind == "f" and not is_exact)):
                with np.errstate(all="ignore"):
                    _nudge(result, _size_of_sum(node, operands), rng)

    return nudge


def _turn(vectors: Sequence[Array], rng: np.random.Generator, *, all_of_them: bool) -> None:
    """Give vectors other phases in place: columns of the first stack of matrices, and rows of the second one as much."""
    columns = vectors[0].shape[-1]
    count = max([columns, *(x.shape[-2] for x in vectors[1:])])
    phases = np.full(count, -1.0) if all_of_them else rng.choice([-1.0, 1.0], count)
    if vectors[0].dtype.kind == "c":
        phases = np.exp(2j * np.pi * rng.random(count))
    vectors[0][...] *= phases[:columns].astype(vectors[0].dtype)
    for x in vectors[1:]:
        x *= phases[: x.shape[-2], None].conj().astype(x.dtype)


def _nudge(x: Array, size: Array | None, rng: np.random.Generator) -> None:
    """Move numbers in place, by the unit of this size if there is one."""
    if x.dtype.kind == "c":
        np.copyto(x, moved(x, rng))
        return
    unit = np.finfo(x.dtype).eps * (np.abs(x) if size is None else size)
    other = moved(x, rng) if size is None else (x + unit * rng.uniform(-2, 2, x.shape)).astype(x.dtype)
    np.copyto(x, other, where=(x != np.rint(x)) | (unit >= 1))


def _size_of_sum(node: Node, operands: Sequence[Array]) -> Array | None:
    """Of a sum of real numbers, that of their magnitudes."""
    if node.op.name not in _SUMS or any(x.dtype.kind == "c" for x in operands):
        return None
    size = np.asarray(node.op.run(tuple(np.abs(x) for x in operands), {**node.params}))
    return size if np.isfinite(size).all() else None


def nudged_inputs(inputs: Sequence[Any], seed: int) -> list[Any]:
    """Arguments of a graph, those that are floats moved."""
    rng = np.random.default_rng(seed)
    return [moved(x, rng) if isinstance(x, np.ndarray) and x.dtype.kind in "fc" else x for x in inputs]
