"""The SIMD text builder: lanes and copies agree with NumPy element by element."""

from __future__ import annotations

import inspect
import itertools
import platform
from collections.abc import Iterator

import numpy as np
import pytest

from codegen.vectors import compile_vector, loop_text
from jitml.codegen.llvm.ir.builder import Builder, Operand
from jitml.codegen.llvm.ir.declarations import Declarations
from jitml.codegen.llvm.loops import stamps
from jitml.codegen.llvm.loops.stamps import emit_stamped
from jitml.codegen.scalar_math import RULES, emit
from jitml.errors import JitmlError
from jitml.ir.types import BOOL, DTYPES, F32, F64, DType

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


# Stamps say what the rule would have written there, for every rule, dtype, width and place.


def a_builder(place: int, **settings: bool) -> Builder:
    """One that has written something else before."""
    b = Builder(Declarations(), **settings)
    for n in range(place):
        b.module.metadata(f"!{{i32 {n}}}")
        b.module.constant(f"i32 {n}")
    b.fabs(Operand(F64, 1, tuple(f"%before.{n}" for n in range(place))) if place else Operand(F64, 1, ("%before",)))
    if place:
        b.start_block(b.fresh("somewhere"))
    return b


def operands(place: int, dtypes: tuple[DType, ...], lanes: int, copies: int) -> list[Operand]:
    return [Operand(t, lanes, tuple(f"%{place}x{k}.{n}" for n in range(copies))) for k, t in enumerate(dtypes)]


def written(b: Builder, result: Operand) -> tuple[object, ...]:
    declared = b.module.externals, b.module.nodes, b.module.constants, b.module.functions
    return "\n".join(b.lines), b.label, b.fresh(), result, [list(each.items()) for each in declared]


def kinds(name: str) -> Iterator[tuple[tuple[DType, ...], DType]]:
    """Dtypes of operands and result; a rule refuses what is not for it."""
    count = sum(p.default is p.empty for p in inspect.signature(RULES[name]).parameters.values()) - 1
    for dtype in map(DTYPES.__getitem__, REAL):
        first = BOOL if name == "select" else dtype
        for result in {dtype, BOOL, F64}:
            yield (first, *[dtype] * (count - 1)), result


@pytest.mark.parametrize("name", RULES)
def test_a_stamp_is_what_the_rule_writes(name: str) -> None:
    stamps._stamps.clear()
    ways = [(1, 1, {}), (8, 3, {"has_fma": False, "compares_quietly": True}), (8, 1, {"is_optimized": True})]
    for (given, dtype), (lanes, copies, setting) in itertools.product(kinds(name), ways):
        for place in (0, 1, 4):
            plain, stamped = a_builder(place, **setting), a_builder(place, **setting)
            args = operands(place, given, lanes, copies)
            try:
                expected = emit(plain, name, args, dtype)
            except (JitmlError, KeyError, ValueError, TypeError, AssertionError, OverflowError, AttributeError):
                continue
            assert written(stamped, emit_stamped(stamped, name, args, dtype)) == written(plain, expected)


def test_long_rules_are_stamped() -> None:
    """Else the test above is of nothing."""
    stamps._stamps.clear()
    for name in ("sin", "exp", "log", "pow", "tanh", "floor_divide"):
        args = operands(0, (F64,) * (2 if name in ("pow", "floor_divide") else 1), 8, 2)
        emit_stamped(a_builder(0), name, args, F64)
    assert len(stamps._stamps) == 6
    assert all(stamp is not None for stamp in stamps._stamps.values())


def test_one_operand_twice_is_another_kind() -> None:
    stamps._stamps.clear()
    x, y = operands(0, (F64, F64), 8, 2)
    for args in ([x, y], [x, x], [y, y], [y, x]):
        plain, stamped = a_builder(2), a_builder(2)
        assert written(stamped, emit_stamped(stamped, "pow", args, F64)) == written(plain, emit(plain, "pow", args, F64))


def test_rules_see_constants() -> None:
    """The power of a number that is known is a few products."""
    stamps._stamps.clear()
    (x,) = operands(0, (F32,), 8, 1)
    for constant in (
        Operand(F32, 8, ("splat (float 0x4000000000000000)",)),
        Operand(F32, 8, ("splat (float 0x4008000000000000)",)),
    ):
        plain, stamped = a_builder(0), a_builder(0)
        result = emit_stamped(stamped, "pow", [x, constant], F32)
        assert written(stamped, result) == written(plain, emit(plain, "pow", [x, constant], F32))
    assert not stamps._stamps
