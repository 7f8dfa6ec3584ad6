"""Residuals: what of a body's values does its backward run keep?  As few bytes as will do: the rest is computed again.

Index maps, reads of what is there anyway, and light arithmetic are cheaper than a trip through memory, so the backward body
repeats them. Which values to keep so that all others can be repeated is a minimum cut between what is hard to compute and
what is read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from jitml.autograd.reverse.counters import limits_here
from jitml.autograd.reverse.min_cut import minimum_cut
from jitml.autograd.reverse.recompute_cost import is_light
from jitml.autograd.reverse.split import Halves
from jitml.ir import ops
from jitml.ir.dims import Sym
from jitml.ir.graph import GraphBuilder, Node, Value
from jitml.ir.types import is_inexact
from jitml.records import dataclass


@dataclass(frozen=True)
class Kept:
    """How the linear half of a body comes by what it reads.

    Args:
        saved: values that the known half has to hand over.
        steps: those, each a value to be read, and nodes to be run again; in an order that works.
    """

    saved: Sequence[Value]
    steps: Sequence[Value | Node]

    @property
    def nbytes(self) -> int:
        return sum(v.aval.nbytes for v in self.saved)


def choose(
    halves: Halves,
    outputs: Iterable[Value],
    free: Collection[Value],
    *,
    around: Collection[Value] = (),
    times: int = 1,
    repeat: bool = False,
) -> Kept:
    """What to save so that the linear half can make `outputs`.

    Args:
        free: known values that will be there anyway.
        around: known values that the linear half may have instead of what is made of them; once for all iterations.
        times: how many iterations there are.
        repeat: regions may be run again, if what they need is smaller than what they would save.
    """

    def cost(v: Value) -> float:
        return v.aval.nbytes / times if v in around else v.aval.nbytes

    kept = _CutChoice(halves, free, cost, repeat).made(halves.read(outputs))
    return Kept([v for v in kept.saved if v not in around], [step for step in kept.steps if step not in around])


def where(values: Sequence[Value], flags: Sequence[bool], wanted: bool) -> list[Value]:
    return [v for v, flag in zip(values, flags) if flag == wanted]


def values_read(halves: Halves, kept: Kept, outputs: Iterable[Value]) -> set[Value]:
    """What the linear half reads, computing again what it computes again."""
    nodes = [*(step for step in kept.steps if isinstance(step, Node)), *halves.linear]
    return {v for node in nodes for v in node.inputs} | set(outputs)


def replay(
    b: GraphBuilder,
    halves: Halves,
    kept: Kept,
    env: dict[Value, Value],
    get: Callable[[Value], Value],
    around: Collection[Value] = (),
) -> None:
    """Record the linear half, and before it what it computes again.

    Args:
        get: records the reading of a saved value.
        around: values that may have been saved further out.
    """
    restored = {*kept.saved, *around}
    for step in (*kept.steps, *halves.linear):
        if isinstance(step, Value):
            env[step] = get(step)
        else:
            inputs = tuple(env[v] for v in step.inputs)
            if not restored.isdisjoint(step.inputs):
                inputs = _within(step, inputs, {env[v] for v in restored if v in env})
                restored.update(v for v in step.outputs if not is_inexact(v.dtype))
            outs = b.emit(step.op, inputs, step.params, tuple(v.aval for v in step.outputs), step.source)
            env.update(zip(step.outputs, outs, strict=True))


def _within(node: Node, inputs: tuple[Value, ...], restored: Collection[Value]) -> tuple[Value, ...]:
    """The node's inputs, places that were saved kept within the array: what showed that they are was the forward run's."""
    if node.op is ops.dynamic_slice:
        (x, *starts), sizes = inputs, node.params["sizes"]
    elif node.op is ops.dynamic_update_slice:
        (x, _, *starts), sizes = inputs, node.inputs[1].shape
    else:
        return inputs
    kept: list[Value] = []
    for start, n, size, step in zip(starts, x.shape, sizes, node.params["step"]):
        least, most = limits_here(start, restored)
        if type(n) is int and type(size) is int and not (least >= 0 and most <= n - (size - 1) * step - 1):
            start = ops.minimum(ops.maximum(start, 0), n - (size - 1) * step - 1)
        kept.append(start)
    return (*inputs[: len(inputs) - len(starts)], *kept)


def acts(node: Node) -> bool:
    """Whether running a node twice is not running it once: it calls out, or draws."""
    return any(inner.op.has_effect and inner.op is not ops.check for inner in node.walk() if not inner.bodies)


class _CutChoice:
    def __init__(self, halves: Halves, free: Collection[Value], cost: Callable[[Value], float], repeat: bool) -> None:
        self.halves, self.free, self.cost, self.repeat = halves, free, cost, repeat
        self.nodes = halves.known.nodes
        self.makers = {v: node for node in self.nodes for v in node.outputs}
        self.binders = {node.params["sym"]: node for node in self.nodes if node.op is ops.bind}

    def made(self, wanted: list[Value]) -> Kept:
        syms = {sym for node in self.halves.linear for sym in node.syms}
        had = set(self.free)
        for node in self.nodes:
            if self.may_repeat(node) and had.issuperset(self.operands(node)):
                had.update(node.outputs)
        wanted = list(dict.fromkeys([*wanted, *self.sizes(self.behind(wanted))]))
        saved = minimum_cut(
            [v for v in wanted if v not in had],
            lambda v: [u for u in self.operands(self.makers[v]) if u not in had] if self.is_light(v) else None,
            self.cost,
        )
        remade: set[Node] = set()
        for v in self.behind(wanted, saved):
            if v not in saved and v not in self.free:
                remade.add(self.makers[v])
        syms |= {sym for node in remade for sym in node.syms}
        syms |= {sym for v in (*saved, *self.halves.inputs) for sym in v.aval.syms}
        # A size that could be bound says between which limits a loop's index lies, even where no shape mentions it.
        there = {*self.free, *saved, *(v for node in remade for v in node.outputs)}
        remade |= {node for sym, node in self.binders.items() if sym in syms or node.inputs[0] in there}
        return Kept(saved, self.ordered(saved, remade))

    def is_light(self, v: Value) -> bool:
        return v in self.makers and self.may_repeat(self.makers[v])

    def may_repeat(self, node: Node) -> bool:
        return is_light(node) or (self.repeat and bool(node.bodies) and not acts(node))

    def operands(self, node: Node) -> list[Value]:
        """What a node needs: its inputs, and the values of its sizes."""
        return [*node.inputs, *(self.binders[sym].inputs[0] for sym in _in_order(node.syms) if node.op is not ops.bind)]

    def behind(self, values: Iterable[Value], ends: Collection[Value] = ()) -> list[Value]:
        """The values, and all from which they can be computed lightly; no further than `ends`."""
        found: dict[Value, None] = {}
        waiting = list(values)
        while waiting:
            v = waiting.pop()
            if v not in found:
                found[v] = None
                if v not in ends and v not in self.free and self.is_light(v):
                    waiting += self.operands(self.makers[v])
        return list(found)

    def sizes(self, values: Iterable[Value]) -> list[Value]:
        return [self.binders[sym].inputs[0] for v in values for sym in _in_order(v.aval.syms)]

    def ordered(self, saved: Sequence[Value], remade: set[Node]) -> list[Value | Node]:
        inputs = [v for v in saved if v not in self.makers]
        steps: list[Value | Node] = [v for v in inputs if not v.aval.syms]
        early = [node for node in self.nodes if node in remade and node.op is ops.bind and node.inputs[0] not in self.makers]
        steps += [*early, *(v for v in inputs if v.aval.syms)]
        for node in self.nodes:
            if node in remade and node not in early:
                steps.append(node)
            steps += [v for v in node.outputs if v in saved]
        return steps


def _in_order(syms: Collection[Sym]) -> list[Sym]:
    return sorted(syms, key=lambda sym: sym.serial)
