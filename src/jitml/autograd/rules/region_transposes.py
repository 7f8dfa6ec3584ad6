"""Linear regions backwards: the last iteration first, the cotangents of what is carried carried, those of what is captured
summed up in place.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from jitml.autograd.core.batch import as_value
from jitml.autograd.core.transpose import Cotangent, Cotangents, LinearPlace, Operand, pull_back, transpose_of_many, zeros
from jitml.ir import ops
from jitml.ir.graph import Graph, GraphBuilder, Node, Value
from jitml.ir.op import recording
from jitml.ir.passes.bodies import Parts
from jitml.ir.types import I64, Aval


@transpose_of_many.rule(ops.loop)
def loop_transpose(node: Node, operands: Sequence[Operand], cts: Sequence[Value | None], sums: Cotangents) -> Sequence[Cotangent]:
    parts = Parts.of(node)
    body, n = parts.body, len(parts.carried)
    trip, held = as_value(operands[0]), operands[1 + n :]
    carried_in, captured_in = parts.inputs(body)
    active = {k for k, ct in enumerate(cts) if ct is not None}
    while True:
        behind = _behind(body, [body.outputs[k] for k in active])
        more = {k for k, v in enumerate(carried_in) if v in behind} - active
        if not more:
            break
        active |= more
    carries = sorted(active)
    summed = [k for k, x in enumerate(held) if isinstance(x, LinearPlace) and captured_in[k] in behind]
    around = [k for k, x in enumerate(held) if not isinstance(x, LinearPlace)]

    b = GraphBuilder()
    backwards = b.add_input(Aval((), I64))
    cotangents = Cotangents()
    cts_in = [b.add_input(carried_in[k].aval) for k in carries]
    sums_in = [b.add_input(captured_in[k].aval) for k in summed]
    known = {captured_in[k]: b.add_input(captured_in[k].aval) for k in around}
    trip_in = b.add_input(Aval((), I64))
    linear = [*carried_in, *(v for v, x in zip(captured_in, held) if isinstance(x, LinearPlace))]
    with recording(b):
        known[body.inputs[0]] = ops.sub(ops.sub(trip_in, 1), backwards)
        for k, ct in zip(carries, cts_in):
            cotangents.add(body.outputs[k], ct)
        for k, ct in zip(summed, sums_in):
            cotangents.add(captured_in[k], ct)
        found = dict(zip(linear, pull_back(b, body, known, linear, cotangents)))
        results = [_dense(found[v], v) for v in (*(carried_in[k] for k in carries), *(captured_in[k] for k in summed))]
    starts = [_dense(cts[k], node.outputs[k]) for k in carries]
    starts += [_dense(sums.pop(parts.captured[k]), parts.captured[k]) for k in summed]
    captured = (*(as_value(held[k]) for k in around), trip)
    pulled: Sequence[Value] = ops.loop(trip, *starts, *captured, body=b.build(results), carried=len(starts))
    ends: dict[int, Value] = dict(zip([*(1 + k for k in carries), *(1 + n + k for k in summed)], pulled))
    return [ends.get(k) for k in range(len(operands))]


@transpose_of_many.rule(ops.cond)
def cond_transpose(node: Node, operands: Sequence[Operand], cts: Sequence[Value | None], sums: Cotangents) -> Sequence[Cotangent]:
    parts = Parts.of(node)
    which, held = as_value(operands[0]), operands[1:]
    active = [k for k, ct in enumerate(cts) if ct is not None]
    behind = {name: _behind(body, [body.outputs[k] for k in active]) for name, body in parts.bodies.items()}
    reaching = {k for name, body in parts.bodies.items() for k, v in enumerate(body.inputs) if v in behind[name]}
    moved = [k for k, x in enumerate(held) if isinstance(x, LinearPlace) and k in reaching]
    around = [k for k, x in enumerate(held) if not isinstance(x, LinearPlace)]
    before = {k: total for k in moved if (total := sums.pop(parts.captured[k])) is not None}
    bodies: dict[str, Graph] = {}
    for name, body in parts.bodies.items():
        b = GraphBuilder()
        cotangents = Cotangents()
        known = {body.inputs[k]: b.add_input(body.inputs[k].aval) for k in around}
        cts_in = [b.add_input(body.outputs[k].aval) for k in active]
        sums_in = [b.add_input(body.inputs[k].aval) for k in before]
        with recording(b):
            for k, ct in zip(active, cts_in):
                cotangents.add(body.outputs[k], ct)
            for k, ct in zip(before, sums_in):
                cotangents.add(body.inputs[k], ct)
            linear = [v for v, x in zip(body.inputs, held) if isinstance(x, LinearPlace)]
            found = dict(zip(linear, pull_back(b, body, known, linear, cotangents)))
            bodies[name] = b.build([_dense(found[body.inputs[k]], body.inputs[k]) for k in moved])
    captured = (*(as_value(held[k]) for k in around), *(cts[k] for k in active), *before.values())
    pulled: Sequence[Value] = ops.cond(which, *captured, **bodies)
    ends = dict(zip((1 + k for k in moved), pulled))
    return [ends.get(k) for k in range(len(operands))]


def _behind(graph: Graph, outputs: Iterable[Value]) -> set[Value]:
    """The values that some outputs depend on."""
    found = set(outputs)
    for node in reversed(graph.nodes):
        if not found.isdisjoint(node.outputs):
            found.update(node.inputs)
    return found


def _dense(ct: Value | None, like: Value) -> Value:
    return ct if ct is not None else zeros(like.aval)
