"""Joins of aliases: which memory do arrays share that leave a branch?

What they share in it they share afterwards, and with arrays from before.

Where both branches make two names views of one array, the region hands out that array, and the names are views of it. Else each
name gets new memory, and the region hands out beside it what says whether it is really that of another array
(`values/aliases.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, NoReturn, Protocol

import numpy as np

from jitml.ir.graph import Value
from jitml.records import dataclass, field
from jitml.trace.record.recording import Trace, active_trace
from jitml.trace.rewrite.driver_protocol import UNDEF
from jitml.trace.speculation.modes import Decider, Site
from jitml.trace.storage.storage import AliasOrigin, Case, Storage, leave_region
from jitml.trace.symbolic.booleans import Truth, all_of, negated
from jitml.trace.values.aliases import (
    gone,
    has_known_sizes,
    is_known,
    link,
    one_of,
    origin_of,
    others,
    part_of,
    places,
    possible,
    with_places,
)
from jitml.trace.values.boxing import TracedArray, lift, read
from jitml.trace.values.kinds import Kind, kind_of, same
from jitml.trace.values.numbers import TracedNumber
from jitml.trace.values.ragged import RaggedKind


@dataclass(eq=False)
class Output:
    """A result of the region: what it is in each branch, and where it goes."""

    kind: Kind | None
    leaves: tuple[Any, Any]
    result: Any = None
    types: Mapping[type, Callable[[], Truth]] = field(default_factory=dict)  # that a number may have instead (`type_unions.py`)
    extents: Sequence[Output] = ()  # of an array whose sizes the branches alone know: those, as results of their own

    def takes(self, x: Any, y: Any) -> bool:
        """Whether another name for these is one for this very array: in each branch the same one, if both are bound there."""
        arrays = [type(a) is type(b) is TracedArray and same(a, b) for a, b in zip(self.leaves, (x, y))]
        apart = [a is not UNDEF and b is not UNDEF and not same(a, b) for a, b in zip(self.leaves, (x, y))]
        if (
            not any(arrays)
            or any(apart)
            or (self.is_ragged and not (same(self.leaves[0], x) and same(self.leaves[1], y)))
            or any(a is UNDEF and b is not UNDEF and kind_of(b) != self.kind for a, b in zip(self.leaves, (x, y)))
        ):
            return False
        self.leaves = (x if self.leaves[0] is UNDEF else self.leaves[0], y if self.leaves[1] is UNDEF else self.leaves[1])
        return True

    @property
    def is_ragged(self) -> bool:
        return type(self.kind) is RaggedKind

    def is_very(self, x: Any, y: Any) -> bool:
        """Whether these are the very objects, where they are bound."""
        return all(a is b for a, b in zip(self.leaves, (x, y)) if b is not UNDEF)

    @property
    def arrays(self) -> tuple[TracedArray | None, TracedArray | None]:
        x, y = (lift(leaf) if type(leaf) is np.ndarray else leaf for leaf in self.leaves)
        return (x if type(x) is TracedArray else None, y if type(y) is TracedArray else None)


@dataclass
class AliasView:
    """Another array object on the memory of a result, or on one side the one that another name stands for."""

    of: Output
    leaves: tuple[Any, Any]
    decider: Decider
    partners: list[Output | AliasView]  # which one side knows as this very object

    @cached_property
    def result(self) -> TracedArray:
        own = _view(self.of.result)
        return one_of(own, (own, *(partner.result for partner in self.partners)), self.decider) if self.partners else own


class AliasFork(Protocol):
    site: Site
    decider: Decider
    test: Value
    is_strict: bool

    @property
    def sides(self) -> dict[bool, Any]: ...

    def is_made_here(self, leaf: TracedArray) -> bool: ...

    def give_up(self, message: str, remedy: str) -> NoReturn: ...


@dataclass
class Claim:
    """In one branch, a result is this array if the test holds; both may be known to the branch alone, and are handed out.

    unsaid: the array from before that it shows, in a way which only the branch can tell.
    """

    test: Truth
    origin: AliasOrigin
    told: dict[Value, Output] = field(default_factory=dict)
    unsaid: Storage | None = None


class AliasJoin:
    """`outputs` are all that the region hands out: those that were asked for, and what it takes to say what they share."""

    def __init__(self, fork: AliasFork, outputs: list[Output]) -> None:
        self.fork = fork
        self.trace = active_trace()
        self.asked = [output for output in outputs if any(array is not None for array in output.arrays)]
        self.parts: dict[Output, Output] = {}  # a view -> what it is a view of
        wholes = self._wholes()
        arrays = [output for output in (*wholes, *self.asked) if output not in self.parts]
        self.arrays = sorted(arrays, key=lambda output: any(array.steps for array in output.arrays if array is not None))
        self.claims = {output: [self._claims(output, n) for n in (0, 1)] for output in self.arrays}
        told = [t for pair in self.claims.values() for claims in pair for claim in claims for t in claim.told.values()]
        self.outputs = [*wholes, *(output for output in outputs if output not in self.parts), *told]

    def _wholes(self) -> list[Output]:
        """Further outputs: arrays of which several outputs are views, the same in both branches."""
        groups: dict[tuple[Storage, Storage], list[Output]] = {}
        for output in self.asked:
            x, y = output.arrays
            if x is not None and y is not None and not output.is_ragged and self._is_own(x) and self._is_own(y):
                groups.setdefault((x.storage, y.storage), []).append(output)
        wholes = []
        for (s, t), group in groups.items():
            if len(group) == 1 or s.value.aval != t.value.aval or s.strides != t.strides or s.of_object != t.of_object:
                continue
            if not all(self._is_one_view(*output.leaves) for output in group):
                continue
            whole = next((output for output in group if not output.leaves[0].steps), None)
            if whole is None:
                kind = Kind("array", s.value.aval, s.strides, lent=s.of_object)
                whole = Output(kind, (_whole(s), _whole(t)))
                wholes.append(whole)
            self.parts |= {output: whole for output in group if output is not whole}
        return wholes

    def _is_own(self, array: TracedArray) -> bool:
        return self.fork.is_made_here(array)

    def _is_one_view(self, x: TracedArray, y: TracedArray) -> bool:
        """Whether both branches take the same view, which can be taken outside, too."""
        return x.steps == y.steps and is_known(x.steps, self.trace)

    def _claims(self, output: Output, which: int) -> list[Claim]:
        """What an output may be in one branch, besides memory of its own that nothing else is."""
        array = output.arrays[which]
        if array is None:
            return []
        claims = []
        for test, origin in others(array) if self._is_own(array) else possible(array):
            known = has_known_sizes(origin.steps, self.trace)
            hidden = [v for v in (test, *places(origin.steps)) if not (isinstance(v, bool) or self.trace.sees(v))]
            told = {v: Output(Kind("number", v.aval), self._number(v, which)) for v in hidden}
            storage = origin.storage()
            unsaid = None if known or storage is None or self._is_inner(storage) else storage
            claims.append(Claim(test, origin if known else gone(origin), told, unsaid))
        return claims

    def _number(self, value: Value, which: int) -> tuple[Any, Any]:
        number = TracedNumber.of_value(self._side(which), value)
        return (number, UNDEF) if which == 0 else (UNDEF, number)

    def _side(self, which: int) -> Trace:
        trace: Trace = self.fork.sides[which == 0].body.trace
        return trace

    def finish(self) -> None:
        """All results are there: make those that are views of others, and say what the others may be."""
        for part, whole in self.parts.items():
            x, y = part.leaves
            is_it = x is whole.leaves[0] and y is whole.leaves[1]
            part.result = whole.result if is_it else _part(whole.result, x)
        for output in self.arrays:
            self._link(output)
            for claim in (claim for claims in self.claims[output] for claim in claims):
                if claim.unsaid is not None:
                    output.result.storage.may_be(claim.unsaid, self.fork.decider, overlaps=True)
        handed = [(x.storage, o.result.storage) for o in self.asked for x in o.arrays if x is not None and self._is_own(x)]
        leave_region(handed, self.fork.decider, {})

    def _link(self, output: Output) -> None:
        then, orelse = self._found(output, 0), self._found(output, 1)
        test = self.fork.test
        if then and then[-1].test is True:
            found = [*_under(test, then), *orelse]
        else:
            found = [*_under(negated(test), orelse), *_under(test, then)]
        if found:
            link(output.result, found, self.fork.decider)

    def _is_inner(self, storage: Storage) -> bool:
        return any(storage.trace is self._side(n) for n in (0, 1))

    def _found(self, output: Output, which: int) -> list[Case]:
        """What it may be in one branch, in terms of what is known outside."""
        found: list[Case] = []
        for claim in self.claims[output][which]:
            told = {value: read(t.result) for value, t in claim.told.items()}
            storage = claim.origin.storage()
            origin = with_places(claim.origin, told)
            if storage is not None and self._is_inner(storage):
                out = self._holder(storage, which, output)
                origin = gone(origin) if out is None else _of_result(out, which, origin)
            found.append(Case(claim.test if isinstance(claim.test, bool) else told.get(claim.test, claim.test), origin))
        array = output.arrays[which]
        if array is not None and self._is_own(array):
            out = self._holder(array.storage, which, output)
            if out is not None and self.arrays.index(out) < self.arrays.index(output) and is_known(array.steps, self.trace):
                found.append(Case(True, _of_result(out, which, origin_of(array))))
        return found

    def _holder(self, storage: Storage, which: int, user: Output) -> Output | None:
        """The first other output that is all of a storage in this branch."""
        return next((o for o in self.arrays if o is not user and self._is_all(o, storage, which)), None)

    def _is_all(self, output: Output, storage: Storage, which: int) -> bool:
        array = output.arrays[which]
        return array is not None and array.storage is storage and not array.steps and not output.is_ragged


def _under(condition: Truth, found: Sequence[Case]) -> list[Case]:
    """The same where a condition holds besides."""
    return [Case(all_of(condition, test), origin) for test, origin in found]


def _of_result(output: Output, which: int, origin: AliasOrigin) -> AliasOrigin:
    """Of an array that is the memory of a result in one branch."""
    if origin.array() is output.arrays[which]:
        return origin_of(output.result)
    return part_of(output.result, origin.steps, origin.writeable, origin.faces)


def _whole(storage: Storage) -> TracedArray:
    return TracedArray(storage, (), storage.value.aval, storage.strides, True)


def _part(whole: TracedArray, like: TracedArray) -> TracedArray:
    """An array seen as `like` sees another one."""
    return TracedArray(whole.storage, (*whole.steps, *like.steps), like.aval, like.layout, like.writeable)


def _view(x: TracedArray) -> TracedArray:
    return TracedArray(x.storage, x.steps, x.aval, x.layout, x.writeable)


__all__ = ["AliasFork", "AliasJoin", "AliasView", "Output"]
