"""Executables on a device: a program is called with NumPy's arrays, which are copied in and out, or with arrays that are there.

What a call needs of memory besides arrays of the caller's is one block, laid out ahead (`layout.py`); some blocks are kept for
the next call. Where a program always asks the device for the same, its launches are recorded when a block is used again, and
from then on replayed by one call.

The caller's NumPy arrays are written when all has gone well. A program with checks is waited for, so that the plain function
can answer instead; else a call with arrays of the device returns at once.
"""

from __future__ import annotations

import ctypes
import weakref
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property, partial
from typing import Any

import numpy as np

from jitml.codegen.cuda.runtime.device import Device, DeviceArgument, DeviceGraph
from jitml.codegen.cuda.runtime.layout import ALIGNMENT, ELSEWHERE, CallLayout
from jitml.codegen.cuda.runtime.steps import BoundProgram, Run, RunStopped
from jitml.codegen.cuda.runtime.text import CudaText
from jitml.codegen.run.calling import ProgramCall, RunNeeds
from jitml.codegen.run.fp_errors import Errors
from jitml.codegen.run.results import exact_buffers
from jitml.errors import DeviceMemoryError
from jitml.kernels.ir import Buffer
from jitml.memory.arena import aligned
from jitml.memory.plan import extent, first_element
from jitml.memory.program import Program
from jitml.records import dataclass

Array = np.ndarray[Any, Any]

_KEPT_BYTES = 256 << 20  # of a block that is kept for the next call
_KEPT_BLOCKS = 4
_FEW = 3  # launches below which a graph gains nothing
_NOTHING = np.zeros(0, np.int64)
_GRAPHS = 4  # that a program keeps for arrays of the device


@dataclass(slots=True)
class CallMemory:
    """A block of the device's memory, laid out for a call."""

    layout: CallLayout
    address: int

    def at(self, offset: int | None) -> int:
        assert offset is not None
        return self.address + offset


@dataclass(frozen=True, slots=True)
class OutputRoom:
    """An output's buffer, the bytes that it takes, and where among them its first element is."""

    buffer: Buffer
    nbytes: int
    first: int


def _with_rooms(buffers: Sequence[Buffer]) -> list[OutputRoom]:
    return [OutputRoom(b, extent(b), first_element(b)) for b in buffers]


class LoadedProgram:
    """A program on a device: its code, constants, blocks and graphs, which go when nobody holds it."""

    def __init__(self, program: Program, text: CudaText, device: Device) -> None:
        self.program, self.text, self.device = program, text, device
        with device.together():
            self.bound = BoundProgram(program, text, device.load(text.source), has_libraries=device.has_libraries)
        self.words = text.error_words
        self.constants, constants = _upload(device, list(program.kernels.constants.values()))
        kernels = program.kernels
        self._parts = list(kernels.table().values())[: len(kernels.inputs) + len(kernels.outputs)]
        self._layouts: dict[tuple[int, ...], CallLayout] = {}
        self._kept: list[CallMemory] = []
        self._graphs: OrderedDict[tuple[int, ...], DeviceGraph | None] = OrderedDict()
        weakref.finalize(self, _release, device, constants, self._kept)

    def take(self, inputs: Sequence[int], outputs: Sequence[int]) -> CallMemory:
        """A block for arrays of so many bytes, ELSEWHERE for those that it does not hold."""
        key = (*inputs, *outputs)
        layout = self._layouts.get(key)
        if layout is None:
            sizes = (self.words, self.bound.scratch, self.program.arena_size)
            layout = self._layouts[key] = CallLayout.of(*sizes, inputs, outputs)
        for n, kept in enumerate(self._kept):
            if kept.layout is layout:
                try:
                    return self._kept.pop(n)
                except IndexError:  # another thread was faster
                    break
        try:
            return CallMemory(layout, self.device.allocate(layout.size))
        except DeviceMemoryError:
            if not self._kept:
                raise
        while self._kept:
            self.device.free(self._kept.pop().address)
        return CallMemory(layout, self.device.allocate(layout.size))

    def give_back(self, block: CallMemory) -> None:
        if block.layout.size <= _KEPT_BYTES and len(self._kept) < _KEPT_BLOCKS:
            self._kept.append(block)
        else:
            self.device.free(block.address)

    def run(self, block: CallMemory, inputs: Sequence[int], outputs: Sequence[int]) -> None:
        """Run the program, whose arrays are at these addresses.

        Args:
            inputs, outputs: of the caller's arrays; of those that an alias stands for, whatever.
        """
        given = (*inputs, *outputs)
        own = [block.at(block.layout.arena), block.at(block.layout.scratch)]
        bases = [*own, *(given[n] + offset for n, offset in self._parts), *self.constants]
        run = Run(self.device, block.address if self.words else 0)
        graph = self._graph(bases, run)
        if graph is not None:
            graph.replay()
            return
        with self.device.together(), suppress(RunStopped):  # the error record says why
            self.bound.run(bases, run)

    def _graph(self, bases: Sequence[int], run: Run) -> DeviceGraph | None:
        """The launches for these addresses, recorded when they come for the second time."""
        if not self.bound.can_record or self.bound.launches < _FEW:
            return None
        key = tuple(bases)
        if key not in self._graphs:
            self._graphs[key] = None
            while len(self._graphs) > _GRAPHS:
                self._graphs.popitem(last=False)
            return None
        graph = self._graphs[key] = self._graphs.get(key) or self.device.record(partial(self.bound.run, bases, run))
        return graph


class CudaCall(ProgramCall, ABC):
    """A program on a device, called with arrays of the host or of the device."""

    def __init__(self, loaded: LoadedProgram, needs: RunNeeds) -> None:
        super().__init__(loaded.program, loaded.text.module.checks)
        self.loaded = loaded
        self._errors = needs.errors or Errors()
        self._usual = _with_rooms(self.outputs)
        self.surround(self._checked, RunNeeds(None, needs.generators))

    def _checked(self, *args: Any) -> Any:
        self._errors.require_unheard("a GPU does not tell")
        return self._answer(*args)

    @abstractmethod
    def _answer(self, *args: Any) -> Any:
        """Run the program; what `surround` takes."""

    def _fill_head(self, block: CallMemory, given: Sequence[Any]) -> None:
        """Reset the error record, and copy small inputs in, by one copy."""
        layout = block.layout
        if not layout.head:
            return
        head = np.zeros(layout.head, np.uint8)
        for n in layout.in_head:
            span, offset = _span(given[n]), layout.inputs[n]
            assert offset is not None
            head[offset : offset + span.size] = span
        self.loaded.device.copy_in(block.address, head)

    def _copied_in(self, block: CallMemory, given: Sequence[Any]) -> list[int]:
        """Where the first elements of inputs are, after what the host has was copied in."""
        self._fill_head(block, given)
        found: list[int] = []
        for n, x in enumerate(given):
            if isinstance(x, DeviceArgument):
                found.append(x.address)
                continue
            lowest = block.at(block.layout.inputs[n])
            if n not in block.layout.in_head and x.size:
                self.loaded.device.copy_in(lowest, _span(x))
            found.append(lowest + _first_byte(x))
        return found

    def _copied_out(self, block: CallMemory, wanted: Sequence[tuple[Array, int]]) -> tuple[int, ...] | None:
        """Fetch arrays, and hear whether a check has failed: what `failure` is to word then, longer than a pair."""
        record = np.zeros(self.loaded.words, np.int64)
        self.loaded.device.copy_out((record, block.address), *wanted)
        return (*record.tolist(), 0, 0) if self.loaded.words and record[0] else None


class CudaExecutable(CudaCall):
    """A program on a device, called with NumPy's arrays."""

    def __init__(self, loaded: LoadedProgram, needs: RunNeeds) -> None:
        super().__init__(loaded, needs)
        self._needs = needs

    @cached_property
    def on_device(self) -> CudaDeviceCall:
        """The program for arrays of the device."""
        return CudaDeviceCall(self.loaded, self._needs)

    def call_on_device(self, inputs: Sequence[Any]) -> list[DeviceArgument]:
        """The program's outputs, in memory of the device that is the caller's to free (`owned`).

        Args:
            inputs: a `DeviceArgument` each, or what the host has, which is copied in. Arrays that outputs alias are changed
                where they are, and are outputs themselves.

        Raises:
            FailedCheck: the plain function has to answer.
        """
        outputs: list[Any] = self.on_device(*inputs)
        return outputs

    def _answer(self, *args: Any) -> Any:
        given = [np.asarray(x, b.dtype) for x, b in zip(args, self.inputs, strict=True)]
        buffers = _with_rooms(exact_buffers(self.kernels, self.outputs, given)) if self.kernels.exact else self._usual
        sizes = [ELSEWHERE if k in self.aliases else b.nbytes for k, b in enumerate(buffers)]
        block = self.loaded.take([_span_bytes(x) for x in given], sizes)
        try:
            return self._run_in(block, given, buffers)
        finally:
            self.loaded.give_back(block)

    def _run_in(self, block: CallMemory, given: Sequence[Array], buffers: Sequence[OutputRoom]) -> Any:
        places = block.layout.outputs
        inputs = self._copied_in(block, given)
        outputs = [inputs[self.aliases[k]] if k in self.aliases else block.at(places[k]) + b.first for k, b in enumerate(buffers)]
        self.loaded.run(block, inputs, outputs)
        pairs = list[tuple[Array, int]]()
        changed = {n: _twin(given[n]) for n in self.aliases.values()}
        results: list[Array] = []
        for k, buffer in enumerate(buffers):
            if k in self.aliases:
                n = self.aliases[k]
                results.append(given[n])
                pairs.append((changed[n][1], block.at(block.layout.inputs[n])))
            else:
                array, memory = _empty(buffer.buffer)
                results.append(array)
                pairs.append((memory, block.at(places[k])))
        if (failed := self._copied_out(block, pairs)) is not None:
            return failed
        for n, (array, _) in changed.items():
            given[n][...] = array
        return results


class CudaDeviceCall(CudaCall):
    """A program on a device, called with arrays that are there; it gives such arrays."""

    def shaped(self, outputs: list[Any]) -> list[Any]:
        return outputs  # as they are: their extents have been read

    def _answer(self, *args: Any) -> Any:
        given = [x if isinstance(x, DeviceArgument) else np.asarray(x, b.dtype) for x, b in zip(args, self.inputs, strict=True)]
        buffers = self._true_buffers(given)
        device, made = self.loaded.device, list[int]()
        sizes = [ELSEWHERE if isinstance(x, DeviceArgument) else _span_bytes(x) for x in given]
        block = self.loaded.take(sizes, [ELSEWHERE] * len(buffers))
        try:
            made += (0 if k in self.aliases else device.allocate(b.nbytes) for k, b in enumerate(buffers))
            result = self._run_in(block, given, buffers, made)
        except BaseException:
            for address in made:
                device.free(address)
            raise
        finally:
            self.loaded.give_back(block)
        if type(result) is tuple:
            for address in made:
                device.free(address)
        return result

    def _run_in(self, block: CallMemory, given: Sequence[Any], buffers: Sequence[OutputRoom], made: Sequence[int]) -> Any:
        inputs = self._copied_in(block, given)
        outputs = [inputs[self.aliases[k]] if k in self.aliases else made[k] + b.first for k, b in enumerate(buffers)]
        self.loaded.run(block, inputs, outputs)
        extents, wanted = _NOTHING, list[tuple[Array, int]]()
        if self._measured is not None:
            extents = np.zeros(self.outputs[-1].shape, np.int64)
            wanted.append((extents, outputs[-1]))
        if (wanted or self.loaded.words) and (failed := self._copied_out(block, wanted)) is not None:
            return failed
        results = [
            given[self.aliases[k]]
            if k in self.aliases
            else DeviceArgument(at, b.buffer.shape, b.buffer.dtype, b.buffer.strides, owned)
            for k, (at, b, owned) in enumerate(zip(outputs, buffers, made))
        ]
        if self._measured is None:
            return results
        self.loaded.device.free(made[-1])
        return [_shrunk(x, places, extents) for x, places in zip(results, self._measured)]

    def _true_buffers(self, given: Sequence[Any]) -> Sequence[OutputRoom]:
        """The outputs' buffers, in their true shapes where inputs tell them."""
        if not self.kernels.exact:
            return self._usual
        needed = {source.buffer for source in self.kernels.sizes.values()}
        known: list[Any] = []
        for x, buffer in zip(given, self.inputs):
            if isinstance(x, DeviceArgument) and buffer.name in needed:
                number = np.zeros(x.shape, np.int64)
                self.loaded.device.copy_out((number, x.address))
                x = number
            known.append(x)
        return _with_rooms(exact_buffers(self.kernels, self.outputs, known))


def _shrunk(x: DeviceArgument, places: Sequence[int | None] | None, extents: Array) -> DeviceArgument:
    """The leading part of an array, where it lies."""
    if places is None:
        return x
    shape = tuple(n if place is None else int(extents[place]) for n, place in zip(x.shape, places))
    strides = Buffer("", x.dtype, x.shape, x.strides).element_strides
    return DeviceArgument(x.address, shape, x.dtype, None if shape == x.shape else strides, x.owned)


def _span(x: Array) -> Array:
    """The bytes of an array from its lowest element to its highest, what lies between them included."""
    if x.flags.c_contiguous:
        return x.reshape(-1).view(np.uint8)
    size = _span_bytes(x)
    start = x.ctypes.data - _first_byte(x)
    memory = np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(start))
    return memory


def _span_bytes(x: Array) -> int:
    if not x.size:
        return 0
    return x.itemsize + sum((n - 1) * abs(step) for n, step in zip(x.shape, x.strides))


def _first_byte(x: Array) -> int:
    """Where the first element is, from the lowest one on."""
    return sum((n - 1) * -step for n, step in zip(x.shape, x.strides) if step < 0) if x.size else 0


def _twin(x: Array) -> tuple[Array, Array]:
    """An array that lies in memory as another does, and that memory."""
    memory = np.empty(_span_bytes(x), np.uint8)
    return np.ndarray(x.shape, x.dtype, memory, _first_byte(x), x.strides), memory


def _empty(buffer: Buffer) -> tuple[Array, Array]:
    """New memory of a buffer's shape and strides, and all of it as an array that is contiguous."""
    if buffer.is_c_contiguous:
        array: Array = np.empty(buffer.shape, buffer.dtype)
        return array, array
    memory = np.empty(extent(buffer), np.uint8)
    strides = tuple(step * buffer.dtype.itemsize for step in buffer.element_strides)
    return np.ndarray(buffer.shape, buffer.dtype, memory, first_element(buffer), strides), memory


def _upload(device: Device, constants: Sequence[Array]) -> tuple[list[int], int]:
    """The addresses of literal arrays, and of the memory that holds them all."""
    sizes = [aligned(x.nbytes, ALIGNMENT) for x in constants]
    start = at = device.allocate(sum(sizes))
    addresses: list[int] = []
    for x, size in zip(constants, sizes):
        addresses.append(at)
        device.copy_in(at, np.ascontiguousarray(x))
        at += size
    return addresses, start


def _release(device: Device, constants: int, kept: list[CallMemory]) -> None:
    device.free(constants)
    for block in kept:
        device.free(block.address)
