"""A call's memory on a device: a block that is laid out for it, and what the host has put there.

The head is written by one copy. What the last call has left there is remembered: numbers that are the same again are not copied.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from jitml.codegen.cuda.runtime.device import Device, DeviceArgument
from jitml.codegen.cuda.runtime.layout import CallLayout

Array = np.ndarray[Any, Any]


class CallMemory:
    """A block of the device's memory, laid out for a call. One call at a time uses it."""

    __slots__ = ("_cells", "_head", "_is_there", "address", "layout")

    def __init__(self, layout: CallLayout, address: int) -> None:
        self.layout, self.address = layout, address
        self._head = bytearray(layout.head)
        self._cells: dict[int, Array] = {}  # of numbers in the head, by their inputs
        self._is_there = False  # whether the device has what the head holds here

    def at(self, offset: int | None) -> int:
        assert offset is not None
        return self.address + offset

    def copy_in(self, device: Device, given: Sequence[Any], dtypes: Sequence[Any]) -> list[int]:
        """Where the first elements of inputs are, after what the host has was copied in.

        Args:
            given: a `DeviceArgument`, an array or a number each.
        """
        layout, found = self.layout, list[int]()
        before = bytes(self._head)
        for n, x in enumerate(given):
            if type(x) is DeviceArgument:
                found.append(x.address)
                continue
            place = layout.inputs[n]
            lowest = self.at(place)
            if type(x) is not np.ndarray:
                self._cell(n, dtypes[n])[()] = x
            elif x.size:
                lowest_of_array, span = lowest, span_of(x)
                if n in layout.in_head:
                    assert place is not None
                    self._head[place : place + span.size] = span.tobytes()
                else:
                    device.copy_in(lowest_of_array, span)
                lowest += reach(x, x.dtype)[0]
            found.append(lowest)
        if layout.head and not (self._is_there and self._head == before):
            self._is_there = False
            device.copy_in(self.address, np.frombuffer(self._head, np.uint8))
            self._is_there = True
        return found

    def changed(self) -> None:
        """The device may have written to the head."""
        self._is_there = False

    def _cell(self, n: int, dtype: Any) -> Array:
        if n not in self._cells:
            self._cells[n] = np.frombuffer(self._head, dtype, 1, self.layout.inputs[n] or 0).reshape(())
        return self._cells[n]


def reach(x: Any, dtype: Any) -> tuple[int, int]:
    """How many bytes of an array lie before its first element, and how many from there on, up to the end of its last one.

    Args:
        x: a `DeviceArgument`, an array or a number, of this dtype.

    >>> reach(np.zeros((3, 4))[::-1], np.float64)
    (64, 32)
    """
    shape = getattr(x, "shape", ())
    if 0 in shape:
        return 0, 0
    strides = getattr(x, "strides", ())
    if strides is None:
        return 0, prod(shape) * dtype.itemsize
    before, behind = 0, np.dtype(dtype).itemsize
    for n, step in zip(shape, strides, strict=True):
        if step < 0:
            before -= (n - 1) * step
        else:
            behind += (n - 1) * step
    return before, behind


def span_of(x: Array) -> Array:
    """The bytes of an array from its lowest element to its highest, what lies between them included."""
    if x.flags.c_contiguous:
        return x.reshape(-1).view(np.uint8)
    before, behind = reach(x, x.dtype)
    memory = np.ctypeslib.as_array((ctypes.c_uint8 * (before + behind)).from_address(x.ctypes.data - before))
    return memory
