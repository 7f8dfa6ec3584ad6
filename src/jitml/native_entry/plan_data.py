"""Plans of native entries as data: slots and instructions, and where an entry finds its program's arguments in its own."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import Any

import optree

from jitml.native_entry import codes
from jitml.records import dataclass, field
from jitml.trace.record.pytree import DATACLASSES, children

# Their `==` says True of an object and itself, and asks nobody else.
PLAIN = (int, str)
Instruction = tuple[int, int, Any]  # of those that make the result


class Unplanned(Exception):
    """A variant has no native entry: it looks at what holds all arguments."""


@dataclass(eq=False)
class EntryPlan:
    """What an entry does, over numbered slots: constants, then arguments, then what is computed.

    Args:
        positional, names: the arguments that it takes.
        given: where those without a name are.
        held: where those are that a section takes in as attributes of one object.
        constants: by their ids, in the order of their slots; instructions name others by the order in which they come.
        code: instructions of six words; an object or a function among the words stands for its address.
        inputs: slots of what the program is given.
        results: instructions that make the result: what, of how many others, and of what else.
        tell: is told of an exception in the midst of writing.
    """

    positional: int
    names: tuple[str, ...]
    constants: list[Any] = field(default_factory=list)
    computed: int = 0
    code: list[tuple[Any, ...]] = field(default_factory=list)
    inputs: list[SlotPlace] = field(default_factory=list)
    results: list[Instruction] = field(default_factory=list)
    tell: Callable[[BaseException], None] | None = None
    given: Sequence[SlotPlace] = ()
    held: Mapping[str, SlotPlace] = field(default_factory=dict)
    kinds: dict[SlotPlace, type] = field(default_factory=dict)  # that have been looked at
    _known: dict[int, int] = field(default_factory=dict)  # constants by their ids

    def number(self, place: SlotPlace) -> int:
        """The number of a slot, now that it is known how many constants there are."""
        before = {"constant": 0, "argument": len(self.constants), "computed": len(self.constants) + self.arguments}
        return before[place.kind] + place.index

    @property
    def arguments(self) -> int:
        return self.positional + len(self.names)

    def constant(self, value: Any) -> SlotPlace:
        index = self._known.setdefault(id(value), len(self.constants))
        if index == len(self.constants):
            self.constants.append(value)
        return SlotPlace("constant", index)

    def new(self, count: int = 1) -> SlotPlace:
        self.computed += count
        return SlotPlace("computed", self.computed - count)

    def emit(self, op: int, *operands: SlotPlace, d: SlotPlace | None = None, x: Any = 0, y: int = 0) -> None:
        if any(place in GROUPS for place in (*operands, *(x if isinstance(x, list) else ()))):
            raise Unplanned
        a, b, *_ = (*operands, None, None)
        self.code.append((op, a, b, d, x, y))


@dataclass(frozen=True, slots=True)
class SlotPlace:
    """A slot before all are known."""

    kind: str
    index: int


# What holds all arguments, `(args, kwargs)`, stands behind the leaves of containers; there is no such object here.
# Nor is the object that holds what a section takes in by reference.
_ALL, _ARGS, _KWARGS, HOLDER = (SlotPlace(name, 0) for name in ("all", "args", "kwargs", "holder"))
GROUPS = (_ALL, _ARGS, _KWARGS, HOLDER)


def item_of(plan: EntryPlan, group: SlotPlace, which: Any) -> SlotPlace:
    if group == _ALL:
        return _KWARGS if which else _ARGS
    return plan.given[which] if group == _ARGS else SlotPlace("argument", plan.positional + plan.names.index(which))


@dataclass(frozen=True, slots=True)
class SectionArguments:
    """What a section's frame hands to its entry.

    Args:
        names: of all.
        held: which of them the program takes in as attributes of one object, its first argument.
        asked: functions with what they are called with, which say None as long as the entry may answer.
    """

    names: tuple[str, ...]
    held: tuple[int, ...]
    asked: tuple[tuple[Callable[..., Any], tuple[Any, ...]], ...]


def argument_plan(key: Hashable, section: SectionArguments | None) -> tuple[EntryPlan, list[SlotPlace]]:
    """A plan for arguments of this structure, and where it finds the leaves."""
    if isinstance(key, optree.PyTreeSpec):
        args, kwargs = key.children()
        plan = EntryPlan(args.num_children, tuple(kwargs.entries()))
        _hand_in(plan, section)
        leaves: list[SlotPlace] = []
        for index, spec in enumerate((*args.children(), *kwargs.children())):
            _take_apart(plan, spec, _nth(plan, index), leaves)
        return plan, [*leaves, _ALL]
    positional, *names = key if isinstance(key, tuple) else (key,)
    count = positional + len(names)
    plan = EntryPlan(positional, tuple(names))
    _hand_in(plan, section)
    return plan, [_nth(plan, index) for index in range(count)]


def _nth(plan: EntryPlan, index: int) -> SlotPlace:
    """Where the program's argument of this number is."""
    count = len(plan.given)
    return plan.given[index] if index < count else SlotPlace("argument", plan.positional + index - count)


def _hand_in(plan: EntryPlan, section: SectionArguments | None) -> None:
    """Note where the program's positional arguments are, and see that nobody watches a section."""
    if section is None:
        plan.given = [SlotPlace("argument", index) for index in range(plan.positional)]
        return
    places = [SlotPlace("argument", index) for index in range(len(section.names))]
    plan.positional, plan.held = len(places), {section.names[n]: places[n] for n in section.held}
    plan.given = [*([HOLDER] if section.held else []), *(x for n, x in enumerate(places) if n not in section.held)]
    for function, given in section.asked:
        answer = plan.new()
        plan.emit(codes.CALL, plan.constant(function), d=answer, x=[*map(plan.constant, given)], y=len(given))
        plan.emit(codes.IS, answer, plan.constant(None), y=1)


def _take_apart(plan: EntryPlan, spec: optree.PyTreeSpec, place: SlotPlace, leaves: list[SlotPlace]) -> None:
    if spec.is_leaf():
        leaves.append(place)
        return
    if spec.type is type(None):
        plan.emit(codes.IS, place, plan.constant(None), y=1)
        return
    parts, names = spec.children(), spec.entries()
    first = plan.new(len(parts))
    if spec.type in DATACLASSES:
        plan.emit(codes.TYPE, place, x=spec.type)
        for index, name in enumerate(names):
            plan.emit(
                codes.BINARY, place, plan.constant(name), d=SlotPlace("computed", first.index + index), x="PyObject_GetAttr"
            )
    elif spec.type in (tuple, list) or optree.is_namedtuple_class(spec.type):
        plan.emit(codes.TYPE, place, x=spec.type)
        plan.emit(codes.LIST if spec.type is list else codes.TUPLE, place, d=first, y=len(parts))
    elif spec.type is dict and all(type(key) in PLAIN for key in names):  # of which equal ones are as good as one
        plan.emit(codes.TYPE, place, x=dict)
        plan.emit(codes.DICT, place, d=first, x=tuple(names) or 0, y=len(parts))
    else:
        apart = plan.new()
        plan.emit(codes.CALL, plan.constant(partial(_parts_of, one_level_of(spec))), d=apart, x=[place], y=1)
        plan.emit(codes.TUPLE, apart, d=first, y=len(parts))
    for index, part in enumerate(parts):
        _take_apart(plan, part, SlotPlace("computed", first.index + index), leaves)


def one_level_of(spec: optree.PyTreeSpec) -> optree.PyTreeSpec:
    """A container without what is in its parts."""
    found = spec.one_level()
    assert found is not None
    return found


def _parts_of(known: optree.PyTreeSpec, container: Any) -> tuple[Any, ...]:
    """What a container of a known structure holds."""
    parts, spec = children(container)
    if spec != known:
        raise LookupError("a container of another structure")
    return tuple(parts)


__all__ = [
    "GROUPS",
    "HOLDER",
    "PLAIN",
    "EntryPlan",
    "Instruction",
    "SectionArguments",
    "SlotPlace",
    "Unplanned",
    "argument_plan",
    "item_of",
    "one_level_of",
]
