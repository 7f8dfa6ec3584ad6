"""The passes over a graph, in order: the one list of them, to be read, printed or replaced."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from jitml.ir.graph import Graph
from jitml.ir.passes.cse import share_common
from jitml.ir.passes.dce import eliminate_dead
from jitml.ir.passes.fold import fold_constants
from jitml.ir.passes.hoist import hoist_broadcasts
from jitml.ir.passes.simplify import simplify
from jitml.ir.passes.sink import sink_into_contractions
from jitml.ir.verify import verify

Pass = Callable[[Graph], Graph]

# Dead code goes first, since nothing after it should spend time there. Folding exposes numbers to the rules of
# `simplify`; both make values equal that `share_common` then merges, and merging makes new pairs for the rules.
PASSES: tuple[Pass, ...] = (
    eliminate_dead,
    fold_constants,
    hoist_broadcasts,
    simplify,
    share_common,
    sink_into_contractions,
    simplify,
    eliminate_dead,
)


def run_passes(graph: Graph, passes: Sequence[Pass] = PASSES, *, check: bool = False) -> Graph:
    """Apply the passes in order; with `check`, verify the graph after each."""
    for apply in passes:
        graph = apply(graph)
        if check:
            verify(graph)
    return graph
