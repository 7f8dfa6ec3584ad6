"""User code that runs out of sight: Python tells of every function that code which is not converted calls meanwhile.

`sorted(xs, key=model.cost)`, a metaclass's `__call__`, `Enum._missing_`: nobody can list all the ways in which a library gets
to call the user's functions. So Python is asked (`sys.setprofile`) while such code runs. A function that may read or change
what is outside is refused before it begins: what it does would be done again, by Python.
"""

from __future__ import annotations

import functools
import gc
import sys
import weakref
from _lsprof import Profiler
from collections.abc import Callable, Container, Iterable
from types import CodeType, FrameType, FunctionType, GeneratorType, MethodType
from typing import Any

from jitml.diagnostics.code_owners import is_users
from jitml.diagnostics.tracebacks import is_shim
from jitml.errors import Cause
from jitml.interrupts import codes_of_handlers, preserve
from jitml.trace.hooks.impure import Impure, is_one_of
from jitml.trace.record.object_state import HEAP_TYPE
from jitml.trace.record.recording import current_trace, home_of, unsupported
from jitml.trace.rewrite.code_names import globals_in, names_in_code
from jitml.trace.rewrite.driver_protocol import HOOKS
from jitml.trace.values.boxing import is_traced

_PARTS = {"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>", "<module>"}  # of functions that are told of themselves
_ONCE = (print, input, open, exec, eval, compile, __import__)
_MOST = 1000  # items of a list that are looked at
_PLAIN = {bool, int, float, complex, str, bytes, type(None)}


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


class _Reached(BaseException):
    """A function that is refused would begin now: whoever calls it ends, whatever exceptions that handles."""


class Entered:
    """What is entered while a function runs: code of the user's, and functions written in C that it calls.

    Args:
        places: of objects from outside, by id.
    """

    def __init__(self, places: Container[int]) -> None:
        self.places = places
        self.codes: dict[CodeType, bool] = {}  # and whether it has been given one of these
        self.calls: dict[tuple[str, int], Any] = {}

    def run(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        before = sys.getprofile()
        if before is not None and not callable(before):
            _require_profiler(before).disable()
        sys.setprofile(self._note_call)
        try:
            return function(*args, **kwargs)
        except _Reached:  # `codes` say of which function
            return None
        finally:
            _set_profile(before)

    def _note_call(self, frame: FrameType, event: str, called: Any) -> None:
        code = frame.f_code
        if event not in ("call", "c_call") or not _is_users_file(code.co_filename) or not _is_out_of_sight(code):
            return
        if current_trace() is None:  # it is tried out, and will run at each call
            return
        if event == "c_call":
            owner = id(getattr(called, "__self__", None))
            self.calls[called.__qualname__, owner if owner in self.places else 0] = called
        elif code.co_name not in _PARTS:
            is_given = self.codes.get(code, False) or any(id(x) in self.places for x in frame.f_locals.values())
            self.codes[code] = is_given
            if reads_outside(code, is_given) and not _is_called_at_any_time(frame):
                self.calls |= {(x.__name__, 0): x for x in _ONCE if x.__name__ in globals_in(code)}
                raise _Reached


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
            self._guard_calls(entered)
            raise
        self._guard_calls(entered)
        return result

    def _guard_calls(self, entered: Entered) -> None:
        for function in entered.calls.values():
            if is_one_of(function, _ONCE):
                self._refuse_once(function)
            self.check_effects(function, getattr(function, "__self__", None))
        for code, is_given in entered.codes.items():
            if reads_outside(code, is_given):
                unsupported(
                    f"{code.co_qualname} is called by code that is not converted, and what it reads may change",
                    "Call it from the jitted function itself, or outside of it.",
                    Cause.OBJECT,
                )


def reads_outside(code: CodeType, is_given: bool) -> bool:
    """Whether a function may read or change what is outside, of which it has been given something or not."""
    is_special = code.co_name[:2] == "__" == code.co_name[-2:]  # nobody gives it defaults
    reads = globals_in(code) if is_special and not is_given else names_in_code(code)
    return bool(reads or code.co_freevars)


def _is_called_at_any_time(frame: FrameType) -> bool:
    """Whether this runs in a finalizer, or in what Python calls for a signal, which must not be lost."""
    codes = [*codes_of_handlers(), *(getattr(x, "__code__", x) for x in gc.callbacks), weakref.finalize.__call__.__code__]
    step: FrameType | None = frame
    while step is not None and step.f_code is not Entered.run.__code__:
        is_callback = any(type(x) is weakref.ref and x() is None for x in step.f_locals.values())
        if is_callback or step.f_code.co_name == "__del__" or step.f_code in codes:
            return True
        step = step.f_back
    return False


def may_run_users_code(x: Any) -> bool:
    """Whether somebody who is given this gets to call functions of the user's."""
    kind = type(x)
    if kind in _PLAIN:
        return False
    items: Iterable[Any] = (x,)
    if kind in (list, tuple, set, frozenset):
        items = x
    elif kind is dict:
        items = (*x, *x.values())
    if kind in (list, tuple, set, frozenset, dict) and len(x) > _MOST:
        return True
    return not _PLAIN.issuperset(map(type, items)) and any(map(_may_run_users_code, items))


def _may_run_users_code(x: Any) -> bool:
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
    return HOOKS not in code.co_freevars and not is_shim(code)


@functools.lru_cache(maxsize=4096)
def _is_users_file(file: str) -> bool:
    return is_users(file)
