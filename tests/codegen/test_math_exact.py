"""Functions that must give NumPy's bits: arithmetic, order, rounding, division, shifts, integer powers."""

from __future__ import annotations

import numpy as np
import pytest

import jitml.ir.ops  # noqa: F401  (declares them)
from codegen.vectors import compile_vector, loop_text
from jitml.codegen.llvm.ir.builder import Builder, Operand
from jitml.codegen.scalar_math import RULES, emit
from jitml.ir.op import OPS, UserFunction
from jitml.ir.types import BOOL, DTYPES, F32, F64, I64, Aval


def words(text: str) -> list[str]:
    return text.split()


UNARY = words("neg abs sign floor ceil trunc rint sqrt isnan isinf isfinite signbit bit_not count_bits stop_gradient")
BINARY = words("add sub mul div floor_divide remainder fmod pow maximum minimum fmax fmin copysign")
BINARY += words("eq ne lt le gt ge bit_and bit_or bit_xor shift_left shift_right add_overflows sub_overflows mul_overflows")
PREDICATES = words("isnan isinf isfinite signbit eq ne lt le gt ge add_overflows sub_overflows mul_overflows")


def samples(dtype: np.dtype, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if dtype == np.bool_:
        return np.array([False, True])
    if dtype.kind == "f":
        tiny, top = np.finfo(dtype).tiny, np.finfo(dtype).max
        special = [0.0, -0.0, 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, 3, 7, -7, np.inf, -np.inf, np.nan, top, -top, tiny, -tiny]
        special += [np.finfo(dtype).smallest_subnormal, 2.0**11, 1e4, 0.1, -0.3]
        return np.concatenate([special, rng.normal(size=9), rng.normal(size=9) * 1e3]).astype(dtype)
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    special = [
        v for v in (-65, -64, -33, -9, -8, -7, -3, -2, -1, 0, 1, 2, 3, 5, 7, 8, 15, 16, 31, 32, 33, 63, 64, 65) if v >= low
    ]
    return np.concatenate([np.array([low, low + 1, high - 1, high, *special], dtype), rng.integers(low, high, 12, dtype)])


def is_defined(name: str, dtype: np.dtype) -> bool:
    try:
        OPS[name].aval(*[Aval((), dtype)] * (1 if name in UNARY else 2))
    except TypeError:
        return False
    return not (name == "pow" and dtype.kind == "f")


REAL = [name for name, dtype in DTYPES.items() if dtype.kind != "c"]
CASES = [(n, d) for n in UNARY + BINARY for d in REAL if is_defined(n, DTYPES[d])]


def assert_same_bits(got: np.ndarray, want: np.ndarray, note: str) -> None:
    np.testing.assert_array_equal(got, want, err_msg=note)
    if want.dtype.kind == "f":
        known = ~np.isnan(want)
        np.testing.assert_array_equal(np.signbit(got[known]), np.signbit(want[known]), err_msg=note)


@pytest.mark.parametrize(("name", "dtype_name"), CASES)
def test_numpys_bits(name: str, dtype_name: str) -> None:
    dtype = DTYPES[dtype_name]
    result = BOOL if name in PREDICATES else dtype
    xs = [samples(dtype)] if name in UNARY else [a.ravel() for a in np.meshgrid(samples(dtype), samples(dtype, 1))]
    want = np.asarray(OPS[name].run(tuple(xs), {}))
    if name in ("maximum", "minimum", "fmax", "fmin") and dtype.kind == "f":
        # The sign of max(0.0, -0.0) is not the same in NumPy's vector and scalar loops.
        keep = (xs[0] != 0) | (xs[1] != 0)
        xs, want = [x[keep] for x in xs], want[keep]
    for lanes, copies in ((8, 2), (1, 1)):
        f = compile_vector(lambda b, *args: emit(b, name, args, result), (dtype,) * len(xs), result, lanes, copies)
        assert_same_bits(f(*xs), want, f"{name} {dtype_name} {lanes}")


@pytest.mark.parametrize("divisor", [1, 2, 3, 7, 8, 1024])
@pytest.mark.parametrize("name", ["floor_divide", "remainder"])
def test_division_by_a_constant(name: str, divisor: int) -> None:
    x = samples(np.dtype(np.int64))
    f = compile_vector(lambda b, v: emit(b, name, (v, b.const(divisor, v.dtype)), v.dtype), (np.int64,), np.int64, 1)
    np.testing.assert_array_equal(f(x), OPS[name].run((x, np.int64(divisor)), {}))


@pytest.mark.parametrize("name", ["floor_divide", "remainder"])
def test_division_in_64_bits_where_float64_rounds(name: str) -> None:
    """Around multiples of the divisor, at the ends of the range, and for divisors of any size."""
    rng = np.random.default_rng(3)
    y = np.concatenate([rng.integers(-(2**k), 2**k, 200) for k in range(1, 64)] + [[2**63 - 1, -(2**63), 1, -1, 0] * 40])
    x = rng.integers(-(2**63), 2**63 - 1, y.size)
    x[::3] = x[::3] >> rng.integers(0, 60, x[::3].size)
    x[1::3] = (x // np.where(y == 0, 1, y) * y + rng.integers(-1, 2, y.size))[1::3]
    x[-200:] = np.repeat([2**63 - 1, -(2**63), 2**62, -1, 0, 1, 2**53 + 1, -(2**53) - 1], 25)
    f = compile_vector(lambda b, *args: emit(b, name, args, I64), (I64, I64), I64, 8, 2)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(f(x, y), OPS[name].run((x, y), {}))


def test_products_that_just_fit_in_64_bits() -> None:
    """Their double is 2**63 or 2**64, as that of those which just do not."""
    for dtype in (I64, np.dtype(np.uint64)):
        most = int(np.iinfo(dtype).max)
        pairs = [(a, most // a + k) for a in (3, 7, 641, 3037000499, 3037000500, 4294967295, 2**31 + 1) for k in (-1, 0, 1)]
        pairs += [(-a, b) for a, b in pairs] + [(2**62, -2), (2**62, 2), (-(2**63), -1), (-(2**63), 1)] if dtype == I64 else []
        x, y = (np.array(v, dtype) for v in zip(*pairs))
        want = [not np.iinfo(dtype).min <= a * b <= most for a, b in pairs]
        assert 0 < sum(want) < len(want)
        for lanes in (1, 8):
            f = compile_vector(lambda b, *args: emit(b, "mul_overflows", args, BOOL), (dtype, dtype), BOOL, lanes)
            np.testing.assert_array_equal(f(x, y), want)
            np.testing.assert_array_equal(f(y, x), want)


@pytest.mark.parametrize("dtype", [F32, F64])
def test_fmod_is_exact_for_any_quotient(dtype: np.dtype) -> None:
    rng = np.random.default_rng(2)
    x, y = (np.exp(rng.uniform(-60, 60, 3000)).astype(dtype) for _ in range(2))
    y[::2] = (x / rng.integers(1, 1000, x.size)).astype(dtype)[::2]
    for name in ("fmod", "remainder", "floor_divide"):
        f = compile_vector(lambda b, *args, name=name: emit(b, name, args, dtype), (dtype, dtype), dtype, 8, 2)
        assert_same_bits(f(x, -y), OPS[name].run((x, -y), {}), name)


@pytest.mark.parametrize("exponent", [0.0, 1.0, 2.0, 3.0, -1.0, 0.5, -0.5, 0.25, 1.5, -2.0, 2.2, -3.0, 5.0, -1.7, np.inf, np.nan])
def test_power_with_a_constant_exponent(exponent: float) -> None:
    x = samples(F64)
    f = compile_vector(lambda b, v: emit(b, "pow", (v, b.splat(b.const(exponent, F64), 8)), F64), (F64,), F64, 8)
    want = OPS["pow"].run((x, np.full_like(x, exponent)), {})  # an array: NumPy takes shortcuts of its own for scalars
    np.testing.assert_array_max_ulp(f(x)[~np.isnan(want)], want[~np.isnan(want)], 2)
    np.testing.assert_array_equal(np.isnan(f(x)), np.isnan(want))
    known = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(f(x))[known], np.signbit(want)[known])


def test_fastmath_flags_stay_on_plain_arithmetic() -> None:
    def write(b: Builder, x: Operand) -> Operand:
        b.fastmath = "reassoc"
        return emit(b, "exp", (emit(b, "mul", (x, x), F64),), F64)

    text = loop_text(write, (F64,), F64, 4)
    assert text.count("reassoc") == 1


def test_every_pointwise_op_has_a_rule() -> None:
    names = {op.name for op in OPS.values() if op.family == "pointwise" and type(op) is not UserFunction}
    assert names - set(RULES) - {"convert"} == set()
