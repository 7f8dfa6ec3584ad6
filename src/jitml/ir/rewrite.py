"""How a pass rewrites a graph: one forward sweep that copies it, and local algebra as named rules.

`sweep` copies nodes in order and lets `visit` put something better in a node's place; what it records may be rewritten
again by later passes, never by the same visit, so a sweep ends. `of_sizes` puts numbers in the place of sizes. `Rule` is a pair
of patterns in the text `neg(neg(x))`: names stand for any value (the same name twice: the same value), numbers for `full` of that
number.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from jitml.ir.dims import Size, Sym, resolve
from jitml.ir.graph import Graph, GraphBuilder, Node, Value
from jitml.ir.op import OPS, Op, recording
from jitml.records import dataclass, field, replace

Producers: TypeAlias = Mapping[Value, Node]
Visit = Callable[[Node, Producers], tuple[Value, ...] | Value | None]


def sweep(graph: Graph, visit: Visit) -> Graph:
    """Go through a graph node by node; where `visit(node, producers)` gives values, they stand for the node's results.

    The node handed to `visit` has its inputs replaced already, and `producers` knows the nodes of the new graph. Ops
    called inside `visit` record into the new graph, with the node's own source line. What is left as it was keeps its values:
    where that is all of it, the graph is the same one.
    """
    builder, source = GraphBuilder(), None
    builder.locate = lambda: source
    for value in graph.inputs:
        builder.keep_input(value)
    changed: dict[Value, Value] = {}
    producers: dict[Value, Node] = {}
    nodes, is_same = builder.nodes, True
    with recording(builder):
        for node in graph.nodes:
            seen, source = len(nodes), node.source
            if changed and not changed.keys().isdisjoint(node.inputs):
                inputs = tuple([changed.get(v, v) for v in node.inputs])
                node = Node(node.op, inputs, node.params, node.outputs, node.source)
            results = visit(node, producers)
            if results is None:
                builder.append(node)
                for out in node.outputs:
                    producers[out] = node
                if len(nodes) == seen + 1:
                    continue
            else:
                changed.update(zip(node.outputs, results if isinstance(results, tuple) else (results,), strict=True))
            is_same = False
            for made in nodes[seen:]:
                for out in made.outputs:
                    producers[out] = made
    if is_same:
        return graph
    return replace(builder.build([changed.get(v, v) for v in graph.outputs]), names=graph.names)


def of_sizes(graph: Graph, sizes: Mapping[Sym, Size]) -> Graph:
    """The same graph for known sizes, or others, in the place of names, which it does not bind then."""
    made: dict[Value, Value] = {}

    def moved(value: Value) -> Value:
        if value not in made:
            made[value] = Value(value.aval.with_shape(resolve(value.shape, sizes)))
        return made[value]

    inputs = tuple(map(moved, graph.inputs))
    nodes = []
    for node in graph.nodes:
        if node.op is OPS["bind"] and node.params["sym"] in sizes:
            continue
        params = {
            name: of_sizes(held, sizes) if isinstance(held, Graph) else resolve(held, sizes) for name, held in node.params.items()
        }
        nodes.append(Node(node.op, tuple(map(moved, node.inputs)), params, tuple(map(moved, node.outputs)), node.source))
    return Graph(inputs, tuple(nodes), tuple(map(moved, graph.outputs)), graph.names)


# ------------------------------------------------------------------------------------------------------- patterns

Pattern: TypeAlias = "Variable | Number | PatternTerm"


@dataclass(frozen=True, slots=True)
class Variable:
    name: str


@dataclass(frozen=True, slots=True)
class Number:
    value: int | float


@dataclass(frozen=True, slots=True)
class PatternTerm:
    op: Op
    args: tuple[Pattern, ...]


def parse_pattern(text: str) -> Pattern:
    """`add(x, neg(y))` as a pattern."""

    def convert(node: ast.expr) -> Pattern:
        match node:
            case ast.Name(id=name):
                return Variable(name)
            case ast.Call(func=ast.Name(id=name), args=args):
                return PatternTerm(OPS[name], tuple(convert(a) for a in args))
        return Number(ast.literal_eval(node))

    return convert(ast.parse(text, mode="eval").body)


def match(pattern: Pattern, value: Value, producers: Producers, env: dict[str, Value]) -> dict[str, Value] | None:
    """The binding of the pattern's names that makes it `value`, or None."""
    if isinstance(pattern, Variable):
        bound = env.get(pattern.name)
        return env if bound is value else None if bound is not None else {**env, pattern.name: value}
    node = producers.get(value)
    if node is None:
        return None
    if isinstance(pattern, Number):
        while node is not None and node.op is OPS["broadcast"]:
            node = producers.get(node.inputs[0])
        if node is None:
            return None
        return env if node.op is OPS["full"] and node.params["value"] == pattern.value else None
    if node.op is not pattern.op or node.params:
        return None
    return _match_operands(pattern, node, producers, env)


def _match_operands(pattern: PatternTerm, node: Node, producers: Producers, env: dict[str, Value]) -> dict[str, Value] | None:
    orders: Iterable[tuple[Value, ...]] = (node.inputs,)
    if node.op.is_commutative:
        orders = (node.inputs, node.inputs[::-1])
    for operands in orders:
        bound = _match_in_order(pattern.args, operands, producers, env)
        if bound is not None:
            return bound
    return None


def _match_in_order(
    parts: tuple[Pattern, ...], operands: tuple[Value, ...], producers: Producers, env: dict[str, Value]
) -> dict[str, Value] | None:
    for part, operand in zip(parts, operands, strict=True):
        bound = match(part, operand, producers, env)
        if bound is None:
            return None
        env = bound
    return env


def build(pattern: Pattern, env: Mapping[str, Value]) -> Any:
    """Record a pattern with its names bound; a number stays a number, for the op around it to lift."""
    match pattern:
        case Variable(name):
            return env[name]
        case Number(value):
            return value
        case PatternTerm(op, args):
            return op(*(build(a, env) for a in args))


@dataclass(frozen=True)
class Rule:
    """Replace what `left` matches by `right`, where both have one aval, of such a kind and size (0 is any).

    >>> str(Rule("negate twice", "neg(neg(x))", "x"))
    'negate twice: neg(neg(x)) -> x'
    """

    name: str
    left: str
    right: str
    kinds: str = "fiub"
    itemsize: int = 0
    terms: tuple[PatternTerm, Pattern] = field(init=False, repr=False)
    inner: frozenset[Op] = field(init=False, repr=False)  # of which one makes an operand of what it matches; none: whatever does

    def __post_init__(self) -> None:
        left = parse_pattern(self.left)
        assert isinstance(left, PatternTerm)
        object.__setattr__(self, "terms", (left, parse_pattern(self.right)))
        inner = [arg.op for arg in left.args if isinstance(arg, PatternTerm)]
        if any(isinstance(arg, Number) for arg in left.args):
            inner += [OPS["full"], OPS["broadcast"]]
        object.__setattr__(self, "inner", frozenset(inner))

    def __str__(self) -> str:
        return f"{self.name}: {self.left} -> {self.right}"

    def apply(self, node: Node, producers: Producers) -> Value | None:
        """The replacement of the node's result, or None where the rule does not fire."""
        left, right = self.terms
        if node.op is not left.op or node.params or node.output.dtype.kind not in self.kinds:
            return None
        if self.itemsize not in (0, node.output.dtype.itemsize):
            return None
        env = _match_operands(left, node, producers, {})
        if env is None:
            return None
        if isinstance(right, Variable):
            return env[right.name] if env[right.name].aval == node.output.aval else None
        result = build(right, env)
        assert isinstance(result, Value)
        return result
