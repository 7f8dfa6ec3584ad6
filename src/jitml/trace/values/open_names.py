"""Open names: what is a name that may be unbound, or None, as only the compiled program knows?

A value, and the truths of its being bound and being there.

An `if` binds a name in one branch, a loop that may not run in its body; `best = None` before a loop, and in it, perhaps,
`best = (i, x[i])`. (A number or None is a number: `type_unions.py`.) The name goes through regions like any other, the truths
beside it. Converted code says how it reads it. All reading has the program check that it is bound; where the check fails, NumPy
answers the call: plain Python knows what an unbound name is. `best is None` asks the other truth, `best[0]` has it checked, too;
anything else must know it. What a condition around it has asked is known.
"""

from __future__ import annotations

from collections.abc import Set
from typing import Any

from jitml.ir import ops
from jitml.ir.dims import Sym, syms_in
from jitml.trace.record.recording import Trace, active_trace
from jitml.trace.rewrite.driver_protocol import OURS, UNDEF
from jitml.trace.speculation.modes import Decider
from jitml.trace.storage.strides import c_strides
from jitml.trace.symbolic.booleans import Truth, as_value, negated
from jitml.trace.values.kinds import Kind, kind_of
from jitml.trace.values.numbers import TracedNumber
from jitml.trace.values.type_unions import NONE, Doubt, decide_if_asked, decide_now, decided

_REMEDY = "Ask `is None` in a condition around it, or begin with a value of the same type and keep a flag beside it."


class OpenName:
    """What a name holds if it is bound, and is not None; only regions, and the hooks below, meet one."""

    __slots__ = ("absent", "bound", "decider", "name", "seen", "there", "value")

    def __init__(self, name: str, value: Any, bound: Truth, there: Truth, decider: Decider) -> None:
        self.name = name
        self.value = value
        self.bound = bound
        self.there = there
        self.absent = negated(there)
        self.decider = decider
        self.seen: list[Trace] = []  # where it has been checked that it is bound

    @property
    def doubt(self) -> Doubt:
        what = f"whether {self.name} is None"
        return Doubt({NONE: as_value(self.absent)}, self.decider, what=what, remedy=_REMEDY)

    def known(self) -> Truth:
        """Whether it is there, as far as that is known here."""
        if isinstance(self.there, bool) or isinstance(self.absent, bool):
            return self.there
        for fact in (fact for trace in active_trace().around() for fact in trace.facts):
            if fact is self.there or fact is self.absent:
                return fact is self.there
        outcome = decided(self.absent)
        return self.there if outcome is None else not outcome

    def is_there(self, wanted: bool) -> TracedNumber | bool:
        """Whether it is there, or the contrary, as somebody asks."""
        known = self.known()
        if isinstance(known, bool):
            return known is wanted
        holds, fails = map(as_value, (self.there, self.absent) if wanted else (self.absent, self.there))
        answer = TracedNumber.of_value(active_trace(), holds)
        answer.facts = (holds,), (fails,)
        return answer


def open_name(name: str, value: Any, bound: Truth, there: Truth, decider: Decider) -> Any:
    """What a name holds that is bound where the one truth holds, and None where the other one does not."""
    if bound is False:
        return UNDEF
    made = OpenName(name, value, bound, there, decider)
    if there is False or (there is not True and decide_if_asked(made.doubt) is NONE):
        made.value, made.there = None, True
    return made.value if made.bound is made.there is True else made


def parts(x: Any) -> tuple[Any, Truth, Truth]:
    """What a name holds, whether it is bound and, as far as that is known here, whether it is not None."""
    return (x.value, x.bound, x.known()) if type(x) is OpenName else (x, x is not UNDEF, True)


def payload(x: Any) -> Any:
    """What a name holds if it is bound, and is not None."""
    return x.value if type(x) is OpenName else x


def may_be_unbound(x: Any) -> bool:
    return type(x) is OpenName and x.bound is not True


def may_be_apart(name: str, x: Any, y: Any) -> bool:
    """Whether a name that can hold one or the other holds something or None. Only names of the function are read by the hooks."""
    if any(type(one) is OpenName and one.there is not True for one in (x, y)):
        return True
    x, y = payload(x), payload(y)
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


def bound(x: Any) -> Any:
    """What a name holds that is read here; None perhaps."""
    if type(x) is not OpenName:
        return x
    if x.bound is not True and not any(trace in x.seen for trace in active_trace().around()):
        x.seen.append(active_trace())
        message = f"cannot access local variable '{x.name}' where it is not associated with a value"
        ops.check(x.bound, x.bound, error="UnboundLocalError", message=message)
    return x.value if x.there is True else x


def present(x: Any) -> Any:
    """What a name holds that is read here, by somebody who takes None as well."""
    x = bound(x)
    if type(x) is not OpenName:
        return x
    known = x.known()
    is_there = known if isinstance(known, bool) else decide_now(x.doubt) is not NONE
    return x.value if is_there else None


def truthful(x: Any) -> Any:
    """What a name holds of which the truth alone is read."""
    x = bound(x)
    if type(x) is not OpenName or not isinstance(x.value, tuple):
        return present(x)
    return x.is_there(True) if x.value else False


def sure(x: Any) -> Any:
    """What a name holds of which something is read that None has not."""
    x = bound(x)
    if type(x) is not OpenName:
        return x
    known = x.known()
    if not isinstance(known, bool):
        ops.check(x.there, x.there, error="TypeError", message=f"{x.name} is None")
        trace = active_trace()
        trace.facts = (*trace.facts, as_value(x.there))
    return x.value if known is not False else None


def placeholder(leaf: Any, kind: Kind | None, unseen: Set[Sym]) -> Any:
    """What stands for a leaf where its name is not bound, and nobody reads it. It has no elements along `unseen` sizes."""
    if kind is None:
        return leaf
    if not unseen.isdisjoint(kind.aval.syms):
        aval = kind.aval.with_shape(tuple(n if unseen.isdisjoint(syms_in((n,))) else 0 for n in kind.aval.shape))
        kind = Kind(kind.form, aval, c_strides(aval.shape), kind.writeable, kind.lent)
    return kind.show(ops.full(value=0, shape=kind.aval.shape, dtype=kind.aval.dtype))
