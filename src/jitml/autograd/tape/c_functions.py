"""Functions written in C, on a tape: what are they given, which want NumPy's own arrays?

Arrays that are not differentiated are handed over as they are, in the memory that they have: a generator may fill them, a file be
written with them. `shuffle`, `permutation` and `choice` of a generator take what is differentiated in the order that is drawn.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from jitml.autograd.tape.values import Taped
from jitml.autograd.tape.writing import put

Function = Callable[..., Any]
_PYTHONS = frozenset({"builtins", "_operator", "_functools", "itertools"})  # which hand on what they are given
GENERATORS = (np.random.Generator, np.random.RandomState)


def of_c(function: Any) -> Function:
    """What to call in place of a function that is none of NumPy's on arrays."""
    owner = function.__self__
    if type(owner) is np.ufunc or (type(owner) is ModuleType and owner.__name__ in _PYTHONS):
        return function
    ordering = _ORDERING.get(function.__name__) if isinstance(owner, GENERATORS) else None

    def called(*args: Any, **kwargs: Any) -> Any:
        if ordering is not None and args and type(args[0]) is Taped and args[0].is_active and args[0].storage is not None:
            return ordering(function, *args, **kwargs)
        given = [_handed(x) for x in args]
        named = {name: _handed(x) for name, x in kwargs.items()}
        result = function(*given, **named)
        if type(result) is np.ndarray:  # one that it was to fill, say
            both = zip((*args, *kwargs.values()), (*given, *named.values()))
            return next((x for x, plain in both if plain is result), result)
        return result

    return called


def _handed(x: Any) -> Any:
    """An array that is not differentiated, as NumPy's own; who is given it may write it at any time."""
    if type(x) is not Taped or x.is_active or x.storage is None:
        return x
    x.storage.before_write()
    x.storage.exposed = True
    return x.value


def _shuffled(shuffle: Function, x: Taped, axis: int = 0) -> None:
    order = np.arange(x.value.shape[axis])
    shuffle(order)
    put(x, x.take(order, axis))


def _permuted(permutation: Function, x: Taped, axis: int = 0) -> Any:
    return x.take(permutation(x.value.shape[axis]), axis)


def _chosen(choice: Function, x: Taped, *args: Any, axis: int = 0, **kwargs: Any) -> Any:
    return x.take(choice(x.value.shape[axis], *args, **kwargs), axis)


_ORDERING: dict[str, Function] = {"shuffle": _shuffled, "permutation": _permuted, "choice": _chosen}
