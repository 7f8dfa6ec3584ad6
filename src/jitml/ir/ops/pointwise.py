"""Pointwise ops: strict in shape and dtype. Broadcasting and promotion are `jitml.numpy`'s business.

Conventions are NumPy's: `maximum` and `minimum` hand NaN on; integer division by zero is 0; shifts by the width or
more give 0 (or -1 for a negative left side shifted right); `pow` of integers wraps. Complex numbers are ordered by their
real, then by their imaginary parts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jitml.errors import DTypeError, ShapeError, UnsupportedError
from jitml.ir.op import Op
from jitml.ir.types import BOOL, Aval, DType, dtype_name, is_complex, part_dtype

REAL, INT, BOOLEAN, COMPLEX = "f", "iu", "b", "c"
FLOAT, BITS = REAL + COMPLEX, INT + BOOLEAN
NUMBER = FLOAT + INT
ANY = NUMBER + BOOLEAN


def check_shapes(name: str, avals: tuple[Aval, ...]) -> None:
    first = avals[0]
    for aval in avals[1:]:
        if aval.shape != first.shape:
            raise ShapeError(f"{name}: {first} and {aval} differ in shape")


def _check_avals(name: str, kinds: str, avals: tuple[Aval, ...]) -> None:
    first = avals[0]
    check_shapes(name, avals)
    for aval in avals[1:]:
        if aval.dtype != first.dtype:
            raise DTypeError(f"{name}: {first} and {aval} differ in dtype")
    if first.dtype.kind not in kinds:
        if is_complex(first.dtype):
            raise UnsupportedError(f"{name} of complex numbers is not compiled")
        raise DTypeError(f"{name} is not defined for {dtype_name(first.dtype)}")


def _pointwise(
    name: str, evaluate: Callable[..., Any], arity: int, kinds: str, *, result: DType | None = None, commutative: bool = False
) -> Op:
    def aval(*avals: Aval) -> Aval:
        if len(avals) != arity:
            raise ShapeError(f"{name} takes {arity} operands, not {len(avals)}")
        _check_avals(name, kinds, avals)
        return avals[0] if result is None else avals[0].with_dtype(result)

    return Op(name, "pointwise", aval, evaluate, is_commutative=commutative)


def _unary(name: str, evaluate: Callable[..., Any], kinds: str = FLOAT, result: DType | None = None) -> Op:
    return _pointwise(name, evaluate, 1, kinds, result=result)


def _binary(name: str, evaluate: Callable[..., Any], kinds: str, *, commutative: bool = False, result: DType | None = None) -> Op:
    return _pointwise(name, evaluate, 2, kinds, result=result, commutative=commutative)


add = _binary("add", np.add, ANY, commutative=True)  # of bools: or, as in NumPy
sub = _binary("sub", np.subtract, NUMBER)
mul = _binary("mul", np.multiply, ANY, commutative=True)  # of bools: and
div = _binary("div", np.true_divide, FLOAT)
floor_divide = _binary("floor_divide", np.floor_divide, REAL + INT)
remainder = _binary("remainder", np.remainder, REAL + INT)  # sign of the divisor, Python's %
fmod = _binary("fmod", np.fmod, REAL + INT)  # sign of the dividend, C's %


def _evaluate_pow(x: Any, y: Any) -> Any:
    if np.issubdtype(np.asarray(x).dtype, np.integer):
        # Negative integer powers are refused by jitml.numpy before they get here; the op itself wraps like C.
        return np.power(x, np.maximum(y, 0))
    return np.power(x, y)


pow = _binary("pow", _evaluate_pow, NUMBER)
maximum = _binary("maximum", np.maximum, ANY)  # of 0.0 and -0.0, and of two complex nan, the order decides
minimum = _binary("minimum", np.minimum, ANY)
fmax = _binary("fmax", np.fmax, NUMBER)
fmin = _binary("fmin", np.fmin, NUMBER)
arctan2 = _binary("arctan2", np.arctan2, REAL)
hypot = _binary("hypot", np.hypot, REAL, commutative=True)
copysign = _binary("copysign", np.copysign, REAL)

neg = _unary("neg", np.negative, NUMBER)


def _magnitude(x: Aval) -> Aval:
    _check_avals("abs", NUMBER, (x,))
    return x.with_dtype(part_dtype(x.dtype))


abs = Op("abs", "pointwise", _magnitude, np.absolute)  # of a complex number: a real one
sign = _unary("sign", np.sign, NUMBER)  # nan stays nan
floor = _unary("floor", np.floor, REAL)
ceil = _unary("ceil", np.ceil, REAL)
trunc = _unary("trunc", np.trunc, REAL)
rint = _unary("rint", np.rint)  # ties to even
sqrt = _unary("sqrt", np.sqrt)
cbrt = _unary("cbrt", np.cbrt, REAL)
exp = _unary("exp", np.exp)
exp2 = _unary("exp2", np.exp2)
expm1 = _unary("expm1", np.expm1)
log = _unary("log", np.log)
log2 = _unary("log2", np.log2)
log10 = _unary("log10", np.log10)
log1p = _unary("log1p", np.log1p)
sin = _unary("sin", np.sin)
cos = _unary("cos", np.cos)
tan = _unary("tan", np.tan)
arcsin = _unary("arcsin", np.arcsin)
arccos = _unary("arccos", np.arccos)
arctan = _unary("arctan", np.arctan)
sinh = _unary("sinh", np.sinh)
cosh = _unary("cosh", np.cosh)
tanh = _unary("tanh", np.tanh)
arcsinh = _unary("arcsinh", np.arcsinh)
arccosh = _unary("arccosh", np.arccosh)
arctanh = _unary("arctanh", np.arctanh)


def _special(name: str) -> Callable[..., Any]:
    """SciPy's function, imported at its first use: `import jitml` must stay cheap."""

    def evaluate(x: Any) -> Any:
        from scipy import special

        return getattr(special, name)(x)

    return evaluate


erf = _unary("erf", _special("erf"), REAL)
logistic = _unary("logistic", _special("expit"), REAL)

isnan = _unary("isnan", np.isnan, FLOAT, BOOL)
isinf = _unary("isinf", np.isinf, FLOAT, BOOL)
isfinite = _unary("isfinite", np.isfinite, FLOAT, BOOL)
signbit = _unary("signbit", np.signbit, REAL, BOOL)


def _of_same_width(name: str, source: str, target: str) -> Op:
    """The same memory read as another kind of number."""

    def aval(x: Aval) -> Aval:
        if x.dtype.kind != source or x.dtype.itemsize < 2:  # there is no float of one byte
            raise DTypeError(f"{name} is not defined for {dtype_name(x.dtype)}")
        return x.with_dtype(np.dtype(f"{target}{x.dtype.itemsize}"))

    return Op(name, "pointwise", aval, lambda x: np.asarray(x).view(f"{target}{np.asarray(x).itemsize}"))


bits = _of_same_width("bits", "f", "i")
from_bits = _of_same_width("from_bits", "i", "f")

eq = _binary("eq", np.equal, ANY, result=BOOL, commutative=True)
ne = _binary("ne", np.not_equal, ANY, result=BOOL, commutative=True)
lt = _binary("lt", np.less, ANY, result=BOOL)
le = _binary("le", np.less_equal, ANY, result=BOOL)
gt = _binary("gt", np.greater, ANY, result=BOOL)
ge = _binary("ge", np.greater_equal, ANY, result=BOOL)

bit_and = _binary("bit_and", np.bitwise_and, BITS, commutative=True)  # of bools: logical
bit_or = _binary("bit_or", np.bitwise_or, BITS, commutative=True)
bit_xor = _binary("bit_xor", np.bitwise_xor, BITS, commutative=True)
bit_not = _unary("bit_not", np.invert, BITS)


def _count_bits(x: Any) -> Any:
    x = np.asarray(x)
    return np.bitwise_count(x.view(f"u{x.dtype.itemsize}")).astype(x.dtype)


count_bits = _unary("count_bits", _count_bits, INT)  # of a negative number: of its two's complement
shift_left = _binary("shift_left", np.left_shift, INT)
shift_right = _binary("shift_right", np.right_shift, INT)


def _overflows(name: str, exact: Callable[[Any, Any], Any], *, commutative: bool = True) -> Op:
    """Whether a result is not that of whole numbers of any size, because it wraps around."""

    def evaluate(x: Any, y: Any) -> Any:
        x, y = np.asarray(x), np.asarray(y)
        limits, result = np.iinfo(x.dtype), np.asarray(exact(x.astype(object), y.astype(object)))
        return np.asarray((result < limits.min) | (result > limits.max), np.bool_)

    return _binary(name, evaluate, INT, result=BOOL, commutative=commutative)


add_overflows = _overflows("add_overflows", np.add)
sub_overflows = _overflows("sub_overflows", np.subtract, commutative=False)
mul_overflows = _overflows("mul_overflows", np.multiply)


def _raising(name: str) -> Op:
    def aval(x: Aval, where: Aval) -> Aval:
        if where != x.with_dtype(BOOL):
            raise DTypeError(f"{name}: the condition is {where}, not {x.with_dtype(BOOL)}")
        return x

    return Op(name, "pointwise", aval, lambda x, where: x)


# x, and a floating-point error where the condition holds: of what the processor does not see (NumPy's integer scalars, what
# is known before the program runs).
raise_divide = _raising("raise_divide")
raise_overflow = _raising("raise_overflow")
raise_underflow = _raising("raise_underflow")
raise_invalid = _raising("raise_invalid")


def _select_aval(condition: Aval, x: Aval, y: Aval) -> Aval:
    if condition.dtype != BOOL:
        raise DTypeError(f"select: the condition is {condition}, not bool")
    _check_avals("select", ANY, (x, y))
    if condition.shape != x.shape:
        raise ShapeError(f"select: condition {condition} and {x} differ in shape")
    return x


select = Op("select", "pointwise", _select_aval, np.where)


def _convert_aval(x: Aval, *, dtype: DType) -> Aval:
    dtype_name(dtype)
    return x.with_dtype(dtype)


def _evaluate_convert(x: Any, *, dtype: DType) -> Any:
    x = np.asarray(x)
    is_cut = is_complex(x.dtype) and not is_complex(dtype) and dtype != BOOL  # the imaginary part is lost
    return (x.real if is_cut else x).astype(dtype)


convert = Op("convert", "pointwise", _convert_aval, _evaluate_convert)
stop_gradient = Op("stop_gradient", "pointwise", lambda x: x, lambda x: x)
