"""Who drives a converted construct: plain Python, or a region?  The drivers of plain Python, and the hooks that choose.

The protocol stands in `driver_protocol.py`. Traced conditions and ranges go to `drivers.py`; all else runs as Python runs it.
"""

from __future__ import annotations

import builtins
import functools
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from jitml.errors import Cause
from jitml.trace.hooks.python_functions import PythonFunctions
from jitml.trace.record.fp_errors import ErrorState
from jitml.trace.record.recording import unsupported
from jitml.trace.regions import drivers
from jitml.trace.rewrite.driver_protocol import UNDEF, BooleanOperand, ConditionalExpression, Driver, Names, Values
from jitml.trace.speculation.modes import Mode, Site
from jitml.trace.values.boxing import is_traced
from jitml.trace.values.kinds import is_decided
from jitml.trace.values.open_names import bound, present, sure, truthful
from jitml.trace.values.registry import call

if TYPE_CHECKING:
    from jitml.trace.rewrite.induction import Directions


class Taken(tuple[bool]):
    """The driver of an `if` that Python decides: one pass over one branch. Also of a ternary."""

    __slots__ = ()
    drives = False

    def then(self) -> bool:
        return self[0]

    def orelse(self) -> bool:
        return not self[0]

    def end(self, x: Any, y: Any) -> Any:
        return x if self[0] else y


THEN: Final = Taken((True,))
ELSE: Final = Taken((False,))


class Plain:
    """`and`, `or` that Python decides."""

    __slots__ = ("left", "right")

    def __init__(self, left: Any, right: bool) -> None:
        self.left = left
        self.right = right

    def end(self, right: Any) -> Any:
        return right


class PlainFor:
    """A `for` over what only Python can iterate: a list, a dict, a zip of those."""

    __slots__ = ("iterable", "place")
    drives = False

    def __init__(self, iterable: Iterable[Any], place: Site) -> None:
        self.iterable = iterable
        self.place = place

    def __iter__(self) -> Iterator[Any]:
        iterable, self.iterable = self.iterable, ()  # a generator ends where the loop lets go of it
        return drivers.counted(iterable, self.place)

    def stops(self, stop: Any, names: Names, values: Values, targets: Names = ()) -> bool:
        return drivers.assumed(stop, self.place) if is_traced(stop) else bool(stop)


class PlainWhile:
    """A `while` that cannot be rolled from its first iteration on: plain as long as its test is concrete.

    `rest` drives it if a traced test or flag turns up.
    """

    __slots__ = ("born", "drives", "is_first", "mark", "pending", "place", "rest")
    rest: Driver

    def __init__(self, place: Site) -> None:
        self.drives = False
        self.place = place
        self.pending = False
        self.born = drivers.birth()
        self.is_first = True  # of the tests that are traced

    def __iter__(self) -> Iterator[Any]:
        for _ in drivers.counted(iter(lambda: self.drives, True), self.place):
            self.mark = drivers.Mark()
            yield None
        yield from self.rest

    def load(self) -> tuple[Any, ...]:
        return self.rest.load()

    def step(self, values: Values, stop: Any = False) -> None:
        self.rest.step(values, stop)

    def result(self) -> tuple[Any, ...]:
        return self.rest.result()

    def test(self, value: Any) -> bool:
        if self.drives:
            return self.rest.test(value)  # type: ignore[attr-defined]  # the rest of a while is one
        if type(value) is bool:
            return value
        if not is_traced(value) or is_decided(value):
            return bool(value)
        first, self.is_first = self.is_first, False
        self.pending = drivers.mode_at(self.place) < (Mode.PEELED if first else Mode.PLAIN)
        if self.pending and (raised := drivers.raises(self.place)):
            self.pending = False
            drivers.never(value, raised, self.place)
            return False
        return not self.pending and drivers.assumed(value, self.place)

    def ends(self, names: Names, values: Values) -> bool:
        if self.drives or not self.pending:
            return True
        self.mark.check()
        return self._take_over(names, values)

    def stops(self, stop: Any, names: Names, values: Values) -> bool:
        if not is_traced(stop):
            return bool(stop)
        if drivers.mode_at(self.place) is Mode.PLAIN:
            return drivers.assumed(stop, self.place)
        return self._take_over(names, values, stop)

    def _take_over(self, names: Names, values: Values, stop: Any = False) -> bool:
        self.rest = drivers.rest(self.place, stop, born=self.born)
        self.drives = True
        self.rest.enter(names, values)
        return False


def _outcome(test: Any) -> bool | None:
    """The truth of something, None where the compiled program decides."""
    return drivers.outcome(test) if is_traced(test) else bool(test)


class Steering(PythonFunctions):
    """The hooks of control flow; `calls.Hooks` has them too."""

    __slots__ = ()
    made = staticmethod(drivers.made)
    dead_end = staticmethod(drivers.dead_end)
    UNDEF = UNDEF
    locals = staticmethod(builtins.locals)
    present = staticmethod(present)
    sure = staticmethod(sure)
    truthful = staticmethod(truthful)
    bound = staticmethod(bound)

    def values_of(self, names: Names, values: Values) -> tuple[Any, ...]:
        """What names hold, UNDEF if they are not bound."""
        return tuple(values.get(name, UNDEF) for name in names)

    def if_(self, test: Any) -> Driver | Taken:
        if type(test) is not bool:
            test = self.true(test)
        taken = test if type(test) is bool else _outcome(test)
        return drivers.branch(test) if taken is None else THEN if taken else ELSE

    def for_(self, iterable: Any) -> Driver | PlainFor:
        place = drivers.here()
        if type(iterable) in (list, tuple, dict):
            return PlainFor(iterable, place)
        rolled, iterable = drivers.rows(self.gone_through(iterable), place)
        return rolled or PlainFor(iterable, place)

    def while_(self, names: Names, values: Values, counters: Directions, grows: Names) -> Driver | PlainWhile:
        place = drivers.here()
        return drivers.while_(names, values, counters, grows, place) or PlainWhile(place)

    def and_(self, left: Any) -> BooleanOperand:
        taken = self._known_truth(left)
        return drivers.operand(left, False) if taken is None else Plain(left, taken)

    def or_(self, left: Any) -> BooleanOperand:
        taken = self._known_truth(left)
        return drivers.operand(left, True) if taken is None else Plain(left, not taken)

    def _known_truth(self, left: Any) -> bool | None:
        """The truth of an operand, of which an object is no value that the program could choose."""
        truth = self.true(left)
        return _outcome(left) if truth is left else bool(truth)

    def choice(self, test: Any) -> ConditionalExpression:
        test = self.true(test)
        taken = _outcome(test)
        return drivers.choice(test) if taken is None else THEN if taken else ELSE

    def manager(self, obj: Any) -> Any:
        """`with obj`: of all managers, only `np.errstate` says what the compiled program does."""
        if type(obj) is not ErrorState:
            kind = type(obj)
            unsupported(
                f"`with` enters a {kind.__qualname__}, only once, while the function is traced, and not at every call",
                "Put the `with` around the call of the jitted function.",
                Cause.SYNTAX,
            )
        return obj

    def assert_(self, ok: Any) -> bool:
        ok = self.true(ok)
        if is_traced(ok) and not is_decided(ok):
            return drivers.require(ok)
        return bool(ok) or drivers.dead_end()

    def none_of(self, *flags: Any) -> Any:
        """Whether no flag is set: what follows an escape happens."""
        flag = self.any_of(*flags)
        return not flag if type(flag) is bool else call(np.logical_not, flag)

    def any_of(self, *flags: Any) -> Any:
        """Whether a flag is set: the loop ends."""
        if any(flag is True for flag in flags):
            return True
        traced = [flag for flag in flags if type(flag) is not bool]
        return functools.reduce(lambda a, b: call(np.logical_or, a, b), traced) if traced else False
