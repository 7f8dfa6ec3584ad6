"""Saved state: all that a function can reach and change, as it was, so that a call can be made again, or undone.

Arrays are saved by their bytes, containers by what is in them, objects by their attributes, generators of random numbers by what
they will draw next. Of globals and of the user's modules that is reached which reachable code names. What has a state that
nobody can put back (an iterator, a file, an object that is written in C) cannot be saved; nor is more copied than the bound.
"""

from __future__ import annotations

import array
import functools
import random
import re
import sys
import types
import weakref
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, time, timedelta, tzinfo
from enum import Enum
from functools import partial
from pathlib import PurePath
from threading import Lock, RLock
from typing import Any, TypeVar

import numpy as np

from jitml.device.array import Array as OnDevice
from jitml.device.view import DeviceView
from jitml.diagnostics.code_owners import is_users
from jitml.imports.late import late_class
from jitml.trace.record.class_caches import by_class
from jitml.trace.record.container_contents import kind_of_container
from jitml.trace.record.libraries import is_library
from jitml.trace.record.object_state import slots_of
from jitml.trace.record.recording import home_of, is_users_class
from jitml.trace.record.references import MISSING
from jitml.trace.record.threads import is_alone
from jitml.trace.rewrite.code_names import names_and_texts
from jitml.verification import cells
from jitml.verification.cells import Array, StateCell, is_special

_MOST_INTERRUPTS = 5
_NOTHING: Mapping[int, Any] = {}
_MOST = 20_000  # things that are looked into
_LARGE = 1 << 16  # bytes of arrays that are not copied if that can be avoided
# By these names code gets at an array's memory, or asks whether it may write there.
_WAYS_TO_MEMORY = ("flags", "setflags", "base", "ctypes", "__array_interface__", "__array_struct__", "require", "frombuffer")
T = TypeVar("T")
_NUMBERS = {int, float, str, bool, type(None), bytes, complex, np.float64, np.int64, np.bool_, np.float32}
_INERT = (
    *(int, float, complex, str, bytes, type(None), type(...), type(NotImplemented), range, slice, np.generic, np.dtype, np.ufunc),
    *(late_class(*name) for name in (("fractions", "Fraction"), ("decimal", "Decimal"), ("logging", "Logger"))),
    *(Enum, date, time, timedelta, tzinfo, PurePath, re.Pattern, np.finfo, np.iinfo, types.CodeType),
    *(types.MappingProxyType, types.GenericAlias, types.WrapperDescriptorType, types.MethodDescriptorType, types.FrameType),
    *(types.GetSetDescriptorType, types.MemberDescriptorType, weakref.ref, type(Lock()), type(RLock())),
    type(vars(namedtuple("Pair", "first"))["first"]),  # what a field of one is in its class
    *(types.ClassMethodDescriptorType, types.MethodWrapperType, memoryview, np.errstate),
)
_CODE = (types.FunctionType, types.ModuleType, type)
# Where these are parts of something else, what they call or hold.
_PARTS: Mapping[type, tuple[str, ...]] = {
    types.MethodType: ("__func__", "__self__"), types.BuiltinFunctionType: ("__self__",), staticmethod: ("__func__",),
    classmethod: ("__func__",), property: ("fget", "fset", "fdel"), functools.partial: ("func", "args", "keywords"),
    functools._lru_cache_wrapper: ("__wrapped__",),
}  # fmt: skip
_NUMPYS_GENERATOR = late_class("numpy.random", "Generator")
_DRAWN_FROM = (*(late_class("numpy.random", name) for name in ("BitGenerator", "RandomState")), random.Random)
GENERATORS = (_NUMPYS_GENERATOR, *_DRAWN_FROM)
_COMPILED = ("numpy", "scipy")  # libraries whose types that are written in C have no state but in what is saved otherwise


class Unsaved(Exception):
    """The state of something cannot be saved; says of what, and why."""


class SavedState:
    """What is reached from some things, as it is now.

    Args:
        roots: things and their names.
        most_bytes: of arrays, that are copied.
        with_arrays: whether what arrays hold is part of it, and what generators of random numbers draw next.
        with_code: whether functions, classes and modules are.
        written: arrays that the compiled program writes; None if nobody knows. Others that are large are not copied (`frozen`).

    Raises:
        Unsaved: something cannot be saved.
    """

    def __init__(
        self,
        roots: Iterable[tuple[Any, str]],
        most_bytes: int,
        *,
        with_arrays: bool = True,
        with_code: bool = True,
        written: Sequence[Array] | None = None,
    ) -> None:
        self.objects: dict[int, Any] = {}  # what has been reached, by id; alive as long as this is
        self.arrays: list[Array] = []
        self.cells: list[StateCell] = []
        self.places: dict[int, int] = {}  # of arrays, containers and objects, by id: the number of the cell
        self._array_names: dict[int, str] = {}
        self.constants: dict[int, Array] = {}  # arrays that are not copied, by the number of the cell
        self._most_bytes, self._with_arrays, self._with_code = most_bytes, with_arrays, with_code
        self._names: set[str] = set()
        self._modules: list[types.ModuleType] = []
        self._waiting = [*roots]
        self._reach_all()
        if written is not None:
            self._spare_copies(written)
        self._require_room()
        self.held = [cell.look() for cell in self.cells]

    def changes(self, *, shown: bool = False) -> dict[int, Any]:
        """What the cells hold that do not hold what they held, by the cell's number.

        Args:
            shown: arrays themselves, and no copies: good until something changes again.
        """
        changed = [n for n, (cell, held) in enumerate(zip(self.cells, self.held)) if not cell.same(held)]
        return {n: ((shown and self.cells[n].show) or self.cells[n].look)() for n in changed}

    def kept(self, shown: Mapping[int, Any]) -> dict[int, Any]:
        """What `changes` has shown, copied before it changes again."""
        return {n: self.cells[n].look() if self.cells[n].show else x for n, x in shown.items()}

    def frozen(self, run: Callable[[], T]) -> T:
        """The result of something; while it runs, who writes to arrays that are not copied gets NumPy's ValueError."""
        writeable = sorted((x for x in self.constants.values() if x.flags.writeable), key=_depth)
        try:
            for x in writeable:
                np.ndarray.setflags(x, write=False)
            return run()
        finally:
            _insist(partial(_thaw, writeable))

    def copy_constants(self) -> None:
        """Have all arrays copied, so that they may be written.

        Raises:
            Unsaved: they are too large.
        """
        constants, self.constants = self.constants, {}
        try:
            self._require_room()
            copies = {n: cells.of_array(x, self.name_of(x)) for n, x in constants.items()}
            held = {n: cell.look() for n, cell in copies.items()}
        except (Unsaved, MemoryError):
            self.constants = constants
            raise
        for n, cell in copies.items():
            self.cells[n], self.held[n] = cell, held[n]

    def _spare_copies(self, written: Sequence[Array]) -> None:
        """Find arrays that need not be copied: neither the compiled program writes them, nor can anybody else unseen."""
        if self.mentions(*_WAYS_TO_MEMORY) or any(type(x) is memoryview for x in self.objects.values()) or not is_alone():
            return
        for x in self.arrays:
            if _can_be_frozen(x) and not any(np.may_share_memory(x, other) for other in written):
                place = self.places[id(x)]
                self.cells[place], self.constants[place] = cells.of_constant(x, self.name_of(x)), x

    def _require_room(self) -> None:
        if sum(x.nbytes for x in self.arrays if self.places[id(x)] not in self.constants) > self._most_bytes:
            raise Unsaved("what it reads and may change is more than JITML_VERIFY_BYTES")

    def put_back(self, now: Mapping[int, Any] = _NOTHING, only: Iterable[int] | None = None) -> None:
        """Have everything as it was, or as `changes` has seen it.

        Args:
            only: no other cells hold anything else than they should.
        """
        numbers = range(len(self.cells)) if only is None else tuple(only)

        def put() -> None:
            for n in numbers:
                held = now.get(n, self.held[n])
                if not self.cells[n].same(held):
                    self.cells[n].put(held)

        _insist(put)

    def mentions(self, *names: str) -> bool:
        """Whether code that is reached names one of these."""
        return not self._names.isdisjoint(names)

    def name_of(self, x: Array) -> str:
        """What a user would call an array."""
        return self._array_names[id(x)]

    def _reach_all(self) -> None:
        named: dict[int, set[str]] = {}
        while self._waiting:
            while self._waiting:
                self._reach(*self._waiting.pop())
            for module in self._modules:
                new = self._names & vars(module).keys() - named.setdefault(id(module), set())
                named[id(module)] |= new
                self._waiting += [(vars(module)[name], f"{module.__name__}.{name}") for name in sorted(new)]
        for module in self._modules:
            self.cells.append(cells.of_module(module, sorted(named[id(module)])))
        if "random" in self._names:
            self._reach_random()

    def _reach_random(self) -> None:
        """The generators that NumPy's and Python's functions share."""
        shared = getattr(sys.modules.get("numpy.random.mtrand"), "_rand", None)
        for generator, name in ((shared, "np.random"), (random.seed.__self__, "random")):  # type: ignore[attr-defined]  # a bound method
            if generator is not None:
                self._reach(generator, name)

    def _reach(self, x: Any, name: str) -> None:
        kind: Any = type(x)
        if kind in _NUMBERS or id(x) in self.objects or (isinstance(x, _CODE) and not self._with_code):
            return
        self.objects[id(x)] = x
        if len(self.objects) > _MOST:
            raise Unsaved(f"it can reach more than {_MOST} objects")
        if kind is OnDevice:
            self._reach(x._view, name)
        elif isinstance(x, np.ndarray):
            self._reach_array(x, name)
        elif kind is types.FunctionType:
            if is_library(x):  # what it was made of may be the user's
                self._waiting.append((vars(x).get("__wrapped__"), name))
            else:
                self._reach_function(x, name)
        elif isinstance(x, type):
            if is_users_class(x):
                self._reach_class(x)
        elif kind is types.ModuleType:
            if is_users(getattr(x, "__file__", None) or ""):
                self._modules.append(x)
        elif isinstance(x, _DRAWN_FROM):
            if self._with_arrays:
                self.cells.append(cells.of_generator(x, name))
        elif isinstance(x, _NUMPYS_GENERATOR) and not is_users_class(kind):
            self._waiting.append((x.bit_generator, name))
        elif kind in _PARTS:
            self._waiting += [(getattr(x, part), name) for part in _PARTS[kind]]
        elif isinstance(x, types.CellType):
            self._reach_cell(x, name)
        elif home_of(kind).partition(".")[0] == "jitml":
            self._waiting.append((getattr(x, "__wrapped__", None), name))
        elif isinstance(x, _INERT) and not is_users_class(kind):
            pass
        else:
            self._reach_object(x, name)

    def _reach_array(self, x: Array, name: str) -> None:
        if self._with_arrays:
            self._keep_array(x, name)
        if x.dtype.hasobject:
            if x.dtype.kind != "O":
                raise Unsaved(f"{name} is an array of records with objects")
            self._waiting += [(item, f"{name}[...]") for item in x.flat if type(item) not in _NUMBERS]
        if type(x) not in (np.ndarray, DeviceView):
            self._reach_attributes(x, name)

    def _keep_array(self, x: Array, name: str) -> None:
        self.arrays.append(x)
        self._array_names[id(x)] = name
        self.places[id(x)] = len(self.cells)
        self.cells.append(cells.of_array(x, name))

    def _reach_function(self, function: types.FunctionType, name: str) -> None:
        names = names_and_texts(function.__code__)
        self._names |= names
        space = function.__globals__
        self.cells.append(cells.of_names(space, sorted(names)))
        self._waiting += [(space[key], key) for key in names & space.keys()]
        for key, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            self._waiting.append((cell, key))
        self._waiting += [(function.__defaults__, f"{name}.__defaults__"), (function.__kwdefaults__, f"{name}.__kwdefaults__")]
        self._waiting.append((vars(function), f"vars({name})"))

    def _reach_cell(self, cell: types.CellType, name: str) -> None:
        kept = cells.of_cell(cell, name)
        self.cells.append(kept)
        self._waiting += [(value, name) for value in kept.look() if value is not MISSING]

    def _reach_class(self, cls: type) -> None:
        self.cells.append(cells.of_class(cls))
        for key, member in [*vars(cls).items()]:
            if not is_special(key) or type(member) in (types.FunctionType, staticmethod, classmethod, property):
                self._waiting.append((member, f"{cls.__qualname__}.{key}"))
        self._waiting += [(base, base.__qualname__) for base in (*cls.__bases__, type(cls))]

    def _reach_object(self, x: Any, name: str) -> None:
        kind: Any = type(x)
        if isinstance(x, (tuple, frozenset)):
            base: Any = tuple if isinstance(x, tuple) else frozenset
            items = list(base.__iter__(x))
            self._waiting += [(item, f"{name}[{n}]") for n, item in enumerate(items) if type(item) not in _NUMBERS]
        elif isinstance(x, (list, dict, set, deque, bytearray, array.array)):
            self.places[id(x)] = len(self.cells)
            self._reach_container(x, name)
        elif not _is_known(kind):
            if home_of(kind).partition(".")[0] in _COMPILED:
                return
            raise Unsaved(f"{name} is a {home_of(kind)}.{kind.__qualname__}, whose state cannot be saved")
        if not isinstance(x, array.array):
            self._reach_attributes(x, name)

    def _reach_container(self, x: Any, name: str) -> None:
        self.cells.append(cells.of_container(x, name))
        if isinstance(x, (bytearray, array.array)):
            return
        kind = kind_of_container(x)
        if isinstance(x, dict):
            keys = list(kind.__iter__(x))
            if not {*map(type, keys)} <= _NUMBERS:
                self._waiting += [(key, f"a key of {name}") for key in keys if type(key) not in _NUMBERS]
            items: Iterable[tuple[Any, Any]] = list(kind.items(x))
            self._waiting.append((getattr(x, "default_factory", None), f"{name}.default_factory"))
        else:
            values = list(kind.__iter__(x))
            items = () if {*map(type, values)} <= _NUMBERS else list(enumerate(values))
        self._waiting += [(value, f"{name}[{key!r:.40}]") for key, value in items if type(value) not in _NUMBERS]

    def _reach_attributes(self, x: Any, name: str) -> None:
        """Those in its `__dict__` and its slots; and its class, if that is the user's."""
        kind: Any = type(x)
        self._waiting.append((kind, kind.__qualname__))
        if (space := namespace(x)) is not None:
            self.places.setdefault(id(x), len(self.cells))
            self.cells.append(cells.of_namespace(space, kind, name))
            self._waiting += [(value, f"{name}.{key}") for key, value in [*space.items()] if type(value) not in _NUMBERS]
        if members := slots_of(kind):
            self.places.setdefault(id(x), len(self.cells))
            cell = cells.of_slots(x, members, name)
            self.cells.append(cell)
            self._waiting += [(value, part) for part, value in cell.parts(cell.look()) if value is not MISSING]


def _insist(run: Callable[[], object]) -> None:
    """Run something to its end, though an exception comes from outside: half of it would be worse than none."""
    interrupt: BaseException | None = None
    for _ in range(_MOST_INTERRUPTS):
        try:
            run()
            break
        except BaseException as error:
            interrupt = error
    if interrupt is not None:
        raise interrupt


def _thaw(arrays: Iterable[Array]) -> None:
    for x in arrays:
        np.ndarray.setflags(x, write=True)


def _can_be_frozen(x: Array) -> bool:
    """Whether an array is worth it, and NumPy lets it be written again afterwards: the memory is an array's own."""
    if x.nbytes < _LARGE or x.dtype.hasobject or not x.flags.forc or type(x) is DeviceView:
        return False
    while isinstance(x.base, np.ndarray):
        x = x.base
    return x.base is None and x.flags.owndata


def _depth(x: Array) -> int:
    """How many arrays are between this one and whose memory it is: views may be written after what they are views of."""
    count = 0
    while isinstance(x.base, np.ndarray):
        x, count = x.base, count + 1
    return count


def namespace(x: Any) -> dict[str, Any] | None:
    """An object's own attributes, if it has a place for them; a `__getattribute__` of the user's is not asked."""
    try:
        found: dict[str, Any] = object.__getattribute__(x, "__dict__")
    except AttributeError:
        return None
    return found if isinstance(found, dict) else None


_BASES = {
    *(object, int, float, complex, str, bytes, tuple, frozenset, list, dict, set, deque, bytearray, array.array),
    *(defaultdict, OrderedDict, np.ndarray, np.generic, type, types.SimpleNamespace),
}
_WRITTEN_IN_C = (types.MethodDescriptorType, types.WrapperDescriptorType, types.GetSetDescriptorType)


@by_class
def _is_known(kind: Any) -> bool:
    """Whether instances are nothing but attributes, and what is saved of the builtin classes that they are made of."""
    return all(cls in _BASES or issubclass(cls, BaseException) or _is_written_in_python(cls) for cls in kind.__mro__)


def _is_written_in_python(cls: Any) -> bool:
    own = [(key, x) for key, x in vars(cls).items() if getattr(x, "__objclass__", None) is cls]
    return bool(cls.__flags__ & (1 << 9)) and not any(
        isinstance(x, _WRITTEN_IN_C) and key not in ("__dict__", "__weakref__") for key, x in own
    )


__all__ = ["SavedState", "Unsaved", "namespace"]
