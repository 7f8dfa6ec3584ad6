"""Output arguments of host calls: what becomes of `out=`, `output=`, `overwrite_a=True`, and of other arrays that are written?

`WritingCall` calls the function on copies, and gives, behind its result, what those of them hold that it has written. The trace
stores that where the arguments lie. Which they are, the first call shows; a later one that writes others is left to NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from jitml.errors import FailedCheck
from jitml.trace.record.pytree import flatten, unflatten
from jitml.trace.record.user_code import Call, caller
from jitml.trace.values.boxing import TracedArray
from jitml.trace.values.kinds import same as are_same

Array = np.ndarray[Any, Any]
_OUTPUTS = ("out", "output")


def says_that_it_writes(kwargs: Mapping[str, Any]) -> bool:
    """Whether keywords ask a function to write into arguments."""
    is_given = any(type(kwargs.get(name)) in (TracedArray, np.ndarray, tuple) for name in _OUTPUTS)
    return is_given or any(name.startswith("overwrite_") and kwargs[name] is not False for name in kwargs)


def may_be_stored(leaves: Sequence[Any]) -> bool:
    """Whether no two of the arrays are parts of one, unless they are the same, and all may be written."""
    arrays = [x for x in leaves if type(x) is TracedArray]
    return len({x.storage for x in arrays}) == len({*_firsts(arrays)}) and all(x.writeable for x in arrays)


def is_very(x: Array, y: Array) -> bool:
    """Whether two arrays are one, and not only parts of one."""
    x_lies, y_lies = (a.__array_interface__["data"][0] for a in (x, y))
    return bool(x.size) and x_lies == y_lies and (x.shape, x.strides, x.dtype) == (y.shape, y.strides, y.dtype)


def _firsts(arrays: Sequence[Any]) -> tuple[int, ...]:
    """For each array the first one that is the same."""
    return tuple(next(k for k, y in enumerate(arrays) if are_same(x, y)) for x in arrays)


class WritingCall:
    """A host function of `(args, kwargs)` that writes into arrays among them, or returns one.

    Args:
        leaves: what is in these, traced.
    """

    def __init__(self, function: Callable[..., Any], name: str, leaves: Sequence[Any]) -> None:
        self.function = function
        self.__module__, self.__name__ = "", name
        self.call: Call = caller()
        self.firsts = _firsts([x for x in leaves if type(x) in (TracedArray, np.ndarray)])
        self.places: list[int] | None = None  # of the arrays that are written
        self.same: dict[int, int] = {}  # leaves of the result that are such an array itself

    def __call__(self, args: Any, kwargs: Any) -> Any:
        leaves, spec = flatten((args, kwargs))
        given = [x for x in leaves if type(x) is np.ndarray]
        copies = [x.copy(order="K") for x in given]
        arrays = [copies[n] for n in self.firsts]
        rest = iter(arrays)
        args, kwargs = unflatten(spec, [next(rest) if type(x) is np.ndarray else x for x in leaves])
        result, form = flatten(self.call(self.function, args, kwargs))
        changed = {n for n in self.firsts if given[n].tobytes() != arrays[n].tobytes()}
        same = {k: n for k, x in enumerate(result) for n in self.firsts if type(x) is np.ndarray and is_very(x, arrays[n])}
        if self.places is None:
            outputs = [id(x) for name in _OUTPUTS for x in flatten(kwargs.get(name))[0]]
            self.places, self.same = sorted(changed.union(n for n in self.firsts if id(arrays[n]) in outputs)), same
        if not changed.issubset(self.places) or same != self.same:
            raise FailedCheck(f"{self.__name__} writes into other arguments than before")
        kept = [x for k, x in enumerate(result) if k not in same and type(x) is np.ndarray]
        if any(np.may_share_memory(x, array) for x in kept for array in arrays):
            raise FailedCheck(f"{self.__name__} returns a view of its argument")
        results = unflatten(form, [x.copy() if k in same else x for k, x in enumerate(result)])
        return results, [arrays[n] for n in self.places]

    def store(self, found: Any, leaves: Sequence[Any]) -> Any:
        """Write into traced arguments what they have become, and give the result, which may be one of them."""
        result, written = found
        arrays = [x for x in leaves if type(x) in (TracedArray, np.ndarray)]
        for n, value in zip(self.places or (), written):
            arrays[n][...] = value
        parts, form = flatten(result)
        return unflatten(form, [arrays[self.same[k]] if k in self.same else x for k, x in enumerate(parts)])


__all__ = ["WritingCall", "is_very", "may_be_stored", "says_that_it_writes"]
