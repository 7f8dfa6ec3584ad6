"""What makes a kernel program valid: every buffer declared and written before it is read, regions that fit what is around them.

Its kernels are verified one after the other (`kernel.py`), each with what those before it have made known.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from jitml.errors import VerificationError
from jitml.ir.types import BOOL, I64, dtype_name
from jitml.kernels.analysis.buffer_contents import NOTHING, KnownContents
from jitml.kernels.ir import Buffer, Kernel
from jitml.kernels.program import KernelProgram, Region
from jitml.kernels.text.printer import show_buffer
from jitml.kernels.verify.kernel import verify


def verify_program(program: KernelProgram, known: KnownContents = NOTHING) -> KernelProgram:
    """Check every kernel of a program, and that its buffers are declared and written before they are read.

    Args:
        known: what is known of its inputs.
    """
    literals = {name: c for name, c in program.constants.items() if c.size and c.dtype.kind in "iub"}
    known = replace(known, values={**known.values, **{name: (int(c.min()), int(c.max())) for name, c in literals.items()}})
    empty = {name for name, buffer in program.buffers.items() if not buffer.size}  # nothing to write, nothing to read
    _verify_signature(program)
    written = {*program.inputs, *program.constants, *empty}
    known = _with_sizes(known, program, written)
    for step in program.steps:
        for name in (*step.reads, *step.writes):
            if name not in program.buffers:
                raise VerificationError(f"{step.name} uses {name}, which the program does not declare")
        for name in step.reads:
            if name not in written and not (isinstance(step, Kernel) and name in step.writes):
                raise VerificationError(f"{step.name} reads {name} before anything is written there")
        for name in step.writes:
            if name in program.constants or (name in program.inputs):
                raise VerificationError(f"{step.name} writes {name}, which belongs to the caller")
        for name, source in step.updates.items():
            if (
                name not in {*step.writes, *empty}
                or source not in written
                or not _are_alike(program.buffers[name], program.buffers[source])
            ):
                raise VerificationError(f"{step.name} cannot make {name} of {source}")
        if isinstance(step, Kernel):
            for seen in step.params:
                whole = program.buffers[seen.name]
                if seen.dtype != whole.dtype or seen.reach > whole.reach:
                    raise VerificationError(f"{step.name} sees {show_buffer(seen)}, which is {show_buffer(whole)}")
            known = verify(step, known)
            if known.ended:
                return program
        else:
            if isinstance(step, Region):
                verify_region(step, program, known)
            elif step.name == "copy" and program.buffers[step.reads[0]].dtype != program.buffers[step.writes[0]].dtype:
                raise VerificationError(f"{step.reads[0]} cannot be copied to {step.writes[0]}")
            known = known.without(step.writes)
        written |= set(step.writes)
        known = _with_sizes(known, program, written)
    for name in program.outputs:
        if name not in written:
            raise VerificationError(f"nothing writes the output {name}")
    return program


def _verify_signature(program: KernelProgram) -> None:
    """Check what is said of buffers: each is handed in or out once, and what a name or a size stands for is there."""
    buffers, signature = program.buffers, (*program.inputs, *program.outputs)
    for name in (*signature, *program.extents, *program.exact, *program.measured):
        if name not in buffers:
            raise VerificationError(f"the program does not declare {name}")
    for name in signature:
        if signature.count(name) > 1 or name in program.constants:
            raise VerificationError(f"{name} is handed in or out, and something else too")
    for output, source in program.aliases.items():
        if output not in program.outputs or source not in program.inputs or not _are_alike(buffers[output], buffers[source]):
            raise VerificationError(f"{output} cannot end up in {source}")
        if list(program.aliases.values()).count(source) > 1:
            raise VerificationError(f"two outputs end up in {source}")
    for size, place in program.sizes.items():
        if place.buffer not in buffers or (buffers[place.buffer].dtype, buffers[place.buffer].size) != (I64, 1):
            raise VerificationError(f"the size {size} cannot be read from {place.buffer}")
    for name, extents in program.extents.items():
        if len(extents) != len(buffers[name].shape):
            raise VerificationError(f"{name} has {len(buffers[name].shape)} axes but {len(extents)} extents")


def _are_alike(x: Buffer, y: Buffer) -> bool:
    """Whether what one buffer holds can be what the other does."""
    return x.dtype == y.dtype and x.size == y.size


def _with_sizes(known: KnownContents, program: KernelProgram, written: Collection[str]) -> KnownContents:
    """What holds a size is within its limits where a store does not say more: whoever bound it has seen to that."""
    sizes = {
        s.buffer: (s.low, s.high)
        for s in program.sizes.values()
        if s.low is not None and s.high is not None and s.buffer in written and known.values.get(s.buffer) is None
    }
    return replace(known, values={**known.values, **sizes}) if sizes else known


def verify_region(region: Region, program: KernelProgram, known: KnownContents) -> None:
    """Check that the bodies fit the buffers around them, and the bodies themselves.

    Of a buffer that the region writes, a body knows nothing; of the index, that it counts.
    """
    values = {name: known.values.get(name) for name in region.reads}
    if region.index is not None and isinstance(region.control, int) and region.control > 0:
        values[region.index] = (0, region.control - 1)
    checked = known.checked & set(region.reads)
    bodies = 1 if region.kind == "loop" else 2
    if not len(region.bodies) == len(region.arguments) == len(region.results) == bodies:
        raise VerificationError(f"{region.name}: a {region.kind} has {bodies} bodies")
    if region.index is not None and program.buffers[region.index] != Buffer(region.index, I64, ()):
        raise VerificationError(f"{region.name} cannot count in {show_buffer(program.buffers[region.index])}")
    if region.kind == "while" and region.results[0] != (region.control,):
        raise VerificationError(f"{region.name}: the test does not write {region.control}")
    if isinstance(region.control, str):
        dtype = program.buffers[region.control].dtype
        if dtype != (I64 if region.kind == "loop" else BOOL):
            raise VerificationError(f"{region.name} cannot be controlled by {region.control}, which is {dtype_name(dtype)}")
    for body, arguments, results in zip(region.bodies, region.arguments, region.results):
        for inner, outer in (*zip(body.inputs, arguments, strict=True), *zip(body.outputs, results, strict=True)):
            _fits(region, body.buffers[inner], program.buffers[outer])
        if body.constants:
            raise VerificationError(f"{region.name}: a body has constants of its own")
    for name, at in region.moves.items():
        if program.buffers[name] != replace(program.buffers[at], name=name) or not program.buffers[name].is_c_contiguous:
            raise VerificationError(f"{region.name}: {name} and {at} cannot change places")
    for body, arguments, results in zip(region.bodies, region.arguments, region.results):
        ends = dict(zip(body.outputs, results))
        for output, source in body.aliases.items():
            if dict(zip(body.inputs, arguments))[source] != ends[output]:
                raise VerificationError(f"{region.name}: {output} ends up in {ends[output]}, and cannot be {source} too")
        inside = dict(zip(body.inputs, arguments))
        verify_program(
            body,
            KnownContents(
                frozenset(inner for inner, outer in inside.items() if outer in checked),
                {inner: values.get(outer) for inner, outer in inside.items()},
            ),
        )


def _fits(region: Region, inner: Buffer, outer: Buffer) -> None:
    differ = inner.shape == outer.shape and inner.element_strides != outer.element_strides and inner.size > 1
    if differ or not _are_alike(inner, outer):
        raise VerificationError(f"{region.name}: {inner} cannot be {outer}")
