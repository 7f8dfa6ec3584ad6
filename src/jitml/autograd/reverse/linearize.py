"""Reverse mode, put together: `jvp`, split into what depends on tangents and what does not, the former transposed.

The split is what makes a pullback reusable: the forward graph runs once and hands over its residuals, the pullback graph
runs as often as there are cotangents.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from jitml.autograd.core.jvp import push
from jitml.autograd.core.smooth_wholes import with_wholes
from jitml.autograd.core.transpose import transpose_graph
from jitml.autograd.reverse.budget import shared_by
from jitml.autograd.reverse.recompute import recomputing
from jitml.autograd.reverse.split import Halves, halve
from jitml.autograd.rewrites.shift_invariance import without_vain_shifts
from jitml.autograd.rewrites.softmax import with_softmaxes
from jitml.ir import ops
from jitml.ir.graph import Graph, GraphBuilder, Node, Value
from jitml.ir.passes.bodies import everywhere
from jitml.ir.passes.dce import eliminate_dead
from jitml.ir.passes.invariant import hoist_invariants
from jitml.ir.passes.observe import observe_errors
from jitml.ir.passes.trim import trim_regions
from jitml.ir.rewrite import Producers, Rule, sweep
from jitml.records import dataclass, replace


@dataclass(frozen=True)
class Linearized:
    """A function near one point.

    Args:
        forward: inputs -> outputs, then the residuals that `pull` needs.
        pull: residuals, a cotangent for each of `moving` -> a cotangent for each input it was linearized in.
        moving: positions of the outputs that depend on those inputs; the others have no tangent.
    """

    forward: Graph
    pull: Graph
    moving: tuple[int, ...]

    @property
    def outputs(self) -> int:
        """Number of the function's own outputs."""
        return len(self.forward.outputs) - self.residuals

    @property
    def residuals(self) -> int:
        return len(self.pull.inputs) - len(self.moving)


@dataclass(frozen=True)
class LinearSplit:
    """A function's values, and its tangents as a linear graph of those of its inputs.

    Args:
        forward: inputs -> outputs, then the residuals that `tangent` reads.
        tangent: residuals, a tangent for each input it was split by -> a tangent for each of `moving`.
        moving: positions of the outputs that depend on those inputs.
    """

    forward: Graph
    tangent: Graph
    moving: tuple[int, ...]


def split(graph: Graph, wrt: Sequence[int], results: int | None = None) -> LinearSplit:
    """Split a graph's derivative with respect to the inputs at `wrt` into what tangents do not reach, and the rest.

    Args:
        results: only the first so many outputs are differentiated (default: all); the others are merely computed.
    """
    b = GraphBuilder()
    heard = observe_errors(graph)  # an index that is out of range is, whether or not a slope depends on what lies there
    whole = with_wholes(without_vain_shifts(with_short_slopes(trimmed(heard))))
    values, tangents = push(b, with_softmaxes(recomputing(whole)), wrt)
    moving = tuple(i for i, t in enumerate(tangents[:results]) if t is not None)
    derivative = _hoisted(trimmed(b.build([*values, *(t for t in tangents[:results] if t is not None)])))
    with shared_by(derivative):
        halves = halve(derivative, derivative.inputs[len(graph.inputs) :])
    outputs, moved = halves.outputs[: len(values)], halves.outputs[len(values) :]
    again, residuals = _residuals(halves, moved)
    inputs = (*residuals, *halves.inputs[len(graph.inputs) :])
    tangent = eliminate_dead(Graph(inputs, (*again, *halves.linear), tuple(moved)))
    forward = Graph(tuple(halves.known.inputs), tuple(halves.known.nodes), (*outputs, *residuals), graph.names)
    return LinearSplit(eliminate_dead(forward), tangent, moving)


def linearize(graph: Graph, wrt: Sequence[int], results: int | None = None) -> Linearized:
    """Split a graph's derivative with respect to the inputs at `wrt` into forward and pullback; `results` as for `split`."""
    parts = split(graph, wrt, results)
    pull = eliminate_dead(transpose_graph(parts.tangent, len(parts.tangent.inputs) - len(wrt)))
    return _without_unread(Linearized(parts.forward, pull, parts.moving))


def vjp_graph(graph: Graph, wrt: Sequence[int]) -> Graph:
    """The graph of `(inputs, cotangents) -> (outputs, cotangents of the inputs at wrt)`.

    Inputs: those of `graph`, then a cotangent for each output that depends on `wrt`. Outputs: those of `graph`, then a
    cotangent for each of `wrt`.

    >>> from jitml.ir.text.parser import parse
    >>> print(vjp_graph(parse("graph(a: f32[4]) { b: f32[4] = tanh a; return b }"), [0]))
    graph(a: f32[4], b: f32[4]) {
      c: f32[4] = tanh a
      d: f32[4] = mul c c
      e: f32[4] = full {dtype=f32, shape=(4,), value=1.0}
      f: f32[4] = sub e d
      g: f32[4] = mul b f
      return c g
    }
    """
    derivative = linearize(graph, wrt)
    b = GraphBuilder()
    inputs = [b.add_input(v.aval, name) for v, name in zip(graph.inputs, graph.names or ("",) * len(graph.inputs))]
    cotangents = [b.add_input(graph.outputs[i].aval) for i in derivative.moving]
    results = b.inline(derivative.forward, inputs)
    n = derivative.outputs
    return b.build([*results[:n], *b.inline(derivative.pull, [*results[n:], *cotangents])])


def trimmed(graph: Graph) -> Graph:
    """Without dead code, and with regions that carry no more than they need: each tangent would carry it along."""
    if not any(node.bodies for node in graph.nodes):
        return graph
    return everywhere(eliminate_dead)(everywhere(trim_regions)(everywhere(eliminate_dead)(graph)))


# The slope of a sigmoid is s * (1 - s): nothing but s is kept, nothing is divided by, and exp may overflow.
_SHORT_SLOPES = (Rule("sigmoid", "div(1, add(1, exp(neg(x))))", "logistic(x)", kinds="f"),)


def with_short_slopes(graph: Graph) -> Graph:
    """Expressions whose slopes are shorter than those of their parts, as the one function that they are."""

    def visit(node: Node, producers: Producers) -> Value | None:
        return next(filter(None, (rule.apply(node, producers) for rule in _SHORT_SLOPES)), None)

    return everywhere(lambda body: sweep(body, visit))(graph)


def _hoisted(graph: Graph) -> Graph:
    """Regions that have done outside what is the same in every iteration, if its result is no larger than its operands.

    The cotangent of a diagonal then becomes a matrix once, and not in each iteration. Places that are counted from a number of
    iterations stay where that can be seen to keep them inside.
    """

    def is_worth(node: Node) -> bool:
        is_place = node.op.is_pointwise and node.output.ndim == 0 and node.output.dtype.kind == "i"
        if is_place or not node.inputs:
            return False
        return sum(v.capacity for v in node.outputs) <= max(v.capacity for v in node.inputs)

    if not any(node.bodies for node in graph.nodes):
        return graph
    return trimmed(everywhere(partial(hoist_invariants, is_worth=is_worth))(graph))


def _residuals(halves: Halves, moved: Sequence[Value]) -> tuple[list[Node], list[Value]]:
    """What the linear half reads: constants to make again, sizes to bind again, and values to keep."""
    made = {v: node for node in halves.known.nodes for v in node.outputs}
    binders = {node.params["sym"]: node for node in halves.known.nodes if node.op is ops.bind}
    read = halves.read(moved)
    constants = [made[v] for v in read if v in made and not made[v].inputs]
    remade = {v for node in constants for v in node.outputs}
    kept = [v for v in read if v not in remade]
    syms = {sym for v in (*kept, *halves.inputs) for sym in v.aval.syms}
    syms |= {sym for node in (*constants, *halves.linear) for sym in node.syms}
    binds = [binders[sym] for sym in sorted(syms, key=lambda sym: sym.serial)]
    return [*binds, *constants], list(dict.fromkeys([*kept, *(node.inputs[0] for node in binds)]))


def _without_unread(derivative: Linearized) -> Linearized:
    """Drop residuals that the linear part read but its transpose does not."""
    read = {v for node in derivative.pull.nodes for v in node.inputs} | set(derivative.pull.outputs)
    n, residuals = derivative.outputs, derivative.pull.inputs[: derivative.residuals]
    keep = [v in read for v in residuals]
    inputs = [v for v, kept in zip(residuals, keep) if kept] + list(derivative.pull.inputs[len(residuals) :])
    outputs = list(derivative.forward.outputs[:n]) + [v for v, kept in zip(derivative.forward.outputs[n:], keep) if kept]
    forward = eliminate_dead(replace(derivative.forward, outputs=tuple(outputs)))
    return Linearized(forward, replace(derivative.pull, inputs=tuple(inputs), names=()), derivative.moving)
