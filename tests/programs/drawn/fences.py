"""Who touches memory beside an array crashes: arrays that end, or begin, at a page which nobody may read or write."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Sequence
from typing import Any

import numpy as np

from jitml.trace.record.object_state import parts_of

Array = np.ndarray[Any, Any]
_PAGE = mmap.PAGESIZE
_NO_ACCESS = 0


def fenced(arguments: Sequence[Any], others: Sequence[Any] = (), *, behind: bool) -> tuple[Any, ...]:
    """The arguments, with every array and all its views moved to memory beside such a page; what is one object stays one.

    Args:
        others: objects of the program; memory that they are or hold, or that arguments of other kinds do, stays where it is.
        behind: the page lies behind the array, else in front of it.
    """
    moved: dict[int, Array] = {}
    holders = [*(x for x in arguments if type(x) is not np.ndarray), *others]
    held = {id(_owner(x)) for x in parts_of(holders, lambda f: (f.__closure__, f.__defaults__)) if isinstance(x, np.ndarray)}
    copies = {id(x): _move(x, moved, behind) for x in arguments if type(x) is np.ndarray and id(_owner(x)) not in held}
    return tuple(copies.get(id(x), x) for x in arguments)


def _owner(x: Array) -> Array:
    base: Any = x
    while isinstance(base.base, np.ndarray):
        base = base.base
    return base


def _move(x: Array, moved: dict[int, Array], behind: bool) -> Array:
    base = _owner(x)
    if not base.nbytes or base.dtype.hasobject:
        return x
    low, high = np.lib.array_utils.byte_bounds(base)
    if id(base) not in moved:
        moved[id(base)] = _allocate(base.dtype, (high - low) // base.itemsize, behind)
        ctypes.memmove(moved[id(base)].ctypes.data, low, high - low)
    copy = np.ndarray(x.shape, x.dtype, moved[id(base)], x.ctypes.data - low, x.strides)
    copy.flags.writeable = x.flags.writeable
    return copy


def _allocate(dtype: np.dtype[Any], count: int, behind: bool) -> Array:
    """An array with a page that is out of bounds on one side."""
    size = count * dtype.itemsize
    pages = -(-size // _PAGE) * _PAGE
    memory = mmap.mmap(-1, pages + _PAGE)
    start = np.frombuffer(memory, np.uint8).ctypes.data
    fence = start + pages if behind else start
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mprotect(ctypes.c_void_p(fence), ctypes.c_size_t(_PAGE), _NO_ACCESS):
        raise OSError(ctypes.get_errno(), "mprotect")
    return np.frombuffer(memory, dtype, count, pages - size if behind else _PAGE)
