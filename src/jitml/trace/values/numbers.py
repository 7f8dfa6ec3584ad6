"""Traced numbers: `TracedNumber`, its operators, and where does each run, on the host before a call or in the graph?

It behaves as Python's numbers do, and is weakly typed. What nodes check to compute as Python does: `python_arithmetic.py`.
It knows its concrete value and the place (`Slot`) in the host program that computes it before each call. Operators among
numbers stay numbers; beside an array a number enters the graph. Where Python must know the value (`if`, a shape, a list
index, a dict key, a format), it takes the concrete one and the host program checks that exactly.

A number that is differentiated or carried by a loop has no concrete value, only an SSA `value`; it computes in 64 bits, in the
graph, and an integer that leaves 64 bits is an error of the run. A loop's index or an array's unknown length is a `size`
too: integer arithmetic on those stays exact, and is decided while tracing as far as their limits allow.
"""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from jitml.ir import ops
from jitml.ir.dims import Dim, Size, limits
from jitml.ir.graph import Value
from jitml.ir.types import BOOL, C128, F64, I64
from jitml.trace.record.guards import HostConst, Slot
from jitml.trace.record.recording import Trace, active_trace, current_trace, leaked, unsupported
from jitml.trace.record.user_code import makes_text
from jitml.trace.rewrite.driver_protocol import WantsArray
from jitml.trace.speculation import paths
from jitml.trace.symbolic.sizes import HIGHEST, LOWEST, NO_FACTS, Facts, compute, facts_of_comparison, value_of_size
from jitml.trace.values.python_arithmetic import EXACT, checked_operands, hand_on, hash_of, raising_as_python, without_large
from jitml.trace.values.registry import call, call_for_each_type, operate
from jitml.trace.values.type_unions import NumberStandIn, doubt_of, is_mixed, require_number, seen_by, types_of, value_as_it_is

_DTYPES: dict[type, np.dtype[Any]] = {bool: BOOL, int: I64, float: F64, complex: C128}


class TracedNumber(NumberStandIn):
    """A Python number in a trace."""

    __slots__ = ("concrete", "facts", "size", "slot", "trace", "value")

    def __init__(self, trace: Trace, slot: Slot | None = None, concrete: bool | int | float = 0) -> None:
        if slot is None:  # `type(x)(1.5)`, say
            raise TypeError(
                "code that is not converted makes a number of the type that a traced one has, which is no type of numbers: "
                "NumPy's functions compute the same"
            )
        self.trace = trace
        self.slot: Slot | None = slot
        self.concrete: Any = concrete
        self.value: Value | None = None
        self.size: Size | None = None
        self.facts: Facts = NO_FACTS  # of a bool: what is known of sizes where it holds, and where not

    @classmethod
    def of_size(cls, trace: Trace, value: Value | None, size: Size) -> TracedNumber:
        """An int that is a size: `value` is its i64[], computed from the size's Syms if None."""
        number = cls(trace, -1, 0)
        number.slot, number.value, number.size = None, value, size
        return number

    @classmethod
    def of_value(cls, trace: Trace, value: Value) -> TracedNumber:
        """A weak number that exists only in the graph: f64, i64, bool or c128 of shape ()."""
        kind = {dtype: kind for kind, dtype in _DTYPES.items()}[value.dtype]
        number = cls(trace, -1, kind())
        number.slot, number.value = None, value
        return number

    @property
    def kind(self) -> type:
        """int, float, bool or complex."""
        return type(self.concrete)

    @property
    def limits(self) -> tuple[int, int]:
        """Between which integers an int lies, as far as that is known: of one from outside, nothing is."""
        return (LOWEST, HIGHEST) if self.size is None else limits(self.size)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype NumPy gives such a number where nothing else decides: int64, float64, bool or complex128."""
        return _DTYPES[self.kind]

    def as_value(self, dtype: np.dtype[Any] | None = None) -> Value:
        """The number in the graph, as `dtype` (default: its own), with NumPy's checks for weak numbers.

        Raises:
            OverflowError: a Python int that does not fit the integer dtype, as NumPy says it.
        """
        require_number(self)
        return self.value_if_any(dtype)

    def value_if_any(self, dtype: np.dtype[Any] | None = None) -> Value:
        """The same of a number that may be None, and is then handed on."""
        self._check_alive()
        dtype = self.dtype if dtype is None else dtype
        if self.slot is None:
            return self._in_graph(dtype)
        trace = self.trace
        if self.kind is int and dtype.kind in "iu":
            limits = np.iinfo(dtype)
            if not limits.min <= self.concrete <= limits.max:
                raise OverflowError(f"Python integer {self.concrete} out of bounds for {dtype}")
            trace.host.require_range(self.slot, int(limits.min), int(limits.max))
            entry = dtype if dtype == np.uint64 else I64
            value = trace.number_input(self.slot, self.concrete, entry)
        elif self.kind is complex:
            value = trace.number_input(self.slot, self.concrete, C128)
        elif self.kind is int and dtype.kind in "fc":
            # Python makes the double: exact rounding and OverflowError for huge ints are then NumPy's.
            double = trace.host.compute(float, (self.slot,))
            value = trace.number_input(double, float(self.concrete), F64)
        else:
            value = trace.number_input(self.slot, self.concrete, self.dtype)
        return value if value.dtype == dtype else ops.convert(value, dtype=dtype)

    def _in_graph(self, dtype: np.dtype[Any]) -> Value:
        value = self.value
        if value is None:  # not kept: a branch may ask first, and what it computes is not known after it
            assert self.size is not None
            value = value_of_size(self.size)
        if dtype == self.dtype:
            return value
        if self.kind is int and dtype.kind in "fc":
            return ops.convert(ops.convert(value, dtype=F64), dtype=dtype) if dtype != F64 else ops.convert(value, dtype=F64)
        if self.kind is int and dtype.kind in "iu":
            ends = np.iinfo(dtype)
            low, high = self.limits
            if low < ends.min or high > ends.max:
                ok = ops.bit_and(ops.ge(value, max(LOWEST, int(ends.min))), ops.le(value, min(HIGHEST, int(ends.max))))
                message = f"Python integer {{}} out of bounds for {dtype}"
                value = ops.check(value, ok, value, error="OverflowError", message=message)
        return ops.convert(value, dtype=dtype)

    def known(self, *, is_taken: bool = False) -> Any:
        """The number itself, of the type that it has, from now on guarded.

        Args:
            is_taken: whether code that is not traced computes with it, so that its slope is lost; else it merely steers.

        Raises:
            UnknownNumberError: only the running program knows it.
        """
        self._check_alive()
        if self.size is not None and type(self.size) is int:
            return self.size
        if self.slot is None:
            value, which = (self.as_value(), self.kind) if doubt_of(self) is None else value_as_it_is(self)
            number = paths.number(
                value,
                f"a Python {self.kind.__name__} has to be known here, and only the compiled program computes it",
                "Keep it out of shapes, list indices and `if`; np.where chooses between two values.",
                is_taken=is_taken,
            )
            return which(number)
        self.trace.host.require(self.slot, self.concrete)
        return self.concrete

    def _check_alive(self) -> None:
        trace = active_trace()
        if (self.trace.closed or not self.trace.encloses(trace)) and not self._is_seen_by(trace):
            raise leaked(self.trace.builder)

    def _is_seen_by(self, trace: Trace) -> bool:
        """Whether a trace knows what was made in another one: in a branch, say, of what was there before."""
        if self.trace.root is not trace.root:
            return False
        if self.value is not None:
            return trace.sees(self.value)
        return not isinstance(self.size, Dim) or all(trace.sees(trace.sizes.values[sym]) for sym in self.size.syms)

    def __bool__(self) -> bool:
        if self.size is not None:
            return bool(combine(operator.ne, self, 0))
        if self.kind is bool or self.slot is None:
            return bool(self.known())
        # Only the truth is needed: 2.5 and 3.5 take the same branch.
        return bool(apply(bool, self).known())

    def __int__(self) -> int:
        return int(self.known())

    def __index__(self) -> int:
        if doubt_of(self) is not None and not all(hasattr(which, "__index__") for which in types_of(self)):
            return call_for_each_type(self, operator.index, self)
        if self.kind is float:
            raise TypeError("'float' object cannot be interpreted as an integer")
        return int(self.known())

    def __float__(self) -> float:
        return float(self.known(is_taken=not makes_text(sys._getframe(1))))

    def __complex__(self) -> complex:
        return complex(self.known(is_taken=True))

    def __hash__(self) -> int:
        return hash(self.known()) if self.slot is None else hash_of(self.known())  # what is computed is an object of its own

    def __format__(self, spec: str) -> str:
        return format(self.known(), spec)

    def __str__(self) -> str:
        return str(self.known())

    def __repr__(self) -> str:
        return f"TracedNumber({self.kind.__name__})"

    def __reduce__(self) -> Any:
        return (self.kind, (self.known(is_taken=True),))

    def __copy__(self) -> TracedNumber:
        return self

    def __deepcopy__(self, memo: Any) -> TracedNumber:
        return self

    def __getattr__(self, name: str) -> Any:
        # is_integer, bit_length, real, ... : whatever Python's own numbers have.
        if name in ("real", "imag", "conjugate"):
            return self._part(name) if self.kind is complex else self._real_part(name)
        if name.startswith("__") or not hasattr(self.kind, name):
            raise AttributeError(f"{self.kind.__name__!r} object has no attribute {name!r}")
        return getattr(self.known(is_taken=name != "is_integer"), name)

    def _real_part(self, name: str) -> Any:
        """The attribute of a real number."""
        if name == "imag":
            return 0.0 if self.kind is float else 0
        return partial(combine, operator.pos, self) if name == "conjugate" else combine(operator.pos, self)

    def _part(self, name: str) -> Any:
        """The attribute of a complex number."""
        if name == "conjugate":
            return lambda: combine(complex.conjugate, self)
        if self.slot is not None:
            return apply({"real": _real, "imag": _imag}[name], self)
        return TracedNumber.of_value(active_trace(), {"real": ops.real, "imag": ops.imag}[name](self.as_value()))

    @property  # type: ignore[misc]  # isinstance(n, int) asks for __class__; NumPy's C code asks for the type and is not fooled
    def __class__(self) -> type:
        return self.kind

    def __pow__(self, other: Any) -> Any:
        return combine(operator.pow, self, other)

    def __rpow__(self, other: Any) -> Any:
        return combine(operator.pow, other, self)

    def __divmod__(self, other: Any) -> Any:
        return _divided(self, other)

    def __rdivmod__(self, other: Any) -> Any:
        return _divided(other, self)

    def __round__(self, *digits: Any) -> Any:
        return combine(round, self, *digits)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        function = getattr(ufunc, method) if method != "__call__" else ufunc
        return call(function, *inputs, **kwargs)

    def __array_function__(self, function: Callable[..., Any], types: Any, args: Any, kwargs: Any) -> Any:
        return call(function, *args, **kwargs)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        if current_trace() is not None and active_trace().operation.takes_lists:
            raise WantsArray
        unsupported(f"a traced Python {self.kind.__name__} cannot become a NumPy array here")


def _real(z: complex) -> float:
    return z.real


def _imag(z: complex) -> float:
    return z.imag


def apply(function: Callable[..., Any], *operands: Any) -> Any:
    """A Python function of numbers (`operator.mul`, `math.sqrt`, `round`) computed on the host, before each call.

    Operands are TracedNumbers with a slot, or plain numbers. Python's own exceptions come out.
    """
    first = next(o for o in operands if type(o) is TracedNumber)
    for o in operands:
        if type(o) is TracedNumber:
            o._check_alive()
    host, given = first.trace.host, tuple(_operand(o) for o in operands)
    values = [o.concrete if type(o) is TracedNumber else o for o in operands]
    try:
        result = function(*values)
    except _OF_NUMBERS as error:  # which the function may handle: another call need not raise it
        host.require(
            host.compute(_exception_on_host, (HostConst(function), *given), f"what {function.__name__} raises"), repr(error)
        )
        raise
    if type(result) not in _DTYPES:
        # A tuple (divmod, math.frexp), a big rational: Python needs the values.
        return function(*(o.known() if type(o) is TracedNumber else o for o in operands))
    slot = host.compute(function, given)
    kinds = {o.kind if type(o) is TracedNumber else type(o) for o in operands}
    if function is operator.pow or (function in (min, max) and len(kinds) > 1):  # the values decide the type
        host.require_type(slot, type(result))
    return TracedNumber(first.trace, slot, result)


def _exception_on_host(function: Callable[..., Any], *operands: Any) -> str | None:
    """The exception that a function of numbers raises on the host before this call, in words: a guard compares it."""
    try:
        function(*operands)
    except _OF_NUMBERS as error:
        return repr(error)
    else:
        return None


def _divided(x: Any, y: Any) -> tuple[Any, Any]:
    """`divmod`, whose exceptions say other things than those of its parts."""
    try:
        return combine(operator.floordiv, x, y), combine(operator.mod, x, y)
    except ZeroDivisionError:
        if all((type(o) is TracedNumber and o.slot is not None) or type(o) in _DTYPES for o in (x, y)):
            apply(divmod, x, y)
        raise


def _operand(x: Any) -> Slot | HostConst:
    return x.slot if type(x) is TracedNumber and x.slot is not None else HostConst(x)


_OF_NUMBERS = (ArithmeticError, ValueError, TypeError)  # what Python raises for numbers

_IN_GRAPH: dict[Callable[..., Any], np.ufunc] = {
    operator.add: np.add, operator.sub: np.subtract, operator.mul: np.multiply, operator.truediv: np.true_divide,
    operator.floordiv: np.floor_divide, operator.mod: np.remainder, operator.pow: np.power, operator.lshift: np.left_shift,
    operator.rshift: np.right_shift, operator.and_: np.bitwise_and, operator.or_: np.bitwise_or, operator.xor: np.bitwise_xor,
    operator.lt: np.less, operator.le: np.less_equal, operator.gt: np.greater, operator.ge: np.greater_equal,
    operator.eq: np.equal, operator.ne: np.not_equal, operator.matmul: np.matmul,
    operator.neg: np.negative, operator.pos: np.positive, operator.abs: np.absolute, operator.invert: np.invert,
    math.sqrt: np.sqrt, math.exp: np.exp, math.log: np.log, math.log2: np.log2, math.log10: np.log10, math.sin: np.sin,
    math.cos: np.cos, math.tan: np.tan, math.tanh: np.tanh, math.sinh: np.sinh, math.cosh: np.cosh, math.atan: np.arctan,
    math.asin: np.arcsin, math.acos: np.arccos, math.atan2: np.arctan2, math.hypot: np.hypot, math.expm1: np.expm1,
    math.log1p: np.log1p, math.fabs: np.fabs, math.isnan: np.isnan, math.isinf: np.isinf, math.isfinite: np.isfinite,
    complex.conjugate: np.conjugate,
}  # fmt: skip

_BY_METHOD = (math.floor, math.ceil, math.trunc)  # which Python asks the number for

_BESIDE_SCALARS = {  # operators of NumPy's scalars, which say more than the functions do: that a number overflows
    operator.add: vars(np.generic)["__add__"],
    operator.sub: vars(np.generic)["__sub__"],
    operator.mul: vars(np.generic)["__mul__"],
    operator.mod: vars(np.generic)["__mod__"],
}


def combine(function: Callable[..., Any], *operands: Any) -> Any:
    """An operator or `math` function with at least one TracedNumber: on the host if it can, else in the graph."""
    seen = seen_by(function, operands)
    if seen is not None:
        return call_for_each_type(seen, function, *operands)
    if all((type(o) is TracedNumber and o.slot is not None) or type(o) in _DTYPES for o in operands):
        return apply(function, *operands)
    if all(type(o) is TracedNumber or type(o) in _DTYPES for o in operands):
        return _of_unknown(function, *operands)
    if not all(type(o) in _DTYPES or hasattr(type(o), "__array_ufunc__") for o in operands):
        return NotImplemented  # None, a string; or a list repeated n times, for which Python asks __index__
    return operate(_BESIDE_SCALARS.get(function) or _IN_GRAPH[function], function, *operands)


def _of_unknown(function: Callable[..., Any], *operands: Any) -> Any:
    """A function of numbers of which at least one is known only to the running program."""
    trace = active_trace()
    mixed = next((o for o in operands if is_mixed(o)), None)
    if mixed is not None and function not in (float, bool) and (function.__module__ != "math" or function in _BY_METHOD):
        return call_for_each_type(mixed, function, *operands)
    if any(type(o) is TracedNumber and o.size is not None for o in operands):
        # Beside a size an integer is one as well: that of an argument is taken as it is, under a guard.
        operands = tuple(o.known() if type(o) is TracedNumber and o.slot is not None and o.kind is int else o for o in operands)
        sizes = [size_of(o) for o in operands]
        result = None if None in sizes else compute(function, *sizes)  # type: ignore[arg-type]  # none is None
        if isinstance(result, Value):
            truth = TracedNumber.of_value(trace, result)
            truth.facts = facts_of_comparison(function, *sizes)  # type: ignore[arg-type]  # none is None
            return truth
        if result is not None:
            return of_size(result)
    operands = tuple(without_large(function, operands))
    kinds = {o.kind if type(o) is TracedNumber else type(o) for o in operands}
    if complex in kinds and function in _OF_ORDERED:
        function(*(o.kind() if type(o) is TracedNumber else o for o in operands))  # raises
    if function in EXACT and kinds <= {int, bool}:
        if function is operator.pow and type(operands[1]) is int and operands[1] < 0:
            return combine(function, combine(float, operands[0]), float(operands[1]))
        integers = [ops.convert(v, dtype=I64) if v.dtype == BOOL else v for v in map(_value, operands)]
        return hand_on(TracedNumber.of_value(trace, EXACT[function](*integers)), function, operands)
    if function is float:
        return TracedNumber.of_value(trace, ops.convert(_value(*operands), dtype=F64))
    if function is complex and len(operands) == 1:
        return TracedNumber.of_value(trace, ops.convert(_value(*operands), dtype=C128))
    if function is bool:
        return combine(operator.ne, *operands, 0) if mixed is None else TracedNumber.of_value(trace, ops.ne(_value(*operands), 0))
    if function in (min, max):
        return _chosen(function, *operands)
    if function not in _IN_GRAPH:
        result = function(*(o.known() if type(o) is TracedNumber else o for o in operands))
        if function is not round and type(result) not in (int, bool):  # those are steps, whose slope is zero
            result = function(*(o.known(is_taken=True) if type(o) is TracedNumber else o for o in operands))
        return result
    if _MIXES and complex in kinds and len(kinds) > 1:
        if function in _MIXED or (function is operator.truediv and _kind(operands[0]) is complex):
            return _beside_a_real(function, *operands)
    values = [*map(_value, operands)]
    if kinds == {bool} and function not in _OF_TRUTHS:
        values = [ops.convert(v, dtype=I64) for v in values]
    with raising_as_python(function, values):
        made: Value = call(_IN_GRAPH[function], *checked_operands(function, values)).value
    return hand_on(TracedNumber.of_value(trace, made), function, operands)


def _beside_a_real(function: Callable[..., Any], x: Any, y: Any) -> Any:
    """Python's arithmetic of a complex number and one that is not, which has no imaginary part, not even a zero."""
    is_first = _kind(x) is complex
    z, r = (x, y) if is_first else (y, x)
    r = combine(float, r) if type(r) is TracedNumber else float(r)
    real = function(z.real, r) if is_first else function(r, z.real)
    if function in (operator.mul, operator.truediv):
        return call(complex, real, z.imag * r if function is operator.mul else z.imag / r)
    return call(complex, real, -z.imag if function is operator.sub and not is_first else z.imag)


def _kind(x: Any) -> type:
    return x.kind if type(x) is TracedNumber else type(x)


def _chosen(function: Callable[..., Any], *operands: Any) -> Any:
    """Python's `min` and `max` of numbers of one kind: the first of equal ones, and the first where a nan stands."""
    best = _value(operands[0])
    for other in map(_value, operands[1:]):
        best = ops.select(ops.lt(other, best) if function is min else ops.gt(other, best), other, best)
    return TracedNumber.of_value(active_trace(), best)


# What Python's truths have of their own; to all else they are the numbers 0 and 1.
_OF_TRUTHS = {
    operator.and_, operator.or_, operator.xor,
    operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne,
}  # fmt: skip


# Until Python 3.14 the other one is made complex first, with an imaginary part of zero: which shows beside -0.0, inf and nan.
_MIXES = str(2.0 * complex(1.0, -0.0)) == "(2-0j)"
_MIXED = (operator.add, operator.sub, operator.mul)
_OF_ORDERED = {operator.lt, operator.le, operator.gt, operator.ge, min, max}


def _value(x: Any) -> Value:
    return x.as_value() if type(x) is TracedNumber else ops.full(value=x, shape=(), dtype=_DTYPES[type(x)])


def size_of(x: Any) -> Size | None:
    """A number as a size, where it is one: a plain int or bool, or a TracedNumber that has one."""
    if type(x) is TracedNumber:
        return x.size
    return int(x) if type(x) in (int, bool) else None


def of_size(size: Size | bool) -> Any:
    """A size as users see it: an int, or a TracedNumber."""
    return TracedNumber.of_size(active_trace(), None, size) if isinstance(size, Dim) else size


def _install() -> None:
    def binary(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda self, other: combine(function, self, other)

    def reflected(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda self, other: combine(function, other, self)

    def unary(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda self: combine(function, self)

    for name in ["add", "sub", "mul", "truediv", "floordiv", "mod", "lshift", "rshift", "and", "or", "xor", "matmul"]:
        function = getattr(operator, name if name not in ("and", "or") else name + "_")
        setattr(TracedNumber, f"__{name}__", binary(function))
        setattr(TracedNumber, f"__r{name}__", reflected(function))
    for name in ["lt", "le", "gt", "ge", "eq", "ne"]:
        setattr(TracedNumber, f"__{name}__", binary(getattr(operator, name)))
    for name in ["neg", "pos", "abs", "invert"]:
        setattr(TracedNumber, f"__{name}__", unary(getattr(operator, name)))
    for function in (math.floor, math.ceil, math.trunc):
        setattr(TracedNumber, f"__{function.__name__}__", unary(function))


_install()
