"""Branches in two halves: a cond whose branches also give what each saves, zeros where it is the other's; and a linear cond."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial

from jitml.autograd.halves import Halves, halve, halving
from jitml.autograd.saved import Kept, choose, replay, values_read, where
from jitml.ir import ops
from jitml.ir.graph import Graph, GraphBuilder, Node, Value
from jitml.ir.op import recording
from jitml.ir.passes.bodies import Parts
from jitml.ir.types import I64, Aval

Parted = tuple[Sequence[Value], Node]


@halving.rule(ops.cond)
def halve_cond(node: Node, tangents: Collection[Value], cheap: Collection[Value] | None) -> Parted:
    parts = Parts.of(node)
    (which,) = parts.head
    holds = [v in tangents for v in parts.captured]
    dear = [cheap is not None and v not in tangents and v not in cheap for v in parts.captured]
    halves: dict[str, Halves] = {}
    for name, body in parts.bodies.items():
        readable = [v for v, d, h in zip(body.inputs, dear, holds) if not d and not h]
        halves[name] = halve(body, where(body.inputs, holds, True), None if cheap is None else readable)
    moves = [any(h.outputs[k] in h.tangents for h in halves.values()) for k in range(len(node.outputs))]
    kept: dict[str, Kept] = {}
    for name, h in halves.items():
        around = where(h.inputs, dear, True)
        free = set(where(h.inputs, holds, False)).difference(around)
        kept[name] = choose(h, where(h.outputs, moves, True), free, around=around)
    slots, places = _shared_slots({name: [_slot(v) for v in k.saved] for name, k in kept.items()})

    forward: dict[str, Graph] = {}
    for name, h in halves.items():
        with recording(h.known):
            filled = {place: _put(v) for v, place in zip(kept[name].saved, places[name])}
            saved = [filled[k] if k in filled else _blank(aval) for k, aval in enumerate(slots)]
        forward[name] = h.known.build([*where(h.outputs, moves, False), *saved])
    captured = where(parts.captured, holds, False)
    results = ops.cond(which, *captured, then=forward["then"], orelse=forward["orelse"])
    n = len(results) - len(slots)

    used = [False] * len(captured)
    for name, h in halves.items():
        read = values_read(h, kept[name], where(h.outputs, moves, True))
        used = [u or v in read for u, v in zip(used, where(h.inputs, holds, False))]
    linear: dict[str, Graph] = {}
    for name, h in halves.items():
        b = GraphBuilder()
        slots_in = [b.add_input(aval) for aval in slots]
        env = {v: b.add_input(v.aval) for v, u in zip(where(h.inputs, holds, False), used) if u}
        env |= {v: b.add_input(v.aval) for v in where(h.inputs, holds, True)}
        with recording(b):
            get = partial(_get_from, dict(zip(kept[name].saved, (slots_in[k] for k in places[name]))))
            replay(b, h, kept[name], env, get, where(h.inputs, dear, True))
        linear[name] = b.build([env[v] for v in where(h.outputs, moves, True)])
    operands = (which, *results[n:], *where(captured, used, True), *where(parts.captured, holds, True))
    outs = tuple(Value(v.aval) for v, m in zip(node.outputs, moves) if m)
    of_known, of_linear = iter(results[:n]), iter(outs)
    return [next(of_linear) if m else next(of_known) for m in moves], Node(ops.cond, operands, linear, outs, node.source)


def _slot(value: Value) -> Aval:
    return Aval(value.aval.bounds, value.dtype)


def _shared_slots(saved: Mapping[str, Sequence[Aval]]) -> tuple[list[Aval], dict[str, list[int]]]:
    """Places for what each branch saves: the avals of the places, and the place of each value; branches share them."""
    slots: list[Aval] = []
    places: dict[str, list[int]] = {}
    for name, avals in saved.items():
        taken = places[name] = []
        for aval in avals:
            place = next((k for k, slot in enumerate(slots) if slot == aval and k not in taken), len(slots))
            if place == len(slots):
                slots.append(aval)
            taken.append(place)
    return slots, places


def _blank(aval: Aval) -> Value:
    return ops.full(value=0, shape=aval.shape, dtype=aval.dtype)


def _put(value: Value) -> Value:
    """The value in memory of its largest shape."""
    if value.aval.is_static:
        return value
    return ops.dynamic_update_slice(_blank(_slot(value)), value, *_zeros(value), step=(1,) * value.ndim)


def _get_from(slots: Mapping[Value, Value], value: Value) -> Value:
    slot = slots[value]
    if value.aval.is_static:
        return slot
    return ops.dynamic_slice(slot, *_zeros(value), sizes=value.shape, step=(1,) * value.ndim)


def _zeros(value: Value) -> list[Value]:
    return [ops.full(value=0, shape=(), dtype=I64) for _ in value.shape]
