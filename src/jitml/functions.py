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
from itertools import chain, repeat
from operator import methodcaller
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any, Self
from weakref import WeakValueDictionary, ref

from jitml.diagnostics.tracebacks import passed_over, shorten


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


class _TypeMember(ctypes.Structure):
    _fields_ = (
        *(("name", ctypes.c_char_p), ("type", ctypes.c_int), ("offset", ctypes.c_ssize_t)),
        *(("flags", ctypes.c_int), ("doc", ctypes.c_char_p)),
    )


# Of the stable ABI: Py_tp_descr_get, Py_tp_members, Py_TPFLAGS_BASETYPE, T_LONGLONG, T_PYSSIZET, READONLY.
_DESCR_GET, _MEMBERS, _BASETYPE, _INTEGER, _SIZE, _READONLY = 54, 72, 1 << 10, 17, 19, 1


def _type_in_c(name: bytes, size: int, *slots: tuple[int, int | None]) -> type:
    from_spec = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.POINTER(_TypeSpec))(("PyType_FromSpec", ctypes.pythonapi))
    found = (_TypeSlot * (len(slots) + 1))(*(_TypeSlot(*slot) for slot in slots))
    return from_spec(_TypeSpec(name, size, 0, _BASETYPE, found))


def _bound_in_c() -> type:
    """The same with the `__get__` of functions: one in Python takes longer than many a method.

    Only what is in C can be in the slot of a type, and no type that has it may be derived from.
    """
    get_slot = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_int)(("PyType_GetSlot", ctypes.pythonapi))
    return _type_in_c(b"jitml.functions.Bound", 0, (_DESCR_GET, get_slot(FunctionType, _DESCR_GET)))


class _CallWords:
    """Two numbers of an object."""

    __slots__ = ("_forward", "_left")


def _call_words_in_c() -> type:
    """The same, in C: the first one stands where Python looks for what is called (a *vectorcall*)."""
    at, size = object.__basicsize__, ctypes.sizeof(ctypes.c_longlong)
    members = (_TypeMember * 4)(  # the names are this function's constants, which stay
        _TypeMember(b"__vectorcalloffset__", _SIZE, at, _READONLY),
        _TypeMember(b"_forward", _INTEGER, at),
        _TypeMember(b"_left", _INTEGER, at + size),
    )
    return _type_in_c(b"jitml.functions.CallWords", at + 2 * size, (_MEMBERS, ctypes.addressof(members)))


if not TYPE_CHECKING and sys.implementation.name == "cpython":
    _Bound, _CallWords = _bound_in_c(), _call_words_in_c()


class Forwarding(_CallWords):
    """An object of which machine code may forward calls.

    Attributes:
        _forward: the address of what forwards them; 0: the usual `__call__` answers.
        _left: so many more are forwarded.
        _target: what they are forwarded to.
    """

    __slots__ = ("_target",)

    _forward: int
    _left: int
    _target: Callable[..., Any] | None


_PLACES = ((_CallWords, "_forward"), (_CallWords, "_left"), (Forwarding, "_target"))
_set_forward, _set_left, _set_target = (vars(cls)[name].__set__ for cls, name in _PLACES)


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


ALWAYS = sys.maxsize  # calls


class Switch(FunctionAttributes, Forwarding):
    """Calls what its `_next` gives, as long as its calls are not forwarded.

    Attributes:
        forwarder: the address of what can forward calls; 0 as long as there is no machine code.
    """

    # What is ours is not in `__dict__`: `functools.wraps` copies that to what wraps it, which may be another of these.
    __slots__ = ("_is_unseen", "_next", "_turns", "function")
    __call__ = _DirectCall(methodcaller("_next"))
    forwarder = 0
    function: Callable[..., Any]
    _next: Callable[[], Callable[..., Any]]
    _turns: Iterator[Callable[..., Any]] | None  # what answers as long as nobody has to see calls
    _is_unseen: bool

    def __new__(cls, *_args: Any, **_kwargs: Any) -> Self:
        made = super().__new__(cls)
        _set_turns(made, None)
        _set_unseen(made, False)
        return made

    def __init_subclass__(cls) -> None:
        cls.forwarder = 0  # each has flags of its own

    def answer_by(self, function: Callable[..., Any]) -> None:
        """Have a function of ours answer, which sees all calls."""
        self._forward_to(None)
        self._next, self._turns = repeat(function).__next__, None
        if self._is_unseen:
            self._is_seen()
        if _DISABLED:
            self.be_plain()

    def answer_in_turn(
        self, functions: Iterator[Callable[..., Any]], first: Callable[..., Any] | None = None, times: int = ALWAYS
    ) -> None:
        """Have each call answered by the next of these, as long as nobody has to see calls.

        Args:
            first, times: answers so many calls before them.
        """
        if first is not None and not self.forwarder:
            functions, first = chain(repeat(first, times), functions), None
        self._forward_to(first, times)
        _set_turns(self, functions)
        self._answer_in_turn(functions)

    def _answer_in_turn(self, functions: Iterator[Callable[..., Any]]) -> None:
        _set_next(self, functions.__next__)
        if not self._is_unseen:
            _set_unseen(self, True)
            _UNSEEN[id(self)] = self
        if _SEEING:
            self._be_seen()
        elif _DISABLED:
            _set_next(self, repeat(self.function).__next__)
        elif self._left:
            _set_forward(self, self.forwarder)

    def _forward_to(self, target: Callable[..., Any] | None, times: int = 0) -> None:
        """Prepare for machine code to forward calls; they are not forwarded yet."""
        _set_forward(self, 0)  # first: it is read before the others
        _set_left(self, times if target is not None else 0)
        _set_target(self, target)

    def be_plain(self) -> None:
        """Have the function as it was written answer, without a frame of ours, as long as jitml is disabled."""
        self.answer_in_turn(repeat(self.function))

    def be_enabled(self) -> None:
        """Answer again as before jitml was disabled."""
        raise NotImplementedError

    def _is_seen(self) -> None:
        _UNSEEN.pop(id(self), None)
        _set_unseen(self, False)

    def _be_seen(self) -> None:
        self._is_seen()
        _set_forward(self, 0)
        self._next = repeat(self._seen).__next__

    @property
    def _seen(self) -> Callable[..., Any]:
        """What answers calls that have to be seen. It does not hold the object: callers do."""
        known = ref(self)

        @passed_over
        def answer(*args: Any, **kwargs: Any) -> Any:
            switch = known()
            assert switch is not None  # it is being called
            try:
                if _SEEING or switch._turns is None:
                    return switch._answer_seen(args, kwargs)
                switch._answer_in_turn(switch._turns)  # nobody looks any more: as before
                return switch(*args, **kwargs)
            except BaseException as error:
                shorten(error)
                raise

        return answer

    def _answer_seen(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        raise NotImplementedError


# As by an assignment, past `__setattr__`, which takes longer.
_set_next, _set_turns, _set_unseen = (vars(Switch)[name].__set__ for name in ("_next", "_turns", "_is_unseen"))


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
# Who looks at calls. An exception from outside may come where one was about to look away: who is gone looks at nothing.
_SEEING: WeakValueDictionary[int, Any] = WeakValueDictionary()
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
    """Have all calls of switches seen by ours from here on, until `look_away` is called with the same object, or that is gone."""
    _SEEING[id(viewer)] = viewer
    if _UNSEEN:
        for switch in unseen():
            switch._be_seen()


def look_away(viewer: object) -> None:
    _SEEING.pop(id(viewer), None)


def is_seen() -> bool:
    """Whether somebody looks at calls."""
    return bool(_SEEING)


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
    "ALWAYS",
    "Disabled",
    "FunctionAttributes",
    "FunctionLike",
    "Switch",
    "disable",
    "enable",
    "is_disabled",
    "is_seen",
    "keep_switchable",
    "look_away",
    "require_function",
    "see_calls",
    "unseen",
]
