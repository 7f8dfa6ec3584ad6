"""From a variant's guard program and results to instructions for the native entry.

Claims and steps that machine code knows become instructions; of any other one a small Python function is made, which the entry
calls. So every guard program can be written, and what is common costs no Python.
"""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from itertools import chain, combinations, product
from typing import Any

import numpy as np
import optree

from jitml.codegen.llvm.runtime.c_api import class_version
from jitml.codegen.run.interface import ProgramInterface
from jitml.dispatch.entry import finishing, see, telling
from jitml.native_entry import codes
from jitml.native_entry.plan_data import (
    GROUPS,
    HOLDER,
    PLAIN,
    EntryPlan,
    Instruction,
    SectionArguments,
    SlotPlace,
    Unplanned,
    argument_plan,
    item_of,
    one_level_of,
)
from jitml.records import dataclass, replace
from jitml.trace.effects.write_back import SetAttributes
from jitml.trace.environment.class_guards import Members
from jitml.trace.record.array_memory import all_disjoint, disjoint, root, same_view
from jitml.trace.record.guards import DENSE, WRITEABLE, Compute, GuardCheck, HostConst, Slot, extent, unchanged
from jitml.trace.record.pytree import Static, unflatten
from jitml.trace.storage.index_maps import Step
from jitml.trace.traced import FixedResult, FromGraph, FromHost, Result, Traced

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
_UNARY: Mapping[Callable[..., Any], str] = {
    operator.neg: "PyNumber_Negative",
    abs: "PyNumber_Absolute",
    float: "PyNumber_Float",
    int: "PyNumber_Long",
}
C_FUNCTIONS = (*_BINARY.values(), *_UNARY.values())
_RELATIONS = {operator.lt: 0, operator.le: 1, operator.eq: 2, operator.ne: 3, operator.gt: 4, operator.ge: 5}
_OF_TYPE, _OF_DTYPE, _OF_SHAPE = "type({0}) is {k}", "({0}.dtype is {k} or {0}.dtype == {k})", "{0}.shape == {k}"
_OF_STRIDES, _OF_RANK, _OF_VALUE = "{0}.strides == {k}", "{0}.ndim == {k}", "{0} == {k}"
_FEW_PAIRS = 64  # of arrays, that are compared one by one
_MOST_REACH = 1 << 30  # bytes of an array of which a view is taken to see how that lies
_NEW = {tuple: codes.NEW_TUPLE, list: codes.NEW_LIST, dict: codes.NEW_DICT}
_NUMBERS = {float: ("float64", codes.FLOAT), int: ("int64", codes.INT), bool: ("bool", codes.BOOL)}


@dataclass(slots=True)
class KnownArray:
    """What is known of an array of NumPy's own class."""

    dtype: np.dtype[Any] | None = None
    shape: tuple[int, ...] | None = None
    strides: tuple[int, ...] | None = None


_Arrays = dict[Slot | HostConst, KnownArray]


def planned(
    key: Hashable,
    traced: Traced,
    interface: ProgramInterface,
    shaped: Callable[..., Any] | None,
    section: SectionArguments | None = None,
) -> EntryPlan:
    """
    Args:
        key: the structure of the arguments.
        shaped: gives outputs their true shapes, where only the run tells them.
        section: what a section is called with, if this is the program of one.

    Raises:
        Unplanned: see there.
    """
    plan, leaves = argument_plan(key, section)
    plan.tell = telling(traced)
    slots = {slot: leaves[at] for slot, at in traced.host.arguments.items()}
    arrays: _Arrays = {}
    for step in traced.host.steps:
        if isinstance(step, Compute):
            slots[step.slot] = _computed(plan, step, slots, arrays)
        else:
            _check(plan, step, slots, arrays)
    plan.inputs = [slots[slot] for slot in traced.entries]
    if any(place in GROUPS for place in plan.inputs):
        raise Unplanned
    if not (shaped is None and _make_result(plan, traced, slots, arrays, interface)):
        finish, given = finishing(traced, shaped)
        plan.results = [
            (codes.OUTPUTS, 0, 0),
            *((codes.SLOT, 0, slots[slot]) for slot in given),
            (codes.CALLED, 1 + len(given), finish),
        ]
    if any(x in GROUPS for _, _, x in plan.results if isinstance(x, SlotPlace)):
        raise Unplanned
    return plan


# ---------------------------------------------------------------------------------------------------------- guards


def _computed(plan: EntryPlan, step: Compute, slots: Mapping[Slot, SlotPlace], arrays: _Arrays) -> SlotPlace:
    places = [plan.constant(o.value) if isinstance(o, HostConst) else slots[o] for o in step.operands]
    if step.function is unchanged:
        return places[0]
    if step.function is operator.getitem and places[0] in GROUPS and isinstance(step.operands[1], HostConst):
        return item_of(plan, places[0], step.operands[1].value)
    if step.function is getattr and places[0] == HOLDER and isinstance(step.operands[1], HostConst):
        return plan.held[step.operands[1].value]
    if step.function is np.generic.item and (kind := _pythons(plan.kinds.get(places[0]))) is not None:
        step = replace(step, function=kind)
    result = plan.new()
    whose, axis = (*step.operands, None, None)[:2]
    if step.function is extent and whose in arrays and isinstance(axis, HostConst):
        plan.emit(codes.EXTENT, places[0], d=result, x=axis.value)
    elif step.function in _BINARY and len(places) == 2:
        plan.emit(codes.BINARY, *places, d=result, x=_BINARY[step.function])
    elif step.function in _UNARY and len(places) == 1:
        plan.emit(codes.UNARY, places[0], d=result, x=_UNARY[step.function])
    elif step.function in _RELATIONS:
        plan.emit(codes.COMPARE, *places, d=result, y=_RELATIONS[step.function])
    else:
        plan.emit(codes.CALL, plan.constant(step.function), d=result, x=places, y=len(places))
    return result


def _pythons(kind: type | None) -> type | None:
    """What of Python's makes of a NumPy scalar what its `item` gives."""
    if kind is None or not issubclass(kind, np.generic) or kind is np.longdouble or np.dtype(kind).type is not kind:
        return None
    return {"f": float, "i": int, "u": int}.get(np.dtype(kind).kind)


def _check(plan: EntryPlan, check: GuardCheck, slots: Mapping[Slot, SlotPlace], arrays: _Arrays) -> None:
    places, known = [slots[slot] for slot in check.slots], check.constant
    if known is Static:
        return  # the argument itself is there, and is compared with what this holds
    if check.code == _OF_TYPE and places[0] == HOLDER:
        return  # it would be made so
    if len(places) == 1 and _check_array(plan, check, places[0], arrays):
        return
    if known is all_disjoint and _check_disjoint(plan, check, slots, arrays):
        return
    if isinstance(known, Members) and places[0].kind == "constant":
        cls = plan.constants[places[0].index]
        version = class_version(cls)
        if version and known.are_in(cls) and class_version(cls) == version:
            plan.emit(codes.VERSION, places[0], y=version)
        _ask(plan, check, places)
    elif known is same_view:
        plan.emit(codes.ONE, *places)  # Python need not be asked
        _ask(plan, check, places)
    elif type(known) is Static and check.code == _OF_VALUE:
        plan.emit(codes.TYPE, places[0], x=type(known.value))
        _check_value(plan, check, places, known.value)
    elif check.code == _OF_TYPE:
        plan.emit(codes.TYPE, places[0], x=known)
        plan.kinds[places[0]] = known
        if known is np.ndarray:
            arrays[check.slots[0]] = KnownArray()
    elif check.code == "{0} is {k}":
        plan.emit(codes.IS, places[0], plan.constant(known), y=1)
    elif check.code in ("{0} is {1}", "{0} is not {1}"):
        plan.emit(codes.IS, *places, y=int(check.code == "{0} is {1}"))
    elif check.code == _OF_VALUE:
        _check_value(plan, check, places, known)
    else:
        _ask(plan, check, places)


def _check_value(plan: EntryPlan, check: GuardCheck, places: Sequence[SlotPlace], value: Any) -> None:
    if type(value) in PLAIN:
        plan.emit(codes.EQUAL, places[0], plan.constant(value))
    elif value is None or type(value) is bool:
        plan.emit(codes.IS, places[0], plan.constant(value), y=1)
    else:
        _ask(plan, replace(check, constant=value), places)


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
    sizes = {slot: known.dtype.itemsize for slot in check.slots if (known := arrays.get(slot)) and known.dtype is not None}
    if len(pairs) > _FEW_PAIRS or len(sizes) < len(check.slots):
        return False
    for one, other in pairs:
        plan.emit(codes.APART, slots[one], slots[other], x=sizes[one], y=sizes[other])
        plan.emit(codes.CHECK, plan.constant(disjoint), x=[slots[one], slots[other]], y=2)
    return True


def _check_array(plan: EntryPlan, check: GuardCheck, place: SlotPlace, arrays: _Arrays) -> bool:
    """Whether this is a claim about an array that machine code knows; of what is known to be one, for it reads its memory."""
    code, known = check.code, check.constant
    if check.slots[0] not in arrays:
        return False
    array = arrays[check.slots[0]]
    if code == _OF_DTYPE:
        plan.emit(codes.DTYPE, place, x=known)
        array.dtype = known
    elif code == _OF_RANK:
        plan.emit(codes.NDIM, place, y=known)
    elif code == _OF_SHAPE:
        plan.emit(codes.SHAPE, place, x=np.array(known, np.int64), y=len(known))
        array.shape = known
    elif code == _OF_STRIDES:
        plan.emit(codes.STRIDES, place, x=np.array(known, np.int64), y=len(known))
        array.strides = known
    elif code.startswith("{0}.flags.num & "):
        bits = int(code.split()[2])
        plan.emit(codes.FLAGS, place, x=bits, y=known)
        if bits & known & DENSE and array.shape is not None and array.dtype is not None and min(array.shape, default=2) > 1:
            array.strides = tuple(array.dtype.itemsize * math.prod(array.shape[axis + 1 :]) for axis in range(len(array.shape)))
    else:
        return False
    return True


# --------------------------------------------------------------------------------------------------------- results


def _make_result(
    plan: EntryPlan, traced: Traced, slots: Mapping[Slot, SlotPlace], arrays: _Arrays, interface: ProgramInterface
) -> bool:
    """Have machine code make the result; whether it can."""
    if traced.numbers or traced.copied or len(traced.out_specs) > 1:
        return False
    uses, leaves = Counter(map(id, traced.results)), []
    for result in traced.results:
        leaf = _leaf(plan, result, slots, arrays, interface)
        if not leaf or (uses[id(result)] > 1 and leaf[-1][0] not in (codes.ARRAY, codes.SLOT)):  # one object, in several places
            return False
        leaves.append(leaf)
    rest, (spec,) = iter(leaves), traced.out_specs
    if not traced.changes:
        plan.results = _put_together(plan, spec, rest)
        return True
    whole, changed = spec.children()
    plan.results = _put_together(plan, whole, rest)
    given: list[list[Instruction]] = []  # all is made before anything is changed
    puts: list[Instruction] = []
    for change, part in zip(traced.changes, changed.children()):
        put = change.put
        for values in part.children() if isinstance(put, SetAttributes) else (part,):
            given.append([(codes.SLOT, 0, slots[change.slot]), *_put_together(plan, values, rest)])
        puts += [(codes.ATTRIBUTE, 2, name) for name in put.names] if isinstance(put, SetAttributes) else [(codes.DO, 2, put)]
    plan.results += [*chain.from_iterable(reversed(given)), *puts]
    return True


def _put_together(plan: EntryPlan, spec: optree.PyTreeSpec, leaves: Iterator[list[Instruction]]) -> list[Instruction]:
    """The instructions of a structure, after those of its parts."""
    if spec.is_leaf():
        return next(leaves)
    if spec.type is type(None):
        return [(codes.SLOT, 0, plan.constant(None))]
    parts = spec.children()
    made = [instruction for part in parts for instruction in _put_together(plan, part, leaves)]
    if spec.type in _NEW:
        return [*made, (_NEW[spec.type], len(parts), spec.entries() if spec.type is dict else 0)]
    if optree.is_namedtuple_class(spec.type):
        return [*made, (codes.CALLED, len(parts), spec.type)]
    one_level = one_level_of(spec)
    return [*made, (codes.CALLED, len(parts), lambda *given: unflatten(one_level, given))]


def _leaf(
    plan: EntryPlan, result: Result, slots: Mapping[Slot, SlotPlace], arrays: _Arrays, interface: ProgramInterface
) -> list[Instruction]:
    """The instructions of a leaf; none if Python makes it."""
    match result:
        case FixedResult(value):
            return [(codes.SLOT, 0, plan.constant(value))]
        case FromHost(slot, (), _, True):
            return [(codes.SLOT, 0, slots[slot])]
        case FromGraph(position, kind, (), True, True) if kind is np.ndarray:
            return [(codes.ARRAY, 0, position)]
        case FromGraph(position, kind, (), _, _) if kind is np.generic:
            return [(codes.SCALAR, 0, position)]
        case FromGraph(position, kind, (), _, _) if kind in _NUMBERS:
            dtype, code = _NUMBERS[kind]
            return [(code, 0, position)] if interface.outputs[position].dtype == np.dtype(dtype) else []
        case FromHost(slot, steps, writeable, _) if slot in arrays:
            view = _view(arrays[slot], steps, writeable)
            return [(codes.SLOT, 0, slots[slot]), (codes.VIEW, 1, view)] if view else []
        case FromGraph(position, kind, steps, writeable, _) if kind is np.ndarray and position not in _open(interface):
            buffer = interface.outputs[position]
            made = KnownArray(buffer.dtype, buffer.shape, tuple(s * buffer.dtype.itemsize for s in buffer.element_strides))
            view = _view(made, steps, writeable)
            return [(codes.ARRAY, 0, position), (codes.VIEW, 1, view)] if view else []
    return []


def _open(interface: ProgramInterface) -> list[int]:
    """Outputs of which only the run tells the shape."""
    return [n for n, buffer in enumerate(interface.outputs) if buffer.name in interface.exact]


def _view(known: KnownArray, steps: Sequence[Step], writeable: bool) -> list[int]:
    """What the instruction of a view has to know; nothing where it depends on more than how an array lies in memory."""
    if known.dtype is None or known.shape is None or known.strides is None:
        return []
    if min(known.strides, default=0) < 0 or not math.prod(known.shape):
        return []
    reach = known.dtype.itemsize + sum((n - 1) * s for n, s in zip(known.shape, known.strides))
    if reach > _MOST_REACH:
        return []
    base = np.ndarray(known.shape, known.dtype, np.empty(reach, np.uint8), 0, known.strides)
    view = see(base, steps, writeable)
    offset = view.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    if type(view) is not np.ndarray or view.dtype != base.dtype or root(view) is not root(base):
        return []
    return [view.ndim, offset, WRITEABLE if view.flags.writeable else 0, *view.shape, *view.strides]


__all__ = ["C_FUNCTIONS", "planned"]
