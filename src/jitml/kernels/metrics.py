"""Metrics of kernel programs: bytes moved, floating-point operations, how often and how long they run."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, prod

from jitml.ir import ops
from jitml.ir.graph import Node
from jitml.kernels.ir import (
    Alloc,
    Apply,
    If,
    Kernel,
    Let,
    Loop,
    Observe,
    Stmt,
    Store,
    Update,
    While,
    affine,
    sub,
    walk,
    walk_expression,
)
from jitml.kernels.program import Call, KernelProgram, Region, Step
from jitml.records import replace

USUAL_TRIPS = 100  # of a loop whose number of iterations only the running program knows


def times_run(region: Region) -> int:
    """How often the body of a region runs: of one that only data ends, a guess."""
    if region.kind == "cond":
        return 1
    return region.control if isinstance(region.control, int) else USUAL_TRIPS


def _in_bodies(region: Region, count: Callable[[KernelProgram], int]) -> int:
    """What a region comes to: all iterations of its bodies, or the larger of its branches."""
    counts = [count(body) for body in region.bodies]
    return max(counts) if region.kind == "cond" else times_run(region) * sum(counts)


def bytes_moved(program: KernelProgram) -> int:
    """Bytes that kernels and calls read and write, each buffer once per step that touches it.

    A broadcast or sliced operand counts the elements that are there, not those that are read again from cache.
    """
    total = 0
    for step in program.steps:
        if isinstance(step, Call):
            total += _bytes_of_call(step, program)
        elif isinstance(step, Region):
            total += _in_bodies(step, bytes_moved)
        else:
            sizes = {b.name: b.nbytes for b in step.params}
            # What a kernel reads back of what it has written is a row that is still in cache.
            total += sum(sizes[name] for name in {*step.reads, *step.writes})
    return total


def _bytes_of_call(call: Call, program: KernelProgram) -> int:
    """A product may read and write parts of buffers; others do so with whole ones, but for memory that is only to be there."""
    if call.name in ("empty", "zeros"):
        return 0
    sizes = {name: program.buffers[name].nbytes for name in (*call.reads, *call.writes)}
    if call.name == "gemm":
        p = call.params
        for name, which, extents in zip((*call.reads[:2], call.writes[0]), "abc", ("mk", "kn", "mn")):
            stacks = prod(n for n, step in zip(p["batch"], p[f"{which}_batch"]) if step)
            part = stacks * prod(p[extent] for extent in extents) * program.buffers[name].dtype.itemsize
            sizes[name] = min(sizes[name], part)
    added = call.updates if "adds" in call.params else ()
    return sum(sizes[name] for name in (*call.reads, *call.writes, *added))


def flops(program: KernelProgram) -> int:
    """Floating-point operations of a program: scalar functions once per element, `mul` and `add` of a contraction as two."""
    return kernel_flops(program) + matrix_flops(program)


def kernel_flops(program: KernelProgram) -> int:
    """The part of `flops` in kernels."""
    own = sum(round(_flops(step.body, 1.0)) for step in program.steps if isinstance(step, Kernel))
    return own + sum(_in_bodies(step, kernel_flops) for step in program.steps if isinstance(step, Region))


def matrix_flops(program: KernelProgram) -> int:
    """The part of `flops` in calls of BLAS."""
    calls = [step.params for step in program.steps if isinstance(step, Call) and step.name == "gemm"]
    own = sum(2 * prod(p["batch"]) * p["m"] * p["n"] * p["k"] for p in calls)
    fused = [step.params["call"] for step in program.steps if isinstance(step, Call) and step.name == "fused"]
    own += sum(_product_flops(node) for graph in fused for node in graph.nodes if node.op is ops.dot_general)
    return own + sum(_in_bodies(step, matrix_flops) for step in program.steps if isinstance(step, Region))


def _product_flops(node: Node) -> int:
    (along, _), x = node.params["contract"], node.inputs[0]
    return 2 * node.output.size * prod(x.shape[a] for a in along)


def kernel_work(program: KernelProgram, work_of: Callable[[str], float]) -> float:
    """Operations in kernels, of whole numbers too, a function counting its work; `inf` if a loop's end is not known."""

    def work(stmt: Store | Let | Update | Observe) -> float:
        return 1.0 + sum(work_of(e.fn) for e in walk_expression(stmt.value) if isinstance(e, Apply))

    own = sum(_in_loops(step.body, 1.0, work, inf) for step in program.steps if isinstance(step, Kernel))
    inner = [(step, [kernel_work(body, work_of) for body in step.bodies]) for step in program.steps if isinstance(step, Region)]
    return own + sum(max(found) if step.kind == "cond" else times_run(step) * sum(found) for step, found in inner)


def _flops(body: tuple[Stmt, ...], times: float) -> float:
    return _in_loops(body, times, _flops_of, 1)


def _flops_of(stmt: Store | Let | Update | Observe) -> float:
    count = sum(isinstance(e, Apply) and e.dtype.kind == "f" for e in walk_expression(stmt.value))
    return count + (isinstance(stmt, (Store, Update)) and stmt.combine is not None)


def _in_loops(
    body: tuple[Stmt, ...], times: float, count: Callable[[Store | Let | Update | Observe], float], unknown: float
) -> float:
    """What statements come to that are run so many times.

    Args:
        unknown: how often a loop runs if nobody knows.
    """
    total = 0.0
    for stmt in body:
        match stmt:
            case Loop():
                total += _in_loops(stmt.body, times * (unknown if (most := most_trips(stmt)) is None else most), count, unknown)
            case Alloc():
                total += _in_loops(stmt.body, times, count, unknown)
            case If():
                total += _in_loops(stmt.then, times, count, unknown)
            case While():
                total += _in_loops(stmt.body, times * USUAL_TRIPS, count, unknown)
            case Store() | Let() | Update() | Observe():
                total += times * count(stmt)
    return total


def has_open_end(program: KernelProgram) -> bool:
    """Whether only the running program knows how long it takes: it has a `while`, or a region that a computed number repeats."""

    def is_open(step: Step) -> bool:
        if isinstance(step, Region):
            return (step.kind != "cond" and not isinstance(step.control, int)) or any(map(has_open_end, step.bodies))
        return isinstance(step, Kernel) and any(isinstance(stmt, While) for stmt in walk(step.body))

    return any(map(is_open, program.steps))


def known_trips(loop: Loop) -> int | None:
    """Number of iterations of a loop whose limits are a known distance apart."""
    span = affine(sub(loop.stop, loop.start))
    return max(0, -(-span[""] // loop.step)) if span is not None and span.keys() == {""} else None


def most_trips(loop: Loop) -> int | None:
    """The most iterations of a loop; known too if it ends at `minimum(start + n, ...)`."""
    if isinstance(loop.stop, Apply) and loop.stop.fn == "minimum":
        known = [n for stop in loop.stop.args if (n := most_trips(replace(loop, stop=stop))) is not None]
        return min(known, default=None)
    return known_trips(loop)
