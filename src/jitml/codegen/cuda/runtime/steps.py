"""Steps on a device: kernels are launched, calls do their work, and regions run as `regions.py` has it.

Once a check has failed, kernels do nothing; then the host, when it next reads, ends the run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from jitml.codegen.cuda.calls.plan import CallPlan, HostWork, LibraryCall, Work
from jitml.codegen.cuda.module import Launch
from jitml.codegen.cuda.runtime.device import DeviceCode, DeviceFunction
from jitml.codegen.cuda.runtime.layout import ALIGNMENT
from jitml.codegen.cuda.runtime.regions import RegionFunctions, RegionWork, Slot, rounds_of
from jitml.codegen.cuda.runtime.run import Run
from jitml.codegen.cuda.runtime.text import COUNT, DECIDE, MOVE, SET_INDEX, CudaText
from jitml.kernels.ir import Buffer, Kernel
from jitml.kernels.program import Region
from jitml.memory.arena import aligned
from jitml.memory.plan import extent, first_element
from jitml.memory.program import Program

Array = np.ndarray[Any, Any]

_ARENA, _SCRATCH, _OTHERS = 0, 1, 2
_MANY = 1000  # launches that are no longer recorded one by one

Step: TypeAlias = Callable[[Sequence[int], Run], None]


class BoundProgram:
    """A program bound to loaded code: its steps as functions of base addresses.

    Bases are the arena, scratch, and then inputs, outputs and constants in the order of the program's names.

    Attributes:
        scratch: bytes that its steps need at most, one after the other.
        launches: how many there are in a run.
        can_record: whether each run asks the device for the same, without waiting.
        decides: whether the device decides how a region goes on, if the run is recorded.
    """

    def __init__(
        self, program: Program, text: CudaText, code: DeviceCode, *, has_libraries: bool = False, has_conditions: bool = False
    ) -> None:
        self.program, self._text, self._code = program, text, code
        self._has_libraries, self._has_conditions = has_libraries, has_conditions
        kernels = program.kernels
        starts = {"arena": _ARENA, "input": _OTHERS, "output": _OTHERS + len(kernels.inputs)}
        starts["constant"] = starts["output"] + len(kernels.outputs)
        self._slots: Mapping[str, Slot] = {
            name: (starts[place.space] + place.index, place.offset) for name, place in program.places.items()
        }
        self.scratch, self.launches, self.can_record, self.decides = 0, 0, True, False
        self._steps: list[Step] = []
        for step in kernels.steps:
            if isinstance(step, Region):
                self._steps.append(self._step_of_region(step))
            elif isinstance(step, Kernel) and id(step) in text.module.launches:
                self._steps += [self._launch(launch, self._slots) for launch in text.module.launches[id(step)]]
            else:
                self._steps += self._steps_of_call(text.calls[id(step)])

    def run(self, bases: Sequence[int], run: Run) -> None:
        """
        Raises:
            RunStopped: a check has failed.
        """
        for step in self._steps:
            step(bases, run)

    # ------------------------------------------------------------------------------------------- launches and calls

    def _launch(self, launch: Launch, slots: Mapping[str, Slot]) -> Step:
        self.launches += 1
        starts = launch.starts or (0,) * len(launch.buffers)
        places = [(base, at + start) for (base, at), start in zip((slots[name] for name in launch.buffers), starts, strict=True)]
        return partial(_launched, self._code[launch.entry], launch, places)

    def _steps_of_call(self, plan: CallPlan) -> list[Step]:
        work: Sequence[Work | LibraryCall] = plan.work
        scratch, slots, at = plan.scratch, dict(self._slots), 0
        if plan.library is not None and self._has_libraries and all(call.is_ready() for call in plan.library.calls):
            work, scratch = plan.library.steps, plan.library.scratch
        for buffer in scratch:
            slots[buffer.name] = (_SCRATCH, at)
            at += aligned(buffer.nbytes, ALIGNMENT)
        self.scratch = max(self.scratch, at)
        return [self._step_of(each, slots, at) for each in work]

    def _step_of(self, work: Work | LibraryCall, slots: Mapping[str, Slot], free: int) -> Step:
        """
        Args:
            free: where scratch is free.
        """
        match work:
            case Launch():
                return self._launch(work, slots)
            case HostWork():
                self.can_record = False
                return partial(_worked_on_host, work, slots)
        self.launches += 1
        self.can_record &= work.can_record
        places, own = [slots[name] for name in work.buffers], work.own_bytes()
        if own:
            places.append((_SCRATCH, free))
            self.scratch = max(self.scratch, free + aligned(own, ALIGNMENT))
        return partial(_called, work, places)

    # -------------------------------------------------------------------------------------------------------- regions

    def _step_of_region(self, region: Region) -> Step:
        conditions = {"has_libraries": self._has_libraries, "has_conditions": self._has_conditions}
        bodies = [BoundProgram(body, self._text, self._code, **conditions) for body in self.program.bodies[region.name]]
        functions = self._functions()
        counter = aligned(max([self._exchanged(region), *(body.scratch for body in bodies)]), ALIGNMENT)
        self.scratch = max(self.scratch, counter + ALIGNMENT)
        inside = sum(body.launches for body in bodies) + 1
        trips = region.control if region.kind == "loop" and isinstance(region.control, int) else None
        is_unrolled = trips is not None and self.launches + inside * trips <= _MANY
        self.decides |= not is_unrolled or any(body.decides for body in bodies)
        self.launches += inside * (trips if is_unrolled and trips is not None else rounds_of(region))
        can_decide = is_unrolled or (functions.decide is not None and self.launches <= _MANY)
        self.can_record &= can_decide and all(body.can_record for body in bodies)
        buffers = self.program.kernels.buffers
        return RegionWork(region, bodies, self._slots, buffers, functions, _SCRATCH, counter, is_unrolled).run

    def _functions(self) -> RegionFunctions:
        code = self._code
        if self._has_conditions:
            try:
                return RegionFunctions(code[SET_INDEX], code[MOVE], code[DECIDE], code[COUNT])
            except KeyError:  # the compiler is too old for them
                pass
        return RegionFunctions(code[SET_INDEX], code[MOVE])

    def _exchanged(self, region: Region) -> int:
        """Bytes for one of the buffers that change places."""
        moved = [self.program.kernels.buffers[name] for name in region.carried if name in region.moves]
        return max(map(extent, moved), default=0)


def _launched(function: DeviceFunction, launch: Launch, places: Sequence[Slot], bases: Sequence[int], run: Run) -> None:
    addresses = [bases[base] + offset for base, offset in places]
    addresses += launch.numbers
    if launch.has_error:
        addresses.append(run.error)
    run.launch(function, launch.blocks, launch.threads, launch.shared, addresses)


def _called(call: LibraryCall, places: Sequence[Slot], bases: Sequence[int], run: Run) -> None:
    run.call_library(call, [bases[base] + offset for base, offset in places])


def _worked_on_host(work: HostWork, slots: Mapping[str, Slot], bases: Sequence[int], run: Run) -> None:
    def there(host: _HostBuffer) -> tuple[Array, int]:
        base, offset = slots[host.buffer.name]
        lowest = bases[base] + offset - host.first
        return run.there(host.memory, lowest), lowest

    reads, writes = [_HostBuffer(b) for b in work.reads], [_HostBuffer(b) for b in work.writes]
    apart = [host for host in writes if not host.buffer.is_c_contiguous]  # between whose elements there may be those of others
    run.read(*[pair for pair in map(there, (*reads, *apart)) if pair[0].size])
    filled = work.run([host.array for host in reads], [host.array for host in writes])
    for host in writes:
        memory, lowest = there(host)
        if memory.size and host.buffer.name in filled:
            run.device.copy_in(lowest, memory)


class _HostBuffer:
    """Memory of the host for a buffer: all bytes from its lowest element to its highest."""

    def __init__(self, buffer: Buffer) -> None:
        self.buffer, self.first = buffer, first_element(buffer)
        self.memory = np.empty(extent(buffer), np.uint8)
        self.has_gaps = self.memory.size > buffer.nbytes
        strides = tuple(step * buffer.dtype.itemsize for step in buffer.element_strides)
        self.array: Array = np.ndarray(buffer.shape, buffer.dtype, self.memory, self.first, strides)
