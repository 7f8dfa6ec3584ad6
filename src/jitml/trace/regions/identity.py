"""Identity of arrays: are two names one array, and do two arrays share memory?

As in NumPy, where the trace knows; else another mode is tried.

Inside a loop's body a name that is carried stands for an array of each iteration, and what a branch or a loop hands out may be an
array of before: whether that is another one, only the compiled program knows.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from itertools import product
from typing import Any

import numpy as np

from jitml.errors import UnsupportedError
from jitml.trace.record.guards import Slot
from jitml.trace.record.recording import active_trace, current_trace, unsupported, user_source
from jitml.trace.speculation.modes import Mode, OpenRegions
from jitml.trace.values.aliases import others, require_told_apart
from jitml.trace.values.boxing import TracedArray, TracedScalar, lift, require_one
from jitml.trace.values.container_identity import require_settled
from jitml.trace.values.numbers import TracedNumber, apply
from jitml.trace.values.type_unions import NumberStandIn, may_be_none, require_type_known, types_of

_NUMBER_REMEDY = "Compare numbers with ==, and find NaN with np.isnan."
_REMEDY = "Compare what the arrays hold, or remember in a flag of your own which array it is."


def is_one(x: Any, y: Any) -> bool:
    """`x is y`"""
    if x is y or current_trace() is None:
        return _is_it(x, y)
    for one in (x, y):
        if may_be_none(one):
            require_type_known(one)
    if isinstance(x, NumberStandIn) or isinstance(y, NumberStandIn):
        return _is_one_number(x, y)
    if TracedArray not in (type(x), type(y)):
        require_settled(x)
        require_settled(y)
        _require_no_tuples(x, y)
        return _are_one_outside(x, y)
    x, y = (lift(a) if type(a) is np.ndarray else a for a in (x, y))
    if type(x) is type(y) is TracedArray and x.dtype == y.dtype and x.ndim == y.ndim and x is not y:
        require_known(x, y)
        require_told_apart([(x, y)])
        _require_two(x, y)
    return _is_it(x, y)


def _is_one_number(x: Any, y: Any) -> bool:
    """Whether a traced number and another one are one object: those of two types are not."""
    if not (_is_number(x) and _is_number(y)) or types_of(x).isdisjoint(types_of(y)):
        return False
    if types_of(x) == types_of(y) == {bool}:
        return bool(x == y)
    if all(type(n) is not TracedScalar and (type(n) is not TracedNumber or n.slot is not None) for n in (x, y)):
        return bool(apply(operator.is_, x, y))
    unsupported("whether two numbers are one object, only Python knows", _NUMBER_REMEDY)


def is_found(x: Any, y: Any) -> Any:
    """Whether Python finds y in a container where it meets x: NaN is found if it is that very object."""
    traced = [n for n in (x, y) if isinstance(n, NumberStandIn)]
    if not traced or not types_of(x) & types_of(y) - {int, bool}:
        return x == y
    if all(type(n) is TracedNumber and n.slot is not None for n in traced) and (len(traced) > 1 or _is_nan(x) or _is_nan(y)):
        return apply(_is_it_or_equal, x, y)
    return is_one(x, y) if _is_nan(x) or _is_nan(y) else x == y


def are_taken_for_equal(x: Any, y: Any) -> bool:
    """Whether a container takes two things that it may hold for equal: if they are one object, or `==` says so."""
    if x is y:
        return True
    kind = type(x)
    if kind is not type(y) or kind not in (list, tuple, dict):
        return bool(is_found(x, y))
    if len(x) != len(y):
        return False
    if kind is dict:
        return all(key in y and are_taken_for_equal(value, y[key]) for key, value in x.items())
    return all(map(are_taken_for_equal, x, y))


def place_of_equal(held: Iterable[Any], x: Any) -> int | None:
    """Where a container finds x first: at which of what it holds."""
    return next((n for n, y in enumerate(held) if are_taken_for_equal(y, x)), None)


def _is_nan(x: Any) -> bool:
    return not isinstance(x, NumberStandIn) and bool(x != x)


def _is_it_or_equal(x: Any, y: Any) -> bool:
    return x is y or x == y


def _is_number(x: Any) -> bool:
    return isinstance(x, (bool, int, float, complex, np.generic))


def _require_no_tuples(x: Any, y: Any) -> None:
    """Tuples are taken apart and made anew: of two that may be equal, nothing is known."""
    if isinstance(x, tuple) and type(x) is type(y) and len(x) == len(y):
        unsupported("whether two tuples are one object, only Python knows", "Compare tuples with ==.")


def _are_one_outside(x: Any, y: Any) -> bool:
    """Whether the containers are one of which two copies stand in the function, in this call and any that the program answers."""
    root = active_trace().root
    first, second = (root.copies.watched.get(id(container)) for container in (x, y))
    if first is None or second is None:
        return False
    is_same: bool = first.original is second.original
    root.host.require_identity(first.find(), second.find(), is_same)
    return is_same


def _is_it(x: Any, y: Any) -> bool:
    if x is y and type(x) is TracedArray:
        require_one(x)
    return x is y


def _require_two(x: TracedArray, y: TracedArray) -> None:
    """Arrays from outside that are two in this call are two in any that the program answers."""
    for one, other in product(_given(x), _given(y)):
        active_trace().root.host.require_identity(one, other, False)


def _given(x: TracedArray) -> list[Slot]:
    """The arrays from outside that this one may be."""
    candidates = [x, *(array for _, origin in others(x) if (array := origin.array()) is not None)]
    return [array.slot for array in candidates if array.slot is not None]


def require_known(x: TracedArray, y: TracedArray) -> None:
    """Refuse, if no other mode helps, where two arrays that are two to the trace may be one in the program."""
    trace = active_trace()
    text = "whether two arrays are one, or share memory, only the compiled program decides"
    error = UnsupportedError(text, source=user_source(), remedy=_REMEDY)
    for region in reversed(trace.call[OpenRegions]):
        if region.may_be_one(x, y):
            region.demote(error, Mode.PLAIN)
    for decider in (x.storage.rows_of, y.storage.rows_of):
        if decider is not None:
            decider.refuse("whether an item of a list that a loop has filled is another array, only Python knows", _REMEDY)
    rival = next((rival for rival in x.storage.rivals if rival.storage() is y.storage), None)
    if rival is not None:
        rival.decider.refuse(text, _REMEDY)


__all__ = ["are_taken_for_equal", "is_found", "is_one", "place_of_equal", "require_known"]
