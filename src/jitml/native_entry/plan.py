"""From a variant's guard program and results to instructions for the native entry.

Claims and steps that machine code knows become instructions; of any other one a small Python function is made, which the entry
calls. So every guard program can be written, and what is common costs no Python.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import combinations, product
from typing import Any

import numpy as np
import optree

from jitml.codegen.run.interface import ProgramInterface
from jitml.dispatch.entry import finishing, telling
from jitml.native_entry import codes
from jitml.records import dataclass, field
from jitml.trace.record.array_memory import all_disjoint, disjoint
from jitml.trace.record.guards import Compute, GuardCheck, HostConst, Slot, extent, unchanged
from jitml.trace.results import FixedResult, FromGraph, FromHost, Result
from jitml.trace.trace import Traced

# Steps that are a C function of two objects.
_BINARY: Mapping[Callable[..., Any], str] = {
    operator.add: "PyNumber_Add",
    operator.sub: "PyNumber_Subtract",
    operator.mul: "PyNumber_Multiply",
    operator.truediv: "PyNumber_TrueDivide",
    operator.floordiv: "PyNumber_FloorDivide",
    operator.mod: "PyNumber_Remainder",
    operator.getitem: "PyObject_GetItem",
    getattr: "PyObject_GetAttr",
}
C_FUNCTIONS = tuple(_BINARY.values())
_RELATIONS = {operator.lt: 0, operator.le: 1, operator.eq: 2, operator.ne: 3, operator.gt: 4, operator.ge: 5}
_OF_TYPE, _OF_DTYPE, _OF_SHAPE = "type({0}) is {k}", "({0}.dtype is {k} or {0}.dtype == {k})", "{0}.shape == {k}"
_OF_STRIDES, _OF_RANK, _OF_VALUE = "{0}.strides == {k}", "{0}.ndim == {k}", "{0} == {k}"
# Their `==` says True of an object and itself, and asks nobody else.
_PLAIN = (int, str)
_FEW_PAIRS = 64  # of arrays, that are compared one by one
_NUMBERS = {float: ("float64", codes.FLOAT), int: ("int64", codes.INT), bool: ("bool", codes.BOOL)}


class Unplanned(Exception):
    """A variant has no native entry: it looks at containers themselves, or at such as are neither tuples, lists nor dicts."""


@dataclass(eq=False)
class EntryPlan:
    """What an entry does, over numbered slots: constants, then arguments, then what is computed.

    Args:
        positional, names: the arguments that it takes.
        constants: by their ids, in the order of their slots; instructions name others by the order in which they come.
        code: instructions of six words; an object or a function among the words stands for its address.
        inputs: slots of what the program is given.
        results, result_kind, finish: how the result is made.
        tell: is told of an exception in the midst of writing.
    """

    positional: int
    names: tuple[str, ...]
    constants: list[Any] = field(default_factory=list)
    computed: int = 0
    code: list[tuple[Any, ...]] = field(default_factory=list)
    inputs: list[SlotPlace] = field(default_factory=list)
    results: list[tuple[int, SlotPlace | int]] = field(default_factory=list)
    result_kind: int = codes.BY_PYTHON
    finish: Callable[..., Any] | None = None
    tell: Callable[[BaseException], None] | None = None
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
        a, b, *_ = (*operands, None, None)
        self.code.append((op, a, b, d, x, y))


@dataclass(frozen=True, slots=True)
class SlotPlace:
    """A slot before all are known."""

    kind: str
    index: int


# What is known to be of NumPy's own class, and the bytes of its elements, or 0.
_Arrays = dict[Slot | HostConst, int]


class _Slots(dict[Slot, SlotPlace]):
    """Where the slots of a guard program are."""

    def __missing__(self, slot: Slot) -> SlotPlace:
        raise Unplanned  # the arguments themselves, behind the leaves of containers


def planned(key: Hashable, traced: Traced, interface: ProgramInterface, shaped: Callable[..., Any] | None) -> EntryPlan:
    """
    Args:
        key: the structure of the arguments.
        shaped: gives outputs their true shapes, where only the run tells them.

    Raises:
        Unplanned: see there.
    """
    plan, leaves = _arguments(key)
    plan.tell = telling(traced)
    slots = _Slots((slot, leaves[at]) for slot, at in traced.host.arguments.items() if at < len(leaves))
    arrays: _Arrays = {}
    for step in traced.host.steps:
        if isinstance(step, Compute):
            slots[step.slot] = _computed(plan, step, slots, arrays)
        else:
            _check(plan, step, slots, arrays)
    plan.inputs = [slots[slot] for slot in traced.entries]
    results = (
        None
        if shaped is not None or traced.numbers or traced.copied or traced.changes
        else _results(plan, traced, slots, interface)
    )
    if results is None:
        plan.finish, given = finishing(traced, shaped)
        plan.results = [(codes.SLOT, slots[slot]) for slot in given]
    else:
        plan.results = results
        plan.result_kind = codes.ONE if traced.out_specs[0].is_leaf() else codes.SEVERAL
    return plan


# ------------------------------------------------------------------------------------------------------- arguments


def _arguments(key: Hashable) -> tuple[EntryPlan, list[SlotPlace]]:
    """A plan for arguments of this structure, and where it finds the leaves."""
    if isinstance(key, optree.PyTreeSpec):
        args, kwargs = key.children()
        plan = EntryPlan(args.num_children, tuple(kwargs.entries()))
        leaves: list[SlotPlace] = []
        for index, spec in enumerate((*args.children(), *kwargs.children())):
            _take_apart(plan, spec, SlotPlace("argument", index), leaves)
        return plan, leaves
    positional, *names = key if isinstance(key, tuple) else (key,)
    plan = EntryPlan(positional, tuple(names))
    return plan, [SlotPlace("argument", index) for index in range(plan.arguments)]


def _take_apart(plan: EntryPlan, spec: optree.PyTreeSpec, place: SlotPlace, leaves: list[SlotPlace]) -> None:
    if spec.is_leaf():
        leaves.append(place)
        return
    kinds = {tuple: codes.TUPLE, list: codes.LIST, dict: codes.DICT}
    if spec.type is type(None):
        plan.emit(codes.IS, place, plan.constant(None), y=1)
        return
    if spec.type not in kinds:
        raise Unplanned
    parts = spec.children()
    keys = tuple(spec.entries()) if spec.type is dict else ()
    if any(type(key) is not str for key in keys):  # others are equal without being one object
        raise Unplanned
    first = plan.new(len(parts))
    plan.emit(kinds[spec.type], place, d=first, x=keys or 0, y=len(parts))
    for index, part in enumerate(parts):
        _take_apart(plan, part, SlotPlace("computed", first.index + index), leaves)


# ---------------------------------------------------------------------------------------------------------- guards


def _computed(plan: EntryPlan, step: Compute, slots: Mapping[Slot, SlotPlace], arrays: _Arrays) -> SlotPlace:
    places = [plan.constant(o.value) if isinstance(o, HostConst) else slots[o] for o in step.operands]
    if step.function is unchanged:
        return places[0]
    result = plan.new()
    whose, axis = (*step.operands, None, None)[:2]
    if step.function is extent and whose in arrays and isinstance(axis, HostConst):
        plan.emit(codes.EXTENT, places[0], d=result, x=axis.value)
    elif step.function in _BINARY and len(places) == 2:
        plan.emit(codes.BINARY, *places, d=result, x=_BINARY[step.function])
    elif step.function in _RELATIONS:
        plan.emit(codes.COMPARE, *places, d=result, y=_RELATIONS[step.function])
    else:
        plan.emit(codes.CALL, plan.constant(step.function), d=result, x=places, y=len(places))
    return result


def _check(plan: EntryPlan, check: GuardCheck, slots: Mapping[Slot, SlotPlace], arrays: _Arrays) -> None:
    places, known = [slots[slot] for slot in check.slots], check.constant
    if len(places) == 1 and _check_array(plan, check, places[0], arrays):
        return
    if known is all_disjoint and _check_disjoint(plan, check, slots, arrays):
        return
    if check.code == _OF_TYPE:
        plan.emit(codes.TYPE, places[0], x=known)
        if known is np.ndarray:
            arrays[check.slots[0]] = 0
    elif check.code == "{0} is {k}":
        plan.emit(codes.IS, places[0], plan.constant(known), y=1)
    elif check.code in ("{0} is {1}", "{0} is not {1}"):
        plan.emit(codes.IS, *places, y=int(check.code == "{0} is {1}"))
    elif check.code == _OF_VALUE and type(known) in _PLAIN:
        plan.emit(codes.EQUAL, places[0], plan.constant(known))
    else:
        _ask(plan, check, places)


def _ask(plan: EntryPlan, check: GuardCheck, places: Sequence[SlotPlace]) -> None:
    """Let Python see whether a claim holds."""
    names = [f"v{n}" for n in range(len(places))]
    source = f"lambda {', '.join(names)}: {check.code.format(*names, k='k')}"
    plan.emit(codes.CHECK, plan.constant(eval(source, {"k": check.constant})), x=places, y=len(places))


def _check_disjoint(plan: EntryPlan, check: GuardCheck, slots: Mapping[Slot, SlotPlace], arrays: _Arrays) -> bool:
    """Whether arrays can be seen to overlap no others by where they begin and end, but few of them; Python is asked of others."""
    count = check.code.partition("], [")[0].count("{") - 1  # besides the constant
    written, others = check.slots[:count], check.slots[count:]
    pairs = [*combinations(written, 2), *product(written, others)]
    if len(pairs) > _FEW_PAIRS or not all(map(arrays.get, check.slots)):
        return False
    for one, other in pairs:
        plan.emit(codes.APART, slots[one], slots[other], x=arrays[one], y=arrays[other])
        plan.emit(codes.CHECK, plan.constant(disjoint), x=[slots[one], slots[other]], y=2)
    return True


def _check_array(plan: EntryPlan, check: GuardCheck, place: SlotPlace, arrays: _Arrays) -> bool:
    """Whether this is a claim about an array that machine code knows; of what is known to be one, for it reads its memory."""
    code, known = check.code, check.constant
    if check.slots[0] not in arrays:
        return False
    if code == _OF_DTYPE:
        plan.emit(codes.DTYPE, place, x=known)
        arrays[check.slots[0]] = known.itemsize
    elif code == _OF_RANK:
        plan.emit(codes.NDIM, place, y=known)
    elif code in (_OF_SHAPE, _OF_STRIDES):
        op = codes.SHAPE if code == _OF_SHAPE else codes.STRIDES
        plan.emit(op, place, x=np.array(known, np.int64), y=len(known))
    elif code.startswith("{0}.flags.num & "):
        plan.emit(codes.FLAGS, place, x=int(code.split()[2]), y=known)
    else:
        return False
    return True


# --------------------------------------------------------------------------------------------------------- results


def _results(
    plan: EntryPlan, traced: Traced, slots: Mapping[Slot, SlotPlace], interface: ProgramInterface
) -> list[tuple[int, SlotPlace | int]] | None:
    """How each returned leaf is made; None if Python makes them."""
    (spec,) = traced.out_specs if len(traced.out_specs) == 1 else (None,)
    if spec is None or not (spec.is_leaf() or _is_flat(spec)):
        return None
    results = [_result(plan, result, slots, interface) for result in traced.results]
    return [result for result in results if result is not None] if None not in results else None


def _is_flat(spec: optree.PyTreeSpec) -> bool:
    return spec.type is tuple and all(child.is_leaf() for child in spec.children())


def _result(
    plan: EntryPlan, result: Result, slots: Mapping[Slot, SlotPlace], interface: ProgramInterface
) -> tuple[int, SlotPlace | int] | None:
    match result:
        case FixedResult(value):
            return codes.SLOT, plan.constant(value)
        case FromHost(slot, (), _, True):
            return codes.SLOT, slots[slot]
        case FromGraph(position, kind, (), True, True) if kind is np.ndarray:
            return codes.ARRAY, position
        case FromGraph(position, kind, (), _, _) if kind is np.generic:
            return codes.SCALAR, position
        case FromGraph(position, kind, (), _, _) if kind in _NUMBERS:
            dtype, code = _NUMBERS[kind]
            return (code, position) if interface.outputs[position].dtype == np.dtype(dtype) else None
    return None


__all__ = ["C_FUNCTIONS", "EntryPlan", "SlotPlace", "Unplanned", "planned"]
