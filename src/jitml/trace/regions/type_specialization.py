"""Type specialization: a function of a number whose type only the program knows is computed for each type, behind a branch.

What is computed of a number of which only the compiled program knows whether it is Python's or NumPy's, where that shows?  The
same for each type that it may have, in branches on the truths beside it (`type_unions.py`). What they end with is merged like the
ends of any branch, so that a result may be of one type or another as well.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NoReturn

from jitml.errors import UnsupportedError
from jitml.ir import ops
from jitml.trace.record.recording import active_trace, user_source
from jitml.trace.regions.select import Ternary
from jitml.trace.rewrite.driver_protocol import OpenType
from jitml.trace.speculation.modes import Mode, Site, decisions, site
from jitml.trace.values.boxing import TracedScalar, scalar
from jitml.trace.values.numbers import TracedNumber
from jitml.trace.values.registry import of_its_type
from jitml.trace.values.type_unions import (
    NONE,
    doubt,
    doubt_of,
    is_open,
    is_pythons,
    refuse_type,
    require_decidable,
    require_type,
    same_value,
    typed_value,
)

_OF_NONE = (operator.eq, operator.ne, of_its_type)  # what can be asked of None, too


class _TypeBranch(Ternary):
    """A branch on the type of a number."""

    def __init__(self, test: Any, place: Site, is_strict: bool) -> None:
        super().__init__(test, place)
        self.is_strict = is_strict

    def give_up(self, message: str, remedy: str) -> NoReturn:
        """The function makes something of each type that cannot be merged: whoever has left the type open leaves less open."""
        error = UnsupportedError(message, source=user_source(), remedy=remedy)
        decisions().demote(self.site, Mode.PLAIN, error)
        raise error


def for_each_type(found: OpenType, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    x, place = found.number, _place()
    open_type = doubt_of(x)
    assert open_type is not None
    if not _holds((args, kwargs), x):
        refuse_type(open_type)
    if NONE in open_type.cases and function not in _OF_NONE:
        ops.check(open_type.cases[NONE], ops.bit_not(open_type.cases[NONE]), error="TypeError", message="a number is None")
        return _call(function, args, kwargs, x, _without(x, NONE))
    if not is_open(open_type):
        which = require_type(x)
        sure = _without(x, *open_type.cases) if which is None or which not in open_type.cases else as_type(x, which)
        return _call(function, args, kwargs, x, sure)
    if not found.is_undone or decisions().mode(place) is Mode.PLAIN:
        require_decidable(open_type)
    which, test = next(iter(open_type.cases.items()))
    fork = _TypeBranch(TracedNumber.of_value(active_trace(), test), place, open_type.is_strict)
    as_it_is = otherwise = None
    if fork.then():
        as_it_is = _call(function, args, kwargs, x, as_type(x, which))
    if fork.orelse():
        otherwise = _call(function, args, kwargs, x, _without(x, which))
    return fork.end(as_it_is, otherwise)


def as_type(x: Any, which: type) -> Any:
    """A number as the one that it is if it has one of the types that are open."""
    found = doubt_of(x)
    assert found is not None
    if which is NONE:
        return None
    value = typed_value(x.value, which, found.cases[which], exact=which in found.exact)
    value = same_value(value) if value is x.value else value
    return TracedNumber.of_value(active_trace(), value) if is_pythons(which) else scalar(value)


def _without(x: Any, *types: type) -> Any:
    """A number that has none of some types that it might have had."""
    found, trace = doubt_of(x), active_trace()
    assert found is not None
    value = same_value(x.value)
    cases = {which: test for which, test in found.cases.items() if which not in types}
    doubt(value, cases, found.decider, found.exact, settles=found.settles, is_strict=found.is_strict)
    return TracedScalar(trace, value) if type(x) is TracedScalar else TracedNumber.of_value(trace, value)


def _call(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], x: Any, new: Any) -> Any:
    return function(*_with(args, x, new), **_with(kwargs, x, new))


def _holds(part: Any, x: Any) -> bool:
    """Whether `_with` finds a number in arguments."""
    parts = part.values() if type(part) is dict else _bounds(part) if type(part) is slice else part
    parts = parts if type(part) in (dict, slice, tuple, list) else ()
    return (type(part) is type(x) and part.value is x.value) or any(_holds(item, x) for item in parts)


def _bounds(part: slice) -> tuple[Any, ...]:
    return part.start, part.stop, part.step


def _with(part: Any, x: Any, new: Any) -> Any:
    """Arguments with a number in place of another one."""
    if type(part) is type(x) and part.value is x.value:
        return new
    if type(part) in (tuple, list):
        return type(part)(_with(item, x, new) for item in part)
    if type(part) is slice:
        return slice(*_with(_bounds(part), x, new))
    return {key: _with(item, x, new) for key, item in part.items()} if type(part) is dict else part


def _place() -> Site:
    """Where the branch stands: at the same instruction as what is computed, and yet not there."""
    (code, position), *around = site()
    return (code, ~position), *around
