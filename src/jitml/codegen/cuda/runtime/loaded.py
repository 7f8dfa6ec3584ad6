"""Loaded programs: a program's code, constants and blocks of memory on a device."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from jitml.codegen.cuda.runtime.call_memory import CallMemory
from jitml.codegen.cuda.runtime.device import Device
from jitml.codegen.cuda.runtime.layout import ALIGNMENT, CallLayout
from jitml.codegen.cuda.runtime.run import Run, RunStopped
from jitml.codegen.cuda.runtime.sequence import LaunchSequence
from jitml.codegen.cuda.runtime.steps import BoundProgram
from jitml.codegen.cuda.runtime.text import CudaText
from jitml.forks import lock
from jitml.memory.arena import aligned
from jitml.memory.program import Program

Array = np.ndarray[Any, Any]

_KEPT_BYTES = 256 << 20  # of a block that is kept for the next call
_KEPT_BLOCKS = 4


class LoadedProgram:
    """A program on a device: its code, constants, blocks and graphs, which go when nobody holds it."""

    def __init__(self, program: Program, text: CudaText, device: Device) -> None:
        self.program, self.text, self.device = program, text, device
        with device.lock, device.turn:
            offers = {"has_libraries": device.has_libraries, "has_conditions": device.has_conditions}
            self.bound = BoundProgram(program, text, device.load(text.source), **offers)
        self.words = text.error_words
        self.constants, constants = _upload(device, list(program.kernels.constants.values()))
        kernels = program.kernels
        self._parts = list(kernels.table().values())[: len(kernels.inputs) + len(kernels.outputs)]
        self._are_whole = self._parts == [(n, 0) for n in range(len(self._parts))]
        self._layouts: dict[tuple[int, ...], CallLayout] = {}
        self._kept: list[CallMemory] = []
        self._lock = lock()  # of that list
        count = 3 + len(self._parts) + len(self.constants)  # the arena and scratch before these, the error record behind them
        has_error = self.words > 0
        self._sequence = LaunchSequence(device, self.bound, count, has_error=has_error) if self.bound.can_record else None
        device.keepers.add(self)
        weakref.finalize(self, _release, device, constants, self._kept)

    def layout(self, inputs: Sequence[int], outputs: Sequence[int]) -> CallLayout:
        """What a call needs with arrays of so many bytes, ELSEWHERE for those that it does not hold."""
        key = (*inputs, *outputs)
        if key not in self._layouts:
            sizes = (self.words, self.bound.scratch, self.program.arena_size)
            self._layouts[key] = CallLayout.of(*sizes, inputs, outputs)
        return self._layouts[key]

    def take(self, layout: CallLayout) -> CallMemory:
        """A block that is laid out so."""
        if not layout.size:
            return CallMemory(layout, 0)
        with self._lock:
            for n, kept in enumerate(self._kept):
                if kept.layout is layout:
                    return self._kept.pop(n)
        return CallMemory(layout, self.device.allocate(layout.size))

    def give_up(self) -> None:
        """Free what is kept for the next call: memory is short."""
        with self._lock:
            while self._kept:
                self.device.free(self._kept.pop().address)

    def give_back(self, block: CallMemory) -> None:
        if not block.address:
            return
        if block.layout.size <= _KEPT_BYTES and len(self._kept) < _KEPT_BLOCKS:
            self._kept.append(block)
        else:
            self.device.free(block.address)

    @property
    def needs_extents(self) -> bool:
        """Whether the host takes part, and copies whole arrays."""
        return self._sequence is None

    def run(
        self, block: CallMemory, inputs: Sequence[int], outputs: Sequence[int], extents: Sequence[tuple[int, int]] = ()
    ) -> None:
        """Run the program, whose arrays are at these addresses.

        Args:
            inputs, outputs: of the caller's arrays; of those that an alias stands for, whatever.
            extents: where these arrays begin and end, if that is needed: a buffer of open size is larger.
        """
        given = (*inputs, *outputs)
        parts = given if self._are_whole else [given[n] + offset for n, offset in self._parts]
        bases = (block.address + block.layout.arena, block.address + block.layout.scratch, *parts, *self.constants)
        if self._sequence is not None:
            self._sequence.run((*bases, block.address))
            return
        with self.device.lock, self.device.turn, suppress(RunStopped):  # the error record says why
            self.bound.run(bases, Run(self.device, block.address if self.words else 0, extents))


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
