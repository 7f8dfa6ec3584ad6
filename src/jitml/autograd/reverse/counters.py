"""Trip counters: what does a `while` count?

`for i in range(n)` with a `break` is a while that carries `i`: where it stands in an iteration
need not be saved, and how far it goes bounds how often the while runs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from jitml.ir import ops
from jitml.ir.analysis.limits import Limits, limits_of
from jitml.ir.graph import Graph, GraphBuilder, Node, Value
from jitml.ir.op import active_recorder
from jitml.ir.passes.bodies import Parts
from jitml.ir.types import I64, Aval
from jitml.records import dataclass


@dataclass(frozen=True)
class Counter:
    """An integer that a while carries and that grows by the same amount in each iteration.

    Args:
        position: among what is carried.
        start: its value before the while.
        end: the while stops when it gets there, if not before.
    """

    position: int
    start: Value
    step: int
    end: int | None

    def value(self, start: Value, iteration: Value) -> Value:
        """Its value in an iteration."""
        moved = iteration if self.step == 1 else ops.mul(iteration, self.step)
        counted: Value = ops.add(start, moved)
        return counted

    def iterations(self) -> int | None:
        """At most so many, as far as this counter says."""
        if self.end is None:
            return None
        least, _ = limits_here(self.start)
        return max(0, -(-(self.end - least) // self.step))


def counters(parts: Parts) -> list[Counter]:
    """The counters of a while that is about to be recorded again."""
    body, test = parts.body, parts.bodies["test"]
    makers, conditions = body.producers(), list(_conditions(test))
    found: list[Counter] = []
    for k, (before, after, start) in enumerate(zip(body.inputs, body.outputs, parts.carried)):
        step = _step(before, makers.get(after), makers) if before.aval == Aval((), I64) else None
        if step is not None:
            ends = [_most(end, parts) for x, end in conditions if x is test.inputs[k]] if step > 0 else []
            found.append(Counter(k, start, step, min(ends, default=None)))
    return found


def limits_here(value: Value, unproven: Collection[Value] = ()) -> Limits:
    """Between which numbers a value lies that is recorded where things are recorded now.

    Args:
        unproven: values of which a size that they are bound as proves nothing.
    """
    b = active_recorder()
    assert isinstance(b, GraphBuilder)
    sizes = {node.inputs[0]: node.params["sym"] for node in b.nodes if node.op is ops.bind}
    return limits_of(value, b.maker, lambda v: (sizes[v].low, sizes[v].high) if v in sizes and v not in unproven else None)


def is_number(value: Value, number: int | None = None) -> bool:
    """Whether a value is a number that stands in the graph; that one."""
    b = active_recorder()
    assert isinstance(b, GraphBuilder)
    maker = b.maker(value)
    return maker is not None and maker.op is ops.full and number in (None, maker.params["value"])


def _step(before: Value, maker: Node | None, makers: dict[Value, Node]) -> int | None:
    """c of `before + c`."""
    if maker is None or maker.op is not ops.add or before not in maker.inputs:
        return None
    (other,) = [v for v in maker.inputs if v is not before] or [before]
    number = makers.get(other)
    return int(number.params["value"]) if number is not None and number.op is ops.full else None


def _conditions(test: Graph) -> Iterator[tuple[Value, Node | Value]]:
    """The `x < end` all of which have to hold: x, and what makes the end or else the input that it is."""
    makers = test.producers()
    waiting = list(test.outputs)
    while waiting:
        node = makers.get(waiting.pop())
        if node is not None and node.op is ops.bit_and:
            waiting += node.inputs
        elif node is not None and node.op in (ops.lt, ops.gt):
            x, end = node.inputs if node.op is ops.lt else node.inputs[::-1]
            yield x, makers.get(end, end)


def _most(end: Node | Value, parts: Parts) -> int:
    if isinstance(end, Node) and end.op is ops.full:
        return int(end.params["value"])
    test = parts.bodies["test"]
    outside = dict(zip(parts.inputs(test)[1], parts.captured))
    return limits_here(outside[end])[1] if isinstance(end, Value) and end in outside else (1 << 63) - 1
