"""How does a traced condition, or a range worth rolling, become a region of the graph?  The traced drivers.

`drivers.py` is the protocol that they follow, `steering.py` asks here for one.
"""

from __future__ import annotations

from typing import Any, NoReturn

from jitml.trace.drivers import Choice, Driver, Operand, Values, WhileDriver


def is_decided(test: Any) -> bool:
    """Whether Python decides: of a traced number or a constant, whose truth is then guarded."""
    return True


def branch(test: Any) -> Driver:
    """Of `if test`, undecided."""
    _refuse(test)


def choice(test: Any) -> Choice:
    """Of `x if test else y`, undecided."""
    _refuse(test)


def operand(left: Any, stops_if: bool) -> Operand:
    """Of `left and right` (where a False stops) or `left or right` (a True)."""
    _refuse(left)


def negation(x: Any) -> Any:
    """`not x`, undecided."""
    _refuse(x)


def require(ok: Any) -> None:
    """`assert ok`, undecided."""
    _refuse(ok)


def rows(iterable: Any) -> Driver | None:
    """Of a `for` over this, if it is to be rolled."""
    return None


def unless(stop: Any) -> Driver:
    """Of the iterations that remain of a plain `for` whose end turns out to be traced: each happens only if not `stop`."""
    _refuse(stop)


def mark() -> Any:
    """The state of the recording, so that a driver can begin anew from here."""
    return None


def loop(mark: Any, entry: Values) -> WhileDriver:
    """Of a `while` whose test or flag turns out to be traced; `mark` and `entry` are from before its first test.

    `enter` brings the values of now: it may go on from those (what has run is peeled) or begin anew from `entry`.
    """
    raise AssertionError("nothing is undecided")


def dead_end(caught: bool) -> bool:
    """Whether to leave out a `raise` because a captured branch ends with it. `caught`: by the same function."""
    return False


def depth() -> int:
    """How many regions are open."""
    return 0


def unwind(depth: int) -> None:
    """An exception was caught in front of which only `depth` regions were open."""


def _refuse(test: Any) -> NoReturn:
    bool(test)
    raise AssertionError("undecided")
