"""Matrix product operands: where do matrix products read and write?

BLAS takes matrices by their strides, so that few operands have to be copied for it.

A product reads a window, a transpose or a reshaped array where that lies in another array; and a result of which only a transpose
is wanted is written as that, which costs nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from functools import cached_property

from jitml.fusion.grouping.groups import WHOLE, Group
from jitml.fusion.grouping.partition import Partition
from jitml.fusion.lower.gemm_operands import MatrixStack, operand_view, product_axes, result_view
from jitml.fusion.lower.strided_views import Strided
from jitml.ir import ops
from jitml.ir.graph import Graph, Node, Value
from jitml.kernels.target import Accepts

WINDOWS = (ops.slice, ops.dynamic_slice)
MAPS = (*WINDOWS, ops.reshape, ops.transpose, ops.broadcast)


def is_product(node: Node | None) -> bool:
    """Of shapes that are known."""
    return node is not None and node.op is ops.dot_general and all(v.aval.is_static for v in node.inputs)


class Products:
    """What a sweep asks about products.

    Args:
        point: values that can be computed at one index, so that they need not lie in memory.
        strided: inputs and outputs whose memory is not C-contiguous -> the strides of inputs.
        kept: values that are stored under their own shape in any case.
        gemm: what the target's library takes.
    """

    def __init__(
        self,
        graph: Graph,
        parts: Partition,
        point: Mapping[Value, bool],
        strided: Mapping[Value, tuple[int, ...] | None],
        kept: Collection[Value],
        gemm: Accepts,
    ) -> None:
        self.gemm = gemm
        self.graph, self.parts, self.point, self.strided, self.kept = graph, parts, point, strided, kept
        self.turned: dict[Value, Node] = {}  # a product's result -> the transpose that is stored in its place

    @cached_property
    def _uses(self) -> Counter[Value]:
        uses = Counter(v for node in self.graph.nodes for v in node.inputs)
        uses.update(self.graph.outputs)
        return uses

    @cached_property
    def _read(self) -> Counter[Value]:
        """How many elements a value's readers take together."""
        read: Counter[Value] = Counter()
        for node in self.graph.nodes:
            for v in node.inputs:
                read[v] += node.output.capacity if node.op in WINDOWS else v.capacity
        return read

    # ----------------------------------------------------------------------------------------------------- results

    def writes_transpose(self, node: Node) -> bool:
        """Whether a transpose's operand is a product that writes its result in that order, because nobody else wants it."""
        if node.op is not ops.transpose:
            return False
        value, source = node.output, node.inputs[0]
        product = self.parts.producers.get(source)
        if product is None or not is_product(product) or self._uses[source] != 1 or value in self.strided:
            return False
        view = result_view(Strided.dense(value.shape), node)
        if source in self.kept or MatrixStack.of(view, product_axes(product)[2], self.gemm) is None:
            return False
        self.turned[source] = node
        return True

    # ---------------------------------------------------------------------------------------------------- operands

    def read_through(self, node: Node, users: list[Group]) -> list[Group]:
        """Let products that want what an index map takes out of an array read the array itself; the users that are left."""
        if node.op not in MAPS or not self._is_there(node):
            return users
        value, source = node.output, node.inputs[0]
        through = [g for g in users if is_product(g.node) and self._sees(g, node) and not self._is_lost(source, g)]
        for g in through:
            assert g.node is not None
            g.views |= {k: (node, *g.views.get(k, ())) for k, v in enumerate(g.operands(g.node)) if v is value}
            self.parts.want_places(g, node)
            self.parts.want(g, source, WHOLE, frozenset())
            del g.wanted[value]
        return [g for g in users if g not in through]

    def _is_there(self, node: Node) -> bool:
        """Whether a map's operand lies in memory, or does so for no more than its part would cost."""
        source = node.inputs[0]
        if not source.aval.is_static or not node.output.aval.is_static or not source.ndim:
            return False
        if source.capacity <= node.output.capacity:
            return True
        maker = self.parts.producers.get(source)
        if maker is None or not self.point[source] or source in self.kept or self._read[source] >= 2 * source.capacity:
            return True
        if maker.op in MAPS:
            return source.capacity > 1 and self._is_there(maker)
        return self._read[source] >= source.capacity and node.op in WINDOWS

    def _sees(self, g: Group, node: Node) -> bool:
        """Whether BLAS can read all of a product's operands that are this map's result as parts of the map's operand."""
        assert g.node is not None
        source = node.inputs[0]
        strides = self.strided.get(source, Strided.dense(source.shape).strides)
        if strides is None:
            return False
        for k, v in enumerate(g.operands(g.node)):
            if v is node.output:
                maps = (node, *g.views.get(k, ()))
                view = operand_view(Strided(source.shape, strides), maps, self.parts.sizes.place)
                if view is None or MatrixStack.of(view, product_axes(g.node)[k], self.gemm) is None:
                    return False
        return True

    def _is_lost(self, source: Value, g: Group) -> bool:
        """Whether an array is changed in place before a product could read it: then all of it would be copied."""
        return any(updater.after & g.bits for updater in self.parts.updaters(source))
