"""Steps on a device: kernels are launched, calls do their work, and the host drives loops and branches.

What decides how a region goes on lies in the device's memory and is read back: the host waits for it. A loop whose trips are
known is a row of launches. Once a check has failed, kernels do nothing; then the host, when it next reads, ends the run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from jitml.codegen.cuda.calls.plan import CallPlan, HostWork, LibraryCall
from jitml.codegen.cuda.module import Launch
from jitml.codegen.cuda.runtime.device import Device, DeviceCode, DeviceFunction
from jitml.codegen.cuda.runtime.layout import ALIGNMENT
from jitml.codegen.cuda.runtime.text import SET_INDEX, CudaText
from jitml.kernels.ir import Buffer, Kernel
from jitml.kernels.program import Region
from jitml.memory.arena import aligned
from jitml.memory.plan import extent, first_element
from jitml.memory.program import Program

Array = np.ndarray[Any, Any]
Slot: TypeAlias = tuple[int, int]  # a base address, by its number, and bytes from there on

_ARENA, _SCRATCH, _OTHERS = 0, 1, 2
_MANY = 1000  # launches that are no longer recorded one by one


class RunStopped(Exception):
    """A check has failed; nothing of what follows is to be done."""


class Run:
    """One run of a program: where it happens, and what all its parts share.

    Args:
        error: the address of the error record; 0 if the program has none.
    """

    __slots__ = ("device", "error")

    def __init__(self, device: Device, error: int) -> None:
        self.device, self.error = device, error

    def launch(self, function: DeviceFunction, blocks: int, threads: int, shared: int, addresses: Sequence[int]) -> None:
        self.device.launch(function, blocks, threads, shared, addresses)

    def copy(self, target: int, source: int, nbytes: int) -> None:
        self.device.copy(target, source, nbytes)

    def call_library(self, call: LibraryCall, addresses: Sequence[int]) -> None:
        with self.device.lock, self.device.turn:
            call(self.device.stream, [*addresses, self.device.workspace(call.workspace)])

    def read(self, *wanted: tuple[Array, int]) -> None:
        """Copy out what the host must know.

        Raises:
            RunStopped: a check has failed, so that what is there means nothing.
        """
        failed = np.zeros(1, np.int64)
        record = [(failed, self.error)] if self.error else []
        self.device.copy_out(*wanted, *record)
        if failed[0]:
            raise RunStopped


Step: TypeAlias = Callable[[Sequence[int], Run], None]


class BoundProgram:
    """A program bound to loaded code: its steps as functions of base addresses.

    Bases are the arena, scratch, and then inputs, outputs and constants in the order of the program's names.

    Attributes:
        scratch: bytes that its steps need at most, one after the other.
        launches: how many there are in a run.
        can_record: whether each run asks the device for the same, without waiting.
    """

    def __init__(self, program: Program, text: CudaText, code: DeviceCode, *, has_libraries: bool = False) -> None:
        self.program, self._text, self._code, self._has_libraries = program, text, code, has_libraries
        kernels = program.kernels
        starts = {"arena": _ARENA, "input": _OTHERS, "output": _OTHERS + len(kernels.inputs)}
        starts["constant"] = starts["output"] + len(kernels.outputs)
        self._slots: Mapping[str, Slot] = {
            name: (starts[place.space] + place.index, place.offset) for name, place in program.places.items()
        }
        self.scratch, self.launches, self.can_record = 0, 0, True
        self._steps: list[Step] = []
        for step in kernels.steps:
            if isinstance(step, Region):
                self._steps.append(self._steps_of_region(step))
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
        places = [slots[name] for name in launch.buffers]
        return partial(_launched, self._code[launch.entry], launch, places)

    def _steps_of_call(self, plan: CallPlan) -> list[Step]:
        slots, at = dict(self._slots), 0
        for buffer in plan.scratch:
            slots[buffer.name] = (_SCRATCH, at)
            at += aligned(buffer.nbytes, ALIGNMENT)
        steps, own = list[Step](), plan.work
        if plan.library is not None and self._has_libraries and plan.library.is_ready():
            steps, own = [self._library_call(plan.library, slots)], plan.after
        for work in own:
            if isinstance(work, Launch):
                steps.append(self._launch(work, slots))
            else:
                self.can_record = False
                steps.append(partial(_worked_on_host, work, slots))
        self.scratch = max(self.scratch, at)
        return steps

    def _library_call(self, call: LibraryCall, slots: Mapping[str, Slot]) -> Step:
        self.launches += 1
        return partial(_called, call, [slots[name] for name in call.buffers])

    # -------------------------------------------------------------------------------------------------------- regions

    def _steps_of_region(self, region: Region) -> Step:
        bodies = [
            BoundProgram(body, self._text, self._code, has_libraries=self._has_libraries)
            for body in self.program.bodies[region.name]
        ]
        self.scratch = max([self.scratch, self._exchanged(region), *(body.scratch for body in bodies)])
        trips = region.control if region.kind == "loop" and isinstance(region.control, int) else None
        own = 1 if region.index is not None else 0
        self.launches += (own + bodies[0].launches) * (trips or 0)
        self.can_record &= trips is not None and all(body.can_record for body in bodies) and self.launches <= _MANY
        drive = {"loop": _drive_loop, "while": _drive_while, "cond": _drive_cond}[region.kind]
        index = self._code[SET_INDEX] if region.index is not None else None
        return lambda bases, run: drive(BoundRegion(self, region, bodies, index, bases, run))

    def _exchanged(self, region: Region) -> int:
        """Bytes for one of the buffers that change places."""
        moved = [self.program.kernels.buffers[name] for name in region.carried if name in region.moves]
        return max(map(extent, moved), default=0)

    def slot(self, name: str) -> Slot:
        return self._slots[name]


class BoundRegion:
    """A region on its way: its bodies, and where its buffers are now."""

    def __init__(
        self,
        around: BoundProgram,
        region: Region,
        bodies: Sequence[BoundProgram],
        set_index: DeviceFunction | None,
        bases: Sequence[int],
        run: Run,
    ) -> None:
        self.region, self.run = region, run
        self._around, self._bodies, self._set_index, self._bases = around, bodies, set_index, bases
        self._moves = region.moves
        self._at = {name: self._home(name) for name in self._moves}

    def body(self, k: int) -> None:
        """Run a body once."""
        region = self.region
        arena = self._home(region.scratch) if region.scratch is not None else 0
        inputs = map(self._address, region.arguments[k])
        outputs = map(self._address, region.results[k])
        self._bodies[k].run([arena, self._bases[_SCRATCH], *inputs, *outputs], self.run)

    def move(self) -> None:
        """After an iteration: what has landed elsewhere is there for the next one."""
        self._at = {name: self._at[target] for name, target in self._moves.items()}

    def count(self, k: int) -> None:
        """Tell the body the number of the iteration."""
        if self._set_index is not None and self.region.index is not None:
            self.run.launch(self._set_index, 1, 1, 0, [self._home(self.region.index), k])

    def control(self, dtype: Any) -> int:
        """What the device says of how to go on; waits for it."""
        assert isinstance(self.region.control, str)
        value = np.zeros(1, dtype)
        self.run.read((value, self._address(self.region.control)))
        return int(value[0])

    def bring_home(self) -> None:
        """Copy what is carried into its own memory, where it has ended up elsewhere."""
        buffers = self._around.program.kernels.buffers
        away = {name: self._at[name] for name in self.region.carried if name in self._at}
        away = {name: at for name, at in away.items() if at != self._home(name)}
        while away:
            sources = set(away.values())
            free = [name for name in away if self._home(name) not in sources]
            if free:
                name = free[0]
                _copy(self.run, buffers[name], self._home(name), away.pop(name))
            else:  # they are in each other's memory: one makes room
                name = next(iter(away))
                aside = self._bases[_SCRATCH] + first_element(buffers[name])
                _copy(self.run, buffers[name], aside, away[name])
                away[name] = aside

    def _home(self, name: str) -> int:
        base, offset = self._around.slot(name)
        return self._bases[base] + offset

    def _address(self, name: str) -> int:
        return self._at[name] if name in self._at else self._home(name)


def _drive_loop(region: BoundRegion) -> None:
    known = region.region.control
    for k in range(known if isinstance(known, int) else region.control(np.int64)):
        region.count(k)
        region.body(0)
        region.move()
    region.bring_home()


def _drive_while(region: BoundRegion) -> None:
    region.body(0)
    while region.control(np.bool_):
        region.body(1)
        region.move()
        region.body(0)
    region.bring_home()


def _drive_cond(region: BoundRegion) -> None:
    region.body(0 if region.control(np.bool_) else 1)


def _launched(function: DeviceFunction, launch: Launch, places: Sequence[Slot], bases: Sequence[int], run: Run) -> None:
    addresses = [bases[base] + offset for base, offset in places]
    if launch.has_error:
        addresses.append(run.error)
    run.launch(function, launch.blocks, launch.threads, launch.shared, addresses)


def _called(call: LibraryCall, places: Sequence[Slot], bases: Sequence[int], run: Run) -> None:
    run.call_library(call, [bases[base] + offset for base, offset in places])


def _worked_on_host(work: HostWork, slots: Mapping[str, Slot], bases: Sequence[int], run: Run) -> None:
    def address(buffer: Buffer) -> int:
        base, offset = slots[buffer.name]
        return bases[base] + offset

    reads, writes = [_HostBuffer(b) for b in work.reads], [_HostBuffer(b) for b in work.writes]
    apart = [host for host in writes if not host.buffer.is_c_contiguous]  # between whose elements there may be those of others
    wanted = [(host.memory, address(host.buffer) - host.first) for host in (*reads, *apart) if host.memory.size]
    run.read(*wanted)
    filled = work.run([host.array for host in reads], [host.array for host in writes])
    for host in writes:
        if host.memory.size and host.buffer.name in filled:
            run.device.copy_in(address(host.buffer) - host.first, host.memory)


class _HostBuffer:
    """Memory of the host for a buffer: all bytes from its lowest element to its highest."""

    def __init__(self, buffer: Buffer) -> None:
        self.buffer, self.first = buffer, first_element(buffer)
        self.memory = np.empty(extent(buffer), np.uint8)
        self.has_gaps = self.memory.size > buffer.nbytes
        strides = tuple(step * buffer.dtype.itemsize for step in buffer.element_strides)
        self.array: Array = np.ndarray(buffer.shape, buffer.dtype, self.memory, self.first, strides)


def _copy(run: Run, buffer: Buffer, target: int, source: int) -> None:
    first = first_element(buffer)
    run.copy(target - first, source - first, extent(buffer))
