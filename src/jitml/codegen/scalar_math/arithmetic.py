"""Arithmetic, order, rounding and predicates, on every dtype that has them: NumPy's bits, signed zeros and nans included."""

from __future__ import annotations

from functools import partial
from math import inf

from jitml.codegen.scalar_math.builder import ERRORS, ScalarBuilder, V
from jitml.codegen.scalar_math.integers import floor_divide_integers, fmod_integers, remainder_integers
from jitml.codegen.scalar_math.table import rule
from jitml.ir.types import BOOL, DTYPES, signed


def _is_float(x: V) -> bool:
    return x.dtype.kind == "f"


@rule("add")
def add(b: ScalarBuilder[V], x: V, y: V) -> V:
    if x.dtype == BOOL:
        return b.or_(x, y)
    return b.fadd(x, y) if _is_float(x) else b.add(x, y)


@rule("sub")
def sub(b: ScalarBuilder[V], x: V, y: V) -> V:
    return b.fsub(x, y) if _is_float(x) else b.sub(x, y)


@rule("mul")
def mul(b: ScalarBuilder[V], x: V, y: V) -> V:
    if x.dtype == BOOL:
        return b.and_(x, y)
    return b.fmul(x, y) if _is_float(x) else b.mul(x, y)


@rule("div")
def div(b: ScalarBuilder[V], x: V, y: V) -> V:
    return b.fdiv(x, y)


@rule("neg")
def neg(b: ScalarBuilder[V], x: V) -> V:
    return b.fneg(x) if _is_float(x) else b.sub(0, x)


@rule("abs")
def absolute(b: ScalarBuilder[V], x: V) -> V:
    if _is_float(x):
        return b.fabs(x)
    return b.select(b.icmp("lt", x, 0), b.sub(0, x), x) if x.dtype.kind == "i" else x


@rule("sign")
def sign(b: ScalarBuilder[V], x: V) -> V:
    below = b.select(b.compare("lt", x, 0), b.const(-1, x.dtype), b.const(0, x.dtype)) if x.dtype.kind != "u" else 0
    result = b.select(b.compare("gt", x, 0), b.const(1, x.dtype), below)
    return b.select(b.fcmp("uno", x, x), x, result) if _is_float(x) else result


# --------------------------------------------------------------------------------------------------------- division


@rule("fmod")
def fmod(b: ScalarBuilder[V], x: V, y: V) -> V:
    return fmod_floats(b, x, y) if _is_float(x) else fmod_integers(b, x, y)


def fmod_floats(b: ScalarBuilder[V], x: V, y: V) -> V:
    """The exact rest of x / y with the sign of x.

    q = trunc(x / y) is the true quotient or one more, and x - q y, rounded once, is exact while q is; from 2**(bits - 1)
    on the library divides digit by digit. It takes what is no quotient, too, and raises its errors.
    """
    if not b.has_fma:
        return b.call_libm("fmod", x, y)
    dividend, divisor = b.fabs(x), b.fabs(y)
    least = b.fmul(dividend, 2.0 ** -(52 if x.dtype.itemsize == 8 else 23))
    is_rare = b.or_(b.fcmp("oge", least, divisor), b.fcmp("oeq", divisor, inf))
    dividend, divisor = b.select(is_rare, 0.0, dividend), b.select(is_rare, 1.0, divisor)
    quotient = b.trunc(b.fdiv(dividend, divisor))
    rest = b.fma(b.fneg(quotient), divisor, dividend)
    rest = b.fadd(rest, b.select(b.fcmp("olt", rest, 0.0), divisor, 0.0))
    return b.where_rare(is_rare, b.copysign(rest, x), "fmod", x, y)


def _rest(b: ScalarBuilder[V], x: V, y: V) -> tuple[V, V, V]:
    """The rest of x / y, whether it is one, and whether its sign is not Python's."""
    rest = fmod_floats(b, x, y)
    is_rest = b.fcmp("une", rest, 0.0)
    return rest, is_rest, b.and_(is_rest, b.xor(b.fcmp("olt", y, 0.0), b.fcmp("olt", rest, 0.0)))


@rule("floor_divide")
def floor_divide(b: ScalarBuilder[V], x: V, y: V) -> V:
    """Python's quotient as NumPy's npy_floor_divide rounds it; for y = 0, x / y."""
    if not _is_float(x):
        return floor_divide_integers(b, x, y)
    is_zero, ratio = b.fcmp("oeq", y, 0.0), b.fdiv(x, y)
    x, y = b.select(is_zero, 0.0, x), b.select(is_zero, 1.0, y)
    rest, _, is_off = _rest(b, x, y)
    quotient = b.fdiv(b.fsub(x, rest), y)
    quotient = b.select(is_off, b.fsub(quotient, 1.0), quotient)
    snapped = b.floor(quotient)
    snapped = b.select(b.fcmp("ogt", b.fsub(quotient, snapped), 0.5), b.fadd(snapped, 1.0), snapped)
    snapped = b.select(b.fcmp("une", quotient, 0.0), snapped, b.copysign(0.0, ratio))
    return b.select(is_zero, ratio, snapped)


@rule("remainder")
def remainder(b: ScalarBuilder[V], x: V, y: V) -> V:
    """Python's remainder, with the sign of y; for y = 0, nan."""
    if not _is_float(x):
        return remainder_integers(b, x, y)
    rest, is_rest, is_off = _rest(b, x, y)
    return b.select(is_rest, b.fadd(rest, b.select(is_off, y, 0.0)), b.copysign(0.0, y))


# ------------------------------------------------------------------------------------------------------------ order


def _extremum(b: ScalarBuilder[V], x: V, y: V, *, predicate: str, keeps_nan: bool) -> V:
    """The larger or smaller; a nan wins (`keeps_nan`) or loses. It is one choice by both tests: a second one would wait."""
    if x.dtype == BOOL:
        return b.or_(x, y) if predicate == "gt" else b.and_(x, y)
    is_first = b.compare(predicate, x, y, chooses=True)
    if _is_float(x):
        nan = x if keeps_nan else y
        is_first = b.or_(is_first, b.fcmp("uno", nan, nan))
    return b.select(is_first, x, y)


for _name, _predicate, _keeps_nan in (
    ("maximum", "gt", True),
    ("minimum", "lt", True),
    ("fmax", "gt", False),
    ("fmin", "lt", False),
):
    rule(_name)(partial(_extremum, predicate=_predicate, keeps_nan=_keeps_nan))


def _compare(b: ScalarBuilder[V], x: V, y: V, *, predicate: str) -> V:
    return b.compare(predicate, x, y)


for _predicate in ("eq", "ne", "lt", "le", "gt", "ge"):
    rule(_predicate)(partial(_compare, predicate=_predicate))


# ------------------------------------------------------------------------------------- rounding, predicates, choice


def _method(b: ScalarBuilder[V], *args: V, name: str) -> V:
    result: V = getattr(b, name)(*args)
    return result


for _name in ("floor", "ceil", "trunc", "rint", "sqrt", "copysign"):
    rule(_name)(partial(_method, name=_name))


@rule("select")
def select(b: ScalarBuilder[V], condition: V, x: V, y: V) -> V:
    return b.select(condition, x, y)


@rule("stop_gradient")
def identity(b: ScalarBuilder[V], x: V) -> V:
    return x


def _raise(b: ScalarBuilder[V], x: V, where: V, *, error: str) -> V:
    b.raise_errors(**{error: where})
    return x


for _error in ERRORS:
    rule(f"raise_{_error}")(partial(_raise, error=_error))


@rule("isnan")
def isnan(b: ScalarBuilder[V], x: V) -> V:
    return b.fcmp("uno", x, x)


@rule("isinf")
def isinf(b: ScalarBuilder[V], x: V) -> V:
    return b.fcmp("oeq", b.fabs(x), inf)


@rule("isfinite")
def isfinite(b: ScalarBuilder[V], x: V) -> V:
    return b.fcmp("olt", b.fabs(x), inf)


@rule("bits")
def bits(b: ScalarBuilder[V], x: V) -> V:
    return b.bitcast(x, signed(x.dtype))


@rule("from_bits")
def from_bits(b: ScalarBuilder[V], x: V) -> V:
    return b.bitcast(x, DTYPES[f"f{8 * x.dtype.itemsize}"])


@rule("signbit")
def signbit(b: ScalarBuilder[V], x: V) -> V:
    return b.icmp("lt", b.bitcast(x, signed(x.dtype)), 0)
