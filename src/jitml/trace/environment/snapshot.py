"""Heap snapshots: has something outside the function changed while it was traced?

`Snapshot`: what it can reach, before and after.

What the function's own code does to the outside is recorded, on copies and beside objects (`write_back.py`). A list, an object or
a global that is another one after the trace has been changed by what the conversion does not see: a special method that Python
calls, a callback of a library's, a constructor. That would happen once, and not at later calls: it is refused.

All is put back as it was, from where Python goes on. What another thread does to the same things meanwhile looks no different,
and must not be lost: while one is in the user's code, only stand-ins of the trace are taken out. Nor is anything iterated over
in Python that another thread may change: one call of C's copies it.

Reached is what is named: of objects, classes and modules those attributes that some reachable code of the user's mentions.
"""

from __future__ import annotations

import functools
import sys
from array import array
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import BuiltinFunctionType, CodeType, FrameType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from jitml.device.array import Array
from jitml.diagnostics.code_owners import is_users
from jitml.errors import Source, UnsupportedError
from jitml.interrupts import codes_of_handlers
from jitml.records import dataclass, replace
from jitml.trace.environment.arguments import Callee
from jitml.trace.record.container_contents import differ, kind_of_container
from jitml.trace.record.escape_analysis import holds_stand_in, is_stand_in
from jitml.trace.record.libraries import is_library
from jitml.trace.record.object_state import slots_of
from jitml.trace.record.pytree import Static
from jitml.trace.record.recording import home_of, is_users_class
from jitml.trace.record.references import MISSING, Attributes, Content, Items, References
from jitml.trace.record.threads import others_run
from jitml.trace.record.user_code import Instruction, frame_of, instructions
from jitml.trace.rewrite.code_names import names_and_texts
from jitml.trace.rewrite.driver_protocol import Restart
from jitml.trace.values.reachable import namespace_of

_MOST_ITEMS = 1000  # of a container, that are looked into
_MOST = 5000  # objects that are looked into
_OPEN = {"collections", "queue"}  # libraries of which all attributes are looked at
# Of a library's objects, what they call.
_PARTS: dict[type, tuple[str, ...]] = {
    MethodType: ("__func__", "__self__"), BuiltinFunctionType: ("__self__",), staticmethod: ("__func__",),
    classmethod: ("__func__",), property: ("fget", "fset", "fdel"), functools.partial: ("func", "args", "keywords"),
    functools.cached_property: ("func",), defaultdict: ("default_factory",), np.vectorize: ("pyfunc",),
    Static: ("value",), Callee: ("function",),
}  # fmt: skip
_PLAIN = {int, float, str, bool, type(None), bytes, complex, np.float64, np.int64}


@dataclass(frozen=True)
class SnapshotPart:
    """A part of the outside.

    Args:
        references: how to look at it.
        before: what was there.
        keys: what the items are called, if they have names.
    """

    name: str
    references: References
    before: tuple[Any, ...]
    keys: tuple[str, ...] = ()

    def change(self) -> str:
        """What has changed; empty if nothing has."""
        after = self.references.look()
        if not differ(self.before, after):
            return ""
        keys = (key for key, a, b in zip(self.keys, self.before, after) if a is not b)
        return ".".join(filter(None, (self.name, next(keys, ""))))


class Snapshot:
    """What a function can reach.

    Args:
        roots: the function and its arguments, with their names.
    """

    def __init__(self, roots: Iterable[tuple[Any, str]]) -> None:
        self._parts: list[SnapshotPart] = []
        self.seen: dict[int, Any] = {}  # what has been reached, by id
        self.arrays: dict[int, np.ndarray[Any, Any]] = {}
        self.names: set[str] = set()  # that code mentions
        self._owners: list[tuple[Any, Mapping[str, Any], str]] = []  # what has attributes, these, and its name
        self._waiting = [*roots]
        known: set[str] = set()
        first = 0  # of the owners that are new
        while self._waiting and len(self.seen) < _MOST:
            while self._waiting and len(self.seen) < _MOST:
                self._reach(*self._waiting.pop())
            new, known = self.names - known, set(self.names)
            for number, (_, attributes, name) in enumerate(self._owners):
                for key in attributes.keys() & (known if number >= first else new):
                    self._waiting.append((attributes.get(key), f"{name}.{key}"))
            first = len(self._owners)
        names = sorted(self.names)
        for owner, attributes, name in self._owners:
            kind: Any = type(owner)
            slots = {key: member for key, member in slots_of(kind).items() if key in self.names}
            references = Attributes(owner, attributes, tuple(names), tuple(slots.values()))
            self._keep(name, references, (*names, *slots))

    def look(self) -> list[tuple[Any, ...]]:
        """What is in each part now."""
        return [part.references.look() for part in self._parts]

    def put_back(self, now: Sequence[tuple[Any, ...]] = ()) -> None:
        """Have all as it was, or as `look` has seen it."""
        for part, held in zip(self._parts, now or [part.before for part in self._parts]):
            if differ(held, part.references.look()):
                part.references.put(held)

    def remove_left(self) -> None:
        """Leave no stand-ins of a trace behind: first those that are there themselves, then what is new and holds others."""
        for is_left in (is_stand_in, holds_stand_in):
            for part in self._parts:
                part.references.remove_left(part.before, is_left)

    def changed(self) -> SnapshotPart | None:
        """The first part that is not as it was."""
        return next((part for part in self._parts if part.change()), None)

    def _keep(self, name: str, references: References, keys: Sequence[str] = ()) -> None:
        self._parts.append(SnapshotPart(name, references, references.look(), tuple(keys)))

    def _reach(self, x: Any, name: str) -> None:
        kind: Any = type(x)
        if kind in _PLAIN or id(x) in self.seen:
            return
        if kind is Array:
            return
        if kind is np.ndarray:
            self.arrays[id(x)] = x
            return
        self.seen[id(x)] = x
        if kind is FunctionType and not is_library(x):
            self._reach_function(x)
        elif issubclass(kind, type):
            if is_users_class(x):
                self._reach_class(x)
        elif kind is ModuleType:
            if is_users(getattr(x, "__file__", None) or ""):
                self._owners.append((x, vars(x), name))
        else:
            if issubclass(kind, (list, dict, set, deque, bytearray, array)):
                self._keep(name, Items(x))
            self._waiting += [(item, f"{name}[{key!r:.40}]") for key, item in _items(x) if type(item) not in _PLAIN]
            self._waiting += [(part, name) for part in (kind, *_parts(x))]
            if home_of(kind).partition(".")[0] in _OPEN:
                self.names |= namespace_of(x).keys()
            if (attributes := namespace_of(x)) or is_users_class(kind):
                self._owners.append((x, attributes, name))

    def _reach_function(self, function: FunctionType) -> None:
        code, name = function.__code__, function.__name__
        self.names |= names_and_texts(code)
        named, space = tuple(sorted(names_and_texts(code))), function.__globals__
        self._waiting += [(space.get(key), key) for key in named]
        self._keep("", Attributes(space, space, named), named)
        for key, cell in zip(code.co_freevars, function.__closure__ or ()):
            if id(cell) not in self.seen:
                self.seen[id(cell)] = cell
                self._keep(key, content := Content(cell))
                self._waiting += [(held, key) for held in content.look() if held is not MISSING]
        self._waiting += [(function.__defaults__, f"{name}.__defaults__"), (function.__kwdefaults__, f"{name}.__kwdefaults__")]
        self._waiting.append((vars(function), name))

    def _reach_class(self, cls: type) -> None:
        """The class with its special methods, its bases and its metaclass."""
        self._owners.append((cls, vars(cls), cls.__qualname__))
        for key, member in [*vars(cls).items()]:
            if key[:2] == "__" == key[-2:] and isinstance(member, (FunctionType, staticmethod, classmethod, property)):
                self._waiting.append((member, f"{cls.__qualname__}.{key}"))
        self._waiting += [(base, base.__qualname__) for base in (*cls.__bases__, type(cls))]


@contextmanager
def unchanged(snapshot: Snapshot) -> Iterator[None]:
    """The block does nothing to the outside.

    Raises:
        Changed: it has, however it ended, unless something else than its own end has interrupted it.
    """
    try:
        yield
    except (Exception, Restart) as error:
        if part := snapshot.changed():
            raise ChangedOutside(part) from error
        raise
    if part := snapshot.changed():
        raise ChangedOutside(part)


_REMEDY = (
    "What Python or a library calls by itself (special methods, callbacks, constructors) must change nothing outside: let the "
    "function do it, or what calls it."
)


class ChangedOutside(UnsupportedError):
    """Something outside has changed, by code that is not converted."""

    leaves_changes = True

    def __init__(self, part: SnapshotPart) -> None:
        super().__init__(
            f"{part.change()} is changed by code that runs only once, while the function is traced, and not at every call",
            remedy=f"What has changed stays so. If it was another thread, or a cache that is filled now, call again. {_REMEDY}",
        )
        self.part = part

    def undone(self) -> None:
        """What has changed is as it was."""
        self.leaves_changes, self.remedy = False, _REMEDY


def undo(error: ChangedOutside, before: Snapshot, attempt: Callable[[], object]) -> None:
    """Have all as it was before something had changed, and say which line changes it, if tracing again does so again.

    It does not where the first attempt ended early, and has taught something; or where a cache has been filled, or a signal's
    handler was called: then the change stays.

    Raises:
        ChangedOutside: it does, or another thread may have done it; then it stays.
    """
    is_alone, again = not others_run(soon=True), None
    try:
        before.remove_left()
        changed = before.look()
        if is_alone:
            before.put_back()
        _find_line(error, attempt)
        again = before.changed()
    finally:  # which an exception from outside may end
        before.remove_left()
    if not is_alone:
        raise error
    if again is None and (error.__cause__ is None or _handles_signals()):
        before.put_back(changed)
        return
    before.put_back()
    error.undone()
    if again is not None:
        raise error


def _handles_signals() -> bool:
    """Whether Python calls functions of the user's for signals, at any time."""
    return any(is_users(getattr(code, "co_filename", "")) for code in codes_of_handlers() if isinstance(code, CodeType))


def _find_line(error: ChangedOutside, attempt: Callable[[], object]) -> None:
    """Say which is the first of the user's lines that changes it, found by running all over again, slowly."""
    part = error.part
    found: list[tuple[Source, tuple[Instruction, ...]]] = []
    latest: list[tuple[Source, tuple[Instruction, ...]]] = []
    now = replace(part, before=part.references.look())

    def follow(frame: FrameType, event: str, argument: Any) -> Any:
        if found or not is_users(frame.f_code.co_filename):
            return None
        if latest and now.change():
            found.append(latest[-1])
            return None
        latest[:] = [(Source(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name), instructions())]
        return follow

    outer = sys.gettrace()
    sys.settrace(follow)
    try:
        attempt()
    except BaseException as raised:
        if not isinstance(raised, (Exception, Restart)):
            raise
    finally:
        sys.settrace(outer)
    if not found and latest and now.change():  # by its last line
        found.append(latest[-1])
    for error.source, places in found:
        error.stack = tuple(frame_of(*place) for place in places)


def _items(x: Any) -> list[tuple[Any, Any]]:
    """What is in a container that is not too long, keys of dicts as well, by what they are called."""
    cls = type(x)
    if not issubclass(cls, (list, tuple, deque, set, frozenset, dict)):
        return []
    kind = kind_of_container(x)
    if kind.__len__(x) > _MOST_ITEMS:
        return []
    return [*kind.items(x), *zip(keys := [*kind.__iter__(x)], keys)] if issubclass(cls, dict) else [*enumerate(kind.__iter__(x))]


def _parts(x: Any) -> tuple[Any, ...]:
    """What a library's object calls, or holds."""
    return (*(getattr(x, name, None) for name in _PARTS.get(type(x), ())), namespace_of(x).get("__wrapped__"))


__all__ = ["ChangedOutside", "Snapshot", "unchanged", "undo"]
