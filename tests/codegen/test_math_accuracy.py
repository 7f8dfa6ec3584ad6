"""Transcendental functions keep their documented bounds, have NumPy's special values, and do not depend on the width."""

from __future__ import annotations

from pathlib import Path

import llvmlite.binding as llvm
import numpy as np
import pytest

import jitml
from codegen.accuracy import errors
from codegen.math_cases import CASES, Sampler, points
from codegen.vectors import compile_vector, loop_text
from jitml.codegen.scalar_math import emit
from jitml.ir.op import OPS
from jitml.ir.types import F32, F64

POINTS = {F64: 250, F32: 4000}
BINARY = ("pow", "hypot", "arctan2")


def compiled(name: str, dtype: np.dtype, lanes: int = 8, copies: int = 2, has_fma: bool = True):
    inputs = (dtype,) * (2 if name in BINARY else 1)
    return compile_vector(lambda b, *args: emit(b, name, args, dtype), inputs, dtype, lanes, copies, has_fma)


def bound(name: str, dtype: np.dtype) -> float:
    return CASES[name][1 if dtype == F64 else 2]


def same_bits(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return (x.view(f"u{x.itemsize}") == y.view(f"u{y.itemsize}")) | (np.isnan(x) & np.isnan(y))


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", [F64, F32], ids=["f64", "f32"])
def test_error_bound(name: str, dtype: np.dtype) -> None:
    f = compiled(name, dtype)
    for where, xs in points(name, dtype, POINTS[dtype]):
        error = errors(name, f(*xs), *xs)
        worst = int(np.argmax(error))
        assert error[worst] <= bound(name, dtype), f"{where}: {error[worst]:.2f} ulp at {[float(x[worst]) for x in xs]}"


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", [F64, F32], ids=["f64", "f32"])
def test_without_fused_multiply_add(name: str, dtype: np.dtype) -> None:
    f = compiled(name, dtype, has_fma=False)
    for where, xs in points(name, dtype, POINTS[dtype] // 4):
        error = errors(name, f(*xs), *xs)
        worst = int(np.argmax(error))
        assert error[worst] <= bound(name, dtype) + 1, f"{where}: {error[worst]:.2f} ulp at {[float(x[worst]) for x in xs]}"


@pytest.mark.parametrize("n", [3, 4, 5, 7, 8, 15, 16, 17])
@pytest.mark.parametrize("dtype", [F64, F32], ids=["f64", "f32"])
def test_whole_powers_keep_the_bound_up_to_where_they_overflow(n: int, dtype: np.dtype) -> None:
    f = compile_vector(lambda b, x: emit(b, "pow", (x, b.splat(b.const(float(n), dtype), 8)), dtype), (dtype,), dtype, 8, 2)
    s = Sampler(dtype, POINTS[dtype], n)
    edge = np.finfo(dtype).max ** (1 / n)
    ends = edge * (1 + np.arange(-20, 21) * np.finfo(dtype).eps)
    x = np.concatenate([s.powers(-s.top / n, s.top / n), s.uniform(-9, 9), s.subnormals(), ends, -ends]).astype(dtype)
    assert errors("pow", f(x), x, np.full_like(x, n)).max() <= (2 if n == 3 else bound("pow", dtype))


@pytest.mark.parametrize("n", [3.0, 4.0, 5.0, 8.0])
def test_whole_powers_raise_what_numpy_raises(n: float) -> None:
    f = jitml.jit(lambda x: np.power(x, n))
    with np.errstate(all="raise"):
        np.testing.assert_array_equal(
            f(np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, 2.0])), np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, 2.0]) ** n
        )
        for x, error in ((1e300, "overflow"), (-1e160, "overflow"), (1e-300, "underflow")):
            with pytest.raises(FloatingPointError, match=error):
                f(np.array([x, 1.0]))


def special_values(dtype: np.dtype) -> np.ndarray:
    info = np.finfo(dtype)
    values = [0.0, 0.5, 1, 2, 3, 4, 7, 8, 20, 64, 100, 1000, np.inf, np.nan, info.max, info.tiny, info.smallest_subnormal]
    values += [info.tiny / 4, 1 + info.eps, 1 - info.eps, 1e-30, 1e30, 0.25, 2.5, 1e5, 1e9, 1e10, 126.5, 128, 1024, 1074, 149]
    values += [88.72, 88.73, 89.41, 89.42, 103.5, 104.5, 709.78, 709.79, 710.47, 710.48, 744.4, 745.2]
    return np.array([s * v for v in values for s in (1, -1)], dtype)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", [F64, F32], ids=["f64", "f32"])
def test_special_values_are_numpys(name: str, dtype: np.dtype) -> None:
    xs = [special_values(dtype)]
    if name in BINARY:
        xs = [a.ravel() for a in np.meshgrid(xs[0], xs[0])]
    with np.errstate(all="ignore"):
        want = np.asarray(OPS[name].run(tuple(xs), {}))
        got = compiled(name, dtype)(*xs)
        is_close = np.abs(got.astype(np.float64) - want) <= 4 * np.spacing(np.abs(want))
    if name == "logistic":
        # SciPy's formula overflows before the result is 0.
        is_close |= (want == 0) & (got < np.finfo(dtype).tiny)
    agree = same_bits(got, want) | (is_close & (np.signbit(got) == np.signbit(want)))
    assert agree.all(), [(float(x[~agree][0]) for x in xs), got[~agree][0], want[~agree][0]]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", [F64, F32], ids=["f64", "f32"])
def test_bits_do_not_depend_on_width_or_copies(name: str, dtype: np.dtype) -> None:
    wide, scalar, narrow = compiled(name, dtype, 8, 4), compiled(name, dtype, 1, 1), compiled(name, dtype, 4, 1)
    for where, xs in points(name, dtype, 37):
        want = wide(*xs)
        for other in (scalar(*xs), narrow(*xs)):
            assert same_bits(other, want).all(), where


@pytest.mark.parametrize(
    ("triple", "cpu", "has_fma"), [("aarch64-linux-gnu", "generic", True), ("x86_64-linux-gnu", "x86-64", False)]
)
def test_all_functions_compile_for_other_processors(triple: str, cpu: str, has_fma: bool) -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple(triple).create_target_machine(cpu=cpu, opt=0)
    for name in CASES:
        inputs = (F64,) * (2 if name in BINARY else 1)
        text = loop_text(lambda b, *args, name=name: emit(b, name, args, F64), inputs, F64, 2, 1, has_fma)
        assert len(machine.emit_object(llvm.parse_assembly(text))) > 0


def test_the_page_states_these_bounds() -> None:
    page = (Path(__file__).parents[2] / "docs" / "accuracy.md").read_text()
    rows = [[cell.strip() for cell in line.split("|")] for line in page.splitlines() if line.startswith("| `")]
    assert {row[1].strip("`"): (float(row[2]), float(row[5])) for row in rows} == {name: case[1:] for name, case in CASES.items()}
