"""The protocol that the rules of elementary functions write through is enough for another back end: here one of NumPy arrays."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from jitml.codegen.scalar_math import emit
from jitml.codegen.scalar_math.builder import ScalarBuilder
from jitml.ir.op import OPS
from jitml.ir.types import BOOL, DTYPES, F16, F32, DType, signed

Array = np.ndarray[Any, Any]
ORDERS: dict[str, Callable[..., Array]] = {
    **{"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal},
    **{"oeq": np.equal, "olt": np.less, "ole": np.less_equal, "ogt": np.greater, "oge": np.greater_equal, "une": np.not_equal},
    "uno": lambda x, y: np.isnan(x) | np.isnan(y),
    "one": lambda x, y: (x < y) | (x > y),
}


@dataclass(frozen=True)
class Numbers:
    """Some numbers, as one value of one lane: each goes its own way."""

    array: Array
    lanes: int = 1

    @property
    def dtype(self) -> DType:
        return self.array.dtype


Given = Numbers | float


class NumPyBuilder:
    """Computes what it is asked to write."""

    has_fma = False

    def __init__(self) -> None:
        self.raised: set[str] = set()

    @contextmanager
    def strict(self) -> Iterator[None]:
        yield

    def const(self, value: float, dtype: DType) -> Numbers:
        if dtype.kind in "iu":
            bits = 8 * dtype.itemsize
            return Numbers(np.array(int(value) & ((1 << bits) - 1), DTYPES[f"u{bits}"]).astype(dtype))
        return Numbers(np.array(value, dtype))

    def constant_value(self, x: Numbers) -> float | None:
        return x.array.item() if x.array.ndim == 0 else None

    def splat(self, x: Numbers, lanes: int) -> Numbers:
        return x

    def operands(self, *args: Given) -> list[Numbers]:
        dtype = next(a.dtype for a in args if isinstance(a, Numbers))
        return [a if isinstance(a, Numbers) else self.const(a, dtype) for a in args]

    def _do(self, function: Callable[..., Any], *args: Given) -> Numbers:
        xs = self.operands(*args)
        with np.errstate(all="ignore"):
            return Numbers(np.asarray(function(*[x.array for x in xs])).astype(xs[0].dtype))

    def fadd(self, x: Given, y: Given) -> Numbers:
        return self._do(np.add, x, y)

    def fsub(self, x: Given, y: Given) -> Numbers:
        return self._do(np.subtract, x, y)

    def fmul(self, x: Given, y: Given) -> Numbers:
        return self._do(np.multiply, x, y)

    def fdiv(self, x: Given, y: Given) -> Numbers:
        return self._do(np.divide, x, y)

    def fma(self, x: Given, y: Given, z: Given) -> Numbers:
        return self._do(lambda x, y, z: x * y + z, x, y, z)

    def sqrt(self, x: Given) -> Numbers:
        return self._do(np.sqrt, x)

    def fabs(self, x: Numbers) -> Numbers:
        return self._do(np.abs, x)

    def fneg(self, x: Numbers) -> Numbers:
        return self._do(np.negative, x)

    def copysign(self, x: Given, y: Given) -> Numbers:
        return self._do(np.copysign, x, y)

    def sign_bit(self, x: Numbers) -> Numbers:
        return self.and_(self.bitcast(x, signed(x.dtype)), 1 << (8 * x.dtype.itemsize - 1))

    def flip_sign(self, x: Numbers, sign: Numbers) -> Numbers:
        return self.bitcast(self.xor(self.bitcast(x, sign.dtype), sign), x.dtype)

    def rint(self, x: Given) -> Numbers:
        return self._do(np.rint, x)

    def floor(self, x: Given) -> Numbers:
        return self._do(np.floor, x)

    def ceil(self, x: Given) -> Numbers:
        return self._do(np.ceil, x)

    def trunc(self, x: Given) -> Numbers:
        return self._do(np.trunc, x)

    def fcmp(self, predicate: str, x: Given, y: Given) -> Numbers:
        return self.compare(predicate, x, y)

    icmp = fcmp

    def compare(self, predicate: str, x: Given, y: Given, *, chooses: bool = False) -> Numbers:
        return Numbers(np.asarray(ORDERS[predicate](*[v.array for v in self.operands(x, y)])))

    def add(self, x: Given, y: Given) -> Numbers:
        return self._do(np.add, x, y)

    def sub(self, x: Given, y: Given) -> Numbers:
        return self._do(np.subtract, x, y)

    def mul(self, x: Given, y: Given) -> Numbers:
        return self._do(np.multiply, x, y)

    def and_(self, x: Given, y: Given) -> Numbers:
        return self._do(np.bitwise_and, x, y)

    def or_(self, x: Given, y: Given) -> Numbers:
        return self._do(np.bitwise_or, x, y)

    def xor(self, x: Given, y: Given) -> Numbers:
        return self._do(np.bitwise_xor, x, y)

    def not_(self, x: Numbers) -> Numbers:
        return self._do(np.invert, x)

    def overflow_flag(self, operation: str, x: Numbers, y: Numbers) -> Numbers | None:
        return None

    def count_bits(self, x: Numbers) -> Numbers:
        return self._do(np.bitwise_count, x)

    def shl(self, x: Given, y: Given) -> Numbers:
        return self._do(np.left_shift, x, y)

    def lshr(self, x: Given, y: Given) -> Numbers:
        x, y = self.operands(x, y)
        plain = DTYPES[f"u{8 * x.dtype.itemsize}"]
        return self.bitcast(self._do(np.right_shift, self.bitcast(x, plain), self.bitcast(y, plain)), x.dtype)

    def ashr(self, x: Given, y: Given) -> Numbers:
        return self._do(np.right_shift, x, y)

    def divide(self, x: Given, y: Given) -> Numbers:
        return self._do(lambda x, y: np.where((x % y != 0) & ((x < 0) != (y < 0)), x // y + 1, x // y), x, y)

    def select(self, condition: Numbers, x: Given, y: Given) -> Numbers:
        x, y = self.operands(x, y)
        return Numbers(np.where(condition.array, x.array, y.array))

    def min(self, x: Given, y: Given) -> Numbers:
        return self.select(self.compare("lt", x, y), x, self.operands(x, y)[1])

    def max(self, x: Given, y: Given) -> Numbers:
        return self.select(self.compare("gt", x, y), x, self.operands(x, y)[1])

    def bitcast(self, x: Numbers, dtype: DType) -> Numbers:
        return Numbers(x.array.view(dtype))

    def convert(self, x: Numbers, dtype: DType, *, raises: bool = False) -> Numbers:
        with np.errstate(all="ignore"):
            return Numbers(x.array.astype(dtype))

    def convert_small(self, x: Numbers, dtype: DType) -> Numbers:
        return self.convert(x, dtype)

    def repeat(
        self,
        start: Sequence[Numbers],
        more: Callable[[list[Numbers]], Numbers],
        step: Callable[[list[Numbers]], Sequence[Numbers]],
    ) -> list[Numbers]:
        values = list(start)
        while more(values).array.any():
            values = list(step(values))
        return values

    def raise_errors(self, **masks: Numbers) -> None:
        self.raised.update(error for error, mask in masks.items() if mask.array.any())

    def call_libm(self, function: str, *args: Given) -> Numbers:
        return self._do(getattr(np, function), *args)

    def where_rare(self, mask: Numbers, fast: Numbers, function: str, *args: Given) -> Numbers:
        return self.select(mask, self.call_libm(function, *args), fast)


def computed(fn: str, *arrays: Array, dtype: DType | None = None) -> tuple[Array, set[str]]:
    """What a rule makes of arrays, and the floating-point errors that it raised by itself."""
    writer = NumPyBuilder()
    b: ScalarBuilder[Numbers] = writer
    return emit(b, fn, [Numbers(x) for x in arrays], dtype or arrays[0].dtype).array, writer.raised


EDGES = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-310, 1e300, 709.0, -745.0, 1e9]
ALL = np.concatenate([np.random.default_rng(0).normal(0, 20, 200), EDGES])
PAIRS = ("pow", "arctan2", "hypot", "fmod", "remainder", "floor_divide", "maximum", "fmin", "copysign")
ALONE = (
    *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sinh", "cosh", "tanh", "logistic", "sin", "cos", "tan"),
    *("arcsin", "arccos", "arctan", "arcsinh", "arccosh", "arctanh", "cbrt", "erf", "sign", "floor", "isfinite", "signbit"),
)


@pytest.mark.parametrize("dtype", ["f64", "f32", "f16"])
@pytest.mark.parametrize("fn", [*ALONE, *PAIRS])
def test_floats_as_numpy_has_them(fn: str, dtype: str) -> None:
    with np.errstate(all="ignore"):
        x = ALL.astype(DTYPES[dtype])
        args = (x, x[::-1].copy()) if fn in PAIRS else (x,)
        wanted = np.asarray(OPS[fn].evaluate(*args))
        got, _ = computed(fn, *args, dtype=wanted.dtype)
        assert got.dtype == wanted.dtype
        if wanted.dtype == BOOL:
            np.testing.assert_array_equal(got, wanted)
            return
        tolerance = 1e-3 if x.dtype == F16 else 2e-6 if x.dtype == F32 else 1e-14
        np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=4 * float(np.finfo(x.dtype).smallest_subnormal))
        np.testing.assert_array_equal(np.signbit(got[~np.isnan(wanted)]), np.signbit(wanted[~np.isnan(wanted)]))


@pytest.mark.parametrize("dtype", ["i8", "u16", "i32", "i64", "u64"])
@pytest.mark.parametrize(
    "fn", ["floor_divide", "remainder", "fmod", "pow", "shift_left", "shift_right", "bit_xor", "minimum", "abs", "sign"]
)
def test_integers_bit_for_bit(fn: str, dtype: str) -> None:
    limits = np.iinfo(DTYPES[dtype])
    x = np.array([0, 1, 2, 3, 7, 100, limits.min, limits.max, limits.max // 3, 5], DTYPES[dtype])
    y = np.array([3, 0, 7, 2, limits.max, 9, 1, 2, 5, limits.min], DTYPES[dtype])
    if fn == "pow":
        y = np.abs(y) % 7
    args = (x,) if fn in ("abs", "sign") else (x, y)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(computed(fn, *args)[0], OPS[fn].evaluate(*args))


def test_errors_are_raised_where_nothing_else_would() -> None:
    x = np.array([1, 2])
    assert computed("floor_divide", x, np.array([0, 1]))[1] == {"divide"}
    assert computed("floor_divide", x, np.array([3, 1]))[1] == set()
    assert computed("pow", np.array([-8.0]), np.array([1 / 3]))[1] == {"invalid"}
