"""Memory planning: where does every buffer live?  The kernel program with a place for each buffer: `Program`.

Updates and pointwise results take the storage of an operand that dies (`sharing.py`), the rest is packed into one arena
by lifetime (`arena.py`). The caller's arrays are never written before the last check has passed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from jitml.ir.types import DTYPES
from jitml.kernels.ir import Buffer
from jitml.kernels.program import Call, KernelProgram, Region, Step
from jitml.kernels.target import Limits
from jitml.memory.arena import Packing, aligned, pack
from jitml.memory.double_buffering import with_spares
from jitml.memory.liveness import Lifetime, lifetimes, peak, uses_of
from jitml.memory.program import MemoryReport, Place, Program
from jitml.memory.sharing import StorageSharing, share


def plan(kernels: KernelProgram, alignment: int = Limits().alignment) -> Program:
    """Give every buffer its place; `copy` calls are added where an update in place or an alias cannot be had.

    Outputs that alias an input live in the caller's array if they can, else in the arena with a copy at the end.
    The bodies of regions are planned first, each by itself: their arena is a buffer of the program around.

    Args:
        alignment: of each buffer in the arena, in bytes.
    """
    return _plan(kernels, alignment, may_fail=True)


def _plan(kernels: KernelProgram, alignment: int, *, may_fail: bool) -> Program:
    kernels, bodies = _plan_bodies(kernels, alignment)
    uses = [uses_of(step, kernels) for step in kernels.steps]
    lives = lifetimes(kernels, uses)
    sharing = share(kernels, uses, lives, may_fail=may_fail)
    kernels = replace(kernels, buffers={**kernels.buffers, **sharing.temporaries})
    fixed = _fixed_places(kernels)
    storages = _storages(kernels, sharing, lives, fixed)
    sizes = {home: max(extent(kernels.buffers[name]) for name in names) for home, (names, _) in storages.items()}
    spans = {home: life for home, (_, life) in storages.items()}
    packing = pack(sizes, spans, alignment)
    places: dict[str, Place] = {}
    for name in kernels.buffers:
        home = sharing.home(name)
        start = packing.offsets.get(home, 0) + first_element(kernels.buffers[name])
        places[name] = fixed[home] if home in fixed else Place("arena", offset=start)
    report = _report(kernels, sharing, packing, sizes, spans, bodies, alignment)
    return Program(replace(kernels, steps=_steps(kernels, sharing)), places, packing.size, report, bodies)


def _plan_bodies(kernels: KernelProgram, alignment: int) -> tuple[KernelProgram, dict[str, tuple[Program, ...]]]:
    """The program with planned regions, whose scratch is one of its buffers; and the plans, by region.

    What a body updates belongs to the program around, so that a check that fails there leaves nothing half done for
    the caller to see: the program around keeps such buffers apart from the caller's.
    """
    buffers, steps, bodies = dict(kernels.buffers), list(kernels.steps), {}
    for n, step in enumerate(steps):
        if not isinstance(step, Region):
            continue
        step, plans, spares = with_spares(step, partial(_plan, alignment=alignment, may_fail=False))
        bodies[step.name] = plans
        buffers |= {spare.name: spare for spare in spares}
        arena, scratch = max(body.arena_size for body in plans), None
        if arena:
            scratch = f"{step.name}_scratch"
            buffers[scratch] = Buffer(scratch, DTYPES["u8"], (arena,))
        steps[n] = replace(step, bodies=tuple(body.kernels for body in plans), scratch=scratch)
    return replace(kernels, buffers=buffers, steps=tuple(steps)), bodies


def _report(
    kernels: KernelProgram,
    sharing: StorageSharing,
    packing: Packing,
    sizes: Mapping[str, int],
    spans: Mapping[str, Lifetime],
    bodies: Mapping[str, tuple[Program, ...]],
    alignment: int,
) -> MemoryReport:
    """The account of a program and all that is nested in it; names of the latter begin with their region's."""
    scratch = {step.scratch: step.name for step in kernels.steps if isinstance(step, Region) and step.scratch is not None}
    in_caller = {*kernels.inputs, *kernels.constants, *kernels.outputs, *scratch} - set(kernels.aliases)
    inner = [(name, body.report) for name, plans in bodies.items() for body in plans]
    lower_bound = packing.lower_bound
    if scratch:
        least = {home: aligned(size, alignment) for home, size in sizes.items()}
        least |= {home: max(body.report.lower_bound for body in bodies[name]) for home, name in scratch.items()}
        lower_bound = peak(least, spans)
    return MemoryReport(
        arena=packing.size,
        lower_bound=lower_bound,
        total=sum(aligned(extent(b), alignment) for name, b in kernels.buffers.items() if name not in in_caller)
        + sum(report.total for _, report in inner),
        in_place=(
            *sharing.in_place,
            *((f"{name}.{written}", f"{name}.{read}", n) for name, report in inner for written, read, n in report.in_place),
        ),
        copies=(
            *_copied(sharing),
            *(f"{name}.{copied}" for name, report in inner for copied in report.copies),
        ),
    )


def extent(buffer: Buffer) -> int:
    """Bytes from a buffer's lowest element to the end of its highest; gaps between them count."""
    if not buffer.size:
        return 0
    return (1 + sum((n - 1) * abs(s) for n, s in zip(buffer.shape, buffer.element_strides))) * buffer.dtype.itemsize


def first_element(buffer: Buffer) -> int:
    """Bytes from a buffer's lowest element to its first, which negative strides put further up."""
    return sum((n - 1) * -s for n, s in zip(buffer.shape, buffer.element_strides) if s < 0 and n) * buffer.dtype.itemsize


def _fixed_places(kernels: KernelProgram) -> dict[str, Place]:
    """Buffers that the caller owns, by name."""
    places = {name: Place("input", index) for index, name in enumerate(kernels.inputs)}
    places |= {name: Place("constant", index) for index, name in enumerate(kernels.constants)}
    return places | {name: Place("output", k) for k, name in enumerate(kernels.outputs) if name not in kernels.aliases}


def _storages(
    kernels: KernelProgram, sharing: StorageSharing, lives: dict[str, Lifetime], fixed: dict[str, Place]
) -> dict[str, tuple[list[str], Lifetime]]:
    """The storages that the arena must hold: their names, the buffers that live there, and from when to when."""
    members: dict[str, list[str]] = {}
    for name in kernels.buffers:
        home = sharing.home(name)
        if home not in fixed and lives[name].first <= lives[name].last:
            members.setdefault(home, []).append(name)
    spans = {
        home: Lifetime(min(lives[n].first for n in names), max(lives[n].last for n in names)) for home, names in members.items()
    }
    return {home: (names, spans[home]) for home, names in members.items()}


def _copies(sharing: StorageSharing) -> list[tuple[str, str]]:
    before = [pair for n in sorted(sharing.copies_before) for pair in sharing.copies_before[n]]
    return before + sharing.copies_after


def _copied(sharing: StorageSharing) -> tuple[str, ...]:
    """Buffers whose contents are moved, wholly or where they changed, only because memory cannot be shared."""
    return (*(name for name, _ in _copies(sharing)), *sharing.returned, *sharing.write_backs)


def _steps(kernels: KernelProgram, sharing: StorageSharing) -> tuple[Step, ...]:
    steps: list[Step] = []
    for n, step in enumerate(kernels.steps):
        steps += (_copy(*pair) for pair in sharing.copies_before.get(n, ()))
        if n not in sharing.dropped:
            steps += sharing.detours.get(n, (step,))
    return (*steps, *sharing.write_backs.values(), *(_copy(*pair) for pair in sharing.copies_after))


def _copy(source: str, target: str) -> Call:
    return Call("copy", (source,), (target,), {})
