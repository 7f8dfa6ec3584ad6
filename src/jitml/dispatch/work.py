"""Work: how much is there to compute in a call, as far as arguments and code tell before it has run?

*Drivers* are functions that have nothing to compute with but what they make: a `main()`, mostly. One that a script calls at its
top level is called once, for what it prints or draws: to compile it before it has run for long is a guess.
"""

from __future__ import annotations

import dis
import functools
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import CodeType, FrameType, FunctionType
from typing import Any, NamedTuple

import numpy as np

from jitml.diagnostics.code_owners import is_machinery, is_users
from jitml.dispatch.renting import PURSE, USUAL

_NUMERIC = (np.ndarray, np.generic, int, float, complex)
_DEPTH = 3  # of objects in objects, and of calls, that are looked into
_MOST = 16  # items and attributes of each
_MUCH = 300_000  # elements that are computed: NumPy takes about a nanosecond for each, and a millisecond is worth a compilation
_RESUMED = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_CALLED = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")  # functions to Python, whose calls are operations
_OPERATIONS = ("BINARY_OP", "CALL", "COMPARE_OP", "UNARY_NEGATIVE")


def is_driver(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether a call has no numbers, and loops.

    >>> is_driver(lambda: [print(n) for n in range(3)], (), {}), is_driver(lambda x: x, (1,), {})
    (True, False)
    """
    return has_loop(function) and not any(True for _ in _numbers((*args, *kwargs.values()), _DEPTH))


def is_called_once() -> bool:
    """Whether the call of ours that runs comes from the top level of a script, or of a notebook's cell, not from a loop there."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_machinery(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None or frame.f_code.co_name != "<module>" or frame.f_globals.get("__name__") != "__main__":
        return False
    return not any(begin <= frame.f_lasti <= end for begin, end in _loops_in(frame.f_code))


def is_likely_long(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether a call is likely to take a millisecond: it has numbers, and loops, or does much with large arrays.

    One that has no arguments makes its numbers by NumPy.

    >>> square = lambda x: x * x
    >>> [is_likely_long(square, (np.ones(n),), {}) for n in (1000, 1_000_000)]
    [False, True]
    """
    if getattr(getattr(function, "__code__", None), "co_flags", 0) & _RESUMED:
        return False  # nothing is compiled whole
    cost = _cost(function, _owners(args), _DEPTH)
    loops = cost.loops and cost.operations > 0
    if not args and not kwargs:
        return loops and cost.has_numpy
    most = _MUCH / max(cost.operations, 1)
    elements = 0
    for x in _numbers((*args, *kwargs.values()), _DEPTH):
        elements += x.size if isinstance(x, np.ndarray) else 1
        if loops or elements >= most:
            return True
    return False


def is_worth_a_first_call(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether a first call may be compiled before anything has been paid for that."""
    return PURSE.is_rich or is_worth_an_early_call(function, args, kwargs)


def is_worth_an_early_call(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether a part of a function, in a first call of that, may be compiled before it has run."""
    return PURSE.affords(USUAL) and is_likely_long(function, args, kwargs)


def has_arrays(args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether there is an array in the arguments of a call.

    >>> has_arrays(([np.ones(3)], 1), {}), has_arrays((1.0,), {})
    (True, False)
    """
    return any(isinstance(x, np.ndarray) for x in _numbers((*args, *kwargs.values()), _DEPTH))


def sizes_of(args: Sequence[Any]) -> tuple[tuple[int, ...] | None, ...]:
    """The shapes of arrays, and ints.

    >>> sizes_of((np.ones((2, 3)), 5, "x"))
    ((2, 3), (5,), None)
    """
    return tuple([x.shape if isinstance(x, np.ndarray) else (x,) if type(x) is int else None for x in args])


def has_loop(function: Callable[..., Any]) -> bool:
    """Whether there is a loop or a comprehension in a function."""
    code = getattr(function, "__code__", None)
    return code is not None and _cost_of_code(code)[0]


def _numbers(items: Iterable[Any], depth: int) -> Iterator[Any]:
    for x in items:
        if isinstance(x, _NUMERIC):
            yield x
        elif depth > 0:
            yield from _numbers(_inside(x), depth - 1)


def _inside(x: Any) -> list[Any]:
    if isinstance(x, (list, tuple)):
        return [*x[:_MOST]]
    if isinstance(x, dict):
        return [*x.values()][:_MOST]
    return [*getattr(x, "__dict__", {}).values()][:_MOST]


class _CodeWork(NamedTuple):
    """Whether a function loops, or one of the user's or its object's that it calls; how many operations they have; whether they
    use NumPy.
    """

    loops: bool
    operations: int
    has_numpy: bool = False

    def __add__(self, other: Any) -> _CodeWork:
        return _CodeWork(self.loops or other.loops, self.operations + other.operations, self.has_numpy or other.has_numpy)


def _owners(args: Sequence[Any]) -> tuple[type, ...]:
    """Classes of the user's in which methods are looked for."""
    return tuple({type(x) for x in args if not isinstance(x, (*_NUMERIC, str, list, tuple, dict))})


def _cost(function: Callable[..., Any], owners: tuple[type, ...], depth: int) -> _CodeWork:
    code = getattr(function, "__code__", None)
    if code is None:
        return _CodeWork(False, 1)
    names = getattr(function, "__globals__", {})
    cost = _cost_of_code(code) + _CodeWork(False, 0, any(names.get(name) is np for name in code.co_names))
    for name in code.co_names if depth else ():
        owner = next((owner for owner in owners if hasattr(owner, name)), object)
        called = _plain(names[name] if name in names else getattr(owner, name, None))
        if called is function and "super" in code.co_names:
            called = _overridden(owner, name, function)
        if (
            type(called) is FunctionType
            and called is not function
            and (called.__globals__ is names or is_users(called.__code__.co_filename))
        ):
            cost += _cost(called, owners, depth - 1)
    return cost


def _overridden(owner: type, name: str, function: Callable[..., Any]) -> Any:
    """The method that a method of a class finds by `super()`, under its own name."""
    found = [_plain(vars(kind)[name]) for kind in owner.__mro__ if name in vars(kind)]
    return next((x for n, x in enumerate(found) if n and found[n - 1] is function), None)


def _plain(x: Any) -> Any:
    return getattr(x, "__wrapped__", x)


@functools.lru_cache(maxsize=1024)
def _cost_of_code(code: CodeType) -> _CodeWork:
    names = [x.opname for x in dis.get_instructions(code) if x.argrepr != "[]"]  # a subscript, a BINARY_OP since Python 3.14
    inside = [inner for inner in code.co_consts if isinstance(inner, CodeType)]
    calls = sum(inner.co_name in _CALLED for inner in inside)  # none in the text
    cost = _CodeWork(any("JUMP_BACKWARD" in name for name in names), sum(name.startswith(_OPERATIONS) for name in names) - calls)
    return sum(map(_cost_of_code, inside), cost)


@functools.lru_cache(maxsize=16)
def _loops_in(code: CodeType) -> list[tuple[int, int]]:
    """Where the loops of a code begin and end."""
    return [(x.argval, x.offset) for x in dis.get_instructions(code) if "JUMP_BACKWARD" in x.opname]


__all__ = [
    "has_arrays",
    "has_loop",
    "is_called_once",
    "is_driver",
    "is_likely_long",
    "is_worth_a_first_call",
    "is_worth_an_early_call",
    "sizes_of",
]
