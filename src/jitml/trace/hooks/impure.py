"""Effects of calls: what would happen once, while a function is traced, is refused, or seen where it changes what is its own.

`Impure.check_effects` is asked of each callee that the registry does not have and that is not converted.
"""

from __future__ import annotations

import contextvars
import functools
import gc
import inspect
import sys
import traceback
from collections import deque
from collections.abc import Iterable
from pathlib import Path, PurePath
from types import BuiltinFunctionType, FunctionType, MethodType, MethodWrapperType, ModuleType
from typing import Any, NoReturn

import numpy as np

from jitml.errors import Cause
from jitml.trace.carried.outer_lists import OpenList
from jitml.trace.effects.attribute_stores import require_own
from jitml.trace.environment.unseen_reads import require_constant
from jitml.trace.hooks.control_flow import Steering
from jitml.trace.record.libraries import is_library
from jitml.trace.record.object_state import CONTAINERS
from jitml.trace.record.recording import home_of, unsupported
from jitml.trace.values.registry import full_name

# Modules whose functions give another answer at each call, or act on the world: traced once, they would be frozen.
_IMPURE = (
    "random", "time", "os", "datetime", "secrets", "uuid", "io", "_io", "posix", "genericpath", "glob", "shutil", "tempfile",
    "subprocess", "multiprocessing", "threading", "concurrent", "asyncio", "socket", "urllib.request", "signal", "atexit", "pdb",
    "numpy.random", "scipy.io", "locale", "_locale", "platform", "getpass", "decimal", "_decimal", "logging", "warnings",
    "_warnings", "pprint",
)  # fmt: skip
_WRITE = {("json", "dump"), ("_pickle", "dump"), ("pickle", "dump")}
_DRAW = ("random.", "np.random.", "secrets.", "uuid.", "statistics.")
_FORBIDDEN = {
    input, open, exec, eval, globals, vars, id, breakpoint, np.seterr, np.seterrcall, np.set_printoptions,
    np.geterrcall, np.setbufsize, sys.getrecursionlimit, sys.setrecursionlimit, sys.getswitchinterval, sys.getrefcount,
    sys.exc_info, gc.isenabled, gc.get_threshold, gc.get_count, gc.get_objects, contextvars.copy_context, np.load,
    np.loadtxt, np.genfromtxt, np.fromfile, np.fromregex, np.memmap,
}  # fmt: skip
# While a function is traced, its callers are others.
_LOOK_AT_CALLERS = {
    sys._getframe, getattr(sys, "_getframemodulename", sys._getframe), sys._current_frames, inspect.currentframe, inspect.stack,
    traceback.extract_stack, traceback.format_stack, traceback.print_stack,
}  # fmt: skip
_FORBIDDEN |= _LOOK_AT_CALLERS
MUTATORS = {
    "append", "extend", "insert", "remove", "pop", "clear", "sort", "reverse", "update", "setdefault", "popitem", "add",
    "discard", "appendleft", "popleft", "extendleft", "rotate", "subtract", "move_to_end", "difference_update",
    "intersection_update", "symmetric_difference_update", "__setitem__", "__delitem__", "__iadd__", "__imul__", "__ior__",
    "__iand__", "__isub__", "__ixor__",
}  # fmt: skip
COMPARED = (list, dict, set, deque, bytearray)
_CHANGEABLE = (*COMPARED, OpenList)
_STATELESS = {"_struct"}


class Impure(Steering):
    """Hooks that keep effects from happening once; `calls.Hooks` has them too."""

    __slots__ = ()

    def _refuse_once(self, function: Any) -> NoReturn:
        unsupported(
            f"{full_name(function)}() would run only once, while the function is traced, and not at every call",
            "Debug the function as plain Python: without jit, or f.__wrapped__ of a jitted f."
            if function is breakpoint or getattr(function, "__module__", None) == "pdb"
            else "Call it outside the jitted function and pass its result as an argument.",
            Cause.RANDOM if full_name(function).startswith(_DRAW) else Cause.EFFECT,
        )

    def refuse_impure(self, function: Any, owner: Any) -> None:
        """Refuse a function that gives another answer at each call, or acts on the world."""
        homes = {getattr(x, "__module__", None) or "" for x in (function, owner, type(owner))}
        writes = (getattr(function, "__module__", None), getattr(function, "__name__", "")) in _WRITE
        if writes or is_one_of(function, _FORBIDDEN) or any(map(_is_impure, homes)):
            self._refuse_once(function)

    def check_effects(self, function: Any, owner: Any) -> None:
        """Refuse what would happen once, while tracing, instead of at every call."""
        self.refuse_impure(function, owner)
        if isinstance(owner, Path) and not hasattr(PurePath, function.__name__):  # it asks the file system
            self._refuse_once(function)
        if home_of(type(owner)) == "statistics" and function.__name__ == "samples":  # it draws
            self._refuse_once(function)
        is_users = type(function) is MethodType and not is_librarys_function(function.__func__)  # then what it does is seen
        if getattr(function, "__name__", "") in MUTATORS and not is_users:
            require_own(self.trace, owner)
        if home_of(type(owner)) in ("queue", "_queue") and not is_users:  # other threads may change it
            require_own(self.trace, owner)
        is_container = isinstance(owner, _CHANGEABLE) or type(owner).__module__ in ("builtins", "collections")
        if getattr(function, "__name__", "") in MUTATORS and is_container and not is_users:
            self.effect(owner)
        if function is next:
            self.effect(function)
        if type(function) in (BuiltinFunctionType, MethodWrapperType):
            self.gone_through(owner)
        slot = self.trace.outside.places.get(id(owner))
        if type(function) is BuiltinFunctionType and id(owner) in self.trace.outside.places and _has_hidden_state(type(owner)):
            self._refuse_once(function)
        is_librarys = home_of(type(owner)).partition(".")[0] in sys.stdlib_module_names and not isinstance(owner, CONTAINERS)
        if slot is not None and not is_users and is_librarys:
            require_constant(self.trace, owner, slot)


@functools.lru_cache(maxsize=1024)
def _is_impure(home: str) -> bool:
    """Whether a module is one of those, or inside one."""
    return any(home == module or home.startswith(f"{module}.") for module in _IMPURE)


def _has_hidden_state(cls: type) -> bool:
    """Whether objects of a class of the standard library may change in ways that nobody can see.

    Those that are equal to themselves alone, and are no containers.
    """
    home, hashed = home_of(cls).partition(".")[0], cls.__hash__
    is_plain = issubclass(cls, (type, ModuleType)) or home == "builtins" or home in _STATELESS
    return hashed is vars(object)["__hash__"] and home in sys.stdlib_module_names and not is_plain


def is_librarys_function(function: Any) -> bool:
    return type(function) is FunctionType and is_library(function)


def is_one_of(x: Any, some: Iterable[Any]) -> bool:
    return any(x is y for y in some)
