"""Random numbers inside a kernel, one at a time."""

from __future__ import annotations

from jitml.fusion.lower.random import native_routine
from jitml.fusion.scalar_loops.body import GraphBody, Held, rolled
from jitml.fusion.scalar_loops.order import NotRolled, is_single
from jitml.ir import ops
from jitml.ir.graph import Node
from jitml.kernels.ir import Draw


@rolled.rule(ops.random)
def roll_random(body: GraphBody, node: Node, operands: list[Held]) -> None:
    address, number = node.outputs
    routine = native_routine(node, body.target)
    if routine is None or not is_single(number):
        raise NotRolled("random numbers are drawn by Python" if routine is None else "an array of random numbers")
    name = body.w.fresh("r")
    draw = Draw(name, routine, tuple(map(body.number, operands)), number.dtype)
    body.w.add(draw)
    body.w.ranges.draw(draw)
    body.held[address] = operands[0]
    body.held[number] = body.b.cell(name, number.dtype)
