"""Carried types: which types does a number come to have in a loop?

Those from before the first iteration, and those at the end of others.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from jitml.ir.graph import Value
from jitml.records import dataclass, field
from jitml.trace.carried.body import RegionBody
from jitml.trace.speculation.modes import Decider
from jitml.trace.values.kinds import Kind
from jitml.trace.values.type_unions import doubt, is_exact, is_of, types_of


@dataclass
class CarriedTypes:
    """What is known, pass by pass, of the types of a number that a loop carries.

    known: those that it may have. flags: of all but its own, as the body begins the truth of it.
    dtype: in which the pass carries it.
    inexact: those of numbers that may lose digits as they are carried.
    settles: whether the end of the body has one type.
    is_strict: whether its type decides what the body computes of it, and not only of which type that is.
    """

    known: set[type]
    flags: dict[type, Value] = field(default_factory=dict)
    dtype: np.dtype[Any] | None = None
    inexact: set[type] = field(default_factory=set)
    settles: bool = True
    is_strict: bool = False

    def begin(self, start: Value, kind: Kind, body: RegionBody, decider: Decider) -> None:
        """A pass begins: the number may be of any of these types."""
        self.flags = {which: body.truth() for which in self.known - {kind.which}}
        self.dtype = kind.aval.dtype
        exact = self.known - self.inexact
        doubt(start, self.flags, decider, exact, settles=self.settles, is_strict=self.is_strict)

    def find(self, kind: Kind, entry: Any, end: Any) -> bool:
        """Whether the end of a pass shows other types, or that a number may lose digits."""
        found = types_of(end) - self.known
        self.known |= found
        self.settles = settles(end, self.known)
        dtype = kind.aval.dtype
        ends = (entry, end) if dtype == self.dtype else (entry,)  # what has come in by another dtype says nothing of this one
        lost = {t for t in self.known if not all(is_exact(x, t, dtype) for x in ends)}
        is_new = bool(found or lost - self.inexact)
        self.inexact |= lost
        return is_new


def settles(end: Any, types: Iterable[type]) -> bool:
    """Whether a number has a type that is known."""
    return all(isinstance(is_of(end, which), bool) for which in {*types, *types_of(end)})
