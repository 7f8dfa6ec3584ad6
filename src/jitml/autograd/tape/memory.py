"""Memory on a tape: what do views, writes and remembered operands have in common?  Arrays that own memory, and places in them.

A view is a window of the memory of its base. What is written there makes the base another value; what has been remembered of it
before is copied at that moment, and not earlier.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jitml.records import dataclass

Array = np.ndarray[Any, Any]


class Remembrance:
    """What an array has been, for as long as somebody remembers it: the memory itself until that is written."""

    __slots__ = ("array",)

    def __init__(self, array: Array) -> None:
        self.array = array


class OwnMemory:
    """An array that owns its memory.

    buffer: its elements as they are.
    slot: the value on the tape that they all are now; None if nothing on it has gone into them.
    cell: remembers them as they are now.
    frozen: why it must not be written: something else stands for a part of it.
    exposed: whether NumPy knows the memory by itself, too.
    """

    __slots__ = ("buffer", "cell", "exposed", "frozen", "slot")

    def __init__(self, buffer: Array, slot: int | None) -> None:
        self.buffer, self.slot = buffer, slot
        self.cell: Remembrance | None = None
        self.frozen: str = ""
        self.exposed = False

    def remembered(self) -> Remembrance:
        """Remember what is here now."""
        if self.exposed:  # it may be written by whoever has it
            return Remembrance(self.buffer.copy(order="K"))
        if self.cell is None:
            self.cell = Remembrance(self.buffer)
        return self.cell

    def before_write(self) -> None:
        """Nobody who remembers it shall see what is written now."""
        if self.cell is not None:
            self.cell.array = self.buffer.copy(order="K")
            self.cell = None


@dataclass(frozen=True, slots=True)
class MemoryWindow:
    """A view's place in the memory of its base."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    offset: int
    strides: tuple[int, ...]

    def of(self, array: Array) -> Array:
        """The same view of another array, laid out as the base is."""
        memory = array if array.flags.c_contiguous else array.T
        return np.ndarray(self.shape, self.dtype, memory, self.offset, self.strides)


def window_of(view: Array, base: Array) -> MemoryWindow:
    offset = view.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    return MemoryWindow(view.shape, view.dtype, offset, view.strides)


def meets_itself(view: Array) -> bool:
    """Whether one element may stand in several places of a view."""
    reach = view.itemsize
    for stride, n in sorted((abs(s), n) for s, n in zip(view.strides, view.shape) if n > 1):
        if stride < reach:
            return True
        reach = stride * (n - 1) + reach
    return False


def owned(array: Array) -> Array:
    """An array that owns its memory, in one of the orders that windows know."""
    if array.base is None and (array.flags.c_contiguous or array.flags.f_contiguous) and array.flags.writeable:
        return array
    return array.copy(order="F" if array.flags.f_contiguous else "C")


@dataclass(frozen=True, slots=True)
class MemoryPlace:
    """Elements of an array: of all of it, or of a window, those of an index."""

    window: MemoryWindow | None
    index: Any  # as NumPy takes it; None: everything there
    picks: bool  # whether the index takes elements by arrays of numbers, one of which may come twice

    def within(self, array: Any) -> Any:
        """The window, of an array or of one that is on a tape."""
        return (
            array
            if self.window is None
            else array.__window__(self.window)
            if hasattr(array, "__window__")
            else self.window.of(array)
        )

    def take(self, array: Any) -> Any:
        """A copy of the elements."""
        there = self.within(array)
        if self.index is None:
            return there.copy()
        found = there[self.index]
        return found.copy() if isinstance(found, np.ndarray) else found

    def put(self, array: Any, values: Any) -> None:
        self.within(array)[... if self.index is None else self.index] = values

    def add(self, array: Any, values: Any) -> None:
        there = self.within(array)
        if self.picks:
            np.add.at(there, self.index, values)
        elif self.index is None:
            np.add(there, values, out=there)
        else:
            there[self.index] += values

    def last_written(self, shape: tuple[int, ...]) -> Array | None:
        """Where elements that are put here stay: the last wins that goes to one place. None: everywhere."""
        if not self.picks:
            return None
        marks = np.zeros(self.window.shape if self.window is not None else shape, np.intp)
        target = marks[self.index]
        order = np.arange(1, target.size + 1).reshape(target.shape)
        marks[self.index] = order
        kept: Array = marks[self.index] == order
        return kept
