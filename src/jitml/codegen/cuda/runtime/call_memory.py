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
                lowest += first_byte(x)
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


def extent_at(address: int, x: Any, dtype: Any) -> tuple[int, int]:
    """Where the bytes of an array begin and end, from its lowest element to its highest; its first one is at the address.

    Args:
        x: a `DeviceArgument`, an array or a number, of this dtype.

    >>> extent_at(1000, np.zeros((3, 4))[::-1], np.float64)
    (936, 1032)
    """
    shape = getattr(x, "shape", ())
    if 0 in shape:
        return address, address
    strides = getattr(x, "strides", ())
    if strides is None:
        return address, address + prod(shape) * dtype.itemsize
    moves = [(n - 1) * step for n, step in zip(shape, strides, strict=True)]
    return address + sum(m for m in moves if m < 0), address + sum(m for m in moves if m > 0) + np.dtype(dtype).itemsize


def span_of(x: Array) -> Array:
    """The bytes of an array from its lowest element to its highest, what lies between them included."""
    if x.flags.c_contiguous:
        return x.reshape(-1).view(np.uint8)
    size = span_bytes(x)
    start = x.ctypes.data - first_byte(x)
    memory = np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(start))
    return memory


def span_bytes(x: Array) -> int:
    if not x.size:
        return 0
    return x.itemsize + sum((n - 1) * abs(step) for n, step in zip(x.shape, x.strides))


def first_byte(x: Array) -> int:
    """Where the first element is, from the lowest one on."""
    return sum((n - 1) * -step for n, step in zip(x.shape, x.strides) if step < 0) if x.size else 0
