"""The entry function: how do a program's steps run one after the other?

One function that calls theirs: the entry, loops and branches included.

Bodies of regions are written into the same function, and every buffer's address is found once, before the first step:
what a loop does per iteration is its calls, its counter and its checks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING

from jitml.codegen.llvm.ir.conventions import CLEAR, ENTRY, LOOK, RAISED
from jitml.codegen.llvm.ir.support_functions import need
from jitml.codegen.llvm.ir.translation_unit import Unit
from jitml.codegen.llvm.loops.access import Extents
from jitml.codegen.llvm.loops.kernel import emit_kernel
from jitml.codegen.llvm.loops.safepoints import find_word
from jitml.codegen.llvm.loops.statements import identifier
from jitml.imports.late import late
from jitml.kernels.ir import Kernel
from jitml.kernels.program import Call, Region
from jitml.memory.aliasing import storages
from jitml.memory.liveness import sizes_of, uses_of
from jitml.memory.program import Program
from jitml.records import dataclass

if TYPE_CHECKING:
    from jitml.codegen.llvm.calls import calls
else:
    calls = late("jitml.codegen.llvm.calls.calls")  # programs of kernels alone have none


@dataclass(frozen=True, slots=True)
class _EntrySite:
    """A region on its way into the entry: the program around, its pointers, and those that each iteration starts with."""

    region: Region
    program: Program
    pointers: Mapping[str, str]
    moving: Mapping[str, str]

    @property
    def around(self) -> Mapping[str, str]:
        """Where the bodies find the buffers of the program around."""
        return {**self.pointers, **self.moving}


class Entry:
    """Writes the entry of a program, and through `unit` the functions of all its kernels and calls.

    Args:
        streamed: buffers of the program that are stored past the caches, if the shape that is used is so large.
    """

    def __init__(self, unit: Unit, program: Program, streamed: Mapping[str, Extents]) -> None:
        self.unit = unit
        self.streamed = streamed
        self.addresses: list[str] = []
        self.lines: list[str] = []
        self.block = "start"  # the label of the block that is being written
        self.numbers = count()
        if unit.is_long:
            unit.declarations.declare(f"i64 @{LOOK}(ptr)")
            self.addresses += find_word()
        kernels = program.kernels
        table, homes = kernels.table(), {"input": kernels.inputs, "output": kernels.outputs, "constant": tuple(kernels.constants)}
        used = _used(program)
        pointers = {}
        for name in filter(used.__contains__, kernels.buffers):
            place = program.places[name]
            if place.space == "arena":
                pointers[name] = self._address(name, f"getelementptr i8, ptr %arena, i64 {place.offset}")
            else:
                position, offset = table[homes[place.space][place.index]]
                slot = self._address(f"{name}.slot", f"getelementptr ptr, ptr %table, i64 {position}")
                start = self._address(name, f"load ptr, ptr {slot}")
                pointers[name] = self._address(name, f"getelementptr i8, ptr {start}, i64 {offset}") if offset else start
        self._steps(program, pointers, "")
        body = "\n".join(["entry:", *self.addresses, "  br label %start", "start:", *self.lines, "  ret i64 0"])
        unit.add(f"i64 @{ENTRY}(ptr %table, ptr %arena, ptr %error)", body)

    # --------------------------------------------------------------------------------------------------- steps

    def _steps(self, program: Program, pointers: Mapping[str, str], path: str) -> None:
        """The steps of a program whose buffers lie at `pointers`; `path` tells its functions from those of others."""
        for n, step in enumerate(program.kernels.steps):
            if n and not path:
                self._poll()
            symbol = f"{identifier(path + step.name)}.{next(self.numbers)}"
            match step:
                case Kernel():
                    names = [b.name for b in step.params]
                    places, streamed = storages(program, names), {} if path else self.streamed
                    symbol = emit_kernel(self.unit, step, symbol, places, streamed)
                    self._call_quietly(symbol, [pointers[name] for name in names], step.ignored)
                case Call("empty"):
                    pass
                case Call("zeros") if program.places[step.writes[0]].space == "arena":
                    (name,) = step.writes
                    self.unit.declarations.declare(f"void @{CLEAR}(ptr, i64)")
                    self._emit(f"call void @{CLEAR}(ptr {pointers[name]}, i64 {program.kernels.buffers[name].nbytes})")
                case Call():
                    touched = (*step.reads, *step.writes)
                    places = storages(program, dict.fromkeys((*touched, *sizes_of(touched, program.kernels))))
                    symbol, names = calls.emit_call(self.unit, step, symbol, program.kernels, places)
                    self._call(symbol, [pointers[name] for name in names])
                case Region():
                    moving = {name: self._value(f"{identifier(name)}.at") for name in step.moves}
                    self._region(_EntrySite(step, program, pointers, moving), f"{path}{step.name}.")

    def _call_quietly(self, symbol: str, pointers: Sequence[str], ignored: int) -> None:
        """Run a function, and forget some of the floating-point errors that come up in it."""
        if not ignored:
            self._call(symbol, pointers)
            return
        need(self.unit.declarations, "take_flags", "raise_flags")
        before, after, kept, flags = (self._value(word) for word in ("before", "after", "kept", "flags"))
        self._emit(f"{before} = call i64 @take_flags()")
        self._call(symbol, pointers)
        self._emit(f"{after} = call i64 @take_flags()")
        self._emit(f"{kept} = and i64 {after}, {~ignored}")
        self._emit(f"{flags} = or i64 {kept}, {before}")
        self._emit(f"call void @raise_flags(i64 {flags})")

    def _poll(self) -> None:
        """Leave if the program is to end."""
        if not self.unit.is_long:
            return
        due, time, told, over = (self._value(word) for word in ("is.due", "time", "told", "over"))
        look, stop, on = (self._label(word) for word in ("look", "stop", "on"))
        self._emit(f"{due} = load atomic i64, ptr %due monotonic, align 8")
        self._emit(f"{time} = icmp ne i64 {due}, 0")
        self._emit(f"br i1 {time}, label %{look}, label %{on}")
        self._start(look)
        self._emit(f"{told} = call i64 @{LOOK}(ptr %error)")
        self._emit(f"{over} = icmp ne i64 {told}, 0")
        self._emit(f"br i1 {over}, label %{stop}, label %{on}")
        self._start(stop)
        self._emit(f"ret i64 {RAISED}")
        self._start(on)

    def _call(self, symbol: str, pointers: Sequence[str]) -> None:
        """Run a function; leave if it reports a failed check."""
        args = ", ".join(f"ptr {p}" for p in ("%error", *pointers))
        code, failed, fail, good = self._value("code"), self._value("failed"), self._label("fail"), self._label("step")
        self._emit(f"{code} = call i64 @{symbol}({args})")
        self._emit(f"{failed} = icmp ne i64 {code}, 0")
        self._emit(f"br i1 {failed}, label %{fail}, label %{good}")
        self._start(fail)
        self._emit(f"ret i64 {code}")
        self._start(good)

    # ------------------------------------------------------------------------------------------------- regions

    def _region(self, site: _EntrySite, path: str) -> None:
        region, bodies = site.region, site.program.bodies[site.region.name]
        inside = [self._inside(region, k, body, site.around, path) for k, body in enumerate(bodies)]

        def run(k: int) -> None:
            self._steps(bodies[k], inside[k], path)

        match region.kind:
            case "loop":
                self.unit.loops += 1
                self._loop(site, lambda: run(0))
                self.unit.loops -= 1
            case "while":
                test, body, done = (self._label(word) for word in ("test", "body", "done"))
                before = self.block
                self._emit(f"br label %{test}")
                self._start(test)
                phis = len(self.lines)
                self.unit.loops += 1
                self._poll()
                run(0)
                self._branch(site, body, done)
                self._start(body)
                run(1)
                self.unit.loops -= 1
                self._emit(f"br label %{test}")
                self.lines[phis:phis] = self._moves(site, before)
                self._start(done)
                self._bring_home(site)
            case "cond":
                then, orelse, done = (self._label(word) for word in ("then", "else", "done"))
                self._branch(site, then, orelse)
                for k, label in enumerate((then, orelse)):
                    self._start(label)
                    run(k)
                    self._emit(f"br label %{done}")
                self._start(done)

    def _inside(self, region: Region, k: int, body: Program, pointers: Mapping[str, str], path: str) -> dict[str, str]:
        """Where the buffers of a body lie."""
        kernels = body.kernels
        known = {
            "input": [pointers[name] for name in region.arguments[k]],
            "output": [pointers[name] for name in region.results[k]],
        }
        inside = {}
        for name in filter(_used(body).__contains__, kernels.buffers):
            place = body.places[name]
            if place.space == "arena":
                base = "null" if region.scratch is None else pointers[region.scratch]  # an empty arena holds empty buffers
                inside[name] = self._address(f"{path}{k}.{name}", f"getelementptr i8, ptr {base}, i64 {place.offset}")
            else:
                inside[name] = known[place.space][place.index]
        return inside

    def _moves(self, site: _EntrySite, before: str) -> list[str]:
        """Where the buffers that change places lie at an iteration: as the one before left them."""
        return [
            f"  {site.moving[name]} = phi ptr [ {site.pointers[name]}, %{before} ], [ {site.around[at]}, %{self.block} ]"
            for name, at in site.region.moves.items()
        ]

    def _bring_home(self, site: _EntrySite) -> None:
        """After the last iteration: exchange contents until each result lies in its own memory."""
        away = dict(site.moving)
        for name in filter(away.__contains__, site.region.carried):
            now, home, size = away.pop(name), site.pointers[name], site.program.kernels.buffers[name].nbytes
            strayed, exchange, settled = self._value("strayed"), self._label("exchange"), self._label("settled")
            self._emit(f"{strayed} = icmp ne ptr {now}, {home}")
            self._emit(f"br i1 {strayed}, label %{exchange}, label %{settled}")
            self._start(exchange)
            self._emit(f"call void @exchange(ptr {now}, ptr {home}, i64 {size})")
            self._emit(f"br label %{settled}")
            self._start(settled)
            for other, place in away.items():  # whoever was there is now where this was
                there, away[other] = self._value("there"), self._value("place")
                self._emit(f"{there} = icmp eq ptr {place}, {home}")
                self._emit(f"{away[other]} = select i1 {there}, ptr {now}, ptr {place}")
            need(self.unit.declarations, "exchange")

    def _loop(self, site: _EntrySite, body: Callable[[], None]) -> None:
        region, pointers = site.region, site.pointers
        trips = str(region.control)
        if isinstance(region.control, str):
            trips = self._value("trips")
            self._emit(f"{trips} = load i64, ptr {pointers[region.control]}")
        index, following, more = self._value("index"), self._value("following"), self._value("more")
        head, inside, done = (self._label(word) for word in ("head", "body", "done"))
        before = self.block
        self._emit(f"br label %{head}")
        self._start(head)
        phi = len(self.lines)  # written when it is known which block the body ends in
        self._emit(f"{more} = icmp slt i64 {index}, {trips}")
        self._emit(f"br i1 {more}, label %{inside}, label %{done}")
        self._start(inside)
        self._poll()
        if region.index is not None:
            self._emit(f"store i64 {index}, ptr {pointers[region.index]}")
        body()
        self._emit(f"{following} = add i64 {index}, 1")
        self._emit(f"br label %{head}")
        counter = f"  {index} = phi i64 [ 0, %{before} ], [ {following}, %{self.block} ]"
        self.lines[phi:phi] = [counter, *self._moves(site, before)]
        self._start(done)
        self._bring_home(site)

    def _branch(self, site: _EntrySite, yes: str, no: str) -> None:
        assert isinstance(site.region.control, str)
        byte, truth = self._value("byte"), self._value("truth")
        self._emit(f"{byte} = load i8, ptr {site.pointers[site.region.control]}")
        self._emit(f"{truth} = icmp ne i8 {byte}, 0")
        self._emit(f"br i1 {truth}, label %{yes}, label %{no}")

    # --------------------------------------------------------------------------------------------------- lines

    def _emit(self, line: str) -> None:
        self.lines.append(f"  {line}")

    def _start(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self.block = label

    def _value(self, stem: str) -> str:
        return f"%{stem}{next(self.numbers)}"

    def _label(self, stem: str) -> str:
        return f"{stem}{next(self.numbers)}"

    def _address(self, name: str, value: str) -> str:
        """A pointer found once, before the first step."""
        pointer = f"%{identifier(name)}.p{next(self.numbers)}"
        self.addresses.append(f"  {pointer} = {value}")
        return pointer


def _used(program: Program) -> set[str]:
    """The buffers that some step needs the address of."""
    used: set[str] = set()
    for step in program.kernels.steps:
        names = [b.name for b in step.params] if isinstance(step, Kernel) else uses_of(step, program.kernels).reads
        used.update(names, step.writes)
    return used
