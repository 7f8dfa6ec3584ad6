"""User code that runs out of sight: Python tells of every function that code which is not converted calls meanwhile.

`sorted(xs, key=model.cost)`, a metaclass's `__call__`, `Enum._missing_`: nobody can list all the ways in which a library gets
to call the user's functions. So Python is asked (`sys.setprofile`) while such code runs. What a function that was entered may
read is guarded, as `user_methods.py` guards what special methods read; what it does that should happen at every call is refused.
"""

from __future__ import annotations

import functools
import gc
import sys
from _lsprof import Profiler
from collections.abc import Callable, Container, Iterable
from contextlib import suppress
from inspect import CO_OPTIMIZED
from types import CodeType, FrameType, FunctionType, GeneratorType, MethodType
from typing import Any
from weakref import WeakSet

from jitml.interrupts import preserve
from jitml.trace.environment.unseen_reads import guard_state
from jitml.trace.hooks.context_managers import Manager, managed
from jitml.trace.hooks.impure import Impure, is_one_of
from jitml.trace.record.object_state import HEAP_TYPE
from jitml.trace.record.recording import current_trace, home_of, is_users, unsupported
from jitml.trace.record.user_code import is_caller
from jitml.trace.rewrite.code_names import names_in_code
from jitml.trace.rewrite.protocol import HOOKS
from jitml.trace.values.boxing import is_traced

_PARTS = {"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>", "<module>"}  # of functions that are told of themselves
_ONCE = (print, input, open, exec, eval, compile, __import__)
_MOST = 1000  # items of a list that are looked at


def _set_profile(profile: Any) -> None:
    """`sys.setprofile`, also for a profiler that is written in C, as `cProfile` is in CPython 3.11: those begin by themselves."""
    sys.setprofile(profile if callable(profile) else None)
    if isinstance(profile, Profiler):
        profile.enable()


def _require_profiler(profile: Any) -> Profiler:
    if not isinstance(profile, Profiler):
        unsupported(
            f"a {type(profile).__qualname__} that profiles this thread cannot be stopped for a moment",
            "Call the function once before, or profile with cProfile.",
        )
    return profile


preserve(sys.getprofile, _set_profile)


class Sighting:
    """Code of the user's that has been entered, with the first arguments and what it closes over then, and its functions.

    function: the first of this code that has been left.
    others: further ones, but for those that have gone: nobody calls them again.
    """

    __slots__ = ("code", "function", "others", "scope", "values")

    def __init__(self, frame: FrameType) -> None:
        self.code, self.scope, self.values = frame.f_code, frame.f_globals, dict(frame.f_locals)
        self.function: FunctionType | None = None
        self.others: WeakSet[FunctionType] = WeakSet()

    def left(self, function: FunctionType) -> None:
        if self.function is None:
            self.function = function
        elif function is not self.function:
            self.others.add(function)

    def functions(self) -> list[FunctionType]:
        """None for the body of a class, which loads otherwise."""
        if not self.code.co_flags & CO_OPTIMIZED:
            return []
        function = self.function or self._searched()
        return [] if function is None else [function, *self.others]

    def _searched(self) -> FunctionType | None:
        """The function of a generator that has not ended; nobody finds it after a `gc.freeze`, unless by its name."""
        named = self.scope.get(self.code.co_name)
        if type(named) is FunctionType and named.__code__ is self.code:
            return named
        found = (x for x in gc.get_referrers(self.code) if type(x) is FunctionType and x.__code__ is self.code)
        return next((x for x in found if x.__globals__ is self.scope and self._closes_over_the_same(x)), None)

    def _closes_over_the_same(self, function: FunctionType) -> bool:
        for name, cell in zip(self.code.co_freevars, function.__closure__ or ()):
            with suppress(ValueError):  # it is not bound
                if cell.cell_contents is not self.values.get(name):
                    return False
        return True


class Entered:
    """What is entered while a function runs: the user's functions, and functions written in C that those call.

    Python tells of a function's frame alone. One that has been left, and is held, holds the function itself.

    Args:
        places: of objects from outside, by id: code is noted once for each of those that it is given.
    """

    def __init__(self, places: Container[int]) -> None:
        self.places = places
        self.sightings: dict[tuple[int, ...], Sighting] = {}
        self.calls: dict[tuple[str, int], Any] = {}
        self._running: dict[int, tuple[FrameType, Sighting]] = {}
        self._returning: int | None = None

    def run(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        before = sys.getprofile()
        if before is not None and not callable(before):
            _require_profiler(before).disable()
        sys.setprofile(self._tell)
        try:
            return function(*args, **kwargs)
        finally:
            _set_profile(before)
            for number in [*self._running]:
                self._leave(number)
            self._running.clear()

    def _tell(self, frame: FrameType, event: str, called: Any) -> None:
        if self._returning is not None:
            self._leave(self._returning)
            self._returning = None
        if event == "return" and id(frame) in self._running:
            self._returning = id(frame)
        code = frame.f_code
        if event not in ("call", "c_call") or not _is_users_file(code.co_filename) or not _is_out_of_sight(code):
            return
        if current_trace() is None:  # it is tried out, and will run at each call
            return
        if event == "c_call":
            owner = id(getattr(called, "__self__", None))
            self.calls[called.__qualname__, owner if owner in self.places else 0] = called
        elif code.co_name not in _PARTS:
            values = frame.f_locals
            given = tuple(id(x) for x in values.values() if id(x) in self.places)
            sighting = self.sightings.get((id(code), *given))
            if sighting is None:
                sighting = self.sightings[(id(code), *given)] = Sighting(frame)
            self._running[id(frame)] = frame, sighting

    def _leave(self, number: int) -> None:
        """Note the function of a frame, and let go of that, unless it is a generator's that goes on."""
        frame, sighting = self._running[number]
        for x in gc.get_referents(frame):
            if type(x) is FunctionType and x.__code__ is sighting.code:  # arguments come behind it
                sighting.left(x)
                del self._running[number]
                return


class Sighted(Impure):
    """Hooks that run what is not converted; `calls.Hooks` has them too."""

    __slots__ = ()

    def given(self, called: Callable[..., Any], function: Any, *args: Any, **kwargs: Any) -> Any:
        """Call what is not converted, `called` in the place of `function`."""
        if any(map(may_run_users_code, (function, getattr(function, "__self__", None), *args, *kwargs.values()))):
            return self.sighted(called, *args, **kwargs)
        return called(*args, **kwargs)

    def sighted(self, called: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call what may call functions of the user's."""
        entered = Entered(self.trace.outside.places)
        try:
            result = entered.run(called, *args, **kwargs)
        except Exception:
            self._guard(entered)
            raise
        self._guard(entered)
        return result

    def manager(self, obj: Any) -> Any:
        """`with obj`"""
        found = managed(self, obj)
        if type(obj) is suppress:
            return Manager(obj.__enter__, functools.partial(self._suppressed, obj))
        if found is not obj or not may_run_users_code(obj) or not hasattr(type(obj), "__exit__"):
            return found
        return Manager(*(functools.partial(self.sighted, getattr(type(obj), name), obj) for name in ("__enter__", "__exit__")))

    def _suppressed(self, obj: suppress, *error: Any) -> bool:
        is_ended = obj.__exit__(*error)
        if is_ended and error[1] is not None:
            self.ended(error[1])
        return is_ended

    def _guard(self, entered: Entered) -> None:
        for function in entered.calls.values():
            if is_one_of(function, _ONCE):
                self._refuse_once(function)
            self.check_effects(function, getattr(function, "__self__", None))
        # What one of them returns another may look into.
        names = frozenset[str]().union(*(names_in_code(sighting.code) for sighting in entered.sightings.values()))
        for sighting in entered.sightings.values():
            if not names_in_code(sighting.code) and not sighting.code.co_freevars:
                continue
            for value in sighting.values.values():
                if (slot := self.trace.outside.places.get(id(value))) is not None:
                    guard_state(self.trace, value, slot, names)
            if not (functions := sighting.functions()):
                unsupported(
                    f"{sighting.code.co_qualname} is called by code that is not converted, and what it reads cannot be seen",
                    "Call it from the jitted function itself, or outside of it.",
                )
            for function in functions:
                self._guard_outer(function, names)


def may_run_users_code(x: Any) -> bool:
    """Whether somebody who is given this gets to call functions of the user's."""
    kind = type(x)
    items: Iterable[Any] = (x,)
    if kind in (list, tuple, set, frozenset):
        items = x
    elif kind is dict:
        items = (*x, *x.values())
    return (kind in (list, tuple, set, frozenset, dict) and len(x) > _MOST) or any(map(_may, items))


def _may(x: Any) -> bool:
    kind = type(x)
    if isinstance(x, type):
        return kind is not type
    if issubclass(kind, (FunctionType, MethodType, GeneratorType)):
        code = getattr(getattr(x, "__func__", x), "__code__", None) or getattr(x, "gi_code", None)
        return code is not None and _is_users_file(code.co_filename) and _is_out_of_sight(code)
    if kind in (list, tuple, dict, set, frozenset):
        return len(x) > 0
    return bool(kind.__flags__ & HEAP_TYPE) and not is_traced(x) and home_of(kind).partition(".")[0] not in ("jitml", "numpy")


def _is_out_of_sight(code: CodeType) -> bool:
    return HOOKS not in code.co_freevars and not is_caller(code)


@functools.lru_cache(maxsize=4096)
def _is_users_file(file: str) -> bool:
    return is_users(file)
