"""Who drives a converted construct: plain Python, or a region?  The drivers of plain Python, and the hooks that choose.

The protocol stands in `driver_protocol.py`. Traced conditions and ranges go to `drivers.py`; all else runs as Python runs it.
"""

from __future__ import annotations

import builtins
import functools
import gc
import sys
from collections.abc import Iterable, Iterator
from types import GeneratorType
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from jitml.errors import Cause
from jitml.interrupts import pass_on
from jitml.trace.hooks.models.user_methods import EQUALITY, parts_of
from jitml.trace.hooks.python_functions import PythonFunctions
from jitml.trace.record.recording import is_users_class, unsupported
from jitml.trace.regions import drivers
from jitml.trace.rewrite.driver_protocol import UNDEF, BooleanOperand, ConditionalExpression, Driver, Names, Values
from jitml.trace.speculation.exceptions import require_known_sizes, require_missing, require_numpys_own
from jitml.trace.speculation.modes import Mode, Site
from jitml.trace.values.boxing import is_traced
from jitml.trace.values.kinds import is_decided
from jitml.trace.values.open_names import bound, present, sure, truthful
from jitml.trace.values.registry import call
from jitml.trace.values.type_unions import may_be_none, require_type_known

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


class _Late:
    """A loop that begins as plain Python; `rest` drives it if a traced test or flag turns up."""

    __slots__ = ("drives", "rest")
    rest: Driver

    def __init__(self) -> None:
        self.drives = False

    def load(self) -> tuple[Any, ...]:
        return self.rest.load()

    def step(self, values: Values, stop: Any = False) -> None:
        self.rest.step(values, stop)

    def result(self) -> tuple[Any, ...]:
        return self.rest.result()


class PlainFor(_Late):
    """A `for` over what only Python can iterate: a list, a dict, a zip of those.

    A generator goes on while it is traced: whether the loop has ended has to be known before, or it would do too much.
    """

    __slots__ = ("goes_on", "iterable", "place")

    def __init__(self, iterable: Iterable[Any], place: Site) -> None:
        super().__init__()
        self.iterable = iterable
        self.place = place
        self.goes_on = type(iterable) not in (list, tuple, dict) and _runs_functions(iterable)

    def __iter__(self) -> Iterator[Any]:
        iterable, self.iterable = self.iterable, ()  # a generator ends where the loop lets go of it
        return drivers.counted(iterable, self.place)

    def stops(self, stop: Any, names: Names, values: Values, targets: Names = ()) -> bool:
        if not is_traced(stop):
            return bool(stop)
        if self.goes_on or drivers.mode_at(self.place) is Mode.PLAIN:
            return drivers.assumed(stop, self.place)
        self.rest, self.drives = drivers.unless(stop, self.place), True
        self.rest.enter(names, values, targets)
        return False


class PlainWhile(_Late):
    """A `while` that cannot be rolled from its first iteration on: plain as long as its test is concrete."""

    __slots__ = ("born", "is_first", "mark", "pending", "place")

    def __init__(self, place: Site) -> None:
        super().__init__()
        self.place = place
        self.pending = False
        self.born = drivers.birth()
        self.is_first = True  # of the tests that are traced

    def __iter__(self) -> Iterator[Any]:
        for _ in drivers.counted(iter(lambda: self.drives, True), self.place):
            self.mark = drivers.Mark()
            yield None
        yield from self.rest

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
        return not self.pending and drivers.goes_on(value, self.place)

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


def _runs_functions(iterable: Any, depth: int = 3) -> bool:
    """Whether going on runs a generator function, or one that `map` and its like call."""
    if isinstance(iterable, GeneratorType):
        return iterable.gi_code.co_name != "<genexpr>" or "conv" in iterable.gi_code.co_names  # it calls something
    if not isinstance(iterable, Iterator) or depth == 0:
        return False
    parts = [y for x in gc.get_referents(iterable) for y in (x if type(x) is tuple else (x,))]
    return type(iterable) is map or any(_runs_functions(x, depth - 1) for x in parts)


def _outcome(test: Any) -> bool | None:
    """The truth of something, None where the compiled program decides."""
    return drivers.outcome(test) if is_traced(test) else bool(test)


class Steering(PythonFunctions):
    """The hooks of control flow; `calls.Hooks` has them too."""

    __slots__ = ()
    made = staticmethod(drivers.made)
    dead_end = staticmethod(drivers.dead_end)
    depth = staticmethod(drivers.depth)
    unwind = staticmethod(drivers.unwind)
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

    def matched(self, x: Any, by_class: bool) -> Any:
        """What patterns are going to look at."""
        if may_be_none(x):
            require_type_known(x)
        parts = [*parts_of([x])]
        self.unseen(*parts, methods=("__len__", "__getitem__", *EQUALITY))
        if by_class and (found := next((part for part in parts if is_users_class(cast(Any, type(part)))), None)) is not None:
            unsupported(f"a pattern of a class looks into a {type(found).__name__}", "Use isinstance.", Cause.OBJECT)
        return x

    def assert_(self, ok: Any) -> bool:
        ok = self.true(ok)
        if is_traced(ok) and not is_decided(ok):
            return drivers.require(ok)
        return bool(ok) or drivers.dead_end(False)

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

    def handled(self, is_read: bool) -> None:
        """An exception has just been caught, and the handler may look at it."""
        error = sys.exception()
        if error is not None:
            self.ended(error)
            if is_read:
                require_numpys_own(error)

    def ended(self, error: BaseException) -> None:
        """An exception goes no further; one of a signal's handler, while tracing, is for the caller."""
        pass_on(error)
        require_known_sizes(error)
        require_missing(error)
