"""Regions on a device: who decides how loops and branches go on, and where is what they carry meanwhile?

A loop of few launches whose trips are known is a row of launches. Else the device decides, where it can: a small kernel sets
conditions of the graph that the program is, from what lies in the device's memory. Where it cannot, the host reads that, and
waits for it each time.

What is carried may change places at each iteration (`Region.moves`). After a few iterations all is where it began: those are
one iteration of the graph, in which the later ones depend on conditions. When it ends between, copies bring all home.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np

from jitml.codegen.cuda.calls.plan import blocks_for
from jitml.codegen.cuda.runtime.device import DeviceFunction
from jitml.codegen.cuda.runtime.run import NO_CONDITION, Run
from jitml.codegen.cuda.target import THREADS
from jitml.kernels.ir import Buffer
from jitml.kernels.program import Region
from jitml.memory.plan import extent, first_element
from jitml.records import dataclass

Slot: TypeAlias = tuple[int, int]  # a base address, by its number, and bytes from there on

_LONGEST = 4  # iterations after which all must be where it began; where it takes more, each one ends with copies


class Body(Protocol):
    def run(self, bases: Sequence[int], run: Run) -> None: ...


@dataclass(frozen=True, slots=True)
class RegionFunctions:
    """Kernels of the runtime's (`text.py`); None where the device cannot."""

    set_index: DeviceFunction
    move: DeviceFunction
    decide: DeviceFunction | None = None
    count: DeviceFunction | None = None


@dataclass(frozen=True, slots=True)
class RegionWork:
    """A region of a program that is bound to loaded code.

    Args:
        slots, buffers: of the program around.
        scratch: the base, by its number, where there is room.
        counter: bytes from there on, to a number that nothing inside touches.
        is_unrolled: whether the loop is a row of launches.
    """

    region: Region
    bodies: Sequence[Body]
    slots: Mapping[str, Slot]
    buffers: Mapping[str, Buffer]
    functions: RegionFunctions
    scratch: int
    counter: int
    is_unrolled: bool

    def run(self, bases: Sequence[int], run: Run) -> None:
        """
        Raises:
            RunStopped: a check has failed.
        """
        on_device = run.decides and not self.is_unrolled
        drives = _DECIDED if on_device else _DRIVEN
        drives[self.region.kind](_RegionRun(self, bases, run))


def rounds_of(region: Region) -> int:
    """How many iterations the device does as one: after them, what is carried is where it was."""
    at = {name: name for name in region.moves}
    for rounds in range(1, _LONGEST + 1):
        at = {name: at[target] for name, target in region.moves.items()}
        if all(name == place for name, place in at.items()):
            return rounds
    return 1


class _RegionRun:
    """A region on its way: where its buffers are now."""

    def __init__(self, work: RegionWork, bases: Sequence[int], run: Run) -> None:
        self.region, self.run = work.region, run
        self._work, self._bases = work, bases
        self._moves = work.region.moves
        self._at: dict[str, int] = {}  # of those that change places
        self.settle()

    def body(self, k: int) -> None:
        """Run a body once."""
        region = self.region
        arena = self._home(region.scratch) if region.scratch is not None else 0
        inputs = map(self._address, region.arguments[k])
        outputs = map(self._address, region.results[k])
        self._work.bodies[k].run([arena, self._bases[self._work.scratch], *inputs, *outputs], self.run)

    def move(self) -> None:
        """After an iteration: what has landed elsewhere is there for the next one."""
        self._at = {name: self._at[target] for name, target in self._moves.items()}

    def settle(self) -> None:
        """All is at home."""
        self._at = {name: self._home(name) for name in self._moves}

    def count(self, k: int) -> None:
        """Tell the body the number of the iteration."""
        if self.region.index is not None:
            self._set(self._home(self.region.index), k)

    def control(self, dtype: Any) -> int:
        """What the device says of how to go on; waits for it."""
        value = np.zeros(1, dtype)
        self.run.read((value, self._control))
        return int(value[0])

    def decide(self, yes: int, also: int = NO_CONDITION, no: int = NO_CONDITION) -> None:
        """Set conditions by what the device says of how to go on: `no` is the opposite."""
        self._launch(self._work.functions.decide, [self._control, self.run.error, yes, also, no])

    def begin_count(self) -> None:
        self._set(self._counter, 0)

    def count_on(self, yes: int, also: int = NO_CONDITION, no: int = NO_CONDITION) -> None:
        """Tell the body the number of the next iteration, and set conditions by whether there is one."""
        control, index = self.region.control, self.region.index
        trips, known = (0, control) if isinstance(control, int) else (self._control, 0)
        place = self._counter if index is None else self._home(index)
        self._launch(self._work.functions.count, [self._counter, place, trips, known, self.run.error, yes, also, no])

    def bring_home(self) -> None:
        """Copy what is carried into its own memory, where it has ended up elsewhere."""
        buffers = self._work.buffers
        away = {name: self._at[name] for name in self.region.carried if name in self._at}
        away = {name: at for name, at in away.items() if at != self._home(name)}
        while away:
            sources = set(away.values())
            free = [name for name in away if self._home(name) not in sources]
            if free:
                name = free[0]
                self._copy(buffers[name], self._home(name), away.pop(name))
            else:  # they are in each other's memory: one makes room
                name = next(iter(away))
                aside = self._bases[self._work.scratch] + first_element(buffers[name])
                self._copy(buffers[name], aside, away[name])
                away[name] = aside

    @property
    def _control(self) -> int:
        assert isinstance(self.region.control, str)
        return self._address(self.region.control)

    @property
    def _counter(self) -> int:
        return self._bases[self._work.scratch] + self._work.counter

    def _set(self, address: int, value: int) -> None:
        self._launch(self._work.functions.set_index, [address, value])

    def _copy(self, buffer: Buffer, target: int, source: int) -> None:
        first, nbytes = first_element(buffer), extent(buffer)
        blocks = blocks_for(nbytes, 16 * THREADS)
        self.run.launch(self._work.functions.move, blocks, THREADS, 0, [target - first, source - first, nbytes, self.run.error])

    def _launch(self, function: DeviceFunction | None, parameters: Sequence[int]) -> None:
        assert function is not None
        self.run.launch(function, 1, 1, 0, parameters)

    def _home(self, name: str) -> int:
        base, offset = self._work.slots[name]
        return self._bases[base] + offset

    def _address(self, name: str) -> int:
        return self._at[name] if name in self._at else self._home(name)


# ------------------------------------------------------------------------------------------------------- by the host


def _drive_loop(region: _RegionRun) -> None:
    known = region.region.control
    for k in range(known if isinstance(known, int) else region.control(np.int64)):
        region.count(k)
        region.body(0)
        region.move()
    region.bring_home()


def _drive_while(region: _RegionRun) -> None:
    region.body(0)
    while region.control(np.bool_):
        region.body(1)
        region.move()
        region.body(0)
    region.bring_home()


def _drive_cond(region: _RegionRun) -> None:
    region.body(0 if region.control(np.bool_) else 1)


# ----------------------------------------------------------------------------------------------------- by the device


def _decide_loop(region: _RegionRun) -> None:
    region.begin_count()
    _repeat(region, 0, region.count_on)


def _decide_while(region: _RegionRun) -> None:
    def ask(*conditions: int) -> None:
        region.body(0)
        region.decide(*conditions)

    _repeat(region, 1, ask)


def _decide_cond(region: _RegionRun) -> None:
    run = region.run
    then, otherwise = run.condition(), run.condition()
    region.decide(then, no=otherwise)
    run.conditional("if", then, lambda: region.body(0))
    run.conditional("if", otherwise, lambda: region.body(1))


def _repeat(region: _RegionRun, body: int, ask: Callable[..., None]) -> None:
    """Run a body as long as `ask`, which sets conditions, says so."""
    run, goes_on = region.run, region.run.condition()

    def iterations(left: int) -> None:
        region.body(body)
        region.move()
        if left == 1:
            region.bring_home()
            region.settle()
            ask(goes_on)
            return
        again, ends = run.condition(), run.condition()
        ask(goes_on, again, ends)
        run.conditional("if", ends, region.bring_home)
        run.conditional("if", again, lambda: iterations(left - 1))

    ask(goes_on)
    run.conditional("while", goes_on, lambda: iterations(rounds_of(region.region)))


_DRIVEN = {"loop": _drive_loop, "while": _drive_while, "cond": _drive_cond}
_DECIDED = {"loop": _decide_loop, "while": _decide_while, "cond": _decide_cond}
