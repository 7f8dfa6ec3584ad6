"""Reports: what did the compiler do with this call, and why?  A report for people, from the stages of one program."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from jitml.autograd.rewrites.unselected_branches import unselected
from jitml.dispatch.specialize import Variant
from jitml.errors import JitmlError, with_addresses
from jitml.ir import ops
from jitml.ir.graph import Graph
from jitml.kernels.ir import Kernel
from jitml.kernels.metrics import bytes_moved, kernel_flops, matrix_flops
from jitml.kernels.program import Call, KernelProgram, Region, Step
from jitml.kernels.target import Target
from jitml.kernels.text.printer import show_step
from jitml.memory.report import bytes_text
from jitml.outline import Explanation, OutlineEntry, entries_of, file_name
from jitml.pipeline import Lowered
from jitml.sections.report import described
from jitml.sections.split import SplitFunction
from jitml.trace.environment.transformed import Transformed
from jitml.trace.results import told_by_flags
from jitml.trace.traced import Traced

_MOST_SHOWN = 16  # assumptions of a variant


def count(n: int, what: str) -> str:
    """
    >>> count(1, "kernel"), count(2, "kernel")
    ('1 kernel', '2 kernels')
    """
    return f"{n} {what}{'' if n == 1 else 's'}"


def least_bytes(program: KernelProgram) -> int:
    """Bytes that any program with these inputs and outputs must move: each input once, each output once."""
    read = {name for step in program.steps for name in step.reads} & set(program.inputs)
    return sum(program.buffers[name].nbytes for name in (*read, *program.outputs))


def _lines(step: Step) -> str:
    """The user's lines that a step comes from: `model.py:12-15`."""
    lines = sorted({s.line for s in step.sources})
    if not lines:
        return ""
    return f"{file_name(step.sources[0].file)}:{lines[0]}" + (f"-{lines[-1]}" if lines[-1] > lines[0] else "")


def _described(program: KernelProgram, step: Step) -> OutlineEntry:
    moved = sum(program.buffers[n].nbytes for n in {*step.reads, *step.writes} if n in program.buffers)
    if isinstance(step, Call):
        sizes = [step.params[p] for p in ("m", "n", "k") if p in step.params]
        size = " x ".join(map(str, [*step.params.get("batch", ()), *sizes]))
        what = f"{step.name} {size}".rstrip()
        if step.name == "random":
            what = f"draw {step.params['routine'].removeprefix('jitml_')}"
        if step.name == "host":
            function = step.params["function"]
            what = f"{'draw' if function.draws else 'host call'} {function.name}"
    else:
        what = f"kernel {step.name}"
    writes = ", ".join(step.writes)
    reads = ", ".join(name for name in step.reads if name not in step.writes) or "nothing"
    text = f"{what:<28} {reads} -> {writes}; {bytes_text(moved)}  {_lines(step)}".rstrip()
    code = show_step(step) if isinstance(step, Kernel) else ""
    return OutlineEntry(text, bars=(("", moved),), sources=step.sources, code=code)


_BODIES = {"loop": ("each time",), "while": ("test", "body"), "cond": ("then", "else")}


def step_entries(program: KernelProgram) -> tuple[OutlineEntry, ...]:
    """Each step; below a region those of its bodies."""
    return tuple(_of_region(step) if isinstance(step, Region) else _described(program, step) for step in program.steps)


def _of_region(region: Region) -> OutlineEntry:
    control = f"{region.control} times" if region.kind == "loop" else region.control
    head = f"{region.kind} {control} -> {', '.join(region.results[-1])}  {_lines(region)}".rstrip()
    bodies = tuple(OutlineEntry(f"{word}:", step_entries(body)) for word, body in zip(_BODIES[region.kind], region.bodies))
    return OutlineEntry(head, bodies, sources=region.sources)


def _all_steps(program: KernelProgram) -> Iterator[Step]:
    for step in program.steps:
        yield step
        for body in step.bodies if isinstance(step, Region) else ():
            yield from _all_steps(body)


def _counts(program: KernelProgram) -> str:
    """`2 kernels, 1 library call`, bodies of regions included."""
    steps = list(_all_steps(program))
    regions = sum(isinstance(step, Region) for step in steps)
    text = count(sum(isinstance(step, Kernel) for step in steps), "kernel")
    text += f", {count(sum(isinstance(step, Call) for step in steps), 'library call')}"
    return text + (f", {count(regions, 'region')}" if regions else "")


def _roofline(program: KernelProgram, moved: int, target: Target) -> str:
    memory = moved / target.cost.memory_bandwidth
    compute = kernel_flops(program) / target.cost.flops + matrix_flops(program) / target.cost.matrix_flops
    if max(memory, compute) == 0:
        return "nothing to do"
    bound = "memory" if memory >= compute else "arithmetic"
    return f"bound by {bound}: about {max(memory, compute) / 1e3:,.1f} us on {target.unit}"


def host_calls(graph: Graph) -> Iterator[str]:
    """The calls that the program makes into Python, with the user's lines."""
    for node in graph.walk():
        if node.op is ops.host_call:
            source = node.source
            yield f"{node.params['function'].name}  {source.file.rsplit('/', 1)[-1]}:{source.line}" if source else node.op.name


def branches_left_out(graph: Graph) -> Iterator[str]:
    """Where a derivative may be nan because of a branch that `np.where` does not choose, with the user's lines."""
    for choice, slope in unselected(graph):
        where, what = (f"{source.file.rsplit('/', 1)[-1]}:{source.line}" for source in (choice, slope))
        yield f"np.where  {where}: what {what} computes has a cotangent of 0 where it is not chosen, perhaps an infinite slope"


def _described_variant(number: int, variant: Variant) -> Iterator[str]:
    """Why it was compiled, what it assumes, and which calls it had to leave to NumPy."""
    yield f"{number}: {variant.reason}"
    if variant.checked:
        yield f"   {variant.checked}"
    if getattr(variant.executable, "tier", "full") == "quick":
        yield f"   quick code{', until the full one is made' if variant.is_made_better else ''}"
    for assumption in variant.assumes[:_MOST_SHOWN]:
        yield f"   assumes: {assumption}"
    if len(variant.assumes) > _MOST_SHOWN:
        yield f"   and {len(variant.assumes) - _MOST_SHOWN} assumptions more"
    for reason, times in variant.replays.most_common():
        yield f"   {times} of its calls ran as plain Python: {reason}"


def _work_entries(program: KernelProgram, target: Target) -> tuple[OutlineEntry, ...]:
    moved, least, work = bytes_moved(program), least_bytes(program), kernel_flops(program) + matrix_flops(program)
    ratio = f" ({moved / least:.2f} times)" if least else ""
    return (
        OutlineEntry(
            f"{bytes_text(moved)} moved, {bytes_text(least)} at the least{ratio}",
            bars=(("moved", moved), ("at the least", least)),
        ),
        OutlineEntry(f"{work:,} flops, {work / moved if moved else 0:.2f} a byte; {_roofline(program, moved, target)}"),
    )


def program_entries(lowered: Lowered) -> tuple[OutlineEntry, ...]:
    """What there is to say of a program alone: graph, kernels and calls, decisions, bytes and flops, memory."""
    program = lowered.program.kernels
    nodes = f"{len(lowered.traced.nodes)} nodes traced, {len(lowered.graph.nodes)} after the passes"
    return (
        OutlineEntry("graph", (OutlineEntry(nodes),)),
        OutlineEntry(_counts(program), step_entries(program)),
        OutlineEntry("decisions", _each([str(d) for d in program.decisions] or ["none: there was nothing to choose"])),
        OutlineEntry("work", _work_entries(program, lowered.backend.target)),
        *([OutlineEntry("launches", _each(lowered.launches.splitlines()))] if "launches" in lowered.stages else []),
        OutlineEntry("memory", _each(lowered.memory.splitlines())),
    )


def _each(lines: Iterable[str]) -> tuple[OutlineEntry, ...]:
    return tuple(map(OutlineEntry, lines))


def explain_program(
    title: str, lowered: Lowered, traced: Traced, copies: Sequence[str], variants: Sequence[Variant]
) -> Explanation:
    """The report: graph, kernels and calls, decisions, bytes and flops, memory, types of results, copies, guards, variants."""
    described = [line for n, variant in enumerate(variants, 1) for line in _described_variant(n, variant)]
    told = (
        ("host calls", [*host_calls(lowered.traced)]),
        ("nan from branches that are not chosen", [*branches_left_out(lowered.traced)]),
        ("types that the program tells", told_by_flags(traced.results, traced.out_specs[-1], traced.graph)),
        ("copies", copies),
        ("guards", traced.host.summary()),
        ("variants", described or ["none: no call has been compiled yet"]),
    )
    rest = (OutlineEntry(head, _each(lines)) for head, lines in told if lines or head == "guards")
    return Explanation(OutlineEntry(title), *program_entries(lowered), *rest)


def explain_refused(title: str, function: Callable[..., Any], split: SplitFunction | None, error: JitmlError) -> Explanation:
    """The report of a function that cannot be compiled as a whole, and has not been called so.

    Args:
        split: what calls are answered by; None if it cannot be split.

    Raises:
        JitmlError: `error`, where a call raises it, too.
    """
    why = str(error).splitlines()
    if split is not None:
        more = "  When it is called, other lines may turn out to run as Python, too."
        return Explanation(*entries_of([*described(title, [split]).splitlines(), more]))
    if not isinstance(function, Transformed):
        return Explanation(*entries_of([f"{title} runs as Python: it cannot be compiled, nor be split into sections", *why]))
    if not function.is_derivative:
        raise error
    told = f"{function!r} runs as Python, on a tape (docs/derivatives.md): an operation takes some ten microseconds."
    return Explanation(*entries_of([with_addresses(told), *why]))


def explain_sections(title: str, split: SplitFunction) -> Explanation:
    """The report of a function that has been split: its breaks and its sections."""
    return Explanation(*entries_of(described(title, [split]).splitlines()))
