"""Unbound names: what is a name that may be bound or not, as only the compiled program knows?

A value, and the truth of its being there.

An `if` binds it in one branch, a loop that may not run in its body. The name goes through regions like any other, its truth
beside it; converted code that reads it (`Hooks.bound`) has the program check the truth there. Where the check fails, NumPy
answers the call: plain Python knows what an unbound name is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import Any

from jitml.ir import ops
from jitml.ir.dims import Sym, syms_in
from jitml.ir.graph import Value
from jitml.trace.record.parts import CallPart
from jitml.trace.record.recording import Trace, active_trace, unsupported
from jitml.trace.rewrite.protocol import UNDEF
from jitml.trace.storage.strides import c_strides
from jitml.trace.symbolic.booleans import Truth
from jitml.trace.values.kinds import Kind


class Unsure:
    """What a name holds if it is bound; only regions and `bound` meet one."""

    __slots__ = ("bound", "name", "seen", "value")

    def __init__(self, name: str, value: Any, bound: Value) -> None:
        self.name = name
        self.value = value
        self.bound = bound
        self.seen: list[Trace] = []  # where it has been checked


class GivenUp(set[str], CallPart):
    """Names that may be bound, and are taken not to be, since nobody has read one."""


def given_up(name: str) -> Any:
    """What a name holds that may be bound, where nobody has read it."""
    active_trace().call[GivenUp].add(name)
    return UNDEF


def none_given_up(names: Iterable[str], there: Mapping[str, Any]) -> None:
    """Refuse to list names where only the compiled program knows which of them are bound."""
    known = active_trace().call[GivenUp]
    for name in names:
        if (name not in there and name in known) or type(there.get(name)) is Unsure:
            unsupported(
                f"the names of locals are asked for, and whether {name} is one depends on data", f"Bind {name} before that."
            )


def parts(x: Any) -> tuple[Any, Truth]:
    """What a name holds, and whether it does."""
    return (x.value, x.bound) if type(x) is Unsure else (x, x is not UNDEF)


def unsure(name: str, value: Any, bound: Truth) -> Any:
    """What a name holds that is bound where the truth holds."""
    if isinstance(bound, bool):
        return value if bound else UNDEF
    return Unsure(name, value, bound)


def bound(x: Any) -> Any:
    """What a name holds that is read here; None perhaps (`optional.py`)."""
    if type(x) is not Unsure:
        return x
    trace: Trace | None = active_trace()
    while trace is not None and trace not in x.seen:
        trace = trace.parent
    if trace is None:
        x.seen.append(active_trace())
        message = f"cannot access local variable '{x.name}' where it is not associated with a value"
        ops.check(x.bound, x.bound, error="UnboundLocalError", message=message)
    return x.value


def placeholder(leaf: Any, kind: Kind | None, unseen: Set[Sym]) -> Any:
    """What stands for a leaf where its name is not bound, and nobody reads it. It has no elements along `unseen` sizes."""
    if kind is None:
        return leaf
    if not unseen.isdisjoint(kind.aval.syms):
        aval = kind.aval.with_shape(tuple(n if unseen.isdisjoint(syms_in((n,))) else 0 for n in kind.aval.shape))
        kind = Kind(kind.form, aval, c_strides(aval.shape), kind.writeable, kind.lent)
    return kind.show(ops.full(value=0, shape=kind.aval.shape, dtype=kind.aval.dtype))


__all__ = ["GivenUp", "Unsure", "bound", "given_up", "none_given_up", "parts", "placeholder", "unsure"]
