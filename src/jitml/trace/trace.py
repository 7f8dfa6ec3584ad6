"""What does a function compute for arguments like these?  `trace` runs it once on tracers and hands back a `Traced`.

A `Traced` is all that the layers below and the dispatcher need: the graph, the host program that feeds it, which
outputs land in the caller's arrays, and a recipe for what the call returns. `trace_subgraph` traces a function inside a
trace, for transforms; `entry.evaluate` runs a function once, for transforms that are called outside any trace.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from traceback import walk_tb
from types import FunctionType
from typing import Any

import numpy as np
import optree

import jitml.trace.hostcalls  # noqa: F401  # what is not compiled goes there
from jitml.errors import JitmlError, TraceError, UnsupportedError
from jitml.ir import ops
from jitml.ir.dims import Sym, syms_in
from jitml.ir.graph import Graph, Value
from jitml.ir.ops.host import keeping_made
from jitml.ir.types import BOOL, C128, F64, I64, is_supported
from jitml.trace.accesses import is_library
from jitml.trace.context import Trace, activate, active_trace, last_user_source, unsupported, user_source
from jitml.trace.convert import convert
from jitml.trace.decisions import Decisions
from jitml.trace.drivers import Restart
from jitml.trace.host import Const, Host, Slot
from jitml.trace.memory import all_disjoint, disjoint, meets_itself
from jitml.trace.numbers import TracedNumber
from jitml.trace.opening import Opened, Seen, seen
from jitml.trace.outside import watch_argument
from jitml.trace.overlap import enter_together, groups
from jitml.trace.paths import Decided, Path, path_of
from jitml.trace.random import TracedGenerator, from_outside, is_generator
from jitml.trace.registry import register_imported
from jitml.trace.storage import Choice, Step, Storage, invert, is_contiguous, memory_order
from jitml.trace.tracers import (
    TracedArray,
    TracedScalar,
    fresh,
    is_traced,
    lift,
    read,
    refuse_dtype,
    scalar,
)
from jitml.trace.tree import flatten, leaf_names, unflatten

_NOTHING: Opened = {}
_ANY_PATH = Path()


class Static:
    """An argument that the user declared static: known to the trace, a variant for each value (by `==` and type)."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Static) and type(self.value) is type(other.value) and bool(self.value == other.value)

    def __hash__(self) -> int:
        return hash(self.value)

    def __repr__(self) -> str:
        return repr(self.value)


class Callee:
    """An argument that is the user's function, to be converted: another one of the same code will do.

    Its globals and what it closes over are loaded at each call, and guarded like what every function loads.
    """

    __slots__ = ("function",)

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function


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


@dataclass(frozen=True)
class Traced:
    """A function, specialised.

    graph: inputs are fed from the host slots `entries`, in order.
    aliases: output position -> input position, for outputs that end in the caller's array.
    strides: input position -> strides in elements, where not C-contiguous.
    copied: slots of caller's arrays that were copied into native layout and must be copied back: (array, copy).
    numbers: Sym or start of a window that the results depend on -> output position of its value, i64[].
    opened, seen: which sizes of the arguments were left open, and the arguments of the call that was traced.
    path: what is assumed of conditions.
    in_spec, out_spec: structure of `(args, kwargs)` and of the result, whose leaves are made by `results`.
    """

    graph: Graph
    host: Host
    entries: tuple[Slot, ...]
    aliases: Mapping[int, int]
    strides: Mapping[int, tuple[int, ...]]
    copied: tuple[tuple[Slot, Slot], ...]
    numbers: Mapping[Sym | Value, int]
    in_spec: optree.PyTreeSpec
    out_spec: optree.PyTreeSpec
    results: tuple[Result, ...]
    opened: Opened
    seen: tuple[Seen, ...]
    path: Path


def trace(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    opened: Opened = _NOTHING,
    *,
    host_calls: bool = True,
    path: Path = _ANY_PATH,
) -> Traced:
    """Run `function` on tracers standing for the arguments.

    Exceptions of the user's code come out as they are; nothing of the caller's has been changed then.

    Args:
        opened: sizes of arguments that are not taken for what they are in this call (`opening.py`).
        host_calls: whether functions that are not compiled may be called by the compiled program.
        path: what is known of this call's conditions.

    Raises:
        UnsupportedError: the function does something that cannot be compiled.
    """
    register_imported()
    known = Decisions(path.modes)
    while True:
        try:
            traced = _attempt(function, args, kwargs, opened, known, host_calls, path)
        except Restart:
            continue
        except Exception as error:
            if known.restart is not None or known.settle_place(error):
                continue
            raise
        if known.restart is None:
            return traced


def _attempt(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    opened: Opened,
    known: Decisions,
    host_calls: bool,
    path: Path,
) -> Traced:
    """Trace once, with what earlier attempts have taught.

    Raises:
        Restart: this one has taught something, too.
    """
    leaves, spec = flatten((args, dict(kwargs)))
    names = leaf_names(spec, _parameters(function))
    recording = Trace(host_calls=host_calls)
    recording.opened = opened
    recording.decisions, recording.decided = known, Decided(path)
    known.begin()
    with _explained(recording), activate(recording), keeping_made():
        tracers = _enter_all(recording, leaves, names)
        traced_args, traced_kwargs = unflatten(spec, tracers)
        try:
            result = convert(function)(*traced_args, **traced_kwargs)
        except Exception as error:
            known.reconsider(recording, error)
            known.settle_open(recording, error)
            raise
        if recording.open:
            caught = UnsupportedError("an exception that leaves a captured region is caught")
            known.reconsider(recording, caught)
            known.settle_open(recording, caught)
        _check_containers(traced_args, traced_kwargs, tracers, spec)
        return _finish(recording, leaves, spec, result)


@contextmanager
def _explained(recording: Trace) -> Iterator[None]:
    """Errors of ours say where in the user's code, and whether that was converted; endless recursion says why."""
    try:
        yield
    except RecursionError as error:
        raise UnsupportedError(
            "the function recurses without end while it is traced: its end depends on a traced value, or there is none",
            source=last_user_source(error),
            remedy="Recursion on Python numbers and shapes works; on array values write a loop, or keep it outside jit.",
        ) from None
    except JitmlError as error:
        error.source = error.source or last_user_source(error)
        frames = [f for e in (error, error.__cause__) if e is not None for f, _ in walk_tb(e.__traceback__)]
        unread = [f.f_code.co_qualname for f in frames if f.f_code in recording.sourceless]
        if unread and isinstance(error, (UnsupportedError, TraceError)):
            reason = f"The source of {unread[-1]} cannot be read, so that what it makes itself, as by np.zeros(3), is not traced"
            error.remedy = f"{reason}: define it in a file.\n{error.remedy}".rstrip()
        raise


def _parameters(function: Callable[..., Any]) -> list[str]:
    try:
        return list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return []


def _enter_all(recording: Trace, leaves: Sequence[Any], names: Sequence[str]) -> list[Any]:
    slots = [recording.host.argument(position, name) for position, name in enumerate(names)]
    arrays = [(slot, leaf) for slot, leaf in zip(slots, leaves) if isinstance(leaf, np.ndarray) and not is_traced(leaf)]
    for group in groups(arrays) if len(arrays) > 1 else ():
        enter_together(recording, group)
    return [_enter(recording, slot, position, *given) for position, (slot, *given) in enumerate(zip(slots, leaves, names))]


def _enter(recording: Trace, slot: Slot, position: int, leaf: Any, name: str) -> Any:
    """The stand-in for one argument leaf, with the checks that make it valid for later calls."""
    host = recording.host
    if slot in recording.parts:
        return recording.parts[slot]
    kind = type(leaf)
    if is_traced(leaf):
        raise UnsupportedError(f"argument {name} is a traced value of another trace", source=user_source())
    if isinstance(leaf, np.ndarray):
        return lift(leaf, slot, position)
    if isinstance(leaf, np.generic):
        if not _is_number(leaf):
            refuse_dtype(leaf)
        host.require_type(slot, kind)
        number = host.compute(np.generic.item, (slot,), name)
        return scalar(recording.number_input(number, leaf.item(), leaf.dtype))
    if kind in (bool, int, float, complex):
        host.require_type(slot, kind)
        if (position, None) in recording.opened:
            return TracedNumber.of_size(recording, None, recording.open_size((position, None), slot, leaf))
        return TracedNumber(recording, slot, leaf)
    if kind is Static:
        host.require(slot, leaf)
        return leaf.value
    if kind is Callee:
        place = host.compute(getattr, (slot, Const("function")), name)
        if type(leaf.function) is FunctionType and not is_library(leaf.function):
            recording.callees[leaf.function] = place
        else:
            host.require_same(place, leaf.function)
        return leaf.function
    if kind in (str, bytes, type(...)) or isinstance(leaf, (np.dtype, Enum, range)):
        host.require(slot, leaf)
        return leaf
    if kind in (set, bytearray, memoryview) or hasattr(leaf, "__array__"):
        raise UnsupportedError(
            f"argument {name} is a {kind.__qualname__}, which is not supported",
            source=user_source(),
            remedy="Arguments are NumPy arrays, numbers, strings, and tuples, lists, dicts and dataclasses of them.",
        )
    if is_generator(leaf):
        return from_outside(recording, leaf, slot)
    watch_argument(recording, leaf, slot)
    recording.objects[slot] = leaf
    return leaf


def _is_number(x: np.generic) -> bool:
    return is_supported(x.dtype)


def _check_containers(args: Any, kwargs: Any, tracers: Sequence[Any], spec: optree.PyTreeSpec) -> None:
    """The function got copies of the caller's lists and dicts: what it did to them would be lost."""
    leaves, after = flatten((args, kwargs))
    if after != spec or any(a is not b for a, b in zip(leaves, tracers)):
        raise UnsupportedError(
            "the function changes a list, dict or dataclass argument (an item is added, removed or replaced)",
            source=user_source(),
            remedy="Return the new container instead. Writing into an array it holds, as in params['w'] -= g, is fine.",
        )


def _finish(recording: Trace, arguments: Sequence[Any], in_spec: optree.PyTreeSpec, result: Any) -> Traced:
    leaves, out_spec = flatten(result)
    leaves = [lift(leaf) if isinstance(leaf, np.ndarray) and not is_traced(leaf) else leaf for leaf in leaves]
    outputs: list[Value] = []
    results = _describe(recording, leaves, outputs)
    host = recording.host
    mutated = [(slot, tracer.storage) for slot, (_, tracer) in recording.arrays.items() if tracer.storage.mutated]
    aliases: dict[int, int] = {}
    for slot, storage in mutated:
        host.require_writeable(slot)
        aliases[len(outputs)] = entry = recording.origins.index(storage.entry)
        flat = recording.builder.inputs[entry].shape
        outputs.append(storage.value if storage.value.shape == flat else ops.reshape(storage.value, shape=flat))
    numbers = _place_numbers(recording, results, outputs)
    _require_disjoint(recording, mutated)
    strides = {
        recording.origins.index(tracer.storage.entry): tracer.storage.strides
        for _, tracer in recording.arrays.values()
        if not is_contiguous(tracer.sizes, tracer.storage.strides)
    }
    return Traced(
        recording.builder.build(outputs), host, tuple(recording.origins), aliases, strides,
        tuple((slot, storage.entry) for slot, storage in mutated if storage.entry != slot), numbers, in_spec, out_spec, results,
        recording.opened, seen(arguments), path_of(recording),
    )  # fmt: skip


def _steps(result: Result) -> tuple[Step, ...]:
    match result:
        case Either(_, then, orelse):
            return _steps(then) + _steps(orelse)
        case Fixed():
            return ()
        case _:
            return result.steps


def _place_numbers(recording: Trace, results: Sequence[Result], outputs: list[Value]) -> dict[Sym | Value, int]:
    """Further outputs: sizes and places of the views that NumPy takes of results, where only the run tells them."""
    steps = [step for result in results for step in _steps(result)]
    wanted: list[Sym | Value] = [*syms_in(tuple(param for step in steps for param in step.params.values()))]
    wanted += [start for step in steps for start in step.starts]
    numbers: dict[Sym | Value, int] = {}
    for wish in dict.fromkeys(wanted):
        numbers[wish] = len(outputs)
        outputs.append(recording.sizes[wish] if isinstance(wish, Sym) else wish)
    return numbers


def _require_disjoint(recording: Trace, mutated: Sequence[tuple[Slot, Storage]]) -> None:
    """A written array must not overlap another: partial overlap would need NumPy's order of writes."""
    host, arrays = recording.host, recording.arrays
    written = [slot for slot, _ in mutated]
    for slot in written:
        if meets_itself(arrays[slot][0]):
            raise UnsupportedError(
                f"{host.name(slot)} is written, and one element of its memory stands in several places of it",
                source=user_source(),
                remedy="Pass a copy.",
            )
        for other, (array, _) in arrays.items():
            if other != slot and not disjoint(arrays[slot][0], array):
                first, second = host.name(slot), host.name(other)
                raise UnsupportedError(
                    f"{first} is written and overlaps {second} in memory",
                    source=user_source(),
                    remedy=f"Pass {second}.copy(), or one array of which the function takes both parts.",
                )
    others = [slot for slot in arrays if slot not in written]
    if written and len(arrays) > 1:
        host.require_disjoint(written, others, all_disjoint)


def _describe(recording: Trace, leaves: Sequence[Any], outputs: list[Value]) -> tuple[Result, ...]:
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


@dataclass(frozen=True)
class Subgraph:
    """A function traced inside a trace.

    graph: its inputs are the given leaves first, then one for each value of `captured`, in order.
    captured: values of the enclosing trace that the function uses.
    rebuild: makes the function's result from the values of the graph's outputs (in the enclosing trace).
    """

    graph: Graph
    captured: tuple[Value, ...]
    rebuild: Callable[[Sequence[Value]], Any]


def trace_subgraph(function: Callable[..., Any], leaves: Sequence[Any], call: Callable[..., Any] | None = None) -> Subgraph:
    """Trace `function(*leaves)` in an inner trace of the current one; every leaf becomes an input of the graph.

    Transforms use it so: flatten the arguments, pass the leaves to be differentiated here with a `function` that puts
    the argument structure together again, transform `graph`, and inline the outcome into the enclosing trace with
    `GraphBuilder.inline(transformed, [*map(read, leaves), *captured])`; `rebuild(values)` gives what the function
    returned, with those values in place of the graph's outputs. All of it happens inside a trace; called outside one,
    a transform runs itself through `entry.evaluate`.

    Args:
        leaves: tracers, arrays, NumPy scalars or Python numbers. Inside, each is a new tracer of the same kind (an array
            is a storage of its own, a number is weak and lives in the graph); writing into one is refused.

    Raises:
        UnsupportedError: the function writes an array from outside, or one of the leaves.
    """
    outer = active_trace()
    inner = Trace(outer)
    values = [(leaf, read(leaf)) for leaf in leaves]
    with activate(inner):
        tracers: list[Any] = []
        for leaf, outside in values:
            value = inner.builder.add_input(outside.aval)
            inner.entered[value] = outside
            if type(leaf) in (bool, int, float, complex, TracedNumber):
                tracers.append(TracedNumber.of_value(inner, value))
            elif outside.shape == () and not isinstance(leaf, np.ndarray):
                tracers.append(scalar(value))
            else:
                tracers.append(fresh(value))
        result = convert(function)(*tracers)
        for tracer in tracers:
            if type(tracer) is TracedArray and tracer.storage.mutated:
                raise UnsupportedError(
                    f"a function that is differentiated writes into its argument {tracer.aval}",
                    source=user_source(),
                    remedy="Copy it first: x = x.copy().",
                )
        out_leaves, spec = flatten(result)
        kinds = [_wrapper(leaf) for leaf in out_leaves]
        outputs = [read(leaf) for leaf, kind in zip(out_leaves, kinds) if kind is not None]
        inner.bind_outer()
        graph = inner.builder.build(outputs)
    captured = tuple(inner.builder.captured)

    def rebuild(results: Sequence[Value]) -> Any:
        remaining = iter(results)
        return unflatten(spec, [leaf if kind is None else kind(next(remaining)) for leaf, kind in zip(out_leaves, kinds)])

    return Subgraph(graph, captured, rebuild)


def _wrapper(leaf: Any) -> Callable[[Value], Any] | None:
    """How a value is shown as the kind of tracer that `leaf` is; None for what is not a value."""
    kind = type(leaf)
    if kind is TracedArray or isinstance(leaf, np.ndarray):
        return fresh
    if kind is TracedScalar or isinstance(leaf, np.generic):
        return scalar
    if kind in (TracedNumber, float, int, bool, complex):
        known = (BOOL, I64, F64, C128)
        return lambda value: TracedNumber.of_value(active_trace(), value) if value.dtype in known else scalar(value)
    return None
