"""The SIMD text builder: lanes and copies agree with NumPy element by element."""

from __future__ import annotations

import platform

import numpy as np
import pytest

from codegen.vectors import compile_vector, loop_text
from jitml.ir.types import DTYPES, F32, F64

WIDTHS = [(1, 1), (8, 2)]
EDGES = [
    0.0,
    -0.0,
    np.inf,
    -np.inf,
    np.nan,
    0.5,
    -2.7,
    127.5,
    128,
    256,
    -129,
    65535,
    65536,
    2**31 - 0.5,
    2.0**31,
    -(2.0**31) - 0.5,
]
EDGES += [
    -(2.0**31) - 1,
    2.0**32 - 1,
    2.0**32,
    1e15,
    2.0**63,
    -(2.0**63),
    2.0**64 - 2048,
    2.0**64,
    65519.999,
    65520,
    2.98e-8,
    1e300,
]

REAL = [name for name, dtype in DTYPES.items() if dtype.kind != "c"]  # kernels see the parts of complex numbers


def samples(dtype: np.dtype) -> np.ndarray:
    rng = np.random.default_rng(1)
    if dtype == np.bool_:
        return rng.integers(0, 2, 40).astype(bool)
    if dtype.kind == "f":
        ties = rng.integers(0, 2**15, 200).astype("u2").view("f2").astype("f8") * (1 + 2.0**-11)
        return np.concatenate([EDGES, ties, rng.normal(size=300) * np.exp(rng.uniform(-20, 20, 300))]).astype(dtype)
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    return np.concatenate([np.array([0, 1, low, low + 1, high], dtype), rng.integers(low, high, 99, dtype, endpoint=True)])


@pytest.mark.parametrize("source", REAL)
@np.errstate(all="ignore")
def test_convert_is_numpys_cast(source: str) -> None:
    x = samples(DTYPES[source])
    for target in map(DTYPES.__getitem__, REAL):
        f = compile_vector(lambda b, v, target=target: b.convert(v, target), (DTYPES[source],), target, 8)
        want, got = x.astype(target), f(x)
        keep = np.ones(len(x), bool)
        if platform.machine() != "x86_64" and x.dtype.kind == "f" and target.kind in "iu":
            keep = np.isfinite(x) & (np.trunc(x) >= np.iinfo(target).min) & (np.trunc(x) <= np.iinfo(target).max)
        np.testing.assert_array_equal(got[keep], want[keep], err_msg=str(target))
        if target.kind == "f":
            np.testing.assert_array_equal(np.signbit(got[keep]), np.signbit(want[keep]))


@pytest.mark.parametrize("has_fma", [True, False])
@np.errstate(all="ignore")
def test_every_float16_survives_and_rounding_is_to_even(has_fma: bool) -> None:
    f16 = DTYPES["f16"]
    every = np.arange(2**16, dtype=np.uint16).view(np.float16)
    widen = compile_vector(lambda b, v: b.convert(v, F64), (f16,), F64, 8, 2, has_fma)
    np.testing.assert_array_equal(widen(every), every.astype(np.float64))
    near = np.concatenate([np.nextafter(every.astype("f4") * s, d) for s in (1, 1 + 2.0**-11) for d in (-np.inf, 0, np.inf)])
    narrow = compile_vector(lambda b, v: b.convert(v, f16), (F32,), f16, 8, 2, has_fma)
    np.testing.assert_array_equal(narrow(near), near.astype(np.float16))


@pytest.mark.parametrize(("lanes", "copies"), WIDTHS)
def test_copies_and_splats(lanes: int, copies: int) -> None:
    x, y = np.random.default_rng(0).normal(size=(2, 37))
    f = compile_vector(lambda b, u, v: b.fadd(b.fmul(u, v), b.const(2.0, F64)), (F64, F64), F64, lanes, copies)
    np.testing.assert_array_equal(f(x, y), x * y + 2.0)


@pytest.mark.parametrize(("lanes", "copies"), WIDTHS)
@pytest.mark.parametrize("dtype", [F32, F64])
def test_where_rare_calls_the_library_for_the_marked_lanes_only(dtype: np.dtype, lanes: int, copies: int) -> None:
    x = np.linspace(0, 4, 41, dtype=dtype)
    f = compile_vector(lambda b, v: b.where_rare(b.fcmp("ogt", v, 2.0), b.fneg(v), "tgamma", v), (dtype,), dtype, lanes, copies)
    got = f(x)
    np.testing.assert_array_equal(got[x <= 2], -x[x <= 2])
    np.testing.assert_allclose(got[-1], 6.0, rtol=1e-6)


def test_fastmath_flags_stand_on_arithmetic_and_nowhere_under_strict() -> None:
    def write(b, x):
        b.fastmath = "contract"
        y = b.fmul(x, x)
        with b.strict():
            return b.fadd(y, x)

    text = loop_text(write, (F64,), F64, 4)
    assert "fmul contract <4 x double>" in text and "constrained.fadd.v4f64(<4 x double>" in text
