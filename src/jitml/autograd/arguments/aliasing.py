"""Aliasing of differentiated arguments: may a function get copies of its arguments?

Not where it writes into one that is known by another name, too.

Transforms call a function with copies, so that what it writes does not reach the caller's arrays. Of an array that is passed
twice, or that the function also uses as a global, the copy and the other name are one memory in NumPy, and two here: as long as
nothing is written that makes no difference, and else the value would be another one. The same of lists, dicts and objects.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from jitml.autograd.arguments.attributes import containers
from jitml.errors import DerivativeError
from jitml.trace.effects.write_back import require_alone
from jitml.trace.environment.tracked_copies import Loads, entries
from jitml.trace.record.pytree import flatten
from jitml.trace.record.recording import Trace, active_trace, user_source
from jitml.trace.storage.storage import LentStorages
from jitml.trace.values.boxing import TracedArray, lift
from jitml.trace.values.registry import call


@contextmanager
def own_copies(what: str, given: Any, passed: Any) -> Iterator[None]:
    """Call a function inside with copies of arrays and containers, and refuse what plain Python would see by another name.

    Args:
        what: the transform's name, for messages.
        given: the arguments, in containers.
        passed: the same, with copies in the place of arrays and containers.

    Raises:
        DerivativeError: a copy has been written, and another argument or what the function uses besides shares memory with it,
            or is the same container.
        UnsupportedError: the same of containers that come from outside.
    """
    leaves = zip(flatten(given)[0], flatten(passed)[0])
    pairs = [(lift(x) if type(x) is np.ndarray else x, c) for x, c in leaves if type(c) is TracedArray]
    pairs = [(x, c) for x, c in pairs if type(x) is TracedArray]
    before = [(x.storage.loads, x.storage.writes) for x, _ in pairs]
    root = active_trace().root
    lent = root.call[LentStorages]
    held = [(x, copy, entries(copy), _loads(root, x)) for x, copy in containers(given, passed)]
    yield
    for x, copy, was, times in held:
        if _is_changed(was, entries(copy)):
            if id(x) in root.copies.watched:
                require_alone(root, [root.copies.watched[id(x)]])
            if sum(x is other for other, *_ in held) > 1:
                _refuse(what, "an argument is changed that is passed twice")
            if _loads(root, x) != times:
                _refuse(what, "an argument is changed that the function also uses by another name")
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


def _loads(root: Trace, x: Any) -> int:
    """How often a container has been loaded by name, an attribute or an item."""
    _, x = root.copies.taken.get(id(x), (x, x))
    known = root.copies.watched.get(id(x))
    return root.call[Loads].met[id(x if known is None else known.original)]


def _is_changed(before: tuple[tuple[Any, Any], ...], after: tuple[tuple[Any, Any], ...]) -> bool:
    return len(before) != len(after) or any(k != key or x is not item for (k, x), (key, item) in zip(before, after))


def _refuse(what: str, text: str) -> None:
    raise DerivativeError(
        f"{what}: {text}: the function gets copies of its arguments, which share nothing",
        source=user_source(),
        remedy="Pass a copy of it (x.copy()), or write into a copy inside the function.",
    )
