"""Short loops over large arrays, written out: `for k in range(5): y[k:] += a[k, k:] * x[: n - k]`."""

from __future__ import annotations

from math import prod

from jitml.ir import ops
from jitml.ir.graph import Graph, Node, Value
from jitml.ir.ops.contraction import free_axes
from jitml.ir.passes.bodies import Parts, inlined, rebuilt
from jitml.ir.passes.fold import fold_constants
from jitml.ir.passes.simplify import simplify
from jitml.ir.rewrite import Producers, of_sizes, sweep
from jitml.ir.types import I64

MOST_TRIPS = 8
MOST_NODES = 96  # over arrays, of all iterations: more code takes longer to compile than it saves
LEAST_ELEMENTS = 1 << 15  # of something carried: below, it stays in cache from one iteration to the next
SHORT_PRODUCT = 16  # summands, and columns
_FAMILIES = frozenset(("pointwise", "index_maps", "dynamic"))
_CLAIMS = frozenset((ops.bind, ops.check, ops.observe))


def unroll_loops(graph: Graph) -> Graph:
    """Write a loop's iterations one after the other, where that lets them run as one pass over what they change.

    Each reads and writes its arrays from end to end otherwise, and no two share a loop. That is so if all of a body is computed
    element by element, but for products with a few numbers, and if its sizes, which may depend on the index, are numbers once
    that is one.
    """
    if ops.loop not in graph.ops:
        return graph

    def visit(node: Node, producers: Producers) -> tuple[Value, ...] | None:
        if node.op is not ops.loop:
            return None
        parts = Parts.of(node)
        trips = producers.get(parts.head[0])
        if trips is None or trips.op is not ops.full or not _pays(parts, int(trips.params["value"])):
            return None
        bodies = [_iteration(parts.body, k) for k in range(int(trips.params["value"]))]
        carried = parts.carried
        for body in bodies:
            if body is None:
                return None
            carried = inlined(body, (*carried, *parts.captured))
        return carried

    return sweep(graph, visit)


def _pays(parts: Parts, trips: int) -> bool:
    """Whether the iterations are few, small, over large arrays, and could run as one."""
    if not 1 < trips <= MOST_TRIPS or max((v.capacity for v in parts.carried), default=0) < LEAST_ELEMENTS:
        return False
    nodes = parts.body.nodes
    over_arrays = sum(any(v.ndim for v in node.outputs) for node in nodes)
    return over_arrays * trips <= MOST_NODES and all(
        node.op in _CLAIMS or node.op.family in _FAMILIES or is_short_product(node) for node in nodes
    )


def is_short_product(node: Node) -> bool:
    """Whether a node multiplies a long matrix with one of few rows and columns: to read it is most of the work."""
    if node.op is not ops.dot_general or node.params["batch"] != ((), ()):
        return False
    y, (_, summed) = node.inputs[1], node.params["contract"]
    return all(v.aval.is_static for v in node.inputs) and all(
        prod(y.shape[a] for a in axes) <= SHORT_PRODUCT for axes in (summed, free_axes(y.ndim, (), summed))
    )


def _iteration(body: Graph, index: int) -> Graph | None:
    """What one iteration does, as a graph of what is carried and captured.

    None if it has a size that its index does not tell, or ends in an error: earlier iterations come first.
    """
    graph = rebuilt(body, body.inputs[1:], body.outputs, {body.inputs[0]: lambda: ops.full(value=index, shape=(), dtype=I64)})
    while True:
        graph = simplify(fold_constants(graph))
        numbers = {node.output: node.params["value"] for node in graph.nodes if node.op is ops.full and not node.output.ndim}
        if any(node.op is ops.check and numbers.get(node.inputs[1]) is False for node in graph.nodes):
            return None
        binders = graph.binders()
        known = {sym: int(numbers[v]) for sym, v in binders.items() if v in numbers}
        if not known:
            return None if binders else graph
        graph = of_sizes(graph, known)
