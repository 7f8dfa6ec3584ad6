"""Type unions: of which type is a number that is Python's in one case and NumPy's, or a float, in the other?

A branch, a loop, or `max(x, 0.0)` may leave a number of Python's or one of NumPy's, an int or a float. They compute alike, until
somebody can tell: the graph's value stands for all of them, as the widest, and truths beside it say which other it is. Who sees
the type reads these: a result is made as they say. A dtype follows what this call has (`paths.py`) or, in a region, where nobody
knows that, is computed for each type, by a branch on the truths (`type_specialization.py`). Where nobody looks, they are dead
code.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import product
from typing import Any, NoReturn

import numpy as np

from jitml.errors import RowsDiffer
from jitml.ir import ops
from jitml.ir.graph import Value
from jitml.ir.types import BOOL, C128, F64, I64, is_complex
from jitml.records import dataclass
from jitml.trace.record.parts import CallPart
from jitml.trace.record.recording import active_trace, current_trace
from jitml.trace.rewrite.driver_protocol import OpenType
from jitml.trace.speculation import paths
from jitml.trace.speculation.modes import Decider, Mode, OpenRegions, decisions
from jitml.trace.speculation.paths import Decided
from jitml.trace.symbolic.booleans import Truth, any_of, as_value, negated

REMEDY = "Give it one type in all cases: 0.0 instead of 0, float(x), or np.float64(0.0)."
_PLAIN = (bool, int, float, complex)
_EXACT = 2.0**53
NONE = type(None)  # of what is no number at all: `best = None` before a loop
_MOST_CASES = 3  # for which something is computed apart
DTYPES = {bool: BOOL, int: I64, float: F64, complex: C128}


class NumberStandIn:
    """What stands for a number in a trace. It gives the number's type as its class; objects of users may have any attributes."""

    __slots__ = ()
    value: Any  # of a number of Python's that only the host knows, None


@dataclass(frozen=True, slots=True)
class Doubt:
    """Which types a number may have instead of its own, each with the truth of it; at most one holds.

    exact: those of which every number that it may be has its very value in the dtype, although that has fewer bits.
    settles: whether it has one type from the second iteration of the loop on that has left it open.
    is_strict: whether what is computed of it may depend on the type even where the dtype of that does not.
    what: only the compiled program knows, and what to do about it.
    """

    cases: Mapping[type, Value]
    decider: Decider
    exact: Collection[type] = ()
    settles: bool = False
    is_strict: bool = False
    what: str = "which type a number has"
    remedy: str = REMEDY


class Doubts(dict[Value, Doubt], CallPart):
    """Numbers that may be of another type."""


def doubt(value: Value, cases: Mapping[type, Truth], decider: Decider, exact: Collection[type] = (), **more: Any) -> None:
    """Note that a number stands for one of other types, too."""
    found = Doubt({which: as_value(test) for which, test in cases.items() if test is not False}, decider, exact, **more)
    if found.cases:
        active_trace().call[Doubts][value] = found
        decide_if_asked(found)


def decide_if_asked(found: Doubt) -> type | None:
    """The case that holds in this call, where a region is known to ask for it."""
    return _decide(found) if found.decider.site in decisions().typed and not active_trace().call[OpenRegions] else None


def decide_now(found: Doubt) -> type | None:
    """The case that holds in this call; refused where nobody can say."""
    require_decidable(found)
    return _decide(found)


def decided(test: Value) -> int | None:
    """What a truth is taken for in the call that is traced."""
    return active_trace().call[Decided].outcomes.get(test)


def doubt_of(x: Any) -> Doubt | None:
    """What is open about the type of a number or scalar."""
    trace = current_trace()
    if trace is None or not (doubts := trace.call[Doubts]):
        return None
    value = x.value if isinstance(x, NumberStandIn) else None
    return None if value is None else doubts.get(value)


def own_type(x: Any) -> type | None:
    """The type that a number has where nothing else holds; None for what is no number."""
    if isinstance(x, NumberStandIn):
        return x.__class__
    if type(x) in _PLAIN:
        return type(x)
    return numpys(x.dtype) if isinstance(x, np.generic) else None


def numpys(dtype: np.dtype[Any]) -> type:
    """The type of a NumPy scalar."""
    scalar: type = dtype.type
    return scalar


def is_pythons(which: type | None) -> bool:
    return which in _PLAIN


def types_of(x: Any) -> set[type]:
    """The types that a number, or None, may have."""
    found, own = doubt_of(x), NONE if x is None else own_type(x)
    return {*(() if found is None else found.cases), *(() if own is None else (own,))}


def is_of(x: Any, which: type) -> Truth:
    """Whether a number, or None, is of a type."""
    found = doubt_of(x)
    if found is None:
        return which in types_of(x)
    if which in found.cases:
        return found.cases[which]
    return negated(any_of(*found.cases.values())) if own_type(x) is which else False


def require_type(x: Any) -> type | None:
    """Somebody sees the type of a number: which it has in this call.

    Raises:
        OpenType: in a region it may have each of them.
    """
    found = doubt_of(x)
    if found is None:
        return own_type(x)
    if is_open(found):
        raise OpenType(x)
    which = decide_now(found)
    return own_type(x) if which is None else which


def value_as_it_is(x: Any) -> tuple[Value, type]:
    """The value of a number of which something is open, as one of the type that it has in this call, and that type.

    Raises:
        OpenType: in a region it may have each of them, or it may be none.
    """
    require_number(x)
    found, which = doubt_of(x), require_type(x)
    assert found is not None and which is not None
    return typed_value(x.value, which, found.cases[which], exact=which in found.exact) if which in found.cases else x.value, which


def require_type_known(x: Any) -> NoReturn:
    """The same where nothing can be computed for each type."""
    found = doubt_of(x)
    assert found is not None
    require_decidable(found)
    refuse_type(found)


def has_attribute(x: Any, name: str) -> bool:
    """`hasattr` of a number or None, as numbers of its type have it, and not of the stand-in."""
    which = own_type(x)
    return hasattr(x if which is None else which(), name)


def may_be_none(x: Any) -> bool:
    """Whether there is perhaps no number."""
    found = doubt_of(x)
    return found is not None and NONE in found.cases


def in_doubt(part: Any) -> Any:
    """The first number among arguments of which something is open; None if there is none."""
    if type(part) in (tuple, list, dict):
        return next((x for x in map(in_doubt, part.values() if type(part) is dict else part) if x is not None), None)
    return part if doubt_of(part) is not None else None


def seen_by(function: Callable[..., Any], operands: Sequence[Any]) -> Any:
    """The first of the operands of which an operator has to know the type, whatever it makes of it; None if there is none."""
    found = [x for x in operands if doubt_of(x) is not None]
    if function is operator.pow and not (type(operands[1]) is int and operands[1] >= 0):
        return next(iter(found), None)  # Python's may be a float or complex, or raise
    return next(filter(may_be_none, found), None)


def require_number(x: Any) -> None:
    """Somebody reads a number.

    Raises:
        OpenType: perhaps there is none.
    """
    if may_be_none(x):
        raise OpenType(x)


def is_open(found: Doubt) -> bool:
    """Whether what is computed of a number is to be computed for each of its types: nobody can say which it has in this call."""
    if not _may_differ() or _is_known(found, active_trace().call[Decided].outcomes):
        return False
    return len(found.cases) <= _MOST_CASES and not (found.settles and found.decider.mode is Mode.PEELED)


def require_decidable(found: Doubt) -> None:
    """Somebody sees what is in doubt: refused where nobody can say what it is in this call."""
    if _may_differ() and not _is_known(found, active_trace().call[Decided].outcomes):
        if found.decider.site not in decisions().typed:
            decisions().typed.add(found.decider.site)
            decisions().again()
        refuse_type(found)


def _may_differ() -> bool:
    """Whether what is recorded runs more than once in a call, each time with other values."""
    trace = active_trace()
    return bool(trace.call[OpenRegions]) or trace.is_of_rows


def refuse_type(found: Doubt) -> NoReturn:
    """Somebody sees what is in doubt, and nobody can say what it is."""
    found.decider.refuse(f"{found.what} depends on values that only the compiled program knows", found.remedy)


def _is_known(found: Doubt, known: Mapping[Value, int]) -> bool:
    return any(known.get(test) for test in found.cases.values()) or all(test in known for test in found.cases.values())


def _decide(found: Doubt) -> type | None:
    """The case that holds in the call that is traced."""
    for n, (which, test) in enumerate(found.cases.items()):
        if paths.decide(test, ((0, n), *found.decider.site)):  # a place of its own: the branch may have its test decided there
            return which
    return None


def is_mixed(x: Any) -> bool:
    """Whether a number does not compute as Python's do, although it is one of them where nothing else holds."""
    found = doubt_of(x)
    if found is not None and (found.is_strict or NONE in found.cases):
        return True
    return found is not None and is_pythons(own_type(x)) and not all(map(is_pythons, found.cases))


def is_exact(x: Any, which: type, dtype: Any) -> bool:
    """Whether a number, if it is of this type, has its very value in a dtype."""
    found = doubt_of(x)
    if x is None or which not in types_of(x) or not _is_narrower(dtype, which):
        return True
    if found is not None:
        return which in found.exact and x.dtype == dtype
    return type(x) in _PLAIN and fits(x, dtype)


def fits(x: Any, dtype: Any) -> bool:
    """Whether a plain number has its very value in a dtype."""
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return bool(limits.min <= x <= limits.max)
    with np.errstate(all="ignore"):
        return bool(np.asarray(x).astype(dtype).item() == x or x != x)


def only_numpys(x: Any) -> Value:
    """A number's value where somebody computes in more bits than it has: it is none of Python's that had those."""
    value: Value = x.value
    found = doubt_of(x)
    for which, test in found.cases.items() if found is not None else ():
        if found is not None and which not in found.exact and _is_narrower(value.dtype, which):
            value = never(value, test)
    return value


def never(value: Value, test: Value) -> Value:
    told = f"a number of Python's was carried as {value.dtype}, which has fewer bits; begin with np.{value.dtype}(0), say"
    return _is_held(value, ops.bit_not(test), told)


def _is_held(value: Value, ok: Value, message: str) -> Value:
    """A number that is held as it is; else plain Python computes, row by row where there are rows."""
    error = RowsDiffer.__name__ if active_trace().is_of_rows else "OverflowError"
    made: Value = ops.check(value, ok, error=error, message=message)
    return made


def _is_narrower(dtype: Any, which: type) -> bool:
    """Whether numbers of a type of Python's may lose digits in a dtype; ints in float64 are another matter."""
    return is_pythons(which) and which is not bool and dtype not in (DTYPES[which], F64, C128)


def dtype_of(which: type) -> Any:
    """The dtype of a type of Python's, or of a NumPy scalar."""
    return DTYPES[which] if which in DTYPES else np.dtype(which)


def typed_value(value: Value, which: type, test: Value, *, exact: bool = False) -> Value:
    """What a number is as one of some type, where the truth holds."""
    dtype = dtype_of(which)
    if value.dtype == dtype:
        return value
    if _is_narrower(value.dtype, which) and not exact:
        value = never(value, test)
    if value.dtype.kind == "f":
        value = ops.select(test, value, ops.full(value=0.0, shape=(), dtype=value.dtype))
        if value.dtype == F64 and dtype.kind in "iu" and dtype.itemsize == 8:  # holds ints below 2**53
            value = _is_held(value, ops.lt(ops.abs(value), _EXACT), "an int that was carried as a float is too large for it")
    elif is_complex(value.dtype) and not is_complex(dtype):
        return typed_value(ops.real(value), which, test)
    made: Value = ops.ne(value, 0) if dtype == BOOL else ops.convert(value, dtype=dtype)
    return made


def same_value(value: Value) -> Value:
    """The same once more, of a number of which less is open."""
    made: Value = ops.convert(value, dtype=value.dtype)
    return made


def of_known_type(result: Any, operands: Sequence[Any]) -> Any:
    """What a function has made of numbers: another object with the value of one in doubt has a type of its own."""
    if doubt_of(result) is not None and any(getattr(x, "value", None) is result.value and x is not result for x in operands):
        result.value = same_value(result.value)
    return result


def settled(xs: Sequence[Any], kinds: Sequence[Any], resolve: Callable[[Sequence[Any]], Any]) -> Any:
    """What promotion makes of the kinds of some operands; where those in doubt would change it, of the kinds that they have."""
    result = resolve(kinds)
    trace = current_trace()
    if trace is None or not trace.call[Doubts]:
        return result
    found = [doubt_of(x) for x in xs]
    if not any(found):
        return result
    strict = next((x for x, d in zip(xs, found) if d is not None and (d.is_strict or NONE in d.cases)), None)
    if strict is not None:
        raise OpenType(strict)
    choices = [[kind] if d is None else [kind, *map(_part, d.cases)] for kind, d in zip(kinds, found)]
    rest = kinds[len(found) :]
    if all(resolve([*chosen, *rest]) == result for chosen in product(*choices)):
        return result
    types = [None if d is None else require_type(x) for x, d in zip(xs, found)]
    if all(is_pythons(which or own_type(x)) for x, which in zip(xs, types)):  # as they are, they compute as Python's
        raise OpenType(next(x for x, d in zip(xs, found) if d is not None))
    return resolve([*(kind if which is None else _part(which) for kind, which in zip(kinds, types)), *rest])


def _part(which: type) -> Any:
    """A type's part in promotion."""
    return which if which in (int, float, complex) else dtype_of(which)
