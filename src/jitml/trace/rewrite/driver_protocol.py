"""Driver protocol: how do converted `if`, `while` and `for` talk to the run time?  The protocol of drivers.

A body stays inline, in the user's own frame; a *driver* decides how often it runs and what its names hold. Where everything is
concrete a driver does what Python does, at the price of an attribute look-up. Where a condition or a range is traced, the driver
(`drivers.py`) captures the body: it may run it again and again, over one symbolic index, or once for each branch.
Below, `d` is a local temporary, `__jm` the hooks (`__jm__`). `names` are those locals whose values the construct can change and
that somebody may read afterwards or in the next iteration; `targets` are the names that a `for` binds.

    if test: A             d = __jm.if_(test)
    else: B                if d.drives: d.enter(names, __jm.locals())
                           for __jm_branch in d:
                               if d.drives: (*names,) = d.load()
                               if __jm_branch: A
                               else: B
                               if d.drives: d.step(__jm.locals())
                           if d.drives: (*names,) = d.result()
                           (names that matter only within the branches are saved and restored in place, by `__jm.values_of`)

    for t in xs: A         d = __jm.for_(xs)
                           if d.drives: d.enter(names, __jm.locals(), targets)
                           for t in d:
                               if d.drives: (*names,) = d.load()
                               A
                               if d.drives: d.step(__jm.locals(), stop)
                               elif stop is not False and d.stops(stop, names, __jm.locals(), targets): break
                           if d.drives: (*names, *targets) = d.result()

    while test: A          d = __jm.while_(names, __jm.locals(), counters)
                           for _ in d:
                               if d.drives: (*names,) = d.load()
                               if d.test(test):
                                   A
                                   if d.drives: d.step(__jm.locals(), stop)
                                   elif stop is not False and d.stops(stop, names, __jm.locals()): break
                               elif d.ends(names, __jm.locals()): break     # (when driven, the iterator ends the loop)
                           if d.drives: (*names,) = d.result()

* A name may be unbound: it is missing in `locals()`, and `load` and `result` hand out UNDEF, whereupon the name is deleted. Where
  only the compiled program knows whether it is, or what of it may be None, they hand out an `OpenName` (`open_names.py`): such a
  name is read by `__jm.present(name)`, by `sure` where None would be a TypeError, by `truthful` where the truth alone is asked,
  by `bound` in `name is None`, and of names that cannot be None. Names that begin with
  `__jm_` are ours (flags and the value to return): what they hold where they are undefined may be anything.
* `load` precedes every pass over a body, `step` ends it.
* `break`, `continue` and early `return` have been lowered to flags before (`escapes.py`): local bools of ours that a body sets
  and that guard what follows (`if __jm.none_of(flag, ...)`). `stop` is `__jm.any_of` those that end the loop; it is absent where
  there are none, and a plain bool unless a flag was merged by a traced `if`. A `while` whose test binds a name is a
  `while True` that breaks.
* `stops` and `ends` are where a loop that began as plain Python (`control_flow.py`) learns that its end is traced. From then on
  it drives: `load` comes next. `counters` are the names that a `while` counts with (`induction_limits.py`).
* The driver of an `if` hands out True and False (in any order, each once), of a `for` what the target is bound to.

Expressions, where only one value matters, are driven in place; a region is open while the operand is evaluated:

    a and b                d.end(b) if (d := __jm.and_(a)).right else d.left       or_: likewise
    x if test else y       (d := __jm.choice(test)).end(x if d.then() else None, y if d.orelse() else None)
    not a                  __jm.not_(a)
    assert ok, text        assert __jm.assert_(ok), text
    raise E                if not __jm.dead_end(): raise E            inside a captured branch that ends here: it is never merged
    try, match, class      if __jm.left(kind): pass                   only Python runs these: refused
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Protocol

COMPENSATES = sum([1e16, 1.0, -1e16]) == 1.0  # this Python's `sum` does
HOOKS = "__jm__"  # no class mangles a name that ends like this
OURS = "__jm_"  # how all names that conversion adds begin
Names = tuple[str, ...]
Values = dict[str, Any]


class _Undefined:
    """The value of a name that is not bound."""

    def __repr__(self) -> str:
        return "UNDEF"


UNDEF: Final = _Undefined()


class OpenType(BaseException):
    """Somebody sees the type of a number that only the compiled program knows: what is computed depends on it.

    is_undone: whether nothing of that has been recorded.
    """

    def __init__(self, number: Any) -> None:
        super().__init__("somebody sees the type of a number")
        self.number = number
        self.is_undone = True


class WantsArray(BaseException):
    """A function of NumPy's makes an array of a list of numbers that only the compiled program knows (`registry.call`)."""


class Restart(BaseException):
    """A captured region turns out not to be one: the whole function is to be traced again, now knowing that.

    No `except Exception` of the user's can swallow it; `trace` begins anew with what `Decisions` has gathered.
    """


class Driver(Protocol):
    """What statements are converted to."""

    drives: bool

    def enter(self, names: Names, values: Values, targets: Names = ()) -> None:
        """The construct begins, with these values of all locals."""

    def __iter__(self) -> Iterator[Any]: ...

    def load(self) -> tuple[Any, ...]:
        """What the names hold as a pass begins (not the targets: those the loop has just bound)."""

    def step(self, values: Values, stop: Any = False) -> None:
        """A pass has ended with these values."""

    def result(self) -> tuple[Any, ...]:
        """What the names, then the targets, hold after the construct."""


class WhileDriver(Driver, Protocol):
    """Of a `while`: the test belongs to the loop."""

    def test(self, value: Any) -> bool:
        """Whether to run the body."""

    def ends(self, names: Names, values: Values) -> bool:
        """`test` said False: whether that is the end (always, once it drives), or the driver takes over."""


class BooleanOperand(Protocol):
    """Of `and`, `or`."""

    right: bool  # whether the right operand is to be evaluated
    left: Any  # the value if not

    def end(self, right: Any) -> Any:
        """The value if so."""


class ConditionalExpression(Protocol):
    """Of `x if test else y`."""

    def then(self) -> bool:
        """Whether to evaluate x; it follows."""

    def orelse(self) -> bool:
        """Whether to evaluate y; it follows. x, if evaluated, is complete."""

    def end(self, x: Any, y: Any) -> Any:
        """The value of the expression."""
