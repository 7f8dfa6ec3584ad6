"""Where does every buffer live?  The kernel program with a place for each buffer: `Program`.

Updates and pointwise results take the storage of an operand that dies (`sharing.py`), the rest is packed into one arena
by lifetime (`arena.py`). The caller's arrays are never written before the last check has passed.
"""

from __future__ import annotations

from dataclasses import replace

from jitml.fusion.loops import Buffer
from jitml.fusion.program import Call, KernelProgram, Step
from jitml.memory.arena import aligned, pack
from jitml.memory.liveness import Lifetime, lifetimes, uses_of
from jitml.memory.program import MemoryReport, Place, Program
from jitml.memory.sharing import Sharing, share


def plan(kernels: KernelProgram) -> Program:
    """Give every buffer its place; `copy` calls are added where an update in place or an alias cannot be had.

    Outputs that alias an input live in the caller's array if they can, else in the arena with a copy at the end.
    """
    uses = [uses_of(step, kernels) for step in kernels.steps]
    lives = lifetimes(kernels, uses)
    sharing = share(kernels, uses, lives)
    fixed = _fixed_places(kernels)
    storages = _storages(kernels, sharing, lives, fixed)
    sizes = {home: max(extent(kernels.buffers[name]) for name in names) for home, (names, _) in storages.items()}
    packing = pack(sizes, {home: life for home, (_, life) in storages.items()})
    places: dict[str, Place] = {}
    for name in kernels.buffers:
        home = sharing.home(name)
        start = packing.offsets.get(home, 0) + first_element(kernels.buffers[name])
        places[name] = fixed[home] if home in fixed else Place("arena", offset=start)
    in_caller = {*kernels.inputs, *kernels.constants, *kernels.outputs} - set(kernels.aliases)
    report = MemoryReport(
        arena=packing.size,
        lower_bound=packing.lower_bound,
        total=sum(aligned(extent(b)) for name, b in kernels.buffers.items() if name not in in_caller),
        in_place=tuple(sharing.in_place),
        copies=(*(name for name, _ in _copies(sharing)), *sharing.write_backs),
    )
    return Program(replace(kernels, steps=_steps(kernels, sharing)), places, packing.size, report)


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
    kernels: KernelProgram, sharing: Sharing, lives: dict[str, Lifetime], fixed: dict[str, Place]
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


def _copies(sharing: Sharing) -> list[tuple[str, str]]:
    before = [pair for n in sorted(sharing.copies_before) for pair in sharing.copies_before[n]]
    return before + sharing.copies_after


def _steps(kernels: KernelProgram, sharing: Sharing) -> tuple[Step, ...]:
    steps: list[Step] = []
    for n, step in enumerate(kernels.steps):
        steps += (_copy(*pair) for pair in sharing.copies_before.get(n, ()))
        if n not in sharing.dropped:
            steps.append(step)
    return (*steps, *sharing.write_backs.values(), *(_copy(*pair) for pair in sharing.copies_after))


def _copy(source: str, target: str) -> Call:
    return Call("copy", (source,), (target,), {})
