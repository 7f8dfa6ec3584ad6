"""What does each primitive get to chew on?  One row per op, shared by every test that asks something of all ops.

A row says which dtypes the op takes, a few samples (shapes and parameters), how its operands are drawn, on which domain
it may be differentiated numerically, and how far a back end may stray from NumPy, with the reason. `tests/ops` fails by
name for an op without a row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from jitml.ir import ops
from jitml.ir.op import Op
from jitml.ir.types import DTYPES, DType

Shape = tuple[int, ...]
Array = np.ndarray[Any, Any]
Draw = Callable[[np.random.Generator, Shape, DType], Array]


def anything(rng: np.random.Generator, shape: Shape, dtype: DType) -> Array:
    """Ordinary numbers: normal floats and complex parts, small integers (of both signs where there are two), fair bools."""
    if dtype.kind == "c":
        return np.asarray(rng.normal(0, 2, shape) + 1j * rng.normal(0, 2, shape)).astype(dtype)
    if dtype.kind == "f":
        return np.asarray(rng.normal(0, 2, shape)).astype(dtype)
    if dtype.kind == "b":
        return np.asarray(rng.random(shape) < 0.5)
    return np.asarray(rng.integers(0 if dtype.kind == "u" else -9, 10, shape)).astype(dtype)


def any_bits(rng: np.random.Generator, shape: Shape, dtype: DType) -> Array:
    """Integers of all sizes up to the largest."""
    whole = np.frombuffer(rng.bytes(int(np.prod(shape)) * dtype.itemsize), dtype).reshape(shape)
    return np.asarray(whole >> rng.integers(0, 8 * dtype.itemsize, shape).astype(dtype))


def between(low: float, high: float) -> Draw:
    """Uniform in [low, high), both parts of complex numbers; integers likewise."""

    def draw(rng: np.random.Generator, shape: Shape, dtype: DType) -> Array:
        if dtype.kind == "c":
            return np.asarray(rng.uniform(low, high, shape) + 1j * rng.uniform(low, high, shape)).astype(dtype)
        if dtype.kind == "f":
            return np.asarray(rng.uniform(low, high, shape)).astype(dtype)
        return np.asarray(rng.integers(int(low), int(high), shape)).astype(dtype)

    return draw


def apart(rng: np.random.Generator, shape: Shape, dtype: DType) -> Array:
    """Distinct values, none near another, an integer or zero: no kink of max, sort, abs or floor is within a difference step."""
    size = int(np.prod(shape, dtype=int))
    return np.asarray(0.37 * (rng.permutation(size) - size // 2) + 0.123).reshape(shape).astype(dtype)


def nonzero(rng: np.random.Generator, shape: Shape, dtype: DType) -> Array:
    """Away from zero, of both signs where the dtype has them."""
    magnitude = between(1, 5)(rng, shape, dtype)
    return magnitude if dtype.kind == "u" else np.asarray(magnitude * rng.choice([-1, 1], shape)).astype(dtype)


def indices_below(bound: int) -> Draw:
    """Indices of an axis of `bound`, negative ones included, as int64 whatever the row's dtype is."""
    return lambda rng, shape, dtype: np.asarray(rng.integers(-bound, bound, shape), dtype=np.int64)


def condition(rng: np.random.Generator, shape: Shape, dtype: DType) -> Array:
    return np.asarray(rng.random(shape) < 0.5)


@dataclass(frozen=True)
class Sample:
    """Shapes of the operands and the op's parameters; `draws` where operands differ in kind (indices, conditions)."""

    shapes: tuple[Shape, ...]
    params: Mapping[str, Any] = field(default_factory=dict)
    draws: tuple[Draw | None, ...] = ()


@dataclass(frozen=True)
class OpCase:
    """One op's row.

    Args:
        kinds: dtype kinds of the operands that `draws` of a sample leaves open.
        draw: how those are drawn for values, in the op's whole useful domain.
        smooth: how they are drawn for derivatives: the op is smooth around each point. None: not differentiable.
        ulps: how far a back end may be from NumPy, in units in the last place; 0 means the same bits.
        why: the reason for `ulps`.
        width: bytes of the narrowest dtype that it is defined for.
    """

    op: Op
    kinds: str
    samples: tuple[Sample, ...]
    draw: Draw = anything
    smooth: Draw | None = anything
    ulps: float = 0
    why: str = "exact by IEEE 754 or moves data only"
    width: int = 1

    @property
    def dtypes(self) -> tuple[DType, ...]:
        return tuple(d for d in DTYPES.values() if d.kind in self.kinds and d.itemsize >= self.width)

    def inputs(self, sample: Sample, dtype: DType, *, seed: int = 0, smooth: bool = False) -> tuple[Array, ...]:
        """Operands for one sample; the same for the same seed."""
        rng = np.random.default_rng(seed)
        draw = self.smooth if smooth else self.draw
        assert draw is not None, f"{self.op} is not differentiable"
        draws = sample.draws or (None,) * len(sample.shapes)
        return tuple((special or draw)(rng, shape, dtype) for shape, special in zip(sample.shapes, draws, strict=True))


def edge_values(dtype: DType) -> Array:
    """Where implementations go wrong: zeros of both signs, extremes, subnormals, infinities, NaN, halves, powers of two."""
    if dtype.kind == "f":
        info = np.finfo(dtype)
        small = [0.0, info.smallest_subnormal, info.tiny, info.eps, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 1e3, info.max, np.inf]
        return np.array([*small, *(-x for x in small), np.nan], dtype)
    if dtype.kind == "b":
        return np.array([False, True])
    limits = np.iinfo(dtype)
    return np.array(
        sorted({limits.min, limits.min // 2, max(limits.min, -3), max(limits.min, -1), 0, 1, 2, 3, 63, limits.max}), dtype
    )


def edge_inputs(case: OpCase, dtype: DType) -> tuple[Array, ...]:
    """Every combination of edge values as the operands of a pointwise op."""
    arity = len(case.samples[0].shapes)
    grid = np.meshgrid(*[edge_values(dtype)] * arity, indexing="ij")
    return tuple(np.ascontiguousarray(g.ravel()) for g in grid)


R, F, N, A = "f", "fc", "iufc", "iufbc"  # R and I: of real numbers, of integers and real ones
I = R + "iu"
UNARY = (Sample(((7,),)), Sample(((2, 3, 5),)), Sample(((),)), Sample(((0, 3),)))
BINARY = tuple(Sample((s.shapes[0],) * 2) for s in UNARY)
POLYNOMIAL = "inline polynomial, within 4 units of the true value as NumPy's own is"
SUMS = "sums associate freely, at least as accurately as NumPy's pairwise"


def _arithmetic() -> Iterator[OpCase]:
    for op in (ops.add, ops.mul):
        yield OpCase(op, A, BINARY)
    yield OpCase(ops.sub, N, BINARY)
    yield OpCase(ops.div, F, BINARY, smooth=nonzero)
    # Quotients that are no integers: a step of the difference crosses no jump.
    yield OpCase(ops.floor_divide, I, BINARY, smooth=None)
    for op in (ops.remainder, ops.fmod):
        yield OpCase(op, I, tuple(Sample(s.shapes, draws=(between(0.3, 2.7), between(3, 5))) for s in BINARY))
    yield OpCase(ops.pow, N, BINARY, draw=between(0, 5), smooth=between(0.5, 3), ulps=4, why=POLYNOMIAL)
    for op in (ops.maximum, ops.minimum):
        yield OpCase(op, A, BINARY, smooth=anything)
    for op in (ops.fmax, ops.fmin):
        yield OpCase(op, N, BINARY)
    yield OpCase(ops.arctan2, R, BINARY, smooth=nonzero, ulps=4, why=POLYNOMIAL)
    yield OpCase(ops.hypot, R, BINARY, smooth=nonzero, ulps=4, why=POLYNOMIAL)
    yield OpCase(ops.copysign, R, BINARY, smooth=nonzero)


def _functions() -> Iterator[OpCase]:
    yield OpCase(ops.neg, N, UNARY)
    for op in (ops.abs, ops.sign):
        yield OpCase(op, N, UNARY, smooth=nonzero)
    yield OpCase(ops.rint, F, UNARY, smooth=between(1.1, 1.4))
    for op in (ops.floor, ops.ceil, ops.trunc):
        yield OpCase(op, R, UNARY, smooth=between(1.1, 1.4))
    yield OpCase(ops.sqrt, F, UNARY, draw=between(0, 9), smooth=between(0.5, 9))
    yield OpCase(ops.cbrt, R, UNARY, smooth=nonzero, ulps=4, why=POLYNOMIAL)
    everywhere = (ops.exp, ops.exp2, ops.expm1, ops.sin, ops.cos, ops.arctan, ops.sinh, ops.cosh, ops.tanh, ops.arcsinh)
    for op in everywhere:
        yield OpCase(op, F, UNARY, smooth=between(-2, 2), ulps=4, why=POLYNOMIAL)
    for op in (ops.erf, ops.logistic):
        yield OpCase(op, R, UNARY, smooth=between(-2, 2), ulps=4, why=POLYNOMIAL)
    for op in (ops.log, ops.log2, ops.log10, ops.log1p):
        yield OpCase(op, F, UNARY, draw=between(0, 9), smooth=between(0.5, 9), ulps=4, why=POLYNOMIAL)
    yield OpCase(ops.tan, F, UNARY, draw=between(-1.5, 1.5), smooth=between(-1, 1), ulps=4, why=POLYNOMIAL)
    for op in (ops.arcsin, ops.arccos, ops.arctanh):
        yield OpCase(op, F, UNARY, draw=between(-1, 1), smooth=between(-0.8, 0.8), ulps=4, why=POLYNOMIAL)
    yield OpCase(ops.arccosh, F, UNARY, draw=between(1, 9), smooth=between(1.5, 9), ulps=4, why=POLYNOMIAL)


def _logic() -> Iterator[OpCase]:
    for op in (ops.isnan, ops.isinf, ops.isfinite):
        yield OpCase(op, F, UNARY, smooth=None)
    yield OpCase(ops.signbit, R, UNARY, smooth=None)
    yield OpCase(ops.bits, "f", UNARY, smooth=None)
    yield OpCase(ops.from_bits, "i", UNARY, smooth=None, width=2)
    for op in (ops.eq, ops.ne, ops.lt, ops.le, ops.gt, ops.ge):
        yield OpCase(
            op, A, BINARY, draw=lambda rng, shape, dtype: np.rint(anything(rng, shape, dtype)).astype(dtype), smooth=None
        )
    for op in (ops.bit_and, ops.bit_or, ops.bit_xor):
        yield OpCase(op, "iub", BINARY, smooth=None)
    yield OpCase(ops.bit_not, "iub", UNARY, smooth=None)
    yield OpCase(ops.count_bits, "iu", UNARY, smooth=None)
    for op in (ops.add_overflows, ops.sub_overflows, ops.mul_overflows):
        yield OpCase(op, "iu", BINARY, draw=any_bits, smooth=None)
    for op in (ops.shift_left, ops.shift_right):
        yield OpCase(op, "iu", tuple(Sample(s.shapes, draws=(None, between(0, 70))) for s in BINARY), smooth=None)
    yield OpCase(ops.select, A, tuple(Sample((s.shapes[0],) * 3, draws=(condition, None, None)) for s in UNARY))
    for op in (ops.raise_divide, ops.raise_overflow, ops.raise_underflow, ops.raise_invalid):
        yield OpCase(op, "iufb", tuple(Sample((s.shapes[0],) * 2, draws=(None, condition)) for s in UNARY))
    converts = tuple(Sample(((4, 3),), {"dtype": dtype}) for dtype in DTYPES.values())
    yield OpCase(ops.convert, A, converts, draw=between(0, 2))
    yield OpCase(ops.stop_gradient, A, UNARY, smooth=None)


def _index_maps() -> Iterator[OpCase]:
    f64, i64 = DTYPES["f64"], DTYPES["i64"]
    yield OpCase(ops.full, A, (Sample((), {"value": 1, "shape": (2, 3), "dtype": f64}),), smooth=None)
    yield OpCase(ops.array, A, (Sample((), {"value": np.arange(6.0).reshape(2, 3), "shape": (2, 3), "dtype": f64}),), smooth=None)
    # What larger ones hold nobody may ask.
    yield OpCase(ops.empty, A, (Sample((), {"shape": (2, 0), "dtype": f64}),), smooth=None)
    iotas = tuple(Sample((), {"shape": (3, 4), "axis": axis, "dtype": dtype}) for axis in (0, 1) for dtype in (f64, i64))
    yield OpCase(ops.iota, A, iotas, smooth=None)
    yield OpCase(
        ops.broadcast,
        A,
        (
            Sample(((3,),), {"shape": (2, 3), "axes": (1,)}),
            Sample(((3,),), {"shape": (3, 2), "axes": (0,)}),
            Sample(((2, 1, 3),), {"shape": (2, 4, 5, 3), "axes": (0, 1, 3)}),
            Sample(((),), {"shape": (2, 3), "axes": ()}),
            Sample(((3,),), {"shape": (0, 3), "axes": (1,)}),
        ),
    )
    yield OpCase(ops.transpose, A, (Sample(((2, 3, 5),), {"perm": (2, 0, 1)}), Sample(((),), {"perm": ()})))
    yield OpCase(
        ops.reshape,
        A,
        (Sample(((4, 3),), {"shape": (2, 6)}), Sample(((1, 1),), {"shape": ()}), Sample(((0, 3),), {"shape": (0,)})),
    )
    yield OpCase(
        ops.slice,
        A,
        (
            Sample(((8, 5),), {"start": (1, 0), "stop": (8, 4), "step": (3, 2)}),
            Sample(((8, 5),), {"start": (0, 4), "stop": (7, 4), "step": (2, 1)}),
        ),
    )
    yield OpCase(ops.flip, A, (Sample(((3, 4),), {"axes": (0,)}), Sample(((3, 4),), {"axes": (0, 1)})))
    yield OpCase(
        ops.pad,
        A,
        (
            Sample(((3, 4), ()), {"low": (1, 0), "high": (0, 2), "interior": (0, 1)}),
            Sample(((0, 2), ()), {"low": (2, 0), "high": (1, 0), "interior": (1, 0)}),
        ),
    )
    yield OpCase(
        ops.concat,
        A,
        (Sample(((2, 3), (4, 3), (0, 3)), {"axis": 0}), Sample(((2, 3), (2, 1)), {"axis": 1}), Sample(((3,),), {"axis": 0})),
    )
    yield OpCase(
        ops.update_slice,
        A,
        (
            Sample(((8, 5), (3, 2)), {"start": (1, 0), "step": (3, 2)}),
            Sample(((8, 5), (8, 5)), {"start": (0, 0), "step": (1, 1)}),
            Sample(((8, 5), (0, 2)), {"start": (2, 1), "step": (1, 1)}),
        ),
    )


def _indexed() -> Iterator[OpCase]:
    row, pair = (None, indices_below(5)), (None, indices_below(3), indices_below(4))
    yield OpCase(
        ops.gather,
        A,
        (
            Sample(((5, 3), (7,)), {"axis": 0}, row),
            Sample(((2, 5, 3), (2, 2)), {"axis": 1}, row),
            Sample(((2, 3, 4), (6,), (6,)), {"axis": 1}, pair),
            Sample(((5, 3), ()), {"axis": 0}, row),
        ),
    )
    # Indices repeat on purpose: "set" lets the last one win.
    scatters = tuple(
        Sample(shapes, {"axis": axis, "combine": combine}, draws)
        for combine in ("add", "set", "min", "max")
        for shapes, axis, draws in (
            (((5, 3), (7, 3), (7,)), 0, (None, *row)),
            (((2, 3, 4), (2, 6), (6,), (6,)), 1, (None, *pair)),
        )
    )
    yield OpCase(ops.scatter, I, scatters)


def _dynamic() -> Iterator[OpCase]:
    """Places are drawn so that windows lie inside: a contract of these ops."""
    window = (None, between(0, 3), between(0, 4))
    slices = (
        Sample(((8, 5), (), ()), {"sizes": (3, 2), "step": (2, 1)}, window),
        Sample(((8, 5), (), ()), {"sizes": (1, 2), "step": (1, 1)}, window),
        Sample(((8, 5), (), ()), {"sizes": (0, 2), "step": (1, 1)}, window),
    )
    yield OpCase(ops.dynamic_slice, A, tuple(replace(s, draws=tuple(map(_as_i64, s.draws))) for s in slices), smooth=None)
    updates = tuple(
        Sample((x, sample.params["sizes"], *starts), {"step": sample.params["step"]}, (None, None, *map(_as_i64, window[1:])))
        for sample in slices
        for x, *starts in (sample.shapes,)
    )
    yield OpCase(ops.dynamic_update_slice, A, updates, smooth=None)
    some = (None, lambda rng, shape, dtype: np.asarray(rng.permutation(shape[0]) < 3))
    compressed = tuple(
        Sample((shape, (shape[axis],)), {"axis": axis, "size": 3}, some) for shape, axis in (((7,), 0), ((2, 5), 1))
    )
    yield OpCase(ops.compress, A, compressed, smooth=None)
    yield OpCase(ops.resize, A, (Sample(((4, 3),), {"shape": (4, 3)}),), smooth=None)


def _as_i64(draw: Draw | None) -> Draw | None:
    return None if draw is None else lambda rng, shape, dtype: draw(rng, shape, DTYPES["i64"])


def _reductions() -> Iterator[OpCase]:
    axes = tuple(Sample(((3, 4, 2),), {"axes": axes}) for axes in ((0,), (1,), (2,), (0, 2), (0, 1, 2), ()))
    empty = (Sample(((0, 3),), {"axes": (0,)}),)
    yield OpCase(ops.reduce_sum, A, axes + empty, ulps=8, why=SUMS)
    yield OpCase(ops.reduce_prod, A, axes + empty, draw=between(0.5, 1.9), ulps=32, why="products associate freely")
    for op in (ops.reduce_max, ops.reduce_min):
        yield OpCase(op, A, axes, smooth=apart)
    for op in (ops.reduce_all, ops.reduce_any):
        yield OpCase(op, "b", axes + empty, smooth=None)
    along = tuple(Sample(((3, 4, 2),), {"axis": axis}) for axis in range(3))
    for op in (ops.argmax, ops.argmin):
        yield OpCase(op, A, along, smooth=None)
    cumulative = tuple(Sample(((3, 4, 2),), {"axis": axis, "reverse": reverse}) for axis in range(3) for reverse in (False, True))
    for op in (ops.cumsum, ops.cumprod):
        yield OpCase(op, A, cumulative, draw=between(0, 2), smooth=anything)
    for op in (ops.cummax, ops.cummin):
        yield OpCase(op, "iufb", cumulative, smooth=apart)
    kinds = tuple(replace(s, params={**s.params, "kind": k}) for s in along for k in ("quicksort", "heapsort", "stable"))
    yield OpCase(ops.sort, A, kinds, smooth=apart)
    yield OpCase(ops.argsort, A, kinds, smooth=None)


def _contraction() -> Iterator[OpCase]:
    def dot(x: Shape, y: Shape, contract: tuple[Shape, Shape], batch: tuple[Shape, Shape] = ((), ())) -> Sample:
        return Sample((x, y), {"batch": batch, "contract": contract})

    samples = (
        dot((3, 4), (4, 5), ((1,), (0,))),
        dot((3, 4), (5, 3), ((0,), (1,))),
        dot((4,), (4,), ((0,), (0,))),
        dot((3,), (2,), ((), ())),
        dot((2, 3, 4), (4, 2, 5), ((2,), (0,)), ((0,), (1,))),
        dot((3, 2, 4), (5, 4, 3), ((2, 0), (1, 2))),
        dot((3, 0), (0, 2), ((1,), (0,))),
    )
    yield OpCase(ops.dot_general, A, samples, ulps=16, why="BLAS sums in its own order; bounded by the sum of magnitudes")


def _complex() -> Iterator[OpCase]:
    yield OpCase(ops.complex, R, BINARY, smooth=None, width=4)
    for op in (ops.real, ops.imag, ops.conj):
        yield OpCase(op, "c", UNARY, smooth=None)


def _fourier() -> Iterator[OpCase]:
    def case(op: Op, kinds: str, *params: Mapping[str, Any]) -> OpCase:
        samples = tuple(Sample(((3, 4),), p) for p in params)
        return OpCase(op, kinds, samples, smooth=None, ulps=32, why="sums of all elements, NumPy's own", width=4)

    yield case(ops.fft, F, *({"axes": axes, "inverse": inverse} for axes in ((0,), (0, 1)) for inverse in (False, True)))
    yield case(ops.rfft, R, {"axis": 0}, {"axis": 1})
    yield case(ops.irfft, "c", *({"axis": axis, "n": n} for axis, n in ((1, 6), (1, 7), (0, 4))))


def definite(rng: np.random.Generator, shape: Shape, dtype: DType) -> Array:
    """Hermitian matrices with eigenvalues above 1, far apart."""
    x = anything(rng, shape, dtype)
    return np.asarray(x @ np.swapaxes(x.conj(), -1, -2) / 9 + np.diag(np.arange(1, shape[-1] + 1) * 3)).astype(dtype)


def dominant(rng: np.random.Generator, shape: Shape, dtype: DType) -> Array:
    """Matrices with real eigenvalues, far apart."""
    spread = np.eye(*shape[-2:]) * np.arange(1, shape[-1] + 1) * 9
    return np.asarray(anything(rng, shape, dtype) / 4 + spread).astype(dtype)


def contraction(rng: np.random.Generator, shape: Shape, dtype: DType) -> Array:
    """Matrices that make every vector shorter."""
    return np.asarray(anything(rng, shape, dtype) / 16).astype(dtype)


def _linalg() -> Iterator[OpCase]:
    def case(op: Op, draw: Draw, shapes: Sequence[tuple[Shape, ...]], *params: Mapping[str, Any]) -> OpCase:
        samples = tuple(Sample(s, p, (draw, *(None,) * (len(s) - 1))) for s in shapes for p in params or ({},))
        return OpCase(op, F, samples, smooth=None, ulps=256, why="LAPACK's own", width=4)

    square, tall = (((3, 3),), ((2, 3, 3),)), (((5, 3),), ((3, 5),), ((2, 4, 3),))
    for op in (ops.cholesky, ops.slogdet, ops.det, ops.cofactors):
        yield case(op, definite, square)
    for op in (ops.solve, ops.solve_again):
        yield case(op, dominant, (((3, 3), (3, 2)), ((2, 3, 3), (2, 3, 1))))
    for op in (ops.eigh, ops.eigvalsh):
        yield case(op, definite, square, {"lower": True}, {"lower": False})
    real = bool(np.isrealobj(np.linalg.eigvals(np.eye(2))))  # NumPy 2.5 gives complex numbers always
    yield replace(case(ops.eig, dominant, square, {"real": real}), kinds="f")
    yield case(ops.svd, dominant, tall, {"full": False}, {"full": True})
    yield case(ops.svdvals, dominant, tall)
    yield case(ops.qr, dominant, tall, {"complete": False}, {"complete": True})
    yield case(ops.pinv, dominant, tall, {"rcond": 1e-12})
    yield case(ops.lstsq, dominant, (((5, 3), (5, 2)), ((2, 3, 4), (2, 3, 1))), {"rcond": 1e-12})
    small = (((3, 3), (2, 2), (3, 2)), ((2, 3, 3), (2, 4, 4), (2, 3, 4)))
    yield OpCase(
        ops.stein, F, tuple(Sample(s, {}, (contraction, contraction, None)) for s in small), ulps=256, why="sums", width=4
    )


def results(case: OpCase, *operands: Any, **params: Any) -> list[Any]:
    """What the op gives, one or more."""
    found = case.op(*operands, **params)
    return list(found) if isinstance(found, tuple) else [found]


FAMILIES = (
    _linalg,
    _fourier,
    _arithmetic,
    _functions,
    _complex,
    _logic,
    _index_maps,
    _indexed,
    _dynamic,
    _reductions,
    _contraction,
)
CASES: dict[str, OpCase] = {case.op.name: case for family in FAMILIES for case in family()}
