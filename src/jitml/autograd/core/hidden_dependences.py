"""Hidden dependences: which integers hide what is differentiated?  Bits of varying floats.

Integers have no tangents. What becomes a float again of these would have the slope 0 without a word, and is refused.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import compress

from jitml.errors import DerivativeError
from jitml.ir import ops
from jitml.ir.graph import Graph, Node, Value
from jitml.ir.passes.bodies import Parts
from jitml.ir.types import is_inexact, is_integer

ON_HOST = (
    "Write it with functions that are compiled (docs/supported.md), give it a derivative by jitml.custom_jvp or"
    " custom_vjp, or stop_gradient its arguments. docs/derivatives.md lists functions that run in NumPy and have one."
)
Flags = Sequence[tuple[bool, bool]]  # of values: whether they vary, and whether they hide what does


def note_hidden(node: Node, varying: Collection[Value], hidden: set[Value]) -> None:
    """Note which of a node's results hide a varying float.

    Args:
        varying: floats that vary.
        hidden: integers that hide one; gets those of the node.

    Raises:
        DerivativeError: they become a float again.
    """
    if node.bodies or node.op is ops.checkpoint:
        hidden.update(_hidden_by_graphs(node, varying, hidden))
    elif node.op is ops.bits and node.inputs[0] in varying:
        hidden.update(node.outputs)
    elif hidden and not hidden.isdisjoint(node.inputs):
        if node.op is ops.from_bits:
            raise DerivativeError(
                "bits of an array that is differentiated become floats again, which have no derivative",
                source=node.source,
                remedy="Compute it with functions of floats, or stop_gradient the array before its bits are taken.",
            )
        hidden.update(v for v in node.outputs if is_integer(v.dtype))


def _hidden_by_graphs(node: Node, varying: Collection[Value], hidden: set[Value]) -> list[Value]:
    """The results of a region or of a checkpoint that hide a varying float, and operands that do from now on."""
    graphs = node.graphs
    if not any(map(_may_hide, graphs.values())) and hidden.isdisjoint(node.inputs):
        return []
    parts = Parts.of(node) if node.bodies else None
    first, heads = (parts.first, len(parts.head)) if parts else (0, 0)
    flags = [(v in varying, v in hidden) for v in node.inputs[heads:]]
    carried = len(parts.carried) if parts else 0
    while True:
        found = [_inside(graph, first, flags) for name, graph in graphs.items() if name != "test"]
        flags = [_either(*of) for of in zip(*(inputs for inputs, _ in found))]
        after = [_either(*of) for of in zip(*(outputs for _, outputs in found))]
        joined = [_either(*of) for of in zip(flags[:carried], after)]
        if joined == flags[:carried]:
            values = (*node.inputs[heads:], *node.outputs)
            return list(compress(values, (is_hidden for _, is_hidden in (*flags, *(joined or after)))))
        flags = [*joined, *flags[carried:]]


def _either(*flags: tuple[bool, bool]) -> tuple[bool, bool]:
    return any(varies for varies, _ in flags), any(is_hidden for _, is_hidden in flags)


def _inside(graph: Graph, first: int, flags: Flags) -> tuple[Flags, Flags]:
    """Which inputs and outputs of a graph vary, and which hide what does, where these inputs do."""
    inputs = graph.inputs[first:]
    varying = set(compress(inputs, (varies for varies, _ in flags)))
    hidden = set(compress(inputs, (is_hidden for _, is_hidden in flags)))
    for node in graph.nodes:
        note_hidden(node, varying, hidden)
        if node.op is not ops.stop_gradient and not varying.isdisjoint(node.inputs):
            varying.update(v for v in node.outputs if is_inexact(v.dtype))
    return [(v in varying, v in hidden) for v in inputs], [(v in varying, v in hidden) for v in graph.outputs]


def _may_hide(graph: Graph) -> bool:
    """Whether a graph takes bits."""
    return any(node.op is ops.bits or any(map(_may_hide, node.graphs.values())) for node in graph.nodes)
