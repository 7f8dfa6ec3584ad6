"""Fused products: what is done together with a matrix product, so that nothing in between lies in memory?

What is made of a product element by element (a bias, an activation, a narrower type), up to a value that lies in memory anyway.
A value that only loops want is not made there: they make it themselves, of the product.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping, Sequence
from heapq import heappop, heappush
from math import prod

from jitml.fusion.lower import lowering
from jitml.fusion.lower.contraction import WINDOWS, factor_digits, factor_views, sum_of_products
from jitml.fusion.lower.gemm_operands import MatrixStack, operand_view, product_axes
from jitml.fusion.lower.layouts import IndexArrays
from jitml.fusion.lower.reductions import REDUCTIONS
from jitml.fusion.lower.strided_views import VIEWS, Strided
from jitml.ir import ops
from jitml.ir.graph import Graph, Node, Value
from jitml.ir.passes.dce import eliminate_dead
from jitml.ir.rewrite import Producers, sweep
from jitml.ir.types import F16, F32, F64
from jitml.kernels.ir import Const
from jitml.kernels.target import Accepts

FREE = (ops.full, ops.iota, ops.broadcast)  # made anew wherever they are wanted
_MOST = 64  # nodes that are made of a product
_FEW = 64  # columns, up to which a copy of the rows takes as long as the product
_ANY = Accepts()


def with_fused_products(graph: Graph) -> Graph:
    """The graph with such products as one node each."""
    if all(node.op is not ops.dot_general for node in graph.nodes):
        return graph
    graph = _with_products_first(graph)
    found = ProductEnds(graph).found()
    if not found:
        return graph
    nodes = (_as_one(node, found[node], graph) if node in found else node for node in graph.nodes)
    return eliminate_dead(Graph(graph.inputs, tuple(nodes), graph.outputs, graph.names))


def _as_one(last: Node, members: frozenset[Node], graph: Graph) -> Node:
    nodes = tuple(node for node in graph.nodes if node in members)
    made = {v for node in nodes for v in node.outputs}
    inputs = tuple(dict.fromkeys(v for node in nodes for v in node.inputs if v not in made))
    return Node(ops.fused, inputs, {"call": Graph(inputs, nodes, last.outputs)}, last.outputs, last.source)


class ProductEnds:
    """Products of a graph, and what is made with them."""

    def __init__(self, graph: Graph) -> None:
        self.graph, self.producers, self.users = graph, graph.producers(), graph.users()
        self.order = {node: k for k, node in enumerate(graph.nodes)}
        self.outputs = frozenset(graph.outputs)
        self.taken: set[Node] = set()
        self.arrays = IndexArrays(self.producers)
        self.sums: dict[Node, tuple[Node, frozenset[Node]]] = {}  # by the first of several products, as `_sum` gives them
        self.windowed: set[Node] = set()  # products of factors that have no strides

    def found(self) -> dict[Node, frozenset[Node]]:
        """The last node of each, and all of it."""
        found: dict[Node, frozenset[Node]] = {}
        products = [n for n in self.graph.nodes if n.op is ops.dot_general and all(v.aval.is_static for v in n.inputs)]
        for node in products:
            if node not in self.taken and (several := self._sum(node)) is not None:
                self.sums[node] = several
        for node in products:
            if node not in self.taken or node in self.sums:
                last, members = self._with_its_end(node)
                if last is not node or node in self.windowed:
                    found[last] = members
        return found

    def _with_its_end(self, product: Node) -> tuple[Node, frozenset[Node]]:
        """The last node of what is made of a product, and all that is done with it."""
        if product in self.sums:
            last, members = self.sums[product]
            return self._with_end(last, members, {v for node in members for v in node.inputs if v not in self.producers})
        halves, factors = self._factors(product, is_half=True), self._factors(product)
        last, start = product, frozenset((product,))
        if all(any(n.op is ops.convert for n in nodes) for nodes in halves) and (narrow := self._narrowed(product)) is not None:
            last, factors, start = narrow, halves, frozenset((product, narrow))
        start = start.union(*factors)
        return self._with_end(last, start, {self.matrix(v, views) for v, views in zip(product.inputs, factors, strict=True)})

    def _with_end(self, last: Node, start: frozenset[Node], stored: set[Value]) -> tuple[Node, frozenset[Node]]:
        made = self._made_of(last, start, stored)
        for node in reversed(made):
            members = self._ancestors(node, made) if self._lies_in_memory(node.output) else None
            if members is not None and self._is_closed(last, node, members):
                self.taken |= members
                return node, start.union(members, *(made[member] for member in members))
        return last, start

    def _sum(self, first: Node) -> tuple[Node, frozenset[Node]] | None:
        """The last node of several products of windows that are added up, and what they are made of, if they are one product."""
        products, value = sum_of_products(first, self.users, self.producers)
        if len(products) == 1:
            return None
        factors = [self.windows(v, is_half=False) for node in products for v in node.inputs]
        makers = {node.output: node for nodes in factors for node in nodes}
        stored = [[v for v, _ in factor_views(node, makers, WINDOWS)] for node in products]
        if any(own != stored[0] for own in stored) or factor_digits(products, makers, _dense, self.arrays) is None:
            return None
        sums = [node for node in self.graph.nodes if node.op is ops.add and node.inputs[1] in {p.output for p in products}]
        self.windowed.add(first)
        self.taken.update(products)
        return self.producers[value], frozenset((*products, *sums)).union(*factors)

    def _factors(self, product: Node, *, is_half: bool = False) -> list[frozenset[Node]]:
        """The nodes through which a product reads its factors where those lie."""
        plain = [self.factor(v, product, k, is_half=is_half) for k, v in enumerate(product.inputs)]
        windows = [self.windows(v, is_half=is_half) for v in product.inputs]
        for factors in (windows, [windows[0], plain[1]], [plain[0], windows[1]]):
            if factors != plain and self._reads_windows(product, factors):
                self.windowed.add(product)
                return factors
        return plain

    def factor(self, v: Value, product: Node, operand: int, *, is_half: bool = False) -> frozenset[Node]:
        """The views through which a product reads a factor where that lies, and what widens halves."""
        nodes: list[Node] = []
        found: frozenset[Node] = frozenset()
        while (maker := self.producers.get(v)) is not None:
            if not (maker.op in VIEWS or (is_half and _widens(maker))) or not maker.inputs[0].aval.is_static:
                break
            nodes.insert(0, maker)
            (v,) = maker.inputs
            views = [node for node in nodes if node.op is not ops.convert]
            view = operand_view(Strided.dense(v.shape), views, lambda value: Const(0))
            if view is None or MatrixStack.of(view, product_axes(product)[operand], _ANY) is None:
                break
            is_widened = len(views) < len(nodes)  # what is widened would be stored, and takes twice as much
            if is_widened or self._is_there(v):
                found = frozenset(nodes)
        return found

    def windows(self, factor: Value, *, is_half: bool) -> frozenset[Node]:
        """The same of what has no strides, such as windows, which are not stored if they are twice as large as their array."""
        nodes: list[Node] = []
        found, v = frozenset[Node](), factor
        while (maker := self.producers.get(v)) is not None:
            if not (maker.op in WINDOWS or (is_half and _widens(maker))) or not maker.inputs[0].aval.is_static:
                break
            if any(self.arrays.layout(index) is None for index in maker.inputs[1:]):
                break
            nodes.append(maker)
            v = maker.inputs[0]
            if self._is_there(v) or factor.capacity >= 2 * v.capacity:
                found = frozenset(nodes).union(*(self.arrays.makers[index] for node in nodes for index in node.inputs[1:]))
        return found

    def _reads_windows(self, product: Node, factors: Sequence[frozenset[Node]]) -> bool:
        """Whether a product that reads its factors through some nodes has a layout, but no strides, and is worth it.

        Where many columns are made of each row, a library does the product much faster than the rows are copied for it.
        """
        makers = {node.output: node for nodes in factors for node in nodes}
        digits = factor_digits([product], makers, _dense, self.arrays)
        if digits is None or digits.has_strides:
            return False
        stored = [self.matrix(v, nodes) for v, nodes in zip(product.inputs, factors, strict=True)]
        is_larger = any(v.capacity >= 2 * x.capacity for v, x in zip(product.inputs, stored, strict=True))
        rows, columns = (prod(v.shape[a] for a in axes) for v, axes in zip(product.inputs, _free(product), strict=True))
        others = [n for own, n in ((digits.x, columns), (digits.y, rows)) if not own.has_strides]
        return min(rows, columns) > 1 and (is_larger or max(others) <= _FEW)

    def _is_there(self, value: Value) -> bool:
        """Whether it lies in memory, or is no more than it would be if it did not."""
        return value not in self.producers or not _is_point(self.producers[value]) or self._lies_in_memory(value)

    def matrix(self, value: Value, views: Container[Node]) -> Value:
        """What lies in memory of a factor that is read through views."""
        while (maker := self.producers.get(value)) is not None and maker in views:
            value = maker.inputs[0]
        return value

    def _narrowed(self, product: Node) -> Node | None:
        """What makes halves of all sums: tensor cores take halves as they are."""
        users = self.users[product.output]
        is_alone = len(users) == 1 and product.output not in self.outputs
        return users[0] if is_alone and users[0].op is ops.convert and users[0].output.dtype == F16 else None

    def _made_of(self, first: Node, start: frozenset[Node], stored: set[Value]) -> dict[Node, frozenset[Node]]:
        """What is made of a node's elements, in order, and what else that takes; `stored` lies in memory."""
        made: dict[Node, frozenset[Node]] = {}
        waiting = [self.order[user] for user in self.users[first.output]]  # a heap
        seen, values = set(waiting), {first.output, *stored}
        while waiting and len(made) < _MOST:
            node = self.graph.nodes[heappop(waiting)]
            is_of_elements = node.op.is_pointwise and node.output.shape == first.output.shape
            if not is_of_elements or node in self.taken or self._widens_afactor(node):
                continue
            operands = self._operands(node, values, {*made, *start})
            if operands is not None:
                made[node] = operands
                values.add(node.output)
                for place in {self.order[user] for user in self.users[node.output]} - seen:
                    seen.add(place)
                    heappush(waiting, place)
        return made

    def _operands(self, node: Node, values: set[Value], members: set[Node]) -> frozenset[Node] | None:
        """What makes the other operands, as far as nobody else wants it; None if something large would be stored for this."""
        found: set[Node] = set()
        waiting = [v for v in node.inputs if v not in values]
        while waiting:
            v = waiting.pop()
            maker = self.producers.get(v)
            if maker is None or maker in members or maker in found or any(maker is last for last, _ in self.sums.values()):
                continue
            inside = members | found | {node}
            is_of_elements = maker.op.is_pointwise or maker.op in VIEWS
            is_ours = maker.op in FREE or (is_of_elements and all(u in inside for u in self.users[v]))
            if is_ours and v.aval.is_static and v not in self.outputs:
                found.add(maker)
                waiting += [x for x in maker.inputs if x not in values]
            elif _is_point(maker) and not self._lies_in_memory(v) and v.capacity >= node.output.capacity:
                return None
        return frozenset(found)

    def _ancestors(self, node: Node, made: Mapping[Node, frozenset[Node]]) -> frozenset[Node]:
        found, waiting = {node}, [node]
        while waiting:
            member = waiting.pop()
            makers = {self.producers.get(v) for n in (member, *made[member]) for v in n.inputs}
            fresh = {maker for maker in makers if maker is not None and maker in made} - found
            found |= fresh
            waiting += fresh
        return frozenset(found)

    def _is_closed(self, first: Node, last: Node, members: frozenset[Node]) -> bool:
        """Whether nobody else wants what is made on the way."""
        between = [first, *(node for node in members if node is not last)]
        return all(node.output not in self.outputs and members.issuperset(self.users[node.output]) for node in between)

    def _lies_in_memory(self, value: Value) -> bool:
        return value in self.outputs or any(map(self._wants_memory, self.users[value]))

    def _wants_memory(self, node: Node) -> bool:
        if node.op is ops.observe or node.op in REDUCTIONS:
            return False
        if _is_point(node):
            return (not node.op.is_pointwise or self._widens_afactor(node)) and self._lies_in_memory(node.output)
        return True

    def _widens_afactor(self, node: Node) -> bool:
        """Whether it makes f32 of halves for products alone, which read those as they are."""
        return _widens(node) and all(user.op is ops.dot_general for user in self.users[node.output])


def _with_products_first(graph: Graph) -> Graph:
    """The graph where of what is added up one by one the products come first: these may be one."""
    uses = Counter(v for node in graph.nodes for v in node.inputs)
    uses.update(graph.outputs)

    def visit(node: Node, producers: Producers) -> Value | None:
        """`(x + a @ b) + c @ d` is `x + (a @ b + c @ d)`."""
        if node.op is not ops.add or node.output.dtype not in (F32, F64):
            return None
        inner, last = (producers.get(v) for v in node.inputs)
        if inner is None or inner.op is not ops.add or not _is_product(last) or any(uses[v] != 1 for v in node.inputs):
            return None
        x, sums = inner.inputs
        if _is_sum(x, producers) or not _is_sum(sums, producers):
            return None
        found: Value = x + (sums + node.inputs[1])
        uses[found] = uses[node.output]
        return found

    return eliminate_dead(sweep(graph, visit))


def _is_sum(value: Value, producers: Producers) -> bool:
    """Whether it is a product, or several that are added up one by one."""
    node = producers.get(value)
    while node is not None and node.op is ops.add and _is_product(producers.get(node.inputs[1])):
        node = producers.get(node.inputs[0])
    return _is_product(node)


def _is_product(node: Node | None) -> bool:
    return node is not None and node.op is ops.dot_general


def _dense(value: Value) -> Strided:
    return Strided.dense(value.shape)


def _free(product: Node) -> tuple[Sequence[int], Sequence[int]]:
    """The axes of its rows and of its columns."""
    of_x, of_y, _ = product_axes(product)
    return of_x.rows, of_y.columns


def _widens(node: Node) -> bool:
    return node.op is ops.convert and node.inputs[0].dtype == F16 and node.output.dtype == F32


def _is_point(node: Node) -> bool:
    return node.op in lowering
