"""Container identity: which list, dict or object does a name hold, where a branch or a loop hands out one of several?

A new one, with what is in it.

That is right until somebody changes one of them, or asks which it is: then the construct that has left it open decides
(`modes.py`). What the construct has made itself, or nothing but the name has held, is nobody else's: it is that very one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from inspect import CO_OPTIMIZED
from types import FrameType, FunctionType, MappingProxyType, ModuleType
from typing import Any, NoReturn

from jitml.records import dataclass
from jitml.trace.record.parts import LocalPart
from jitml.trace.record.pytree import children
from jitml.trace.record.recording import Trace, active_trace, current_trace, home_of
from jitml.trace.rewrite.driver_protocol import OURS
from jitml.trace.speculation.modes import Decider, traced_frames
from jitml.trace.values.open_names import payload

_OTHERS = ("jitml.", "numpy")  # of whose objects no container is known by other names
_NONE: Mapping[int, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True, eq=False)
class Unsettled:
    """A container that may be another one: one of `olds`, or one that has been handed out for it."""

    container: Any
    decider: Decider
    olds: Sequence[Any] = ()


class UnsettledContainers(dict[int, Unsettled], LocalPart):
    """Those of a trace, by id."""


class MadeInside(dict[int, object], LocalPart):
    """Objects that the body of a region itself has made, by id."""


class HandedOut:
    """What one construct hands out.

    Args:
        bodies: what it has recorded.
        before: of a loop, by id, what containers are that an iteration begins with.
    """

    def __init__(self, decider: Decider, bodies: Sequence[Trace], before: Mapping[int, Any] = _NONE) -> None:
        self.decider = decider
        self.bodies = bodies
        self.made = {key for body in bodies for key in body.local[MadeInside]}
        self.before = before
        self.known: dict[int, Any] = {}  # id of what a name ends with -> what it holds afterwards
        self.olds: dict[int, Sequence[Any]] = {}  # by id of what a name holds afterwards: what it stands for

    def hand_out(self, name: str, new: Any, ends: Sequence[Any], others: Iterable[Any]) -> Any:
        """What a name is to hold: `new`, which stands for one of what the construct's ways end with.

        Args:
            others: what other names have held, or are going to hold.
        """
        trace = active_trace()
        held: Collection[int] | None = None
        for x, ways in containers(new, ends):
            olds = self.olds[id(x)] = [old for way in ways for old in self._settled(way)]
            again = [known for old in olds if (known := self.known.setdefault(id(old), x)) is not x]
            from_before = [old for old in olds if id(old) not in self.made]
            if from_before and held is None:
                held = {*find(others), *self._found_besides(name), *trace.copies.watched, *trace.outside.places}
            shared = [old for old in from_before if id(old) in (held or ())]
            if again or shared:
                unsettled = trace.local[UnsettledContainers]
                unsettled[id(x)] = Unsettled(x, self.decider, olds)
                unknown = [y for y in (*again, *shared) if _unsettled(y, trace) is None]
                unsettled.update((id(y), Unsettled(y, self.decider, self.olds.get(id(y), ()))) for y in unknown)
            elif trace.is_body:
                trace.local[MadeInside][id(x)] = x
        return new

    def _found_besides(self, name: str) -> set[int]:
        """Ids of all containers that variables hold, besides a name of the innermost function."""
        own, *around = self._variables
        return {key for keys in ({**own, name: set()}, *around) for ids in keys.values() for key in ids}

    @cached_property
    def _variables(self) -> list[dict[str, set[int]]]:
        """Ids of the containers in each variable of the functions that run, the innermost first."""
        return [*map(_in_variables, traced_frames())]

    def _settled(self, x: Any) -> list[Any]:
        """What a container may be, as it is known outside: what is open there stands for itself."""
        found = next((found for body in self.bodies if (found := body.local[UnsettledContainers].get(id(x))) is not None), None)
        if found is not None and found.olds:
            return [one for old in found.olds for one in self._settled(old)]
        return [self.before.get(id(x), x)]


def containers(new: Any, ends: Sequence[Any]) -> Iterator[tuple[Any, Sequence[Any]]]:
    """What can be changed in a value that has been put together anew, and what it stands for."""
    parts, spec = children(new)
    if new is None or spec.is_leaf() or all(end is new for end in ends):
        return
    if not isinstance(new, (tuple, slice)):
        yield new, ends
    inside = [children(end)[0] for end in ends]
    if all(len(part) == len(parts) for part in inside):
        for part, *others in zip(parts, *inside):
            yield from containers(part, others)


def find(values: Iterable[Any]) -> dict[int, Any]:
    """All containers in some values, by id."""
    found: dict[int, Any] = {}
    waiting = [*values]
    while waiting:
        x = payload(waiting.pop())
        if id(x) in found:
            continue
        parts, spec = children(x)
        if spec.is_leaf() and not isinstance(x, (type, FunctionType, ModuleType)) and not home_of(type(x)).startswith(_OTHERS):
            parts = [*getattr(x, "__dict__", {}).values()]
        if parts or not spec.is_leaf():
            found[id(x)] = x
            waiting += parts
    return found


def _in_variables(frame: FrameType) -> dict[str, set[int]]:
    values = frame.f_locals
    found = {name: {*find([x])} for name, x in values.items() if not name.startswith(OURS)}
    if type(values) is dict and frame.f_code.co_flags & CO_OPTIMIZED:
        values.clear()  # a copy that Python before 3.13 keeps: whether arrays are still there decides what may be written
    return found


def _unsettled(x: Any, trace: Trace | None) -> Unsettled | None:
    known = (scope.local[UnsettledContainers].get(id(x)) for scope in trace.around()) if trace is not None else ()
    return next((found for found in known if found is not None), None)


def require_settled(x: Any) -> None:
    """Something is about to be changed, or compared by `is`."""
    found = _unsettled(x, current_trace())
    if found is not None:
        _refuse(found, "changed, or compared by `is`,")


def require_certain(watched: Collection[int], stands: dict[int, Any], x: Any) -> None:
    """Something is about to be handed to the caller: it may be none of his own containers, nor one that he gets beside it.

    Args:
        watched: his own, by id.
        stands: what he has been handed, by the ids of all that it may be.
    """
    waiting, seen = [x], set[int]()
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        other, found = stands.setdefault(id(one), x), _unsettled(one, active_trace())
        if found is not None and any(id(old) in watched for old in found.olds):
            _refuse(found, "returned, or kept,")
        if other is not x and (doubtful := _unsettled(x, active_trace()) or _unsettled(other, active_trace())) is not None:
            _refuse(doubtful, "returned, or kept, beside another one")
        waiting += found.olds if found is not None else ()  # which a construct before has left open, too


def _refuse(found: Unsettled, how: str) -> NoReturn:
    text = f"a {type(found.container).__name__} is {how} that may be another one: which, only the compiled program decides"
    found.decider.refuse(text, "Make a copy of it, or change it where it has got its name.")


__all__ = ["HandedOut", "containers", "find", "require_certain", "require_settled"]
