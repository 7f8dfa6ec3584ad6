"""Functions that are left to the C library, lane by lane."""

from __future__ import annotations

from functools import partial

from jitml.codegen.llvm.builder import Builder, Operand
from jitml.codegen.llvm.math.integers import pow_integers
from jitml.codegen.llvm.math.table import rule

_SAME = (
    "exp",
    "exp2",
    "expm1",
    "log",
    "log2",
    "log10",
    "log1p",
    "sin",
    "cos",
    "tan",
    "sinh",
    "cosh",
    "tanh",
    "cbrt",
    "erf",
    "hypot",
)
_INVERSE = ("sin", "cos", "tan", "tan2", "sinh", "cosh", "tanh")
_NAMES = {**{name: name for name in _SAME}, **{f"arc{name}": f"a{name}" for name in _INVERSE}}


def _call(b: Builder, *args: Operand, function: str) -> Operand:
    return b.call_libm(function, *args)


for _name, _function in _NAMES.items():
    rule(_name)(partial(_call, function=_function))


@rule("pow")
def pow(b: Builder, x: Operand, y: Operand) -> Operand:
    return b.call_libm("pow", x, y) if x.dtype.kind == "f" else pow_integers(b, x, y)


@rule("logistic")
def logistic(b: Builder, x: Operand) -> Operand:
    return b.fdiv(1.0, b.fadd(1.0, b.call_libm("exp", b.fneg(x))))
