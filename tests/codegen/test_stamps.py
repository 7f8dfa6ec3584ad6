"""Stamps say what the rule would have written there, for every rule, dtype, width and place."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Iterator

import pytest

from jitml.codegen.llvm.ir import stamps
from jitml.codegen.llvm.ir.builder import Builder, Operand
from jitml.codegen.llvm.ir.declarations import Declarations
from jitml.codegen.llvm.ir.stamps import emit_stamped
from jitml.codegen.scalar_math import RULES, emit
from jitml.errors import JitmlError
from jitml.ir.types import BOOL, DTYPES, F32, F64, DType

REAL = [dtype for dtype in DTYPES.values() if dtype.kind != "c"]


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
    return b.lines, b.label, b.fresh(), result, [list(each.items()) for each in declared]


def kinds(name: str) -> Iterator[tuple[tuple[DType, ...], DType]]:
    """Dtypes of operands and result; a rule refuses what is not for it."""
    count = sum(p.default is p.empty for p in inspect.signature(RULES[name]).parameters.values()) - 1
    for dtype in REAL:
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
