"""Chained products: which products and sums of rows take what other products make, so that it need not lie in memory?

Attention, say: N x N scores are made of products, and sums of rows, products with matrices, and derivatives of both are made of
them. All that is large is computed again by each pass (`chains.py`) that wants it. Results that need other results wait for a
later pass; all others are made in as few passes as they can.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from jitml.fusion.lower.reductions import REDUCTIONS
from jitml.fusion.lower.strided_views import VIEWS
from jitml.fusion.prepare.chains import Chain, Softmax, of_softmax, pays, softmax_of, stored_as, tiles_for
from jitml.fusion.prepare.fused_products import FREE, ProductEnds
from jitml.fusion.prepare.short_sums import with_short_sums
from jitml.fusion.prepare.wide_rows import with_wide_rows
from jitml.ir import ops
from jitml.ir.graph import Graph, Node, Value
from jitml.ir.ops.contraction import free_axes
from jitml.ir.passes.dce import eliminate_dead
from jitml.ir.types import F16, F32, F64
from jitml.kernels.target import Target
from jitml.records import dataclass, replace

_COMBINES = ("add", "max", "min")  # of reductions


def with_chained_products(graph: Graph, target: Target) -> Graph:
    """The graph with each pass as one node. Nothing is done for squares that have to lie in memory anyway."""
    wide = with_wide_rows(graph)
    chained = _with_chained_products(wide, target)
    return chained if wide is graph or chained is not wide else _with_chained_products(graph, target)


def _with_chained_products(graph: Graph, target: Target) -> Graph:
    while sum(node.op is ops.dot_general for node in graph.nodes) > 1:
        found = ((squares, _Passes(graph, squares, target).found()) for squares in _squares(graph))
        squares, passes = next(((squares, passes) for squares, passes in found if passes), ({}, []))
        if not passes:
            break
        shorter = with_short_sums(graph, squares)
        graph = _with_passes(graph, passes) if shorter is graph else shorter
    return graph


def _squares(graph: Graph) -> Iterator[dict[Value, Node]]:
    """What is made of products of one shape and of each other, element by element, if that ends in products and sums."""
    group_of: dict[Value, dict[Value, Node]] = {}
    for node in graph.nodes:
        if len(node.outputs) != 1 or not node.output.aval.is_static:
            continue
        groups = [group_of[v] for v in node.inputs if v in group_of and v.shape == node.output.shape]
        if _makes_square(node):
            group_of[node.output] = {node.output: node}
        elif node.op.is_pointwise and groups:
            merged = {v: n for group in groups for v, n in group.items()} | {node.output: node}
            group_of.update(dict.fromkeys(merged, merged))
    users, outputs = graph.users(), frozenset(graph.outputs)
    for squares in {id(group): group for group in group_of.values()}.values():
        inner = set(squares.values())
        if any(node.op is ops.dot_general and not squares.keys().isdisjoint(node.inputs) for node in inner):
            continue  # what a product makes of a square is complete after a pass, and no element of one
        outer = [(v, user) for v in squares for user in users[v] if user not in inner]
        is_ended = outputs.isdisjoint(squares) and all(_ends(user, v, squares) for v, user in outer)
        if is_ended and any(user.op in REDUCTIONS for _, user in outer):
            yield squares


def _makes_square(node: Node) -> bool:
    """Whether it is a product of stacks of matrices, with one axis of rows and one of columns."""
    if node.op is not ops.dot_general or node.output.dtype not in (F32, F64) or not node.output.size:
        return False
    free = [free_axes(v.ndim, b, c) for v, b, c in zip(node.inputs, node.params["batch"], node.params["contract"])]
    return all(v.aval.is_static and v.size for v in node.inputs) and all(len(axes) == 1 for axes in free)


def _ends(user: Node, square: Value, squares: Collection[Value]) -> bool:
    """Whether it makes something smaller of a square: sums along rows or columns, or a product with a matrix."""
    if user.op in REDUCTIONS:
        is_sum = REDUCTIONS[user.op].combine in _COMBINES and square.dtype in (F32, F64)
        return is_sum and user.params["axes"] in ((square.ndim - 1,), (square.ndim - 2,))
    if user.op is not ops.dot_general or all(v in squares for v in user.inputs):
        return False
    operand = user.inputs.index(square)
    axes, batch = user.params["contract"][operand], user.params["batch"][operand]
    is_whole = axes in ((square.ndim - 1,), (square.ndim - 2,)) and batch == tuple(range(square.ndim - 2))
    return is_whole and all(v.aval.is_static for v in user.inputs) and user.output.size > 0


@dataclass(frozen=True, slots=True)
class _ChainPass:
    node: Node
    made: frozenset[Node]


class _Passes:
    """The passes over some squares."""

    def __init__(self, graph: Graph, squares: Mapping[Value, Node], target: Target) -> None:
        self.graph, self.squares, self.target = graph, squares, target
        self.makers, self.users, self.outputs = graph.producers(), graph.users(), frozenset(graph.outputs)
        inner = set(squares.values())
        results = {user for v in squares for user in self.users[v] if user not in inner}
        self.results = [node for node in graph.nodes if node in results]
        self.ends = ProductEnds(graph)
        self.large = min(v.shape[-1] * v.shape[-2] for v in squares)
        self.behind = self._dependences()
        products = [node for node in (*squares.values(), *self.results) if node.op is ops.dot_general]
        self.is_half = any(v.dtype == F16 for v in squares)
        factors = [(v, self._factor(v, node, k)) for node in products for k, v in enumerate(node.inputs)]
        self.matrices = {self.ends.matrix(v, views) for v, views in factors if v not in squares}

    def found(self) -> list[_ChainPass]:
        """None at all if some do not fit into a processor, or do not pay."""
        if self.is_half and not self._are_halves():
            return []
        passes = [self._as_pass(unit) for unit in self._merged(self._units())]
        return [p for p in passes if p is not None] if None not in passes else []

    def _factor(self, value: Value, product: Node, operand: int) -> frozenset[Node]:
        return self.ends.factor(value, product, operand, is_half=self.is_half)

    def _are_halves(self) -> bool:
        """Whether products are of halves alone, squares too, as tensor cores take them."""
        ends = [node for node in self.results if node.op is ops.dot_general]
        wide = [self.makers.get(v) for node in ends for v in node.inputs if v in self.squares]
        are_squares = all(m is not None and m.op is ops.convert and m.inputs[0].dtype == F16 for m in wide)
        return are_squares and all(v.dtype == F16 for v in self.matrices)

    def _dependences(self) -> dict[Value, frozenset[Node]]:
        """The results that each value is made of."""
        results, found = set(self.results), dict[Value, frozenset[Node]]()
        for node in self.graph.nodes:
            behind = frozenset[Node]().union(*(found.get(v, frozenset()) for v in node.inputs))
            found.update(dict.fromkeys(node.outputs, behind | {node} if node in results else behind))
        return found

    def _units(self) -> list[frozenset[Node]]:
        """Results that one pass makes, of which some take others: a softmax. All others alone."""
        softmax = softmax_of(self.graph, self.results)
        if softmax is None:
            return [frozenset((node,)) for node in self.results]
        whole = {softmax.top, *([softmax.total] if softmax.total is not None else [])}
        for node in self.results:
            if node.op is ops.dot_general and self._is_of_softmax(node, softmax):
                (matrix,) = (v for v in node.inputs if v not in self.squares)
                whole |= {node} if self.behind.get(matrix, frozenset()).isdisjoint(whole) else set()
        return [frozenset(whole), *(frozenset((node,)) for node in self.results if node not in whole)]

    def _is_of_softmax(self, end: Node, softmax: Softmax) -> bool:
        operand = 0 if end.inputs[0] in self.squares else 1
        is_by_rows = end.params["contract"][operand] == softmax.top.params["axes"]
        return is_by_rows and of_softmax(end.inputs[operand], softmax, self.makers) is not None

    def _merged(self, units: Sequence[frozenset[Node]]) -> Iterable[frozenset[Node]]:
        """Units that go along one axis, and wait for as many others: as late as can be, so that more of them meet."""
        unit_of = {node: unit for unit in units for node in unit}
        behind = {unit: self._behind(unit, unit_of) for unit in units}
        later: dict[frozenset[Node], int] = dict.fromkeys(units, 0)
        for _ in units:
            for unit in units:
                for first in behind[unit]:
                    later[first] = max(later[first], later[unit] + 1)
        merged: dict[tuple[object, ...], frozenset[Node]] = {}
        for unit in units:
            is_softmax = len(unit) > 1
            key = (later[unit], self._axis(unit), unit if is_softmax else None)
            merged[key] = merged.get(key, frozenset()) | unit
        return merged.values()

    def _behind(self, unit: frozenset[Node], unit_of: Mapping[Node, frozenset[Node]]) -> set[frozenset[Node]]:
        nodes = {node for member in unit for v in member.inputs for node in self.behind.get(v, ())}
        return {unit_of[node] for node in nodes} - {unit}

    def _axis(self, unit: frozenset[Node]) -> int:
        node = next(iter(unit))
        if node.op in REDUCTIONS:
            return int(node.params["axes"][0])
        (axis,) = node.params["contract"][0 if node.inputs[0] in self.squares else 1]
        return int(axis)

    def _as_pass(self, unit: frozenset[Node]) -> _ChainPass | None:
        members = self._members(unit).union(*map(self._stored_as, unit))
        nodes = tuple(node for node in self.graph.nodes if node in members)
        made = {v for node in nodes for v in node.outputs}
        inputs = tuple(dict.fromkeys(v for node in nodes for v in node.inputs if v not in made))
        outputs = tuple([node, *self._stored_as(node)][-1].output for node in nodes if node in unit)
        call = Graph(inputs, nodes, outputs)
        chain = Chain.of(call)
        tiles = None if chain is None else tiles_for(chain, self.target.limits)
        if chain is None or tiles is None or not pays(chain, tiles, self.target.limits):
            return None
        params = {"call": call, "tiles": (tiles.kept, tiles.summed)}
        made_by = frozenset([node, *self._stored_as(node)][-1] for node in unit)
        return _ChainPass(Node(ops.fused, inputs, params, outputs, nodes[-1].source), made_by)

    def _members(self, unit: frozenset[Node]) -> set[Node]:
        """Results, and what of the graph is computed for them in the pass."""
        found: set[Node] = set()
        waiting = [*unit]
        while waiting:
            node = waiting.pop()
            if node in found:
                continue
            found.add(node)
            if node.op is ops.dot_general:
                found |= {n for k, v in enumerate(node.inputs) if v not in self.squares for n in self._factor(v, node, k)}
                waiting += [self.squares[v] for v in node.inputs if v in self.squares]
            else:
                waiting += [maker for v in node.inputs if (maker := self._inside(v, unit)) is not None]
        return found

    def _stored_as(self, result: Node) -> tuple[Node, ...]:
        """What is made of a result before it is stored."""
        return stored_as(result, self.users, self.outputs) if result.op is ops.dot_general else ()

    def _inside(self, value: Value, unit: frozenset[Node]) -> Node | None:
        """What makes a value, if the pass does that for each element."""
        maker = self.makers.get(value)
        if maker is None or maker in unit or value in self.squares:
            return maker
        if value in self.matrices:  # a product reads it where it lies
            return None
        is_ours = value.capacity >= self.large or not self.behind[value].isdisjoint(unit)
        is_of_elements = value.aval.is_static and (maker.op.is_pointwise or maker.op in VIEWS)
        return maker if maker.op in FREE or (is_ours and is_of_elements) else None


def _with_passes(graph: Graph, passes: Sequence[_ChainPass]) -> Graph:
    made = frozenset[Node]().union(*(p.made for p in passes))
    nodes = [*(node for node in graph.nodes if node not in made), *(p.node for p in passes)]
    makers = {v: node for node in nodes for v in node.outputs}
    placed: dict[Node, None] = {}
    waiting = [*reversed(nodes)]
    while waiting:
        node = waiting[-1]
        before = [m for v in node.inputs if (m := makers.get(v)) is not None and m not in placed]
        if node in placed or not before:
            placed[waiting.pop()] = None
        else:
            waiting += before
    whole = eliminate_dead(Graph(graph.inputs, tuple(placed), graph.outputs, graph.names))
    wanted = {v for node in whole.nodes for v in node.inputs}.union(whole.outputs)
    return Graph(whole.inputs, tuple(_making(node, wanted) for node in whole.nodes), whole.outputs, whole.names)


def _making(node: Node, wanted: Collection[Value]) -> Node:
    """A pass with no results but those that somebody wants."""
    outputs = tuple(v for v in node.outputs if v in wanted)
    if node.op is not ops.fused or outputs == node.outputs:
        return node
    call: Graph = node.params["call"]
    return replace(node, params={**node.params, "call": replace(call, outputs=outputs)}, outputs=outputs)
