"""Python's builtins: what do Python's own functions make of traced values?

`len`, `max`, `min`, `sum`, `any`, `all`, `in`, `int`, `float`...

Python asks the values for their order and their truth, which nobody knows while tracing; here the same is said in the graph.
`max` and `min` of a NumPy scalar and a Python number give a NumPy scalar, as long as nobody sees which of the two is chosen.
"""

from __future__ import annotations

import builtins
import collections
import functools
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jitml.imports.late import late
from jitml.ir import ops
from jitml.ir.analysis.limits import dtype_limits
from jitml.ir.graph import Value
from jitml.ir.types import BOOL, C128, F64, I64, is_complex, is_integer
from jitml.trace.carried.list_buffers import Growing, Probe
from jitml.trace.carried.outer_lists import OpenList
from jitml.trace.lists.sequences import Range
from jitml.trace.lists.traced_list import TracedList
from jitml.trace.record.recording import active_trace, unsupported
from jitml.trace.regions.identity import is_found, is_one
from jitml.trace.rewrite.driver_protocol import COMPENSATES
from jitml.trace.speculation import paths
from jitml.trace.speculation.modes import Decider, site
from jitml.trace.symbolic.booleans import choose
from jitml.trace.symbolic.broadcasting import insist, is_single
from jitml.trace.symbolic.sizes import HIGHEST, LOWEST, span, value_of_size, within
from jitml.trace.values.boxing import TracedArray, TracedScalar, fresh, is_traced, read, scalar
from jitml.trace.values.kinds import is_decided, kind_of, truth
from jitml.trace.values.numbers import TracedNumber, combine
from jitml.trace.values.registry import call, implements, meaning_of
from jitml.trace.values.type_unions import (
    doubt,
    doubt_of,
    is_mixed,
    is_of,
    may_be_none,
    numpys,
    of_known_type,
    own_type,
    types_of,
)

if TYPE_CHECKING:
    from jitml.trace.regions import select
    from jitml.trace.values import python_sum
else:
    select = late("jitml.trace.regions.select")
    python_sum = late("jitml.trace.values.python_sum")


_PLAIN = (bool, int, float, complex)
_FEW = 4  # numbers that are sorted without a call of the library


@implements(builtins.len)
def length(x: Any, /) -> Any:
    if type(x) in (TracedList, Growing, Probe, OpenList):
        return x.length()
    if type(x) is Range:
        return x.count()
    return x.shape[0] if type(x) is TracedArray and x.ndim else len(x)


def _of_stack(function: Callable[..., Any], stack: TracedList, *args: Any, **kwargs: Any) -> Any:
    """A function of a list that a loop has filled: of the array of its items, where it does the same to that."""
    is_of_rows = function is sum and stack.is_plain and not stack.flags[0]
    array = stack.rows_as_array() if is_of_rows else stack.numbers()
    if array is None or args or kwargs or (stack.flags[0] and not stack.is_plain):
        return call(function, list(stack), *args, **kwargs)
    if function is sum and array.sizes and span(array.sizes[0])[0] < 1:  # of no items it is 0, whatever they would have been
        count = value_of_size(array.sizes[0])
        array = fresh(ops.check(read(array), ops.gt(count, 0), error="ValueError", message="a sum of no items"))
    are_numbers = all(kind is not None and kind.form == "number" for kind in stack.all_kinds())
    if function in (max, min) and are_numbers and is_complex(array.dtype):
        is_one = ops.le(value_of_size(array.sizes[0]), 1)
        array = fresh(ops.check(read(array), is_one, error="TypeError", message="complex numbers have no order"))
    if COMPENSATES and function is sum and are_numbers and array.dtype == F64 and not stack.flags[0]:
        return python_sum.sum_of_floats(array)
    result = call(function, array)
    if are_numbers and type(result) is TracedScalar:
        result = TracedNumber.of_value(active_trace(), read(result))
    if stack.flags[0] and function in (sum, max, min):
        cases = _sum_types(stack.flags[0]) if function is sum else _first_types(stack.flags[0], array, result)
        doubt(result.value, cases, Decider(stack.site), exact=() if function is sum else cases.keys())
    return result


def _sum_types(flags: Mapping[type, TracedArray]) -> dict[type, Value]:
    """Of which type of Python's a sum is: of ints an int, of those and floats a float."""
    cases: dict[type, Value] = {}
    are_python: Any = False
    for which in sorted(flags, key=(int, float).index):
        are_python = flags[which] | are_python
        test = read(call(np.all, are_python))
        cases[which] = functools.reduce(lambda test, other: ops.bit_and(test, ops.bit_not(other)), cases.values(), test)
    return cases


def _first_types(flags: Mapping[type, TracedArray], items: TracedArray, best: Any) -> dict[type, Value]:
    """Of which type the first of the items is that is the greatest or least; a nan is that at the start alone."""
    place = call(np.argmax, call(np.equal, items, best))
    return {which: read(call(operator.getitem, flag, place)) for which, flag in flags.items()}


def _extreme(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    if len(args) == 1 and type(args[0]) is TracedList:
        return _of_stack(function, *args, **kwargs)
    if len(args) == 1 and type(args[0]) is TracedArray and args[0].ndim == 1 and not kwargs:
        return _extreme_of_array(function, args[0])
    operands = tuple(args[0]) if len(args) == 1 and not is_traced(args[0]) else args
    args = (operands,) if len(args) == 1 and not is_traced(args[0]) else args
    if kwargs or len(operands) < 2 or not any(map(is_traced, operands)):
        return function(*args, **_with_key(kwargs))
    if all(type(x) is TracedNumber or type(x) in _PLAIN for x in operands) and _are_alike(operands):
        return combine(function, *operands)
    dtypes = {x.dtype for x in operands if type(x) in (TracedScalar, TracedArray)}
    place = site()
    is_open = len(dtypes) == 1 and not (place is not None and paths.is_decided(place))
    if not is_open or not _are_numbers(operands) or not all(_joins(x, *dtypes) for x in operands):
        return _extreme_of_unlike(function, operands)
    (dtype,) = dtypes
    best, *others = (x.as_value(dtype) if type(x) is TracedNumber else _converted(x, dtype) for x in operands)
    open_types = {which for x in operands for which in types_of(x)} - {numpys(dtype)} if place is not None else set()
    types = {which: is_of(operands[0], which) for which in open_types}
    for other, operand in zip(others, operands[1:]):
        is_other = ops.gt(other, best) if function is max else ops.lt(other, best)
        best = ops.select(is_other, other, best)
        types = {which: choose(is_other, is_of(operand, which), test) for which, test in types.items()}
    if place is not None:
        doubt(best, types, Decider(place))
    return scalar(best)


def _with_key(named: dict[str, Any]) -> dict[str, Any]:
    """Keyword arguments whose `key` is called with traced values."""
    return {**named, "key": meaning_of(named["key"])} if "key" in named else named


def _are_alike(operands: Sequence[Any]) -> bool:
    """Whether numbers of Python's are of one type, or known before the program runs."""
    are_known = all(x.slot is not None for x in operands if type(x) is TracedNumber)
    return are_known or (len({own_type(x) for x in operands}) == 1 and not any(map(doubt_of, operands)))


def _are_numbers(operands: Iterable[Any]) -> bool:
    """Whether none is an array with axes, a list, or anything else."""
    return all(kind_of(x) is not None and not np.shape(x) for x in operands)


def _extreme_of_unlike(function: Callable[..., Any], operands: Sequence[Any]) -> Any:
    """One of the operands, as Python finds it: which one is decided for the call that is traced."""
    decided = paths.is_decided(site())
    if not decided and _are_numbers(operands):
        return functools.reduce(functools.partial(_better, function), operands)
    kinds = ", ".join(str(getattr(x, "dtype", type(x).__name__)) for x in operands)
    message = f"{function.__name__}() of {kinds}: which type the result has depends on the values"
    remedy = f"np.{'maximum' if function is max else 'minimum'} has one type for its result."
    best, *others = operands
    for other in others:
        test = _is_better(function, best, other)
        has_truth = is_traced(test) and not (type(test) is TracedArray and not is_single(test.aval.size))  # else it is ambiguous
        if paths.number(truth(test), message, remedy) if has_truth else bool(test):
            best = other
    return best


def _better(function: Callable[..., Any], best: Any, other: Any) -> Any:
    """The greater or less of two numbers; the first one unless the other is more so."""
    test = _is_better(function, best, other)
    if not is_traced(test) or is_decided(test):
        return other if test else best
    fork = select.Ternary(test)
    fork.then()
    fork.orelse()
    return fork.end(other, best)


def _is_better(function: Callable[..., Any], best: Any, other: Any) -> Any:
    """What Python asks the second of two numbers, as of complex numbers of its own it cannot."""
    return (operator.gt if function is max else operator.lt)(other, best)


def _joins(x: Any, dtype: np.dtype[Any]) -> bool:
    """Whether a NumPy scalar of this dtype stands for the number too."""
    kind = x.kind if type(x) is TracedNumber else type(x)
    if is_mixed(x):
        return False
    return kind not in _PLAIN or dtype == F64 or (dtype == I64 and kind is not float)


def _converted(x: Any, dtype: np.dtype[Any]) -> Value:
    return ops.full(value=dtype.type(x).item(), shape=(), dtype=dtype) if type(x) in _PLAIN else read(x)


def _extreme_of_array(function: Callable[..., Any], x: TracedArray) -> Any:
    """Python walks along: a nan at the start stays, and no other is ever greater or less."""
    extreme = np.max if function is max else np.min
    if x.dtype.kind != "f":
        return call(extreme, x)
    limit = -np.inf if function is max else np.inf
    rest = call(extreme, call(np.where, call(np.isnan, x), limit, x))
    return call(operator.getitem, call(np.where, call(np.isnan, x[0]), x[0], rest), ())


@implements(builtins.sorted)
def _sorted(iterable: Any, /, *, key: Any = None, reverse: Any = False) -> list[Any]:
    """A new list, of numbers of one type without asking which is less; others are compared one by one."""
    items = list(iterable) if type(iterable) in (list, tuple) or _is_line(iterable) else ()
    if key is not None or is_traced(reverse) or not _have_an_order(items):
        return sorted(iterable, key=meaning_of(key), reverse=reverse)
    line = call(np.array, items[::-1] if reverse else items)
    if line.dtype.kind == "f":  # with which nan is neither less nor greater than any
        message = "the order of a list with a nan depends on how it is sorted"
        line = fresh(ops.check(read(line), read(call(np.all, line == line)), error="ValueError", message=message))
    values = _exchanged([read(x) for x in line]) if len(items) <= _FEW else map(read, call(np.sort, line, kind="stable"))
    are_numpys = any(type(x) is TracedScalar for x in items)
    numbers = [scalar(x) if are_numpys else TracedNumber.of_value(active_trace(), x) for x in values]
    return numbers[::-1] if reverse else numbers


def _exchanged(values: list[Value]) -> list[Value]:
    """Sorted by exchanging neighbours: loops over single elements stay such."""
    for last in range(len(values) - 1, 0, -1):
        for k in range(last):
            a, b = values[k : k + 2]
            is_less = ops.lt(b, a)
            values[k : k + 2] = ops.select(is_less, b, a), ops.select(is_less, a, b)
    return values


def _is_line(x: Any) -> bool:
    return type(x) is TracedArray and x.ndim == 1 and type(x.sizes[0]) is int


def _have_an_order(items: Sequence[Any]) -> bool:
    """Whether a value that only the program knows is among numbers that are all of one type of NumPy's, or of Python's."""
    if not any(is_traced(x) and not (type(x) is TracedNumber and x.slot is not None) for x in items):
        return False
    if any(type(x) is TracedScalar for x in items):
        return len({getattr(x, "dtype", None) if type(x) is TracedScalar else None for x in items}) == 1 and not is_complex(
            items[0].dtype
        )
    if not all(type(x) is TracedNumber or type(x) in _PLAIN for x in items) or any(map(doubt_of, items)):
        return False
    return {own_type(x) for x in items} in ({bool}, {int}, {float})


def _power(function: Callable[..., Any], base: Any, exp: Any, mod: Any = None) -> Any:
    """With a modulus it is computed while tracing, of ints that are then assumed or guarded."""
    operands = (base, exp) if mod is None else (base, exp, mod)
    if mod is not None:
        operands = tuple(x.known() if type(x) is TracedNumber else x for x in operands)
    return function(*operands)


def _sum(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    if args and type(args[0]) is TracedList:
        return _of_stack(function, *args, **kwargs)
    if len(args) != 1 or kwargs or type(args[0]) is not TracedArray or not args[0].ndim:
        return _added_up(*args, **kwargs) if COMPENSATES else function(*args, **kwargs)
    dtype = I64 if args[0].dtype == BOOL else args[0].dtype
    if is_integer(args[0].dtype) and args[0].ndim == 1:
        _require_no_overflow(read(args[0]))
    return call(np.sum, args[0], axis=0, dtype=dtype)


def _require_no_overflow(x: Value) -> None:
    """Python adds NumPy's ints one by one, each with a warning if it overflows; ints of its own do not. Then it has to answer."""
    total = ops.reduce_sum(ops.abs(ops.convert(x, dtype=F64)), axes=(0,))
    most = float(dtype_limits(x.dtype)[1]) if x.dtype.itemsize < 8 else 2.0**62  # as it is rounded
    insist(
        ops.le(total, ops.full(value=most, shape=(), dtype=F64)),
        error="OverflowError",
        message="overflow encountered in scalar add",
    )


def _added_up(items: Iterable[Any], /, start: Any = 0) -> Any:
    return python_sum.sum_of(items, sum((), start))  # which refuses texts


def _any_or_all(function: Callable[..., Any], *args: Any) -> Any:
    if args and type(args[0]) is TracedList:
        return _of_stack(function, *args)
    if len(args) != 1 or type(args[0]) is not TracedArray or args[0].ndim != 1:
        return function(*args)
    return TracedNumber.of_value(active_trace(), read(call(getattr(np, function.__name__), args[0])))


@implements(operator.is_)
def _is(x: Any, y: Any, /) -> bool:
    return is_one(x, y)


@implements(operator.is_not)
def _is_not(x: Any, y: Any, /) -> bool:
    return not is_one(x, y)


@implements(operator.contains)
def _contains(some: Any, x: Any, /) -> Any:
    """`x in some`: NumPy asks for any element that is equal, Python for the first one."""
    if type(some) is TracedArray:
        return number_of(bool, call(np.any, some == x))
    if type(some) in (range, Range) and _is_real(x):
        return _is_in_range(x, *(some.ends() if isinstance(some, Range) else (some.start, some.stop, some.step)))
    if not is_traced(x) and not (type(some) in (list, tuple) and any(map(is_traced, some))):
        return x in some
    some = list(some) if type(some) is range else some
    if isinstance(some, (list, tuple)) and np.shape(x):
        return any(is_one(x, y) or bool(y == x) for y in some)
    if not isinstance(some, (list, tuple, set, frozenset, dict)):
        return x in some
    found = [True if y is x else number_of(bool, is_found(y, x)) for y in some]
    traced = [outcome for outcome in found if is_traced(outcome)]
    if any(outcome is True for outcome in found) or not traced:
        return any(outcome is True for outcome in found)
    return functools.reduce(lambda a, b: combine(operator.or_, a, b), traced)


def _is_real(x: Any) -> bool:
    kind: Any = kind_of(x)
    return x.dtype.kind in "biuf" if isinstance(x, (TracedScalar, np.generic)) else kind in (bool, int, float)


def _is_in_range(x: Any, start: Any, stop: Any, step: int) -> Any:
    """Whether a range has a number in it, for which Python goes through it unless that is an int."""
    first, last = (start <= x, x < stop) if step > 0 else (x <= start, stop < x)
    distance = x - start if step > 0 else start - x
    return _both(_both(first, last), distance % abs(step) == 0)


def _both(a: Any, b: Any) -> Any:
    return combine(operator.and_, number_of(bool, a), number_of(bool, b))


def number_of(kind: Any, *args: Any, **kwargs: Any) -> Any:
    return of_known_type(_number_of(kind, *args, **kwargs), args)


def _number_of(kind: Any, *args: Any, **kwargs: Any) -> Any:
    if kind is complex and (len(args) == 2 or kwargs):
        return _of_parts(*args, **kwargs)
    if len(args) != 1 or kwargs or not is_traced(args[0]):
        return kind(*args, **kwargs)
    (x,) = args
    if type(x) is TracedNumber:
        if kind is bool and may_be_none(x):
            return TracedNumber.of_value(active_trace(), truth(x))
        if x.kind is kind:
            return x if doubt_of(x) is None else TracedNumber.of_value(active_trace(), x.as_value())
        return (
            combine(kind, x) if x.slot is not None or kind is not int else TracedNumber.of_value(active_trace(), whole(read(x)))
        )
    if not is_single(x.aval.size) or (x.ndim and kind is not bool):
        return kind(x)
    x = x if not x.ndim else x.reshape(())
    value = read(x)
    if kind is bool:
        return TracedNumber.of_value(active_trace(), ops.ne(value, 0) if value.dtype != BOOL else value)
    if kind is complex:
        return TracedNumber.of_value(active_trace(), value if value.dtype == C128 else ops.convert(value, dtype=C128))
    if is_complex(value.dtype):
        unsupported(f"{kind.__name__}() of a complex number, which loses the imaginary part", "Write x.real.")
    if kind is float:
        return TracedNumber.of_value(active_trace(), value if value.dtype == F64 else ops.convert(value, dtype=F64))
    return TracedNumber.of_value(active_trace(), whole(value))


def _of_parts(real: Any = 0.0, imag: Any = 0.0) -> Any:
    """`complex(real, imag)`, which may be complex themselves: real + 1j * imag."""
    parts = (real, imag)
    if not any(map(is_traced, parts)) or not all(is_traced(x) or isinstance(x, (*_PLAIN, np.generic)) for x in parts):
        return complex(real, imag)
    parts = tuple(x.item() if type(x) is TracedArray or isinstance(x, np.generic) else x for x in parts)
    if all(x.slot is not None if type(x) is TracedNumber else type(x) in _PLAIN for x in parts):
        return combine(complex, *parts)
    (re, more), (im, less) = (_parts(x) for x in parts)
    re = re if less is None else ops.sub(re, less)
    im = im if more is None else ops.add(im, more)
    return TracedNumber.of_value(active_trace(), ops.complex(re, im))


def _parts(x: Any) -> tuple[Value, Value | None]:
    """The real part of a number, and the imaginary one, if it may have one."""
    if not is_complex(read(x).dtype):
        return read(number_of(float, x)), None
    value = read(number_of(complex, x))
    return ops.real(value), ops.imag(value)


def whole(x: Value) -> Value:
    """A number cut to a 64-bit integer; Python's own error where it is none."""
    if x.dtype.kind == "f":
        x = x if x.dtype == F64 else ops.convert(x, dtype=F64)
        fits = ops.bit_and(ops.ge(x, -(2.0**63)), ops.lt(x, 2.0**63))
        x = ops.trunc(ops.check(x, fits, error="OverflowError", message="cannot convert a float that is no 64-bit integer"))
    elif x.dtype == np.uint64:
        x = within(x, LOWEST, HIGHEST)
    return x if x.dtype == I64 else ops.convert(x, dtype=I64)


@implements(collections.deque)
def _deque(iterable: Any = (), maxlen: Any = None) -> Any:
    made = collections.deque(iterable, maxlen if maxlen is None else operator.index(maxlen))
    active_trace().outside.own[id(made)] = made
    return made


def _install() -> None:
    implementations: dict[Any, Callable[..., Any]] = {
        max: _extreme, min: _extreme, pow: _power, sum: _sum, any: _any_or_all, all: _any_or_all, int: number_of,
        float: number_of, bool: number_of, complex: number_of,
    }  # fmt: skip
    for function, implementation in implementations.items():
        implements(function)(functools.partial(implementation, function))


_install()
