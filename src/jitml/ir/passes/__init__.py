"""The passes over a graph, in order: the one list of them, to be read, printed or replaced."""

from __future__ import annotations

from collections.abc import Sequence

from jitml.ir.analysis.verify import verify
from jitml.ir.dims import Sym
from jitml.ir.graph import Graph, Node
from jitml.ir.passes.bodies import Pass, everywhere
from jitml.ir.passes.cse import share_common
from jitml.ir.passes.dce import eliminate_dead
from jitml.ir.passes.fold import fold_constants
from jitml.ir.passes.hoist import hoist_broadcasts
from jitml.ir.passes.inline import drop_barriers, inline_calls
from jitml.ir.passes.invariant import hoist_invariants
from jitml.ir.passes.observe import observe_errors
from jitml.ir.passes.simplify import simplify
from jitml.ir.passes.sink import sink_into_contractions
from jitml.ir.passes.trim import trim_heard_regions, trim_regions
from jitml.ir.passes.unmask import unmask
from jitml.ir.passes.unroll import unroll_loops
from jitml.ir.passes.unwrap import unwrap_regions
from jitml.ir.passes.windows import sink_windows

# Calls are for transforms, which are behind us; barriers between equal values stand until nothing is shared any more.
# What is computed for its errors alone is found before anything goes; it looks at all of a graph, its bodies included. Then
# dead code goes, since nothing after it should spend time there. Folding exposes numbers to the rules of `simplify`;
# both make values equal that `share_common` then merges, and merging makes new pairs for the rules. Regions are trimmed
# first, which takes numbers into their bodies, and once more when it is known what each body needs; what it needs no more by
# then is still to be heard of.
PASSES: tuple[Pass, ...] = (
    inline_calls,
    observe_errors,
    eliminate_dead,
    trim_regions,
    unroll_loops,
    fold_constants,
    hoist_broadcasts,
    simplify,
    share_common,
    unmask,
    unwrap_regions,
    hoist_invariants,
    sink_windows,
    sink_into_contractions,
    simplify,
    trim_heard_regions,
    drop_barriers,
    eliminate_dead,
)


def run_passes(graph: Graph, passes: Sequence[Pass] = PASSES, *, check: bool = False) -> Graph:
    """Apply the passes in order, to bodies and then to the graph; with `check`, verify the graph after each that changes it."""
    known: dict[Node, frozenset[Sym]] = {}
    verified: Graph | None = None
    for apply in passes:
        graph = (apply if apply is observe_errors else everywhere(apply))(graph)
        if check and graph is not verified:
            verified = verify(graph, known)
    return graph
