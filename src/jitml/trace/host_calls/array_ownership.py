"""Ownership: which arrays in what a library has just given are nobody else's?  They are new at each call, as what holds them is.

A call that runs while the function is traced (`h = scipy.linalg.hilbert(3)`) gives arrays once. What the function writes into
one, or returns, is an array of its own in each call, unless the library, or the user, holds it as well.
"""

from __future__ import annotations

import sys
from typing import Any, cast

import numpy as np

from jitml.ir.types import is_supported
from jitml.trace.record.recording import active_trace, is_users_class
from jitml.trace.storage.storage import Storage
from jitml.trace.values.boxing import LiftedArrays, TracedArray, lift, read

_MOST = 1000  # parts of a result that are looked at


def references(box: list[Any]) -> int:
    """How often what alone is in a list is held."""
    return sys.getrefcount(box[0])


ALONE = references([object()])


def own_arrays(box: list[Any], *, is_new: bool = False) -> None:
    """Note arrays in what alone is in a list: those that only it holds.

    Args:
        is_new: whether that is new, whoever else has it by now.
    """
    waiting, extra, seen = [box], 0, 0
    while waiting and seen < _MOST:
        found = waiting.pop()
        seen += 1
        if is_new or references(found) <= ALONE + extra:
            if type(found[0]) is np.ndarray:
                _lift_own_array(found[0])
            else:
                waiting += _parts(found[0])
        is_new, extra = False, 1  # what holds it


def with_lifted_items(x: tuple[Any, ...]) -> tuple[Any, ...]:
    """A tuple of a library's in which arrays are what the function sees where it unpacks it."""
    items = [lift(item) if type(item) is np.ndarray and _is_compiled(item) else item for item in x]
    if type(x) is not tuple and not hasattr(x, "_make"):
        return x
    return x if all(a is b for a, b in zip(items, x)) else cast(Any, x)._make(items) if hasattr(x, "_make") else tuple(items)


def _is_compiled(array: np.ndarray[Any, Any]) -> bool:
    return is_supported(array.dtype.newbyteorder("="))


def _parts(x: Any) -> list[list[Any]]:
    """What a container, or an object of the user's, holds, each in a list of its own."""
    if isinstance(x, dict):
        return [[x[key]] for key in list(dict.keys(x))]
    if isinstance(x, (list, tuple)):
        return [[x[n]] for n in range(len(x))]
    if is_users_class(type(x)):
        try:
            space = object.__getattribute__(x, "__dict__")
        except AttributeError:
            return []
        return [[space[name]] for name in list(space)]
    return []


def _owner_of_memory(array: np.ndarray[Any, Any]) -> Any:
    """What has lent an array its memory, that is no array itself; None of NumPy's own memory."""
    while type(array.base) is np.ndarray:
        array = array.base
    return array.base


def _lift_own_array(array: np.ndarray[Any, Any]) -> None:
    root = active_trace().root
    if id(array) in root.call[LiftedArrays].known or not array.flags.writeable or not _is_compiled(array):
        return
    base = [array.base]
    is_known = _owner_of_memory(array) is None  # else nobody can tell who holds it: it is not written
    if is_known and base[0] is not None and (base[0].base is not None or references(base) > ALONE + 1):
        return
    found = lift(array)
    storage = Storage(active_trace(), read(found), strides=found.layout)
    storage.of_object = not is_known
    root.call[LiftedArrays].known[id(array)] = TracedArray(storage, (), found.aval, found.layout, is_known)
