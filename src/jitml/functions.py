"""Objects that stand for functions: they become methods, are copied and inspected as functions are, and are called in C.

Each frame between the calls of a function that recurs would bring it nearer to Python's limit, and takes longer than many a
function runs. So `Switch`, which jitted functions are, has none: it asks an iterator what to call. Where calls have to be seen by
ours (while a function is traced, or recorded on a tape), all iterators are taken away (`see_calls`). While jitml is disabled,
each gives the function as it was written.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from itertools import repeat
from operator import methodcaller
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary, ref

from jitml.diagnostics.tracebacks import shorten


class _Bound:
    """What becomes a method as a function does."""

    __call__: Callable[..., Any]

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return self if instance is None else MethodType(self, instance)


class _TypeSlot(ctypes.Structure):
    _fields_ = (("slot", ctypes.c_int), ("function", ctypes.c_void_p))


class _TypeSpec(ctypes.Structure):
    _fields_ = (
        *(("name", ctypes.c_char_p), ("basicsize", ctypes.c_int), ("itemsize", ctypes.c_int)),
        *(("flags", ctypes.c_uint), ("slots", ctypes.POINTER(_TypeSlot))),
    )


_DESCR_GET, _BASETYPE = 54, 1 << 10  # of the stable ABI: Py_tp_descr_get, Py_TPFLAGS_BASETYPE


def _bound_in_c() -> type:
    """The same with the `__get__` of functions: one in Python takes longer than many a method.

    Only what is in C can be in the slot of a type, and no type that has it may be derived from.
    """
    get_slot = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_int)(("PyType_GetSlot", ctypes.pythonapi))
    from_spec = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.POINTER(_TypeSpec))(("PyType_FromSpec", ctypes.pythonapi))
    slots = (_TypeSlot * 2)(_TypeSlot(_DESCR_GET, get_slot(FunctionType, _DESCR_GET)))
    return from_spec(_TypeSpec(b"jitml.functions.Bound", 0, 0, _BASETYPE, slots))


if not TYPE_CHECKING and sys.implementation.name == "cpython":
    _Bound = _bound_in_c()


class FunctionLike(_Bound):
    """An object that stands for a function: it becomes a method as a function does."""

    __name__: str

    def __copy__(self) -> Any:
        return self  # as functions do

    def __deepcopy__(self, memo: object) -> Any:
        return self

    @property
    def traced_as(self) -> Callable[..., Any] | None:
        """The function that takes its place where it is called in a trace, if it does nothing else there."""
        return None

    def __set_name__(self, owner: type, name: str) -> None:
        # Methods pickle by the name of what they call: of `slope = grad(loss)` in a class it would lead to the loss.
        if self.__dict__.get("__name__", name) != name and vars(owner).get(self.__name__) is not self:
            self.__name__, self.__qualname__ = name, f"{owner.__qualname__}.{name}"


_OF_FUNCTIONS = frozenset({"__code__", "__defaults__", "__kwdefaults__", "__globals__", "__closure__"})


class FunctionAttributes(FunctionLike):
    """One that does the same as a function, and has what `inspect` asks for to tell generators and coroutines."""

    function: Callable[..., Any]

    def __getattr__(self, name: str) -> Any:
        if name not in _OF_FUNCTIONS:
            told = "" if name.startswith("_") else import_module("jitml.diagnostics.foreign_habits").foreign_method(name)
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{told}")
        return getattr(self.function, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _OF_FUNCTIONS:
            setattr(self.function, name, value)
        else:
            object.__setattr__(self, name, value)


class _DirectCall(property):
    """A `__call__` that is found anew for each call; asked for at the class, it takes the object first, as methods do."""

    def __call__(self, called: Switch, /, *args: Any, **kwargs: Any) -> Any:
        return called(*args, **kwargs)


class Switch(FunctionAttributes):
    """Calls what its `_next` gives."""

    __call__ = _DirectCall(methodcaller("_next"))
    _next: Callable[[], Callable[..., Any]]
    _turns: Iterator[Callable[..., Any]] | None = None  # what answers as long as nobody has to see calls

    def answer_by(self, function: Callable[..., Any]) -> None:
        """Have a function of ours answer, which sees all calls."""
        self._next, self._turns = repeat(function).__next__, None
        if self.__dict__.get("_is_unseen"):
            self._is_seen()
        if _DISABLED:
            self.be_plain()

    def answer_in_turn(self, functions: Iterator[Callable[..., Any]]) -> None:
        """Have each call answered by the next of these, as long as nobody has to see calls."""
        own = self.__dict__
        own["_next"], own["_turns"] = functions.__next__, functions
        if not own.get("_is_unseen"):
            own["_is_unseen"] = True
            _UNSEEN[id(self)] = self
        if _SEEING:
            self._be_seen()
        elif _DISABLED:
            own["_next"] = repeat(self.function).__next__

    def be_plain(self) -> None:
        """Have the function as it was written answer, without a frame of ours, as long as jitml is disabled."""
        self.answer_in_turn(repeat(self.function))

    def be_enabled(self) -> None:
        """Answer again as before jitml was disabled."""
        raise NotImplementedError

    def _is_seen(self) -> None:
        _UNSEEN.pop(id(self), None)
        self.__dict__["_is_unseen"] = False

    def _be_seen(self) -> None:
        self._is_seen()
        self._next = repeat(self._seen).__next__

    @property
    def _seen(self) -> Callable[..., Any]:
        """What answers calls that have to be seen. It does not hold the object: callers do."""
        known = ref(self)

        def answer(*args: Any, **kwargs: Any) -> Any:
            switch = known()
            assert switch is not None  # it is being called
            try:
                if _SEEING or switch._turns is None:
                    return switch._answer_seen(args, kwargs)
                switch.answer_in_turn(switch._turns)  # nobody looks any more: as before
                return switch._next()(*args, **kwargs)
            except BaseException as error:
                shorten(error)
                raise

        return answer

    def _answer_seen(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        raise NotImplementedError


def require_function(what: str, f: Any) -> None:
    """A transform is given what can be called.

    Raises:
        TypeError: it is given something else, say the function's result.
    """
    if isinstance(f, (staticmethod, classmethod, property)):
        kind = type(f).__name__
        raise TypeError(f"{what} takes a function, not a {kind}: write @{kind} above @{what}, not below it")
    if not callable(f):
        given = repr(f) if isinstance(f, (bool, int, float, str, type(None))) else f"a {type(f).__qualname__}"
        raise TypeError(f"{what} takes a function, not {given}: {what}(f)(x) and not {what}(f(x))")


_ALL: WeakValueDictionary[int, Switch] = WeakValueDictionary()
_UNSEEN: WeakValueDictionary[int, Switch] = WeakValueDictionary()
_SEEING: set[int] = set()
_DISABLED: set[Disabled] = set()  # what has disabled jitml


def unseen() -> list[Switch]:
    """Those that answer by themselves."""
    return _alive(_UNSEEN)


def _alive(switches: WeakValueDictionary[int, Switch]) -> list[Switch]:
    return [switch for known in switches.valuerefs() if (switch := known()) is not None]


def keep_switchable(switch: Switch) -> None:
    """Have `disable` and `enable` reach it."""
    _ALL[id(switch)] = switch


def see_calls(viewer: object) -> None:
    """Have all calls of switches seen by ours from here on, until `look_away` is called with the same object."""
    _SEEING.add(id(viewer))
    if _UNSEEN:
        for switch in unseen():
            switch._be_seen()


def look_away(viewer: object) -> None:
    _SEEING.discard(id(viewer))


class Disabled:
    """What `disable` returns. In a `with` statement it ends with the block."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        if self in _DISABLED:
            _DISABLED.remove(self)
            _enable_all()


def disable() -> Disabled:
    """Run jitted functions as plain Python from now on, in all threads.

    This is for debugging: breakpoints, `print` and tracebacks are those of the function as it was written. Compiled code is kept.
    It answers again after `jitml.enable()`, or when the block has ended if this stands in a `with` statement. Functions that are
    decorated meanwhile run as Python, too. Derivatives and `vmap` work as before, without a trace (docs/debugging.md).
    `JITML_DISABLE=1` does so for a whole process.

    >>> import jitml
    >>> @jitml.jit
    ... def half(x):
    ...     return x / 2
    >>> with jitml.disable():
    ...     half(3.0)  # Python's own division
    1.5
    """
    disabled = Disabled()
    _DISABLED.add(disabled)
    for switch in _alive(_ALL):
        switch.be_plain()
    return disabled


def enable() -> None:
    """Let jitted functions be compiled again, whatever has disabled jitml: `disable()`, a block of it, or `JITML_DISABLE=1`.

    >>> import jitml
    >>> jitml.disable() and None
    >>> jitml.enable()
    """
    _DISABLED.clear()
    _enable_all()


def _enable_all() -> None:
    if not _DISABLED:
        for switch in _alive(_ALL):
            switch.be_enabled()


def is_disabled() -> bool:
    """Whether jitted functions run as plain Python."""
    return bool(_DISABLED)


__all__ = [
    "Disabled",
    "FunctionAttributes",
    "FunctionLike",
    "Switch",
    "disable",
    "enable",
    "is_disabled",
    "keep_switchable",
    "look_away",
    "require_function",
    "see_calls",
    "unseen",
]
