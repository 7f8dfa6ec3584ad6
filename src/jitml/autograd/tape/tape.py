"""The tape: what has happened, in the order of time.

Each entry says which values went into an operation and which came out. Values are numbers, *slots*; a slot stands for one array
or number that never changes. Sweeps (`sweeps.py`) go through the entries backwards, with cotangents, or forwards, with tangents.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import count
from typing import Any
from weakref import ref

import numpy as np

from jitml.autograd.tape.memory import MemoryPlace, MemoryWindow, Remembrance
from jitml.autograd.tape.rules import LocalRule, NoRule
from jitml.diagnostics.code_owners import is_users
from jitml.errors import DerivativeError, Source
from jitml.functions import look_away, see_calls
from jitml.interrupts import unset
from jitml.records import dataclass, field

Slot = int | None
_SMALL = 1 << 12  # bytes that are copied sooner than compared


@dataclass(frozen=True, slots=True)
class SlotKind:
    """What a slot is: a number has no shape. `transposed`: memory in the order of columns."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    is_array: bool
    transposed: bool = False

    def zeros(self) -> Any:
        if not self.is_array:
            return self.dtype.type(0)
        return np.zeros(self.shape, self.dtype, order="F" if self.transposed else "C")


@dataclass(frozen=True, slots=True, eq=False)
class Operation:
    """What NumPy has computed.

    inputs: a slot for each input of the rule's graph. outputs: likewise; None of those that are known otherwise.
    saved: the inputs, then the results, as far as the derivative reads them.
    place: the frame's code and instruction, for messages.
    """

    rule: LocalRule | NoRule
    inputs: Sequence[Slot]
    saved: Sequence[Any]
    outputs: Sequence[Slot]
    name: str
    place: tuple[Any, int]


@dataclass(frozen=True, slots=True, eq=False)
class Taking:
    """A part of an array, taken out; `place` None: all of it, or a number."""

    place: MemoryPlace | None
    source: int
    output: int


@dataclass(frozen=True, slots=True, eq=False)
class Replacement:
    """A part of an array is replaced: what it was before, what has been put there. `adds`: 1 or -1 where it is added."""

    place: MemoryPlace
    before: Slot
    value: Slot
    output: int
    adds: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class RuledEntry:
    """What a function with a rule of the user's has computed.

    pull, push: (cotangents of the outputs, whether it is recorded) -> those of the inputs; tangents likewise. None is zero.
    """

    inputs: Sequence[Slot]
    outputs: Sequence[Slot]
    pull: Callable[[Sequence[Any], bool], Sequence[Any]]
    push: Callable[[Sequence[Any], bool], Sequence[Any]]


Entry = Operation | Taking | Replacement | RuledEntry


def inputs_of(entry: Entry) -> Sequence[Slot]:
    """The values that an entry reads."""
    if isinstance(entry, Taking):
        return (entry.source,)
    return (entry.before, entry.value) if isinstance(entry, Replacement) else entry.inputs


class RememberedView:
    """A part of memory that is remembered."""

    __slots__ = ("cell", "window")

    def __init__(self, cell: Remembrance, window: MemoryWindow) -> None:
        self.cell, self.window = cell, window


def recalled(saved: Any) -> Any:
    """What has been remembered."""
    kind = type(saved)
    if kind is Remembrance:
        return saved.array
    if kind is RememberedView:
        return saved.window.of(saved.cell.array)
    return saved


@dataclass(eq=False)
class Tape:
    """What one call of a transform has recorded; transforms inside it record on the same one.

    values: those that are on it, and still alive.
    keeps_all: whether operands are kept that the reverse sweep does not read.
    depth: how many transforms are under way.
    """

    entries: list[Entry] = field(default_factory=list)
    kinds: dict[int, SlotKind] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=count)
    values: list[ref[Any]] = field(default_factory=list)
    keeps_all: bool = False
    depth: int = 0
    given: dict[int, tuple[Any, Any]] = field(default_factory=dict)  # arrays from outside, and what they were, by id
    met: dict[int, Any] = field(default_factory=dict)  # arrays from outside that something differentiated has met, by id
    changed: list[Any] = field(default_factory=list)  # containers that may hold values
    refusal: DerivativeError | None = None  # what has been refused: whoever handles it goes on as the function never does

    def new(self, kind: SlotKind) -> int:
        number = next(self.numbers)  # the function may have threads of its own
        self.kinds[number] = kind
        return number

    def remembered(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """What an array from outside is now: its owner may write it at any time."""
        if array.nbytes <= _SMALL:
            return array.copy()
        known = self.given.get(id(array))
        if known is not None and _is_same(known[1], array):
            copy: np.ndarray[Any, Any] = known[1]
            return copy
        copy = array.copy()
        self.given[id(array)] = array, copy
        return copy


def _is_same(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> bool:
    """Bit by bit."""
    if x.shape != y.shape or x.dtype != y.dtype:
        return False
    if not (x.flags.c_contiguous and y.flags.c_contiguous):
        return x.tobytes() == y.tobytes()
    word = next(n for n in (8, 4, 2, 1) if x.nbytes % n == 0)
    return bool((x.reshape(-1).view(f"u{word}") == y.reshape(-1).view(f"u{word}")).all())


_current: ContextVar[Tape | None] = ContextVar("jitml_tape", default=None)


def current_tape() -> Tape | None:
    return _current.get()


@contextmanager
def taping() -> Iterator[Tape]:
    """The tape of this call: the one that a call around it has begun, or a new one."""
    tape = _current.get()
    if tape is None:
        tape = Tape()
    token = _current.set(tape)
    tape.depth += 1
    try:
        see_calls(tape)
        yield tape
    finally:
        unset(_current, token)
        tape.depth -= 1
        if not tape.depth:
            look_away(tape)


def users_place() -> tuple[Any, int]:
    """The innermost frame of the user's: its code, and where it is."""
    frame = sys._getframe(2)
    while frame.f_back is not None and not is_users(frame.f_code.co_filename):
        frame = frame.f_back
    return frame.f_code, frame.f_lasti


def source_of(place: tuple[Any, int]) -> Source | None:
    code, instruction = place
    for n, (line, *_) in enumerate(code.co_positions()):
        if n * 2 == instruction and line is not None:
            return Source(code.co_filename, line, code.co_name)
    return Source(code.co_filename, code.co_firstlineno, code.co_name)
