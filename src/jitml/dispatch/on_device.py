"""Programs on a device: what a compiled program takes, and what of its results the host needs at once.

Arrays stay where they are. NumPy arrays among the arguments are copied to the device at each call, and back where they change.
Python numbers among the results, and truths and sizes by which results are chosen, are copied to the host, which waits for them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from jitml.device.array import to_device
from jitml.device.memory import ArrayDevice, CopyCount
from jitml.device.registry import CPU, device_named
from jitml.device.view import DeviceView, fetch
from jitml.dispatch.entry import Execute
from jitml.errors import UnsupportedError
from jitml.ir.graph import Value
from jitml.trace.record.array_memory import native_copy
from jitml.trace.record.guards import IS_OF_TYPE, Compute
from jitml.trace.traced import Either, FromGraph, Result, Traced

Compile = Callable[[Traced], Execute]


class _Compiler:
    """What compiles a program for the device of its arrays."""

    def __init__(self) -> None:
        self.compile: Compile | None = None


_COMPILER = _Compiler()


def compile_programs_by(compile: Compile) -> None:
    """Have the programs of transforms outside `jit` compiled by this, where their arrays are on a device."""
    _COMPILER.compile = compile


def compiled_for_device(traced: Traced) -> Execute:
    """What runs a transform's program on the device of its arrays."""
    if _COMPILER.compile is None:
        raise UnsupportedError("transforms of arrays on a device need `import jitml`")
    return _COMPILER.compile(traced)


def on_device(traced: Traced, device: ArrayDevice, executable: Callable[..., Sequence[Any]]) -> Execute:
    """A compiled program as a function of views of the device's memory, host arrays and numbers; results are such views."""
    needed = sorted(_needed_on_host(traced))
    run, given, taken, count = device.program(executable), device.given, device.taken, device.copies
    aliases = dict(traced.aliases)
    returned = [k for k in range(len(traced.graph.outputs)) if k not in aliases]

    def execute(*inputs: Any) -> Sequence[Any]:
        outputs = run(*[(x.argument or given(x)) if type(x) is DeviceView else _counted(x, count) for x in inputs])
        return [taken(device, x) for x in outputs]

    def execute_and_change(*inputs: Any) -> Sequence[Any]:
        there: list[Any] = [*inputs]
        for entry in aliases.values():
            if type(inputs[entry]) is not DeviceView:  # the host's: it changes when all has gone well
                there[entry] = to_device(inputs[entry], device)._view
        outputs: list[Any] = [*run(*[(x.argument or given(x)) if type(x) is DeviceView else _counted(x, count) for x in there])]
        for k in returned:
            outputs[k] = taken(device, outputs[k])
        for k, entry in aliases.items():
            if there[entry] is not inputs[entry]:
                np.copyto(inputs[entry], fetch(there[entry]))
            outputs[k] = inputs[entry]
        for k in needed:
            outputs[k] = fetch(outputs[k])
        return outputs

    return execute_and_change if aliases or needed else execute


def _counted(x: Any, count: CopyCount) -> Any:
    """What the host has, and a program copies in."""
    if isinstance(x, np.ndarray):
        count.to_device += 1
        count.bytes_to_device += x.nbytes
    return x


def counted(traced: Traced, device: ArrayDevice, executable: Callable[..., Sequence[Any]]) -> Execute:
    """A program all of whose arrays are the host's: they are copied to the device, and what it returns or changes back."""
    written, count = {*traced.aliases.values()}, device.copies

    def execute(*inputs: Any) -> Sequence[Any]:
        outputs = executable(*inputs)
        _count(inputs, written, count)
        count.to_host += len(outputs) - len(traced.aliases)
        count.bytes_to_host += sum(x.nbytes for k, x in enumerate(outputs) if k not in traced.aliases)
        return outputs

    return execute


def _count(inputs: Sequence[Any], written: Collection[int], count: CopyCount) -> None:
    for n, x in enumerate(inputs):
        if isinstance(x, np.ndarray) and type(x) is not DeviceView:
            count.to_device += 1
            count.bytes_to_device += x.nbytes
            if n in written:
                count.to_host += 1
                count.bytes_to_host += x.nbytes


def _needed_on_host(traced: Traced) -> set[int]:
    """The outputs that Python looks at."""
    return {*traced.numbers.values(), *(place for result in traced.results for place in _looked_at(result))}


def _looked_at(result: Result) -> list[int]:
    if isinstance(result, Either):
        return [result.position, *_looked_at(result.then), *_looked_at(result.orelse)]
    is_number = isinstance(result, FromGraph) and result.kind not in (np.ndarray, np.generic)
    return [result.position] if is_number and isinstance(result, FromGraph) else []


def copies_of(traced: Traced, device: ArrayDevice) -> list[str]:
    """What each call copies between the host and the device, a line for each."""
    types = {check.slots: check.constant for check in traced.host.checks() if check.code == IS_OF_TYPE}
    packed = {step.slot for step in traced.host.steps if isinstance(step, Compute) and step.function is native_copy}
    written, lines = {*traced.aliases.values()}, []
    for n, (slot, value) in enumerate(zip(traced.entries, traced.graph.inputs)):
        if slot in packed or types.get((slot,)) is np.ndarray:
            back = ", and back" if n in written else ""
            lines.append(f"copied to {device.name}{back}: {traced.host.name(slot)}, {_size_of(value)}")
    if traced.device is None:
        returned = [v for k, v in enumerate(traced.graph.outputs) if k not in traced.aliases]
        lines += [f"copied to the host: {len(returned)} results, {', '.join(map(_size_of, returned))}"] if returned else []
    elif needed := _needed_on_host(traced):
        lines.append(f"waits for {device.name}: {len(needed)} of the results are numbers or sizes that Python needs")
    return lines


def _size_of(value: Value) -> str:
    return f"{value.aval.nbytes:,} B" if value.aval.is_static else str(value.aval)


def device_for(traced: Traced, chosen: str | None, name: str) -> ArrayDevice | None:
    """Where a program runs: where its arrays are, or else on the device that the user has chosen; None for the host.

    Raises:
        UnsupportedError: its arrays are elsewhere than the user wants it.
        NoDeviceError: the device is not here.
    """
    there = traced.device
    if there is None:
        return None if chosen in (None, CPU) else device_named(str(chosen))
    if chosen in (None, there.name):
        return there
    raise UnsupportedError(
        f"{name} is to run on {chosen}, and its arrays are on {there.name}",
        remedy=f"Leave device={chosen!r} out, or take the arrays there: x.to_device({chosen!r}).",
    )
