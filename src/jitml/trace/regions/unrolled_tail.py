"""Tails of unrolled loops: what if a loop that Python unrolls (over a list, say) ends on a traced flag?

Then each further iteration is a branch.

`Remaining` takes over from the iteration that made the flag: every body from there on happens only if the flag is not set yet.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jitml.trace.record.recording import unsupported
from jitml.trace.regions.branch import TracedIf
from jitml.trace.regions.select import negation
from jitml.trace.rewrite.driver_protocol import UNDEF, Names, Values
from jitml.trace.speculation.modes import Site

_STOP = "__jm_stop__"


class Remaining:
    """The driver of the iterations that are left; the elements come from the plain iterator."""

    drives = True

    def __init__(self, stop: Any, place: Site) -> None:
        self.stop = stop
        self.site = place

    def enter(self, names: Names, values: Values, targets: Names = ()) -> None:
        self.names = names
        self.all = (*names, *targets)
        self.now = {name: values.get(name, UNDEF) for name in self.all}

    def __iter__(self) -> Iterator[Any]:
        raise AssertionError("the iterator is Python's")

    def load(self) -> tuple[Any, ...]:
        self.fork = TracedIf(negation(self.stop), self.site)
        if self.fork.raising:
            unsupported("a loop over a list ends early on a traced condition, and later iterations raise")
        self.fork.enter((*self.all, _STOP), {**self.now, _STOP: self.stop})
        self.passes = iter(self.fork)
        assert next(self.passes), "the branch that goes on comes first"
        return self.fork.load()[: len(self.names)]

    def step(self, values: Values, stop: Any = False) -> None:
        self.fork.step({**values, _STOP: stop})
        assert not next(self.passes)
        self.fork.step({**self.now, _STOP: self.stop})
        *held, self.stop = self.fork.result()
        self.now = dict(zip(self.all, held))

    def result(self) -> tuple[Any, ...]:
        return tuple(self.now[name] for name in self.all)
