"""Executables on a device: a program is called with NumPy's arrays, which are copied in and out, or with arrays that are there.

What a call needs of memory besides arrays of the caller's is one block, laid out ahead (`layout.py`); some blocks are kept for
the next call (`loaded.py`). Where a program always asks the device for the same, that is known ahead (`sequence.py`).

The caller's NumPy arrays are written when all has gone well. A program with checks is waited for, so that the plain function
can answer instead; else a call with arrays of the device returns at once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from jitml.codegen.cuda.runtime.call_memory import CallMemory, reach
from jitml.codegen.cuda.runtime.device import DeviceArgument
from jitml.codegen.cuda.runtime.layout import ELSEWHERE, CallLayout
from jitml.codegen.cuda.runtime.loaded import LoadedProgram
from jitml.codegen.run.calling import ProgramCall, RunNeeds
from jitml.codegen.run.describe import interface_of
from jitml.codegen.run.fp_errors import Errors
from jitml.codegen.run.results import exact_buffers
from jitml.errors import DeviceMemoryError
from jitml.kernels.ir import Buffer
from jitml.memory.plan import extent, first_element
from jitml.records import dataclass

Array = np.ndarray[Any, Any]
_NUMBERS = (float, int, bool, complex)


@dataclass(frozen=True, slots=True)
class OutputRoom:
    """An output's buffer, and what of it each call wants.

    Args:
        nbytes: that it takes.
        first: where among them its first element is.
        strides: in bytes; None for C order.
    """

    buffer: Buffer
    shape: tuple[int, ...]
    dtype: Any
    nbytes: int
    first: int
    strides: tuple[int, ...] | None

    @classmethod
    def of(cls, b: Buffer) -> OutputRoom:
        strides = None if b.strides is None else tuple(step * b.dtype.itemsize for step in b.strides)
        return cls(b, b.shape, b.dtype, extent(b), first_element(b), strides)


def _with_rooms(buffers: Sequence[Buffer]) -> list[OutputRoom]:
    return [OutputRoom.of(b) for b in buffers]


class CudaCall(ProgramCall, ABC):
    """A program on a device, called with arrays of the host or of the device."""

    def __init__(self, loaded: LoadedProgram, needs: RunNeeds) -> None:
        super().__init__(interface_of(loaded.program, loaded.text.module.checks))
        self.loaded, self.program = loaded, loaded.program
        self._errors = needs.errors or Errors()
        self._usual = _with_rooms(self.outputs)
        self._written = frozenset(self.aliases.values())
        is_heard = self._errors.demanded or self._errors.possible
        self.surround(self._checked if is_heard else self._answer, RunNeeds(None, needs.generators))

    def _checked(self, *args: Any) -> Any:
        self._errors.require_unheard("a GPU does not tell")
        return self._answer(*args)

    @abstractmethod
    def _answer(self, *args: Any) -> Any:
        """Run the program; what `surround` takes."""

    def _taken(self, layout: CallLayout, rooms: Sequence[OutputRoom] = ()) -> CallMemory:
        """A block for a call, whose results need such rooms.

        Raises:
            DeviceMemoryError: there is not enough for the block.
        """
        try:
            return self.loaded.take(layout)
        except DeviceMemoryError as error:
            raise self._with_needs(error, layout, rooms) from None

    def _with_needs(self, error: DeviceMemoryError, layout: CallLayout, rooms: Sequence[OutputRoom]) -> DeviceMemoryError:
        """The error, with what all of the call needs."""
        results = sum(room.nbytes for k, room in enumerate(rooms) if k not in self.aliases)
        needs = f"The call needs {layout.size:,} bytes for temporary arrays and copies, and {results:,} for results"
        return DeviceMemoryError(f"{error.message}. {needs}", remedy=error.remedy)

    def _run_in(
        self, block: CallMemory, given: Sequence[Any], inputs: Sequence[int], rooms: Sequence[OutputRoom], outputs: Sequence[int]
    ) -> None:
        """Run the program with what is given, which is at the addresses `inputs`."""
        extents = []
        if self.loaded.needs_extents:
            reaches = [reach(x, b.dtype) for x, b in zip(given, self.inputs, strict=True)]
            extents = [(address - before, address + behind) for address, (before, behind) in zip(inputs, reaches, strict=True)]
            own = [k for k in range(len(rooms)) if k not in self.aliases]
            extents += [(at := outputs[k] - rooms[k].first, at + rooms[k].nbytes) for k in own]
        self.loaded.run(block, inputs, outputs, extents)
        if not self._written.isdisjoint(block.layout.in_head):
            block.changed()

    def _copied_out(self, block: CallMemory, wanted: Sequence[tuple[Array, int]]) -> tuple[int, ...] | None:
        """Fetch arrays, and hear whether a check has failed: what `failure` is to word then, longer than a pair."""
        record = np.zeros(self.loaded.words, np.int64)
        self.loaded.device.copy_out((record, block.address), *wanted)
        if not self.loaded.words or not record[0]:
            return None
        block.changed()  # its record is no longer zero
        return (*record.tolist(), 0, 0)


class CudaExecutable(CudaCall):
    """A program on a device, called with NumPy's arrays."""

    def __init__(self, loaded: LoadedProgram, needs: RunNeeds) -> None:
        super().__init__(loaded, needs)
        self._needs = needs

    @cached_property
    def on_device(self) -> CudaDeviceCall:
        """The program for arrays of the device: it takes a `DeviceArgument` each, or what the host has, which is copied in.

        It gives a `DeviceArgument` each, in memory that is the caller's to free (`owned`); arrays that outputs alias are changed
        where they are, and are outputs themselves. It raises as executables do.
        """
        return CudaDeviceCall(self.loaded, self._needs)

    def _answer(self, *args: Any) -> Any:
        given = [np.asarray(x, b.dtype) for x, b in zip(args, self.inputs, strict=True)]
        buffers = _with_rooms(exact_buffers(self.interface, given)) if self.interface.exact else self._usual
        sizes = [ELSEWHERE if k in self.aliases else b.nbytes for k, b in enumerate(buffers)]
        block = self._taken(self.loaded.layout([sum(reach(x, x.dtype)) for x in given], sizes))
        try:
            return self._answer_in(block, given, buffers)
        except BaseException:
            block.changed()
            raise
        finally:
            self.loaded.give_back(block)

    def _answer_in(self, block: CallMemory, given: Sequence[Array], buffers: Sequence[OutputRoom]) -> Any:
        places = block.layout.outputs
        inputs = block.copy_in(self.loaded.device, given, ())
        outputs = [inputs[self.aliases[k]] if k in self.aliases else block.at(places[k]) + b.first for k, b in enumerate(buffers)]
        self._run_in(block, given, inputs, buffers, outputs)
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

    def __init__(self, loaded: LoadedProgram, needs: RunNeeds) -> None:
        super().__init__(loaded, needs)
        self._dtypes = [b.dtype for b in self.inputs]
        self._nowhere = [ELSEWHERE] * len(self.outputs)
        self._all_there = loaded.layout([ELSEWHERE] * len(self.inputs), self._nowhere)
        self._nothing = None if self._all_there.size else CallMemory(self._all_there, 0)  # where a call needs no memory
        self._has_news = self._measured is not None or loaded.words > 0  # for the host, at the end of a run

    def _answer(self, *args: Any) -> Any:
        loaded, layout, given = self.loaded, self._all_there, args
        inputs = [x.address if type(x) is DeviceArgument else ELSEWHERE for x in args]
        if ELSEWHERE in inputs:
            given, layout = self._with_hosts(args)
        rooms = self._true_rooms(given) if self.interface.exact else self._usual
        device, aliases = loaded.device, self.aliases
        made: list[int] = []  # which is quicker than list[int]()
        outputs: list[int] = []
        results: list[Any] = []
        block, extents, failed = self._nothing, None, None
        if block is None or layout is not block.layout:
            block = self._taken(layout, rooms)
        try:
            if block is not self._nothing:
                inputs = block.copy_in(device, given, self._dtypes)
            for k, room in enumerate(rooms):
                if k in aliases:
                    outputs.append(inputs[aliases[k]])
                    results.append(given[aliases[k]])
                    continue
                owned = device.allocate(room.nbytes)
                made.append(owned)
                outputs.append(owned + room.first)
                results.append(DeviceArgument(owned + room.first, room.shape, room.dtype, room.strides, owned, room.nbytes))
            self._run_in(block, given, inputs, rooms, outputs)
            if self._has_news:
                extents, failed = self._news(block, outputs)
        except BaseException as error:
            block.changed()
            for address in made:
                device.free(address)
            if isinstance(error, DeviceMemoryError):
                raise self._with_needs(error, layout, rooms) from None
            raise
        finally:
            loaded.give_back(block)
        if failed is not None:
            for address in made:
                device.free(address)
            return failed
        if self._measured is None:
            return results
        device.free(made[-1])
        return [_shrunk(x, places, extents) for x, places in zip(results, self._measured)]

    def _with_hosts(self, args: Sequence[Any]) -> tuple[Any, CallLayout]:
        """What is given, where some of it is the host's: numbers, or arrays of the right dtype; and the layout for that."""
        given: list[Any] = []
        sizes: list[int] = []
        for x, buffer in zip(args, self.inputs, strict=True):
            if type(x) is DeviceArgument:
                sizes.append(ELSEWHERE)
            elif type(x) in _NUMBERS and not buffer.shape:
                sizes.append(buffer.dtype.itemsize)
            else:
                x = np.asarray(x, buffer.dtype)
                sizes.append(sum(reach(x, x.dtype)))
            given.append(x)
        return given, self.loaded.layout(sizes, self._nowhere)

    def _news(self, block: CallMemory, outputs: Sequence[int]) -> tuple[Array | None, tuple[int, ...] | None]:
        """The true extents, if the program measures them, and what has failed."""
        if self._measured is None:
            return None, self._copied_out(block, ())
        extents = np.zeros(self.outputs[-1].shape, np.int64)
        return extents, self._copied_out(block, [(extents, outputs[-1])])

    def _true_rooms(self, given: Sequence[Any]) -> Sequence[OutputRoom]:
        """The outputs' rooms, in their true shapes where inputs tell them."""
        needed = set(self.interface.sizes.values())
        known: list[Any] = []
        for place, x in enumerate(given):
            if isinstance(x, DeviceArgument) and place in needed:
                number = np.zeros(x.shape, np.int64)
                self.loaded.device.copy_out((number, x.address))
                x = number
            known.append(x)
        return _with_rooms(exact_buffers(self.interface, known))


def _shrunk(x: DeviceArgument, places: Sequence[int | None] | None, extents: Any) -> DeviceArgument:
    """The leading part of an array, where it lies."""
    if places is None:
        return x
    shape = tuple(n if place is None else int(extents[place]) for n, place in zip(x.shape, places))
    if shape == x.shape:
        return x
    strides = x.strides or tuple(step * x.dtype.itemsize for step in Buffer("", x.dtype, x.shape).element_strides)
    return x._replace(shape=shape, strides=strides)


def _twin(x: Array) -> tuple[Array, Array]:
    """An array that lies in memory as another does, and that memory."""
    before, behind = reach(x, x.dtype)
    memory = np.empty(before + behind, np.uint8)
    return np.ndarray(x.shape, x.dtype, memory, before, x.strides), memory


def _empty(buffer: Buffer) -> tuple[Array, Array]:
    """New memory of a buffer's shape and strides, and all of it as an array that is contiguous."""
    if buffer.is_c_contiguous:
        array: Array = np.empty(buffer.shape, buffer.dtype)
        return array, array
    memory = np.empty(extent(buffer), np.uint8)
    strides = tuple(step * buffer.dtype.itemsize for step in buffer.element_strides)
    return np.ndarray(buffer.shape, buffer.dtype, memory, first_element(buffer), strides), memory
