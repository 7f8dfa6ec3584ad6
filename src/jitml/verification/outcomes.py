"""Outcome comparison: do two calls agree in results, exceptions, memory that is shared, and all that they have changed?

Both have run on the same objects. What was there before is looked up as each has left it; what is new belongs to one of them.
"""

from __future__ import annotations

import array
import types
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from jitml.device.array import Array as OnDevice
from jitml.device.view import DeviceView, fetch
from jitml.imports.late import late_class
from jitml.records import dataclass
from jitml.trace.record.container_contents import kind_of_container
from jitml.trace.record.object_state import slots_of
from jitml.trace.record.references import MISSING
from jitml.verification.blockwise_comparison import same_bits
from jitml.verification.cells import is_found_out
from jitml.verification.rounding import Close
from jitml.verification.saved_state import SavedState, namespace

Array = np.ndarray[Any, Any]
_GENERATOR = late_class("numpy.random", "Generator")
_MOST_PAIRS = 20_000  # of arrays, of which it is asked whether they share memory
_LONGEST = 120  # characters of a value in a message


@dataclass(frozen=True, slots=True, eq=False)
class CallOutcome:
    """What a call has done.

    Args:
        error: what it has raised.
        result: what it has returned.
        now: what has changed, as `SavedState.changes` tells.
    """

    error: Exception | None
    result: Any
    now: Mapping[int, Any]


@dataclass(frozen=True, slots=True)
class Difference:
    """A place where outcomes differ, with what is there.

    Args:
        gap: how far numbers are apart, as a share of the largest one; infinite for anything else.
        element: of an array, the one that is furthest off.
    """

    where: str
    got: str
    expected: str
    gap: float = np.inf
    element: str = ""

    def __str__(self) -> str:
        return f"{self.where}{self.element} is {self.got}, NumPy gives {self.expected}"


def differences(
    got: CallOutcome,
    expected: CallOutcome,
    state: SavedState,
    close: Close,
    *,
    by_host: bool = False,
    alike: set[int] | None = None,
) -> list[Difference]:
    """Where an outcome is not as expected.

    What docs/mutation.md says of memory is no difference: arrays in lists may be copies, and so may results of host calls.

    Args:
        state: what was there before both.
        close: whether inexact arrays of one shape and dtype agree; all others must be equal.
        by_host: the program calls NumPy.
        alike: where the numbers of cells are put whose arrays both have left with the same bits.
    """
    if (got.error is None) != (expected.error is None) or not isinstance(got.error, type(expected.error)):
        raised = ["no exception" if x.error is None else repr(x.error) for x in (got, expected)]
        return [Difference("what it raises", raised[0], raised[1])]
    comparison = _Comparison(got, expected, state, close)
    found = list(comparison.compare(got.result, expected.result, "the result"))
    for n in sorted({*got.now, *expected.now}):
        mine, theirs = (dict(state.cells[n].parts(x.now.get(n, state.held[n]))) for x in (got, expected))
        known = {name for name, _ in state.cells[n].parts(state.held[n])}
        for name in dict.fromkeys((*mine, *theirs)):
            if (name in mine) != (name in theirs) and name not in known and is_found_out(name, state.cells[n].kind):
                continue
            is_content = state.cells[n].show is not None  # of an array that was there before
            comparison.are_same = False
            found += comparison.compare(mine.get(name, MISSING), theirs.get(name, MISSING), name, is_content)
            if alike is not None and comparison.are_same and is_content and _has_no_parts(theirs.get(name)):
                alike.add(n)
    return found or ([] if by_host else list(comparison.sharing()))


class _Comparison:
    def __init__(self, got: CallOutcome, expected: CallOutcome, state: SavedState, close: Close) -> None:
        self.got, self.expected, self.state, self.close = got, expected, state, close
        self.seen: dict[tuple[int, int], tuple[Any, Any]] = {}
        self.arrays: list[tuple[Array, Array, str]] = []
        self.are_same = False  # whether the last numbers had the same bits in both

    def compare(self, a: Any, b: Any, where: str, in_list: bool = False) -> Iterator[Difference]:
        if a is MISSING or b is MISSING:
            if a is not b:
                yield Difference(where, "missing" if a is MISSING else told(a), "nothing" if b is MISSING else told(b))
            return
        a, b = _shown(a, b)
        if type(a) is not type(b):
            yield Difference(where, f"{type(a).__name__} {told(a)}", f"{type(b).__name__} {told(b)}")
            return
        if isinstance(b, np.ndarray):
            yield from self._compare_arrays(a, b, where, in_list)
            return
        if a is b or (id(a), id(b)) in self.seen:
            return
        if isinstance(b, (float, complex, np.inexact)):
            yield from self._numbers(np.asarray(a), np.asarray(b), where)
            return
        self.seen[id(a), id(b)] = a, b  # alive, so that nothing else gets their addresses
        if id(a) in self.state.places or id(b) in self.state.places:
            texts = ("another object", "the one that was there before")
            yield Difference(where, *(texts if id(b) in self.state.places else texts[::-1]))
        else:
            yield from self._compare_items(a, b, where)

    def _compare_items(self, a: Any, b: Any, where: str) -> Iterator[Difference]:
        if isinstance(b, dict):
            yield from self._compare_dicts(a, b, where)
        elif isinstance(b, (tuple, list, deque)):
            kind = kind_of_container(b)
            mine, theirs = list(kind.__iter__(a)), list(kind.__iter__(b))
            if len(mine) != len(theirs):
                yield Difference(where, f"{len(mine)} items", f"{len(theirs)}")
                return
            for n, pair in enumerate(zip(mine, theirs)):
                yield from self.compare(*pair, f"{where}[{n}]", not isinstance(b, tuple))
        elif isinstance(b, (set, frozenset)):
            yield from self._sets(a, b, where)
        elif isinstance(b, types.MethodType):
            yield from self.compare(a.__self__, b.__self__, f"{where}.__self__")
            return
        elif isinstance(b, types.FunctionType):
            yield from self._functions(a, b, where)
            return
        elif isinstance(b, (_GENERATOR, BaseException)):
            return
        elif isinstance(b, (int, str, bytes, np.generic, bytearray, array.array, range, slice, np.dtype)):
            if not (a == b or (isinstance(b, (np.datetime64, np.timedelta64)) and np.isnat(a) and np.isnat(b))):
                yield Difference(where, told(a), told(b))
        yield from self._attributes(a, b, where)

    def _functions(self, a: types.FunctionType, b: types.FunctionType, where: str) -> Iterator[Difference]:
        """Functions that the calls have made: their code, and what is in their cells."""
        if a.__code__ != b.__code__:
            yield Difference(where, told(a), told(b))
            return
        for name, *both in zip(b.__code__.co_freevars, a.__closure__ or (), b.__closure__ or ()):
            mine, theirs = (cell.cell_contents if cell != types.CellType() else MISSING for cell in both)
            yield from self.compare(mine, theirs, f"{name} of {where}")

    def _attributes(self, a: Any, b: Any, where: str) -> Iterator[Difference]:
        mine, theirs = (_attributes_of(x) for x in (a, b))
        for name in dict.fromkeys((*mine, *theirs)):
            if (name in mine) != (name in theirs) and is_found_out(name, type(b)):
                continue
            yield from self.compare(mine.get(name, MISSING), theirs.get(name, MISSING), f"{where}.{name}")

    def _compare_dicts(self, a: Any, b: Any, where: str) -> Iterator[Difference]:
        mine, theirs = (list(kind_of_container(x).items(x)) for x in (a, b))  # in an OrderedDict's own order
        if len(mine) != len(theirs):
            yield Difference(where, f"a dict of {len(mine)} items", f"{len(theirs)}")
            return
        for (key, value), (other_key, other) in zip(mine, theirs):
            yield from self.compare(key, other_key, f"a key of {where}")
            yield from self.compare(value, other, f"{where}[{key!r:.40}]")

    def _sets(self, a: Any, b: Any, where: str) -> Iterator[Difference]:
        if len(a) != len(b):
            yield Difference(where, told(a), told(b))
        elif a != b:
            kinds = {*map(type, (*a, *b))}
            if all(issubclass(kind, (int, float, np.integer, np.floating)) for kind in kinds):
                yield from self._numbers(np.asarray(sorted(a)), np.asarray(sorted(b)), where)

    def _compare_arrays(self, a: Array, b: Array, where: str, in_list: bool) -> Iterator[Difference]:
        if not in_list:
            if a is not b and id(b) in self.state.places and id(a) not in self.state.places and b.size:
                yield Difference(where, "another array", "the one that was there before")
                return
            self.arrays.append((a, b, where))
        native = [x.dtype if x.dtype.names else x.dtype.newbyteorder("=") for x in (a, b)]
        if native[0] != native[1]:
            yield Difference(where, f"of dtype {a.dtype}", f"{b.dtype}")
        elif a.shape != b.shape:
            yield Difference(where, f"of shape {a.shape}", f"{b.shape}")
        elif a is not b:
            mine, theirs = self._values(a, self.got), self._values(b, self.expected)
            yield from self._compare_elements(mine.astype(native[0], copy=False), theirs.astype(native[1], copy=False), where)
            if type(b) not in (np.ndarray, DeviceView):
                yield from self._attributes(a, b, where)

    def _values(self, x: Array, outcome: CallOutcome) -> Array:
        """What an array held when the call was over."""
        place = self.state.places.get(id(x))
        if place is not None:
            return np.asarray(outcome.now.get(place, self.state.held[place]))
        return fetch(x) if type(x) is DeviceView else x.view(np.ndarray)

    def _compare_elements(self, a: Array, b: Array, where: str) -> Iterator[Difference]:
        if b.dtype.kind == "O":
            for n, pair in enumerate(zip(a.flat, b.flat)):
                yield from self.compare(*pair, f"{where}.flat[{n}]")
        elif b.dtype.names is not None:
            for name in b.dtype.names:
                yield from self._compare_elements(a[name], b[name], f"{where}[{name!r}]")
        else:
            yield from self._numbers(a, b, where)

    def _numbers(self, a: Array, b: Array, where: str) -> Iterator[Difference]:
        """Arrays of one dtype and shape, of anything without parts."""
        if a.shape != b.shape:
            yield Difference(where, told(a), told(b))
            return
        self.are_same = same_bits(a, b)
        if self.are_same:
            return
        is_inexact = b.dtype.kind in "fc"
        with np.errstate(all="ignore"):
            if self.state.mentions("partition", "argpartition"):  # which leave the order open
                a, b = np.sort(a, axis=None), np.sort(b, axis=None)
            if self.close(a, b) if is_inexact else np.array_equal(a, b, equal_nan=b.dtype.kind in "mM"):
                return
            yield _difference_of(a, b, where, is_inexact)

    def sharing(self) -> Iterator[Difference]:
        """Where arrays of the two outcomes share memory otherwise, or may not be written alike."""
        old = self.state.arrays
        if len(self.arrays) * (len(old) + len(self.arrays)) > _MOST_PAIRS:
            return
        for n, (a, b, where) in enumerate(self.arrays):
            if a is b:
                continue
            for c, d, other in self.arrays[:n]:
                if shares(a, c) != shares(b, d):
                    yield _difference_of_memory(where, other, shares(b, d))
            for x in old:
                if shares(a, x) != shares(b, x):
                    yield _difference_of_memory(where, self.state.name_of(x), shares(b, x))
            if a.flags.writeable != b.flags.writeable and not any(shares(b, x) for x in self.state.constants.values()):
                yield Difference(where, *(("writeable", "read-only") if a.flags.writeable else ("read-only", "writeable")))


def _shown(a: Any, b: Any) -> tuple[Any, Any]:
    """Arrays on a device as their memory. What a program makes there the plain function may make on the host."""
    kinds = {type(a), type(b)}
    if OnDevice not in kinds:
        return a, b
    if kinds == {OnDevice}:
        return a._view, b._view
    if kinds & {np.ndarray} or any(issubclass(kind, np.generic) for kind in kinds):
        a, b = (np.asarray(x) for x in (a, b))
    return a, b


def _has_no_parts(x: Any) -> bool:
    return isinstance(x, np.ndarray) and x.dtype.names is None and not x.dtype.hasobject


def _attributes_of(x: Any) -> dict[str, Any]:
    found = dict(namespace(x) or {})
    kind: Any = type(x)
    for name, member in slots_of(kind).items():
        try:
            found[name] = member.__get__(x)
        except AttributeError:
            continue
    return found


def _difference_of_memory(where: str, other: str, is_shared: bool) -> Difference:
    texts = (f"memory of its own, apart from {other}", f"memory that it shares with {other}")
    return Difference(where, *(texts if is_shared else texts[::-1]))


def _difference_of(a: Array, b: Array, where: str, is_inexact: bool) -> Difference:
    """Names the element that is furthest off."""
    if not b.ndim:
        return Difference(where, told(a[()]), told(b[()]), _gap(a, b) if is_inexact else np.inf)
    apart = a != b
    if is_inexact:
        off = np.abs(a - b)
        off[~np.isfinite(off)] = np.inf
        off[(a == b) | (np.isnan(a) & np.isnan(b))] = 0
        apart = off == off.max()
    place = tuple(int(i[0]) for i in np.nonzero(apart))
    gap = _gap(a, b) if is_inexact else np.inf
    return Difference(where, told(a[place]), told(b[place]), gap, f"[{', '.join(map(str, place))}]")


def _gap(a: Array, b: Array) -> float:
    finite = np.isfinite(a) & np.isfinite(b)
    if bool(np.any(~finite & ~((a == b) | (np.isnan(a) & np.isnan(b))))):
        return np.inf
    scale = float(np.abs(b[finite]).max(initial=0.0))
    off = float(np.abs(a[finite] - b[finite]).max(initial=0.0))
    return off / scale if scale else np.inf


def shares(a: Array, b: Array) -> bool:
    if not np.may_share_memory(a, b):
        return False
    try:
        return bool(np.shares_memory(a, b, max_work=1_000_000))  # type: ignore[arg-type]  # any number will do
    except np.exceptions.TooHardError:
        return True


def told(x: Any) -> str:
    """A value in a message."""
    try:
        text = repr(x)
    except Exception as error:
        return f"a {type(x).__name__}, whose repr raises {type(error).__name__}"
    return text if len(text) <= _LONGEST and "\n" not in text else f"{' '.join(text.split())[:_LONGEST]}..."
