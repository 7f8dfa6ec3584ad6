"""Library state: what may a function of an unknown library change?

`LibraryState`: what its code can reach there, before and after.

Such a function runs once more than the program calls it: it is tried out while the user's function is traced. One that counts its
calls, draws from a generator of its own or keeps what it is given would show that, and is refused. One that fills a cache at its
first call changes nothing at the next.
"""

from __future__ import annotations

import dis
import pickle
import random
from array import array
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache, partial
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, TypeVar

import numpy as np

from jitml.trace.record.containers import contents, differ, refill
from jitml.trace.record.libraries import KNOWN_LIBRARIES, is_library
from jitml.trace.record.recording import home_of, is_users_class, unsupported
from jitml.trace.rewrite.code_names import codes_inside, names_in_code
from jitml.trace.values.registry import full_name, uncached

_MOST = 400  # objects that are looked at, the nearest ones first
_MOST_ITEMS = 1000  # of a container
_MOST_BYTES = 1 << 20  # of an array
_CONTAINERS = (list, dict, set, deque, bytearray, array)
_STORES = {"STORE_GLOBAL", "DELETE_GLOBAL", "STORE_ATTR", "DELETE_ATTR"}
Look = Callable[[], tuple[Any, ...]]
Put = Callable[[tuple[Any, ...]], object]
T = TypeVar("T")


def home_package(function: Any) -> str:
    """The unknown library that a function or class is of; empty of all others."""
    function = uncached(function)
    is_one = type(function) is FunctionType and is_library(function)
    if not (is_one or (isinstance(function, type) and not is_users_class(function))):
        if not (type(function) is BuiltinFunctionType and isinstance(function.__self__, ModuleType | None)):
            return ""
    # What `functools.wraps` has made says where that comes from which it wraps.
    module = function.__globals__.get("__name__") if is_one else function.__module__
    home: str = (module or "").partition(".")[0]
    return "" if home in KNOWN_LIBRARIES else home


def unchanging(function: Any, run: Callable[[], T]) -> T:
    """What `run` gives, which calls a function of a library.

    Raises:
        UnsupportedError: the library is not as it was, each time.
    """
    if not home_package(function):
        return run()
    before = LibraryState(function)
    result = run()
    if not before.change():
        return result
    state = LibraryState(function)
    result = run()
    if not (changed := state.change()):
        return result
    before.put_back()
    unsupported(
        f"{full_name(function)} changes {changed}, and runs while the function is traced as well, and not only at every call",
        "Call it outside of the jitted function.",
    )


class LibraryState:
    """What a function's code can reach in its library: globals that are assigned, containers, arrays, generators, objects."""

    def __init__(self, function: Any) -> None:
        self._home = home_package(function)
        self._parts: list[tuple[str, Look, tuple[Any, ...], Put]] = []
        self._seen: dict[int, Any] = {}
        self._waiting: deque[tuple[Any, str]] = deque([(function, full_name(function))])
        while self._waiting and len(self._seen) < _MOST:
            x, name = self._waiting.popleft()
            if id(x) not in self._seen:
                self._seen[id(x)] = x
                self._reach(x, name)

    def change(self) -> str:
        """What is not as it was; empty if all is."""
        return next((name for name, look, before, _ in self._parts if differ(before, look())), "")

    def put_back(self) -> None:
        """Have all as it was, as far as that can be done from outside."""
        for _, look, before, put in self._parts:
            if differ(before, look()):
                put(before)

    def _keep(self, name: str, look: Look, put: Put) -> None:
        self._parts.append((name, look, look(), put))

    def _keep_name(self, name: str, space: dict[str, Any], key: str) -> None:
        def put(before: tuple[Any, ...]) -> None:
            space.update(zip([key], before)) if before else space.pop(key, None)

        self._keep(name, lambda: (space[key],) if key in space else (), put)

    def _reach(self, x: Any, name: str) -> None:
        x = uncached(x)
        if isinstance(x, FunctionType):
            self._reach_function(x)
        elif isinstance(x, MethodType):
            self._waiting += [(x.__func__, name), (x.__self__, name)]
        elif isinstance(x, partial):
            self._waiting += [(part, name) for part in (x.func, x.args, x.keywords)]
        elif isinstance(x, type):
            if home_of(x).partition(".")[0] == self._home:
                self._keep(name, lambda: tuple(vars(x).values()), _leave)
                self._waiting += [(getattr(part, "__func__", part), f"{name}.{key}") for key, part in vars(x).items()]
        elif isinstance(x, np.ndarray):
            if x.nbytes <= _MOST_BYTES:
                self._keep(name, lambda: (x.tobytes(),), lambda before: _fill(x, before[0]))
        elif isinstance(x, np.random.BitGenerator):
            self._keep(name, lambda: (pickle.dumps(x.state),), lambda before: setattr(x, "state", pickle.loads(before[0])))
        elif isinstance(x, (np.random.Generator, np.random.RandomState)):
            self._waiting.append((x.bit_generator if isinstance(x, np.random.Generator) else x._bit_generator, name))
        elif isinstance(x, random.Random):
            self._keep(name, lambda: (pickle.dumps(x.getstate()),), lambda before: x.setstate(pickle.loads(before[0])))
        elif isinstance(x, _CONTAINERS):
            if len(x) <= _MOST_ITEMS:
                self._keep(name, lambda: contents(x), lambda before: refill(x, before))
                items = x.items() if isinstance(x, dict) else enumerate(x)
                self._waiting += [(item, f"{name}[{key!r:.40}]") for key, item in items]
        elif isinstance(x, (tuple, frozenset)):
            self._waiting += [(item, name) for item in x]
        elif hasattr(x, "__dict__") and home_of(type(x)).partition(".")[0] == self._home:
            self._keep(name, lambda: (*vars(x), *vars(x).values()), lambda before: refill(vars(x), before))
            self._waiting += [(type(x), home_of(type(x))), *((part, f"{name}.{key}") for key, part in vars(x).items())]

    def _reach_function(self, function: FunctionType) -> None:
        """What a function names in modules of its library, and what it closes over."""
        space, home = function.__globals__, function.__globals__.get("__name__") or ""
        if home.partition(".")[0] != self._home:
            return
        names, stored = names_in_code(function.__code__), _stored(function.__code__)
        for key in sorted(names & space.keys()):
            value = space[key]
            if isinstance(value, ModuleType):
                self._reach_module(value, names, stored)
            else:
                self._waiting.append((value, f"{home}.{key}"))
        for key in sorted(stored):
            self._keep_name(f"{home}.{key}", space, key)
        for key, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            with suppress(ValueError):
                self._keep(key, partial(_content, cell), partial(_bind, cell))
                self._waiting.append((cell.cell_contents, key))
        self._waiting.append((function.__defaults__ or (), f"{function.__qualname__}.__defaults__"))

    def _reach_module(self, module: ModuleType, names: frozenset[str], stored: frozenset[str]) -> None:
        if module.__name__.partition(".")[0] != self._home:
            return
        space = vars(module)
        self._waiting += [(space[key], f"{module.__name__}.{key}") for key in sorted(names & space.keys())]
        for key in sorted(stored & space.keys()):
            self._keep_name(f"{module.__name__}.{key}", space, key)


def _content(cell: CellType) -> tuple[Any, ...]:
    return (cell.cell_contents,)


def _bind(cell: CellType, before: tuple[Any, ...]) -> None:
    cell.cell_contents = before[0]


def _fill(x: np.ndarray[Any, Any], before: bytes) -> None:
    if x.flags.writeable:
        x[...] = np.frombuffer(before, x.dtype).reshape(x.shape)


def _leave(before: tuple[Any, ...]) -> None:
    """A class is left as it is."""


@lru_cache(maxsize=1024)
def _stored(code: CodeType) -> frozenset[str]:
    """Names of globals and attributes that a code object assigns, and those inside it."""
    codes = (code, *codes_inside(code))
    return frozenset(step.argval for inner in codes for step in dis.get_instructions(inner) if step.opname in _STORES)
