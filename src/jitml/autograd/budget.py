"""How many bytes may a loop save that has no known limit?  JITML_SAVED_BYTES, shared by all such loops of a derivative."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from jitml.config import CONFIG
from jitml.ir import ops
from jitml.ir.graph import Graph

_shares: ContextVar[int] = ContextVar("jitml_shares", default=1)


def saved_bytes() -> int:
    return CONFIG.saved_bytes // _shares.get()


@contextmanager
def shared_by(graph: Graph) -> Iterator[None]:
    """Inside the block the loops of this graph share what there is: their memory is reserved at once."""
    token = _shares.set(max(1, _whiles(graph)))
    try:
        yield
    finally:
        _shares.reset(token)


def _whiles(graph: Graph) -> int:
    inner = (body for node in graph.nodes for body in node.bodies.values())
    return sum(node.op is ops.while_ for node in graph.nodes) + sum(map(_whiles, inner))
