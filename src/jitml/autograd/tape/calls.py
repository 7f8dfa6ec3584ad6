"""Calls on a tape: what is called in place of a function, so that its result is recorded?

`converted`: a function whose calls go through here, and those of the user's functions that it calls.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import operator
from collections import deque
from collections.abc import Callable
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType
from typing import Any

import numpy as np

import jitml.autograd.tape.operators  # noqa: F401  # installs them
from jitml.autograd.tape.c_functions import GENERATORS, of_c
from jitml.autograd.tape.recording import record
from jitml.autograd.tape.rewriting import HOOK, rewrite
from jitml.autograd.tape.tape import current_tape
from jitml.autograd.tape.values import Taped, has_taped, wrapped
from jitml.functions import FunctionLike
from jitml.trace.host_calls.array_ownership import ALONE, references
from jitml.trace.record.libraries import is_library
from jitml.trace.rewrite.source import Missing, find
from jitml.trace.values.registry import FUNCTIONS, REGISTRY

Function = Callable[..., Any]
_COROUTINES = inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_CONTAINERS = (list, dict, set, deque)
_CACHED: Any = type(functools.lru_cache(abs))
# Whose results are memory that nobody else has.
_MAKERS: frozenset[Any] = frozenset({
    np.zeros, np.ones, np.empty, np.full, np.zeros_like, np.ones_like, np.empty_like, np.full_like, np.eye, np.identity,
    np.arange, np.tri, np.linspace, np.logspace, np.geomspace, np.copy, np.tile, np.diag,
})  # fmt: skip

# Those of NumPy's and Python's that NumPy does not hand to others.
_NUMBERS: frozenset[Any] = frozenset({
    float, complex, np.array, np.asarray, np.asanyarray, np.ascontiguousarray, np.asfortranarray, np.require, np.full, np.zeros,
    np.ones, np.empty, np.eye, np.identity, np.tri, np.arange, np.float16, np.float32, np.float64, np.complex64, np.complex128,
})  # fmt: skip

_CALLING: frozenset[Any] = frozenset({map, functools.reduce, itertools.starmap})  # what they are given first

_codes: dict[CodeType, CodeType | None] = {}
_made: set[int] = set()  # ids of code objects that are rewritten already, all kept alive by `_codes`
_hooks: dict[Any, Function] = {}


def converted(function: Function) -> Function:
    """What to call in place of a function."""
    kind = type(function)
    if kind is FunctionType:
        return _with_calls_hooked(function)  # type: ignore[arg-type]  # its type says so
    if kind is MethodType:
        if isinstance(function.__self__, GENERATORS):  # type: ignore[attr-defined]  # a method
            return of_c(function)
        made = converted(function.__func__)  # type: ignore[attr-defined]  # a method
        return function if made is function.__func__ else MethodType(made, function.__self__)  # type: ignore[attr-defined]  # the same
    if kind is functools.partial:
        return functools.partial(converted(function.func), *function.args, **function.keywords)  # type: ignore[attr-defined]  # a partial
    if kind is BuiltinFunctionType and type(function.__self__) in _CONTAINERS:  # type: ignore[attr-defined]  # a builtin
        note(function.__self__)  # type: ignore[attr-defined]  # the same
        return function
    try:
        hook = _hook_of(function)
    except TypeError:  # it has no hash
        hook = None
    if hook is not None:
        return hook
    if kind is BuiltinFunctionType:
        return of_c(function)
    if kind is _CACHED:
        return _uncached(function)
    if isinstance(function, FunctionLike):
        return function if function.traced_as is None else converted(function.traced_as)
    if isinstance(function, type):
        return _class(function)
    own = inspect.getattr_static(kind, "__call__", None)
    if type(own) is FunctionType and not is_library(own):
        return MethodType(_with_calls_hooked(own), function)
    return function


def hook(function: Function) -> Function:
    """`converted`, as rewritten functions ask for it."""
    return function if current_tape() is None else converted(function)


def note(container: Any) -> None:
    """Remember that something has been put into an object."""
    tape = current_tape()
    if tape is not None and not (tape.changed and tape.changed[-1] is container):
        tape.changed.append(container)


def own(box: list[Any]) -> Any:
    """An array that may be written with what is differentiated, in place of a plain one that nobody else holds.

    Args:
        box: the array, which the list and one variable hold.
    """
    x = box[0]
    if type(x) is not np.ndarray or x.dtype.kind not in "fc" or x.base is not None or (tape := current_tape()) is None:
        return x
    known = 2 + (id(x) in tape.met) + (id(x) in tape.given)  # the variable, and `x`
    return wrapped(tape, x) if references(box) <= ALONE + known else x


def held(x: Any) -> Any:
    """The same. Since Python 3.14 a parameter may borrow what the caller's variable holds; what a call gives is not borrowed."""
    return x


Taped.__calling__ = staticmethod(converted)  # type: ignore[attr-defined]  # what functions do that are compiled, when they are given one
hook.note, hook.own, hook.held = note, own, held  # type: ignore[attr-defined]  # rewritten functions have one name for all


def _with_calls_hooked(function: FunctionType) -> Function:
    code = function.__code__
    if id(code) in _made:
        return function
    if code not in _codes:
        _codes[code] = _rewritten(function)
    new = _codes[code]
    if new is None:
        return _hook_of(function) or function
    cells = dict(zip(code.co_freevars, function.__closure__ or ()))
    cells[HOOK] = CellType(hook)
    made = FunctionType(
        new, function.__globals__, function.__name__, function.__defaults__, tuple(cells[n] for n in new.co_freevars)
    )
    made.__kwdefaults__, made.__qualname__, made.__doc__ = function.__kwdefaults__, function.__qualname__, function.__doc__
    return made


def _rewritten(function: FunctionType) -> CodeType | None:
    """None: the function is called as it is."""
    if is_library(function) or function.__code__.co_flags & _COROUTINES:
        return None
    found = find(function)
    if isinstance(found, Missing):
        return None
    new = rewrite(found, function.__code__)
    _remember(new)
    return new


def _remember(code: CodeType) -> None:
    _made.add(id(code))
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            _remember(constant)


def _class(cls: type) -> Function:
    """A class of the user's, whose `__init__` is rewritten."""
    init = inspect.getattr_static(cls, "__init__")
    if (
        type(cls) is not type
        or inspect.getattr_static(cls, "__new__") is not vars(object)["__new__"]
        or type(init) is not FunctionType
        or is_library(init)
    ):
        return cls
    started = _with_calls_hooked(init)
    if started is init:
        return cls

    def construct(*args: Any, **kwargs: Any) -> Any:
        instance: Any = object.__new__(cls)
        started(instance, *args, **kwargs)
        note(instance)
        return instance

    return construct


def _uncached(function: Any) -> Function:
    """What `lru_cache` has wrapped: numbers that are equal have derivatives of their own."""
    plain = converted(function.__wrapped__)
    return lambda *args, **kwargs: (plain if has_taped([*args, *kwargs.values()]) else function)(*args, **kwargs)


def _hook_of(function: Any) -> Function | None:
    """What records a function that NumPy does not hand to those who ask for it, or not when it is given lists."""
    found = _hooks.get(function)
    if found is None:
        REGISTRY.register_imported()
        found = _made_for(function)
        if found is not None:
            _hooks[function] = found
    return found


def _made_for(function: Any) -> Function | None:
    if function is type:
        return _type_of
    if function in _CALLING:
        return _calling(function)
    if function is np.ndenumerate:
        return _enumerated
    if function is itertools.accumulate:
        return _accumulate
    if function is np.nditer:
        return _elements
    if function is np.fromiter:
        return _from_iterator
    if function not in FUNCTIONS:
        return None
    if type(function) is np.ufunc or hasattr(function, "__wrapped__"):
        return _of_lists(function)
    home = str(getattr(function, "__module__", None))
    if function in _NUMBERS or home in ("math", "cmath") or home.startswith(("scipy.special", "scipy.linalg", "scipy.fft")):
        return _recording(function)
    return None


def _type_of(*args: Any) -> Any:
    return type(args[0].value) if len(args) == 1 and type(args[0]) is Taped else type(*args)


def _enumerated(x: Any) -> Any:
    return ((place, x[place]) for place in np.ndindex(x.shape)) if type(x) is Taped else np.ndenumerate(x)


def _elements(x: Any, *args: Any, **kwargs: Any) -> Any:
    """`np.nditer` of one array that it only reads."""
    if type(x) is not Taped or args or kwargs or not x.value.flags.c_contiguous:
        return np.nditer(x, *args, **kwargs)
    rows = x.reshape(-1)
    return (rows[n : n + 1].reshape(()) for n in range(len(rows)))


def _calling(function: Function) -> Function:
    """A function of Python's that calls its first argument."""
    return lambda called, *args, **kwargs: function(converted(called), *args, **kwargs)


def _accumulate(iterable: Any, func: Any = operator.add, **kwargs: Any) -> Any:
    return itertools.accumulate(iterable, converted(func), **kwargs)


def _from_iterator(iterable: Any, dtype: Any, count: int = -1, **kwargs: Any) -> Any:
    items = list(iterable) if count < 0 else [x for _, x in zip(range(count), iterable)]
    return record(np.array, (items, dtype), {}) if has_taped(items) else np.fromiter(items, dtype, count, **kwargs)


def _of_lists(function: Function) -> Function:
    """A function that NumPy hands to what is on the tape, unless that is in a list."""

    def recorded(*args: Any, **kwargs: Any) -> Any:
        if any(type(x) in (list, tuple) and has_taped(x) for x in args) and "out" not in kwargs:
            return record(function, args, kwargs)
        result = function(*args, **kwargs)
        return wrapped(current_tape(), result) if function in _MAKERS else result

    return recorded


def _recording(function: Function) -> Function:
    """A function that NumPy does not hand on, or that is not NumPy's."""
    makes = function in _MAKERS

    def recorded(*args: Any, **kwargs: Any) -> Any:
        if any(map(has_taped, args)) or (kwargs and any(map(has_taped, kwargs.values()))):
            return record(function, args, kwargs)
        result = function(*args, **kwargs)
        if makes or (function is np.array and kwargs.get("copy", True) is True):
            return wrapped(current_tape(), result)
        return result

    return recorded
