"""Usage: what does a program ask of a GPU, step by step, and what does each launch take of it?  Text for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from jitml.codegen.cuda.calls.plan import CallPlan, Work
from jitml.codegen.cuda.compiler import compile_cubin
from jitml.codegen.cuda.cubin import Resources
from jitml.codegen.cuda.libraries.cublaslt import LibraryProduct
from jitml.codegen.cuda.module import Launch
from jitml.codegen.cuda.occupancy import MULTIPROCESSORS, resident_blocks
from jitml.codegen.cuda.runtime.text import CudaText
from jitml.errors import NoDeviceError
from jitml.memory.report import bytes_text


def launches_text(text: CudaText, arch: str) -> str:
    """A line for each launch, and for what the host does between them; in order, bodies of loops and branches once.

    Without a compiler, registers are not known; the first line says so.
    """
    lines: list[str] = []
    try:
        resources: Mapping[str, Resources] = compile_cubin(text.source, arch).resources
    except NoDeviceError as error:
        resources = {}
        lines = [f"registers are not known: {error.message}"]
    for step in text.steps:
        if step in text.module.launches:
            lines += [_launch(launch, resources, arch) for launch in text.module.launches[step]]
        else:
            lines += _of_call(text.calls[step], resources, arch)
    return "\n".join(lines)


def _of_call(plan: CallPlan, resources: Mapping[str, Resources], arch: str) -> Iterator[str]:
    for work in plan.work:
        yield _work(work, resources, arch)
    if plan.library is not None:
        first, *_ = plan.library.calls
        mode = f", {words}" if isinstance(first, LibraryProduct) and (words := first.mode) else ""
        entries = [launch.entry for launch in plan.library.launches]
        rest = f", with {', '.join(entries)}" if entries else ""
        yield f"  where {first.library} is installed, it does this{mode}{rest}"


def _work(work: Work, resources: Mapping[str, Resources], arch: str) -> str:
    if isinstance(work, Launch):
        return _launch(work, resources, arch)
    return f"{work.name:<24} on the host; {bytes_text(work.nbytes)} are copied there and back"


def _launch(launch: Launch, resources: Mapping[str, Resources], arch: str) -> str:
    told = f"{launch.entry:<24} {launch.blocks:,} x {launch.threads} threads"
    used = resources.get(launch.entry)
    if used is None:
        return told
    shared = used.shared + launch.shared
    told += f"; {used.registers} registers"
    told += f", {used.frame} bytes of local memory" if used.frame else ""
    told += f", {bytes_text(shared)} shared" if shared else ""
    blocks = resident_blocks(arch, launch.threads, used.registers, shared)
    if blocks is None:
        return told
    share = 100 * blocks * launch.threads / MULTIPROCESSORS[arch].threads
    return f"{told}; {blocks} blocks at once on a multiprocessor: {share:.0f} % of its threads"
