"""Double buffering: which loops need a second memory for what they carry?  Those that make it anew while the old is still read.

`x = A @ x` can neither be computed in the memory of `x`, nor has it a value there that could stay. With a second memory the two
change places at each iteration, and nothing is copied.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from jitml.kernels.ir import Buffer
from jitml.kernels.program import Call, KernelProgram, Region
from jitml.memory.program import Program


def with_spares(region: Region, plan: Callable[[KernelProgram], Program]) -> tuple[Region, tuple[Program, ...], list[Buffer]]:
    """A region and the plans of its bodies; and the buffers that it needs besides."""
    plans = [plan(body) for body in region.bodies]
    copied = _copied_back(plans[-1].kernels) if region.carried else []
    if not copied:
        return region, tuple(plans), []
    body = region.bodies[-1]
    aliases = {output: source for output, source in body.aliases.items() if output not in copied}
    spares = [replace(_flat(body.buffers[output]), name=f"{region.name}_spare{k}") for k, output in enumerate(copied)]
    names = dict(zip(copied, (b.name for b in spares)))
    landed = tuple(names.get(output, result) for output, result in zip(body.outputs, region.results[-1]))
    plans[-1] = plan(replace(body, aliases=aliases))
    bodies, results = (*region.bodies[:-1], replace(body, aliases=aliases)), (*region.results[:-1], landed)
    return replace(region, bodies=bodies, results=results), tuple(plans), spares


def _copied_back(body: KernelProgram) -> list[str]:
    """Outputs of a planned body that are copied whole into the memory that they have to be in."""
    pairs = ((step.reads[0], step.writes[0]) for step in body.steps if isinstance(step, Call) and step.name == "copy")
    return [o for o, source in pairs if body.aliases.get(o) == source and _can_change_places(body, o, source)]


def _can_change_places(body: KernelProgram, output: str, source: str) -> bool:
    one, other = body.buffers[output], body.buffers[source]
    return one.size > 1 and one.is_c_contiguous and other.is_c_contiguous and output not in body.extents


def _flat(buffer: Buffer) -> Buffer:
    return replace(buffer, strides=None)
