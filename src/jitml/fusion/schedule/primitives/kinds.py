"""Kinds of loops as primitives: `parallel`, `bind`, `vector`, `unroll`, and `jam`, which runs iterations side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from jitml.fusion.schedule.tree import LoopTree, Misfit, TreeLoop, named, with_loops
from jitml.kernels.ir import Kind
from jitml.kernels.schedule import BindLoop, Jam, Parallel, Primitive, Unroll, Vector
from jitml.kernels.target import Target

MOST_TOGETHER = 64  # copies of a body, each of which is compiled
BOUND: Mapping[str, Kind] = {"block": "block", "thread": "thread"}


def parallel(tree: LoopTree, p: Parallel) -> LoopTree:
    """Hand iterations of an outermost loop to threads, so many at once at least."""
    if p.grain < 1:
        raise Misfit(f"a grain of {p.grain} iterations is no work for a thread")
    return _of_kind(tree, p.loop, "parallel", p.grain)


def bind(tree: LoopTree, p: BindLoop) -> LoopTree:
    """Hand iterations of an outermost loop to blocks of threads, or those of a loop to the threads of a block."""
    kind = BOUND.get(p.to)
    if kind is None:
        raise Misfit(f"loops are bound to a {' or a '.join(BOUND)}, not to {p.to}")
    if p.grain < 1:
        raise Misfit(f"a grain of {p.grain} iterations is no work for a {p.to}")
    return _of_kind(tree, p.loop, kind, p.grain)


def require_kind(primitive: Primitive, target: Target) -> None:
    """Refuse a kind of loop that a target lacks."""
    match primitive:
        case BindLoop(to=kind):
            pass
        case Parallel():
            kind = "parallel"
        case _:
            return
    if kind not in target.kinds:
        has = ", ".join(sorted(target.kinds - {"serial"}))
        raise Misfit(f"{target.name} has no {kind} loops; its kinds are {has}")


def vector(tree: LoopTree, p: Vector) -> LoopTree:
    """Make iterations the lanes of vectors."""
    return _of_kind(tree, p.loop, "vector")


def unroll(tree: LoopTree, p: Unroll) -> LoopTree:
    """Write the body out, for each of a number of iterations that is known."""
    return _of_kind(tree, p.loop, "unroll")


def _of_kind(tree: LoopTree, name: str, kind: Kind, grain: int = 1) -> LoopTree:
    def marked(loop: TreeLoop) -> tuple[TreeLoop, ...]:
        if loop.kind != "serial":
            raise Misfit(f"{loop.index} is {loop.kind} already", loop)
        return (replace(loop, kind=kind, grain=grain),)

    return with_loops(tree, name, marked)


def jam(tree: LoopTree, p: Jam) -> LoopTree:
    """Run iterations side by side, in loops whose limits are the same for all of them."""
    if p.times > MOST_TOGETHER:
        raise Misfit(f"the body would be written {p.times} times; {MOST_TOGETHER} are the most", named(p.loop, tree)[0])
    for loop in named(p.loop, tree):
        if loop.kind not in ("serial", "parallel", "block", "thread") or loop.step != 1 or p.times < 2:
            raise Misfit(
                f"{loop.index} is {loop.kind}, with steps of {loop.step}: {p.times} of them do not run side by side", loop
            )
    return with_loops(tree, p.loop, lambda loop: (replace(loop, together=p.times),))
