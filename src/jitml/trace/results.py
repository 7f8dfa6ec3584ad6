"""How does a call make what the function returns?  `describe`: a recipe for each leaf, and the graph's outputs for it."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from jitml.errors import UnsupportedError
from jitml.ir import ops
from jitml.ir.dims import Sym, syms_in
from jitml.ir.graph import Value
from jitml.trace.context import Trace, unsupported, user_source
from jitml.trace.host import Slot
from jitml.trace.numbers import TracedNumber
from jitml.trace.random import TracedGenerator
from jitml.trace.storage import Choice, Step, Storage, invert, memory_order
from jitml.trace.text import TracedText
from jitml.trace.tracers import TracedArray, TracedScalar, read


@dataclass(frozen=True, slots=True)
class FromGraph:
    """A returned leaf that is the graph's output at `position`: an array, a NumPy scalar, or a Python number."""

    position: int
    kind: type  # np.ndarray, np.generic, or a number's Python type
    steps: tuple[Step, ...] = ()  # views that NumPy takes of it, where several results share memory
    writeable: bool = True


@dataclass(frozen=True, slots=True)
class FromHost:
    """A returned leaf that the host program holds: a Python number, or a caller's array, seen through `steps`.

    `itself`: the very object, and not another array object on the same memory.
    """

    slot: Slot
    steps: tuple[Step, ...] = ()
    writeable: bool = True
    itself: bool = True


@dataclass(frozen=True, slots=True)
class Fixed:
    """A returned leaf that is the same at every call."""

    value: Any


@dataclass(frozen=True, slots=True)
class Either:
    """A returned leaf that is one or another array, as the graph's output at `position` says."""

    position: int
    then: Result
    orelse: Result


Result = FromGraph | FromHost | Fixed | Either


def describe(recording: Trace, leaves: Sequence[Any], outputs: list[Value]) -> tuple[Result, ...]:
    """How each returned leaf is made; fills the graph's outputs."""
    uses: dict[int, int] = {}
    for storage in (s for leaf in leaves if type(leaf) is TracedArray for s in _possible(leaf.storage, leaf.storage.choice)):
        uses[id(storage)] = uses.get(id(storage), 0) + 1
    placed: dict[int, int] = {}
    return tuple(_describe_one(recording, leaf, outputs, uses, placed) for leaf in leaves)


def _possible(storage: Storage | None, choice: Choice | None) -> Iterator[Storage]:
    """The storages that a returned array may be of, as far as they are still there."""
    if storage is not None:
        yield storage
    if choice is not None:
        for origin in (choice.then, choice.orelse):
            if origin is not None:
                yield from _possible(origin.storage(), origin.choice)


def _describe_one(recording: Trace, leaf: Any, outputs: list[Value], uses: dict[int, int], placed: dict[int, int]) -> Result:
    kind = type(leaf)
    if kind is TracedNumber and leaf.slot is not None:
        leaf._check_alive()
        return FromHost(leaf.slot)
    if kind is TracedNumber or kind is TracedScalar:
        outputs.append(read(leaf))
        return FromGraph(len(outputs) - 1, leaf.kind if kind is TracedNumber else np.generic)
    if kind is TracedGenerator and leaf.slot is not None:
        return FromHost(leaf.slot)
    if kind is not TracedArray:
        return _describe_object(recording, leaf)
    storage = leaf.storage
    if any(step.op is ops.gather and step.starts for step in leaf.steps) and (storage.is_external or uses[id(storage)] > 1):
        unsupported("a view with a step that only the running program knows is returned", "Return a copy of it.")
    storage.load()  # refuses a tracer that has leaked
    if storage.is_external:
        # The array itself or a view of it: NumPy takes the view of the caller's array after the call.
        part = next((s for s, tracer in recording.parts.items() if tracer is leaf), None)
        if part is not None:
            return FromHost(part, (), leaf.writeable)
        known = recording.lifted.values()
        slot = next((s for s, (_, tracer) in recording.arrays.items() if tracer is leaf), storage.slot)
        assert any(tracer.storage is storage for tracer in known)
        return FromHost(slot, leaf.steps, leaf.writeable, any(tracer is leaf for tracer in known))
    storage.require_apart(uses)
    rivals = [other for other in storage.others if other.is_external or id(other) in uses]
    if rivals and storage.choice is not None:
        return _describe_choice(recording, leaf, storage.choice, outputs, uses, placed)
    return _describe_made(leaf, outputs, uses, placed)


def _describe_choice(
    recording: Trace, leaf: TracedArray, choice: Choice, outputs: list[Value], uses: dict[int, int], placed: dict[int, int]
) -> Either:
    """Of an array that is one or another."""
    sides: list[Result] = []
    for origin in (choice.then, choice.orelse):
        there = origin.storage() if origin is not None else None
        if origin is not None and there is not None:
            seen = TracedArray(there, (*origin.steps, *leaf.steps), leaf.aval, leaf.layout, origin.writeable)
            sides.append(_describe_one(recording, seen, outputs, uses, placed))
        elif origin is not None and origin.choice is not None:
            sides.append(_describe_choice(recording, leaf, origin.choice, outputs, uses, placed))
        else:
            sides.append(_describe_made(leaf, outputs, uses, placed))
    outputs.append(choice.test)
    return Either(len(outputs) - 1, *sides)


def _describe_made(leaf: TracedArray, outputs: list[Value], uses: dict[int, int], placed: dict[int, int]) -> FromGraph:
    """Of an array that the function made itself."""
    storage = leaf.storage
    if uses[id(storage)] == 1:
        value, steps = _in_memory_order(read(leaf), leaf.layout)
        outputs.append(value)
        return FromGraph(len(outputs) - 1, np.ndarray, steps, leaf.writeable)
    value, steps = _in_memory_order(storage.value, storage.strides)
    if id(storage) not in placed:
        placed[id(storage)] = len(outputs)
        outputs.append(value)
    return FromGraph(placed[id(storage)], np.ndarray, (*steps, *leaf.steps), leaf.writeable)


def _in_memory_order(value: Value, strides: Sequence[Any]) -> tuple[Value, tuple[Step, ...]]:
    """A result with its axes in the order in which NumPy's lie in memory, and the step that shows it as it should be."""
    axes = memory_order(value.shape, strides)
    if axes is None:
        return value, ()
    ordered = ops.transpose(value, perm=axes)
    return ordered, (Step(ops.transpose, {"perm": invert(axes)}, ordered.aval),)


def with_plain_keys(x: Any) -> Any:
    """A result whose dicts have Python's own numbers and texts as keys: what was looked up is known."""
    if isinstance(x, dict) and type(x).__module__ in ("builtins", "collections"):
        items = [(_plain_key(key), with_plain_keys(item)) for key, item in x.items()]
        if all(key is before for (key, _), before in zip(items, x)) and all(a is b for (_, a), b in zip(items, x.values())):
            return x
        made = copy.copy(x)
        made.clear()
        made.update(items)
        return made
    if type(x) in (list, tuple):
        items = [with_plain_keys(item) for item in x]
        return x if all(a is b for a, b in zip(items, x)) else type(x)(items)
    return x


def _plain_key(key: Any) -> Any:
    if type(key) is TracedNumber:
        return key.known()
    if type(key) is TracedScalar:
        return key.dtype.type(int(key))
    return str(key) if type(key) is TracedText else key


_CONSTANTS = (bool, int, float, complex, str, bytes, np.generic, np.dtype, type, Enum, range, slice, type(...))


def _describe_object(recording: Trace, leaf: Any) -> Result:
    for slot, argument in recording.objects.items():
        if argument is leaf:
            return FromHost(slot)
    if isinstance(leaf, _CONSTANTS):
        return Fixed(leaf)
    raise UnsupportedError(
        f"the function returns a {type(leaf).__module__}.{type(leaf).__qualname__}, which cannot be compiled",
        source=user_source(),
        remedy="Return arrays, numbers, strings, and tuples, lists, dicts and dataclasses of them.",
    )


def _steps(result: Result) -> tuple[Step, ...]:
    match result:
        case Either(_, then, orelse):
            return _steps(then) + _steps(orelse)
        case Fixed():
            return ()
        case _:
            return result.steps


def place_numbers(recording: Trace, results: Sequence[Result], outputs: list[Value]) -> dict[Sym | Value, int]:
    """Further outputs: sizes and places of the views that NumPy takes of results, where only the run tells them."""
    steps = [step for result in results for step in _steps(result)]
    wanted: list[Sym | Value] = [*syms_in(tuple(param for step in steps for param in step.params.values()))]
    wanted += [start for step in steps for start in step.starts]
    numbers: dict[Sym | Value, int] = {}
    for wish in dict.fromkeys(wanted):
        numbers[wish] = len(outputs)
        outputs.append(recording.sizes[wish] if isinstance(wish, Sym) else wish)
    return numbers
