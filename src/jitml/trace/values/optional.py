"""Optional values: what does a name hold that is None, or a tuple or array, as only the compiled program knows?

That, and the truth of it.

`best = None` before a loop, and in it, perhaps, `best = (i, x[i])`. (A number or None is a number: `type_unions.py`.) The name
goes through regions like one that may be unbound (`unbound.py`). Converted code says how it reads it: `best is None` asks the
truth, `best[0]` has the program check it, so that plain Python raises where it is None; anything else must know it. What a
condition around it has asked is known.
"""

from __future__ import annotations

from typing import Any

from jitml.ir import ops
from jitml.ir.graph import Value
from jitml.trace.record.recording import Trace, active_trace
from jitml.trace.rewrite.protocol import OURS, UNDEF
from jitml.trace.speculation.modes import Decider
from jitml.trace.symbolic.booleans import Truth, as_value, negated
from jitml.trace.values.kinds import kind_of
from jitml.trace.values.numbers import TracedNumber
from jitml.trace.values.type_unions import NONE, Doubt, decide_if_asked, decide_now, decided
from jitml.trace.values.unbound import bound

_REMEDY = "Ask `is None` in a condition around it, or begin with a value of the same type and keep a flag beside it."


class Perhaps:
    """What a name holds if it is not None; only regions, and the hooks below, meet one."""

    __slots__ = ("absent", "decider", "name", "there", "value")

    def __init__(self, name: str, value: Any, there: Value, decider: Decider) -> None:
        self.name = name
        self.value = value
        self.there = there
        self.absent = as_value(negated(there))
        self.decider = decider

    @property
    def doubt(self) -> Doubt:
        what = f"whether {self.name} is None"
        return Doubt({NONE: self.absent}, self.decider, what=what, remedy=_REMEDY)

    def known(self) -> bool | None:
        """Whether it is there, if that is known here."""
        trace: Trace | None = active_trace()
        while trace is not None:
            for fact in trace.facts:
                if fact is self.there or fact is self.absent:
                    return fact is self.there
            trace = trace.parent
        outcome = decided(self.absent)
        return None if outcome is None else not outcome

    def is_there(self, wanted: bool) -> TracedNumber | bool:
        """Whether it is there, or the contrary, as somebody asks."""
        known = self.known()
        if known is not None:
            return known is wanted
        holds, fails = (self.there, self.absent) if wanted else (self.absent, self.there)
        answer = TracedNumber.of_value(active_trace(), holds)
        answer.facts = (holds,), (fails,)
        return answer


def perhaps(name: str, value: Any, there: Truth, decider: Decider) -> Any:
    """What a name holds that is None where the truth does not hold."""
    if isinstance(there, bool):
        return value if there else None
    made = Perhaps(name, value, there, decider)
    return None if decide_if_asked(made.doubt) is NONE else made


def chances(x: Any) -> tuple[Any, Truth]:
    """What a name holds if it is not None, and whether it is not; UNDEF if it surely is None."""
    if type(x) is not Perhaps:
        return (UNDEF, False) if x is None else (x, True)
    known = x.known()
    return x.value, x.there if known is None else known


def what_is_there(x: Any) -> Any:
    """What a name holds if it is not None."""
    return x.value if type(x) is Perhaps else x


def may_be_apart(name: str, x: Any, y: Any) -> bool:
    """Whether a name that can hold one or the other holds something or None. Only names of the function are read by the hooks."""
    if Perhaps in (type(x), type(y)):
        return True
    some = y if x is None else x
    return (x is None) != (y is None) and name.isidentifier() and not name.startswith(OURS) and _is_tuple_or_array(some)


def _is_tuple_or_array(x: Any) -> bool:
    if type(x) is tuple or hasattr(type(x), "_fields"):
        return all(map(_is_part, x))
    kind = kind_of(x)
    return kind is not None and kind.form == "array"


def _is_part(x: Any) -> bool:
    """Whether nobody can change it but by writing into an array, and a region can carry it."""
    return x is None or isinstance(x, str) or kind_of(x) is not None or _is_tuple_or_array(x)


def present(x: Any) -> Any:
    """What a name holds that is read here, by somebody who takes None as well."""
    x = bound(x)
    if type(x) is not Perhaps:
        return x
    known = x.known()
    if known is None:
        known = decide_now(x.doubt) is not NONE
    return x.value if known else None


def truthful(x: Any) -> Any:
    """What a name holds of which the truth alone is read."""
    x = bound(x)
    if type(x) is not Perhaps or not isinstance(x.value, tuple):
        return present(x)
    return x.is_there(True) if x.value else False


def sure(x: Any) -> Any:
    """What a name holds of which something is read that None has not."""
    x = bound(x)
    if type(x) is not Perhaps:
        return x
    known = x.known()
    if known is None:
        ops.check(x.there, x.there, error="TypeError", message=f"{x.name} is None")
        trace = active_trace()
        trace.facts = (*trace.facts, x.there)
        known = True
    return x.value if known else None


__all__ = ["Perhaps", "bound", "chances", "may_be_apart", "perhaps", "present", "sure", "truthful", "what_is_there"]
