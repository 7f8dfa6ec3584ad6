"""Kinds of loops as primitives: `parallel`, `bind`, `vector`, `unroll`, and `jam`, which runs iterations side by side."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias, TypeVar

from jitml.fusion.schedule.tree import LoopTree, Misfit, TreeLoop, named, with_loops
from jitml.kernels.ir import Kind, Loop
from jitml.kernels.schedule import BindLoop, Jam, Parallel, Primitive, Unroll, Vector
from jitml.kernels.target import Target

MOST_TOGETHER = 64  # copies of a body, each of which is compiled
Mark: TypeAlias = Parallel | BindLoop | Vector | Unroll  # of a loop of some kind
MARKS = (Parallel, BindLoop, Vector, Unroll)
_BOUND: dict[str, Kind] = {"block": "block", "thread": "thread"}
L = TypeVar("L", TreeLoop, Loop)


def kind_of(p: Mark) -> tuple[Kind, int]:
    """The kind of loop that a primitive makes, and how many iterations at least are taken at once."""
    match p:
        case Vector():
            return "vector", 1
        case Unroll():
            return "unroll", 1
        case BindLoop(_, to, grain) if to in _BOUND:
            kind, taker = _BOUND[to], to
        case BindLoop(_, to):
            raise Misfit(f"loops are bound to a {' or a '.join(_BOUND)}, not to {to}")
        case Parallel(_, grain):
            kind, taker = "parallel", "thread"
    if grain < 1:
        raise Misfit(f"a grain of {grain} iterations is no work for a {taker}")
    return kind, grain


def require_kind(primitive: Primitive, target: Target) -> None:
    """Refuse a kind of loop that a target lacks."""
    if isinstance(primitive, MARKS) and (kind := kind_of(primitive)[0]) not in target.kinds:
        has = ", ".join(sorted(target.kinds - {"serial"}))
        raise Misfit(f"{target.name} has no {kind} loops; its kinds are {has}")


def marked(loop: L, p: Mark) -> L:
    """A serial loop with its iterations taken in another way: by threads, by lanes, or written out."""
    if loop.kind != "serial":
        raise Misfit(f"{loop.index} is {loop.kind} already", loop if isinstance(loop, TreeLoop) else None)
    kind, grain = kind_of(p)
    return replace(loop, kind=kind, grain=grain)


def mark(tree: LoopTree, p: Mark) -> LoopTree:
    return with_loops(tree, p.loop, lambda loop: (marked(loop, p),))


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
