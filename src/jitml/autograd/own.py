"""May a function get copies of its arguments?  Not where it writes into one that is known by another name, too.

Transforms call a function with copies, so that what it writes does not reach the caller's arrays. Of an array that is passed
twice, or that the function also uses as a global, the copy and the other name are one memory in NumPy, and two here: as long as
nothing is written that makes no difference, and else the value would be another one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from jitml.errors import DerivativeError
from jitml.trace.context import active_trace, user_source
from jitml.trace.registry import call
from jitml.trace.tracers import TracedArray, lift


@contextmanager
def own_copies(what: str, given: Sequence[Any], passed: Sequence[Any]) -> Iterator[None]:
    """Call a function inside with copies of arrays, and refuse what NumPy would see by another name.

    Args:
        what: the transform's name, for messages.
        given: leaves of the arguments.
        passed: the same, with copies in the place of arrays.

    Raises:
        DerivativeError: a copy has been written, and another argument or what the function uses besides shares memory with it.
    """
    pairs = [(lift(x) if type(x) is np.ndarray else x, c) for x, c in zip(given, passed) if type(c) is TracedArray]
    pairs = [(x, c) for x, c in pairs if type(x) is TracedArray]
    before = [(x.storage.loads, x.storage.writes) for x, _ in pairs]
    lent = active_trace().root.lent
    yield
    for n, ((x, copy), (loads, writes)) in enumerate(zip(pairs, before)):
        if x.storage.writes != writes:
            _refuse(what, "an argument is written by another name that it has")
        if not (copy.storage.mutated or copy.storage in lent):
            continue
        if x.storage.loads != loads:
            _refuse(what, "an argument is written that the function also uses by another name")
        if any(m != n and _may_share(x, other) for m, (other, _) in enumerate(pairs)):
            _refuse(what, "an argument is written that shares memory with another one")
        lent[x.storage] = None


def _may_share(x: TracedArray, other: TracedArray) -> bool:
    if x.storage is not other.storage:
        return False  # what comes from outside is compared when the trace ends
    known = not any(step.starts for a in (x, other) for step in a.steps)
    known &= all(type(n) is int for a in (x, other) for n in (*a.storage.value.shape, *a.sizes))
    return not known or bool(call(np.shares_memory, x, other))


def _refuse(what: str, text: str) -> None:
    raise DerivativeError(
        f"{what}: {text}: the function gets copies of its arguments, which share no memory",
        source=user_source(),
        remedy="Pass a copy of it (x.copy()), or write into a copy inside the function.",
    )
