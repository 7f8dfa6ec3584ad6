"""Work: how much is there to compute in a call, as far as arguments and code tell before it has run?

*Drivers* are functions that are called once, for what they print or draw, and that have nothing to compute with but what they
make: a `main()`, mostly. To compile one before it has run for long is a guess.
"""

from __future__ import annotations

import dis
import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from jitml.diagnostics.code_owners import is_users
from jitml.dispatch.renting import PURSE, USUAL

_NUMERIC = (np.ndarray, np.generic, int, float, complex)
_DEPTH = 3  # of objects in objects, and of calls, that are looked into
_MOST = 16  # items and attributes of each
_MUCH = 300_000  # elements that are computed: NumPy takes about a nanosecond for each, and a millisecond is worth a compilation
_RESUMED = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_OPERATIONS = ("BINARY_OP", "CALL", "COMPARE_OP", "UNARY_NEGATIVE")


def is_driver(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether a call has no numbers, and loops.

    >>> is_driver(lambda: [print(n) for n in range(3)], (), {}), is_driver(lambda x: x, (1,), {})
    (True, False)
    """
    return has_loop(function) and not any(True for _ in _numbers((*args, *kwargs.values()), _DEPTH))


def is_likely_long(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether a call is likely to take a millisecond: it has numbers, and loops, or does much with large arrays.

    >>> square = lambda x: x * x
    >>> [is_likely_long(square, (np.ones(n),), {}) for n in (1000, 1_000_000)]
    [False, True]
    """
    if getattr(getattr(function, "__code__", None), "co_flags", 0) & _RESUMED:
        return False  # nothing is compiled whole
    loops, operations = _cost(function, type(args[0]) if args else object, _DEPTH)
    most = _MUCH / max(operations, 1)
    elements = 0
    for x in _numbers((*args, *kwargs.values()), _DEPTH):
        elements += x.size if isinstance(x, np.ndarray) else 1
        if loops or elements >= most:
            return True
    return False


def is_worth_a_first_call(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether a first call may be compiled before anything has been paid for that."""
    return PURSE.is_rich or (PURSE.affords(USUAL) and is_likely_long(function, args, kwargs))


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


def _cost(function: Callable[..., Any], owner: type, depth: int) -> tuple[bool, int]:
    """Whether a function loops, or one of the user's or its object's that it calls; and how many operations they have."""
    code = getattr(function, "__code__", None)
    if code is None:
        return False, 1
    loops, operations = _cost_of_code(code)
    names = getattr(function, "__globals__", {})
    for name in code.co_names if depth else ():
        called = _plain(names[name] if name in names else getattr(owner, name, None))
        if called is function and "super" in code.co_names:
            called = _overridden(owner, name, function)
        if (
            type(called) is FunctionType
            and called is not function
            and (called.__globals__ is names or is_users(called.__code__.co_filename))
        ):
            more = _cost(called, owner, depth - 1)
            loops, operations = loops or more[0], operations + more[1]
    return loops, operations


def _overridden(owner: type, name: str, function: Callable[..., Any]) -> Any:
    """The method that a method of a class finds by `super()`, under its own name."""
    found = [_plain(vars(kind)[name]) for kind in owner.__mro__ if name in vars(kind)]
    return next((x for n, x in enumerate(found) if n and found[n - 1] is function), None)


def _plain(x: Any) -> Any:
    return getattr(x, "__wrapped__", x)


@functools.lru_cache(maxsize=1024)
def _cost_of_code(code: CodeType) -> tuple[bool, int]:
    names = [x.opname for x in dis.get_instructions(code) if x.argrepr != "[]"]  # a subscript, a BINARY_OP since Python 3.14
    loops, operations = any("JUMP_BACKWARD" in name for name in names), sum(name.startswith(_OPERATIONS) for name in names)
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            more = _cost_of_code(inner)
            loops, operations = loops or more[0], operations + more[1]
    return loops, operations


__all__ = ["has_arrays", "has_loop", "is_driver", "is_likely_long", "is_worth_a_first_call", "sizes_of"]
