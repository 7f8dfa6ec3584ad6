"""Which array object may a name stand for after a branch?  Views of one memory look alike; whether two are one, `is` tells.

Each stand-in is an object of its own, with a number. One that a branch hands out, and that may be one or another of them, has the
numbers of both. Where somebody could tell, the branch is compiled as the call takes it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

from jitml.errors import UnsupportedError
from jitml.trace.context import refuse, user_source
from jitml.trace.decisions import Mode, Site, decisions
from jitml.trace.standins import TracedArray

_numbers = itertools.count()


def faces(array: TracedArray) -> frozenset[int]:
    """The numbers of all objects that this one may be."""
    if array.faces is None:
        array.faces = frozenset((next(_numbers),)), None
    return array.faces[0]


def one_of(shown: TracedArray, objects: Iterable[TracedArray], site: Site) -> TracedArray:
    """Another object on the memory of `shown`, which is one of these: only the construct at `site` decides which."""
    made = TracedArray(shown.storage, shown.steps, shown.aval, shown.layout, shown.writeable)
    made.faces = frozenset().union(*map(faces, objects)), site
    return made


def require_told_apart(arrays: Sequence[TracedArray]) -> None:
    """Refuse, if compiling the branch as the call takes it does not help, where some of these may be one object."""
    doubtful = [(x, x.faces[1]) for x in arrays if x.faces is not None and x.faces[1] is not None]
    for (x, site), y in itertools.product(doubtful, arrays):
        if x is y or faces(x).isdisjoint(faces(y)):
            continue
        text = "whether two views are one object, only the compiled program decides"
        error = UnsupportedError(text, source=user_source(), remedy="Take a view of its own in both branches.")
        decisions().demote(site, Mode.PLAIN, error)
        refuse(error)


__all__ = ["faces", "one_of", "require_told_apart"]
