"""Budget of saved bytes: how many bytes may a loop save that has no known limit?

JITML_SAVED_BYTES, shared by all such loops of a derivative.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

from jitml.autograd.core.differentiation_orders import levels
from jitml.config import CONFIG
from jitml.errors import Source
from jitml.interrupts import unset
from jitml.ir import ops
from jitml.ir.capacity import Room, is_learning, reserved
from jitml.ir.dims import Size, bound
from jitml.ir.graph import Graph, Node, Value

FEW = 4096  # iterations, for which there is room whatever they save

FIRST_BYTES = 64 << 20  # for which there is room before more is known to be needed

_SPARED = 4  # a part of all there is that a derivative may have, whatever others have taken

_FIRST = 4  # iterations, likewise, whatever they save

_FEWEST = 64  # for which there is room whatever all directions of a derivative save together

_shares: ContextVar[int] = ContextVar("jitml_shares", default=1)
_least: ContextVar[int] = ContextVar("jitml_least", default=1)
_directions: ContextVar[int] = ContextVar("jitml_directions", default=1)
_taken: ContextVar[int] = ContextVar("jitml_taken", default=0)
_depth: ContextVar[int] = ContextVar("jitml_depth", default=0)


def saved_bytes() -> int:
    return _left() // _shares.get()


def _left() -> int:
    """What there is, without what derivatives of this one will need beside it, a tangent or cotangent of all that is saved for
    each, and what those have that this is a derivative of."""
    return max(CONFIG.saved_bytes - _taken.get(), CONFIG.saved_bytes // _SPARED) >> levels()


def affordable(nbytes: int) -> int:
    """How many iterations may save so many bytes each, where their number has no limit."""
    alone = saved_bytes() // max(1, nbytes)
    return max(_least.get(), alone // _directions.get(), min(alone, _FEWEST))


def room(source: Source | None, nbytes: int, most: int) -> Room:
    """For how many iterations to reserve what each saves, of so many bytes.

    Of loops inside of each other the outer ones save what the inner ones have reserved, so each has a root of all there is.

    Args:
        most: what there may be room for, at most.
    """
    bytes_first = min(FIRST_BYTES, _left()) if is_learning() else _left()
    alone = bytes_first / (_shares.get() * _directions.get() * max(1, nbytes))
    first = max(_FIRST, int(alone ** (1 / (1 + _depth.get()))))
    if is_learning():
        return reserved(source, first, most)
    return Room(most if not _depth.get() else min(most, max(first, _least.get())))


@contextmanager
def inside_a_loop() -> Iterator[None]:
    """Inside the block the body of a loop is looked at."""
    token = _depth.set(_depth.get() + 1)
    try:
        yield
    finally:
        unset(_depth, token)


@contextmanager
def shared_by(graph: Graph) -> Iterator[None]:
    """Inside the block the loops of this graph share what there is: their memory is reserved at once."""
    shares, taken = _shares.set(_shares.get() * max(1, _loops(graph))), _taken.set(_reserved(graph))
    try:
        yield
    finally:
        unset(_shares, shares)
        unset(_taken, taken)


@contextmanager
def shared_by_rows(size: Size) -> Iterator[None]:
    """Inside the block a function is traced that is run for so many rows at once: each saves for itself.

    Of rows whose number is open there are seldom as many as there may be. They have room for a few iterations at least; if that
    is too much for so many rows, a lower limit is tried (`trace/speculation/dynamic_shapes.py`).
    """
    shares = _shares.set(_shares.get() * max(1, bound(size)))
    least = _least.set(_least.get() if type(size) is int else FEW)
    try:
        yield
    finally:
        unset(_shares, shares)
        unset(_least, least)


@contextmanager
def shared_by_directions(count: int) -> Iterator[None]:
    """Inside the block a function is traced through which so many tangents go side by side: what its loops save has as many."""
    token = _directions.set(_directions.get() * max(1, count))
    try:
        yield
    finally:
        unset(_directions, token)


def _reserved(graph: Graph) -> int:
    """Bytes of memory with any contents, such as that of what loops save."""
    return sum(node.output.aval.nbytes for node in graph.walk() if node.op is ops.empty)


def _loops(graph: Graph) -> int:
    makers = graph.producers()
    inner = (body for node in graph.nodes for body in node.bodies.values())
    return sum(_has_no_end(node, makers) for node in graph.nodes) + sum(map(_loops, inner))


def _has_no_end(node: Node, makers: Mapping[Value, Node]) -> bool:
    if node.op is not ops.loop:
        return node.op is ops.while_
    trip = makers.get(node.inputs[0])
    return trip is None or trip.op is not ops.full
