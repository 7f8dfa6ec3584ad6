"""Kinds of loops as primitives: `parallel`, `vector`, `unroll`, and `jam`, which runs iterations side by side."""

from __future__ import annotations

from dataclasses import replace

from jitml.fusion.schedule.tree import LoopTree, Misfit, Scratch, TreeLoop, loops, named, nodes, updated, with_loops
from jitml.kernels.ir import Cell, variables_of
from jitml.kernels.schedule import Jam, Parallel, Unroll, Vector


def parallel(tree: LoopTree, p: Parallel) -> LoopTree:
    """Hand iterations to threads: of an outermost loop, for threads do not start others."""
    outermost = {id(node) for node in tree.body}
    for loop in named(p.loop, tree):
        if id(loop) not in outermost:
            raise Misfit(f"{loop.index} does not stand outermost, and only such loops are shared among threads", loop)
        _require_serial(loop)
        if totals := updated(loop.body):
            raise Misfit(f"all iterations of {loop.index} add to {', '.join(totals)}, which threads do not share", loop)
    if p.grain < 1:
        raise Misfit(f"a grain of {p.grain} iterations is no work for a thread")
    return with_loops(tree, p.loop, lambda loop: (replace(loop, kind="parallel", grain=p.grain),))


def vector(tree: LoopTree, p: Vector) -> LoopTree:
    """Make iterations the lanes of vectors. In lanes run neither other lanes nor loops of which each has limits of its own."""
    for loop in named(p.loop, tree):
        _require_serial(loop)
        if any(isinstance(node, Scratch) for node in nodes(loop.body)):
            raise Misfit(f"{loop.index} has scratch of its own, of which there is one and not one for each lane", loop)
        for inner in loops(loop.body):
            if loop.index in variables_of(inner.start, inner.stop):
                raise Misfit(
                    f"the limits of {inner.index} depend on {loop.index}, so that lanes would run it in their own ways", loop
                )
        _require_lanes_once(tree, loop)
    return with_loops(tree, p.loop, lambda loop: (replace(loop, kind="vector"),))


def _require_lanes_once(tree: LoopTree, loop: TreeLoop) -> None:
    around = [other for other in loops(tree.body) if any(inner is loop for inner in loops(other.body))]
    for other in (*around, *loops(loop.body)):
        if other.kind == "vector":
            raise Misfit(f"{other.index} runs in lanes already, on the way to {loop.index} or inside it", loop)


def unroll(tree: LoopTree, p: Unroll) -> LoopTree:
    """Write the body out, for each of a number of iterations that is known."""
    for loop in named(p.loop, tree):
        _require_serial(loop)
    return with_loops(tree, p.loop, lambda loop: (replace(loop, kind="unroll"),))


def jam(tree: LoopTree, p: Jam) -> LoopTree:
    """Run iterations side by side, in loops whose limits are the same for all of them."""
    for loop in named(p.loop, tree):
        own = {loop.index, *(node.name for node in nodes(loop.body) if isinstance(node, Cell))}
        if loop.kind not in ("serial", "parallel") or loop.step != 1 or p.times < 2:
            raise Misfit(
                f"{loop.index} is {loop.kind}, with steps of {loop.step}: {p.times} of them do not run side by side", loop
            )
        for node in nodes(loop.body):
            if isinstance(node, Scratch):
                raise Misfit(f"{loop.index} has scratch of its own, which iterations side by side would share", loop)
            if isinstance(node, TreeLoop) and variables_of(node.start, node.stop) & own:
                raise Misfit(f"the limits of {node.index} differ between iterations of {loop.index}", loop)
            if isinstance(node, TreeLoop) and node.together > 1:
                raise Misfit(f"{node.index} runs its iterations side by side already", loop)
    return with_loops(tree, p.loop, lambda loop: (replace(loop, together=p.times),))


def _require_serial(loop: TreeLoop) -> None:
    if loop.kind != "serial":
        raise Misfit(f"{loop.index} is {loop.kind} already", loop)
