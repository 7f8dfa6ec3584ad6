"""Errors of what is computed in vain."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import prod
from typing import TypeAlias

from jitml.ir import ops
from jitml.ir.floating import heard_of, is_heard
from jitml.ir.graph import Graph, Node, Value
from jitml.ir.passes.bodies import Parts
from jitml.ir.passes.trim import needed
from jitml.ir.rewrite import Producers

Box: TypeAlias = tuple[tuple[int, int], ...]  # per axis: from, to
_MOST_BOXES = 24  # more are not told apart
_MOVES = (ops.flip, ops.transpose, ops.broadcast, ops.pad, ops.concat)


def observe_errors(graph: Graph) -> Graph:
    """Let what raises floating-point errors, or an index error, be computed though nothing needs all of it.

    NumPy computes what it is told to, and warns; `x / y` whose result is dropped or overwritten, or of which only a part is
    read, would not be computed at all here. Where nothing that is needed needs every element, an `observe` asks for it. Errors
    that `np.errstate` ignores are no reason. One reverse sweep, with the boxes of elements that are needed of each value.
    """
    return _Sweep(graph, range(len(graph.outputs))).graph()


def let_go(x: Value, producers: Producers) -> bool:
    """Whether a pass may do without a value that was needed; errors on the way to it are then observed."""
    seen: set[Value] = set()
    left, heard = [x], []
    while left:
        value = left.pop()
        node = producers.get(value)
        if node is None or value in seen:
            continue
        seen.add(value)
        if not is_heard(node) and not node.has_effect:
            left += node.inputs
        elif node.bodies or node.has_effect or not heard_of(node):
            return False
        else:
            heard.append(value)
    for value in heard:
        ops.observe(value)
    return True


class Demand:
    """Which elements of a value are surely computed, if something asks for it at all."""

    def __init__(self, value: Value) -> None:
        self.shape = value.shape
        self.is_whole = False
        self.is_touched = False  # some elements are needed, nobody can say which
        self.boxes: list[Box] = []

    @property
    def is_empty(self) -> bool:
        """Whether what asks for it needs no element: all are overwritten, or there are none."""
        return 0 in self.shape or not (self.is_whole or self.is_touched or self.boxes)

    def add(self, boxes: Sequence[Box] | None) -> None:
        """Some boxes more; None: everything."""
        if boxes is None or self.is_whole:
            self.is_whole = True
            return
        self.boxes += [box for box in boxes if _size(box)]
        if len(self.boxes) > _MOST_BOXES:
            del self.boxes[_MOST_BOXES:]
        sizes = [n for n in self.shape if isinstance(n, int)]
        if self.boxes and len(sizes) == len(self.shape) and sum(map(_size, self.boxes)) >= prod(sizes):
            self.is_whole = not _without([tuple((0, n) for n in sizes)], self.boxes)


class _Sweep:
    """The sweep over one graph.

    Args:
        wanted: positions of the outputs that are needed.
    """

    def __init__(self, graph: Graph, wanted: Iterable[int]) -> None:
        self.source = graph
        self.demands: dict[Value, Demand] = {}
        self.nodes: list[Node] = []
        self.makers = graph.producers()
        for position in wanted:
            self.whole(graph.outputs[position])
        for node in reversed(graph.nodes):
            self.place(node)

    def graph(self) -> Graph:
        return replace(self.source, nodes=tuple(reversed(self.nodes)))

    def whole(self, *values: Value) -> None:
        for v in values:
            self.ask(v, None)

    def ask(self, value: Value, boxes: Sequence[Box] | None) -> None:
        self.demands.setdefault(value, Demand(value)).add(boxes)

    def place(self, node: Node) -> None:
        if node.bodies:
            self.region(node)
            return
        if len(node.outputs) == 1 and self.is_observed(node):
            self.nodes.append(Node(ops.observe, (node.output,), {}, (), node.source))
            self.whole(node.output)
        self.nodes.append(node)
        if node.op is ops.bind:
            return
        if node.has_effect or any(v in self.demands for v in node.outputs):
            self.operands(node)

    def is_observed(self, node: Node) -> bool:
        demand = self.demands.get(node.output)
        if node.op in (ops.gather, ops.scatter) and (demand is None or demand.is_empty):
            return True  # its indices are to be checked
        if demand is not None and demand.is_whole:
            return False
        return bool(heard_of(node)) and not self.is_harmless(node)

    def is_harmless(self, node: Node) -> bool:
        """Whether a float result can only underflow, since one operand is a number of moderate size."""
        numbers = [self.number(v) for v in node.inputs]
        y = numbers[-1] if numbers else None
        match node.op:
            case ops.add:
                return any(n is not None and abs(n) < 1e3 for n in numbers)
            case ops.sub:
                return y is not None and abs(y) < 1e3
            case ops.mul:
                return any(n is not None and abs(n) <= 1 and n != 0 for n in numbers)
            case ops.div:
                return y is not None and 1 <= abs(y) < 1e3
        return False

    def number(self, value: Value) -> float | None:
        """The number that is all of a float value, if it is known; a small one, which any float dtype holds."""
        maker = self.makers.get(value)
        while maker is not None and maker.op is ops.broadcast:
            maker = self.makers.get(maker.inputs[0])
        return float(maker.params["value"]) if maker is not None and maker.op is ops.full and value.dtype.kind == "f" else None

    # ----------------------------------------------------------------------------------------------- operands

    def operands(self, node: Node) -> None:
        """Ask for what a node computes its result from."""
        demand = self.demands.get(node.outputs[0]) if len(node.outputs) == 1 else None
        known: Sequence[Box] | None = None
        if demand is not None and (demand.is_empty or (node.output.aval.is_static and not demand.is_whole)):
            known = [] if demand.is_empty else demand.boxes
        match node.op:
            case ops.gather | ops.compress | ops.dynamic_slice:
                self.touch(node.inputs[0], node)
                self.whole(*node.inputs[1:])
            case ops.reshape if demand is not None and (known is not None or not demand.is_whole):
                self.touch(node.inputs[0], node)
            case ops.slice:
                self.slice(node, known)
            case ops.update_slice:
                self.update(node, known)
            case ops.check if demand is None:
                self.whole(*node.inputs[1:])  # a check that always holds goes, and what it hands on with it
            case _ if demand is None or (known is None and demand.is_whole):
                self.whole(*node.inputs)
            case ops.check if known is None:
                self.touch(node.inputs[0], node)
                self.whole(*node.inputs[1:])
            case _ if known is None and (node.op.is_pointwise or node.op in _MOVES or node.op.name.startswith("reduce_")):
                for v in node.inputs:
                    self.touch(v, node)
            case _ if known is None:
                self.whole(*node.inputs)
            case _ if node.op.is_pointwise or node.op is ops.check or node.op in _MOVES:
                self.moved(node, known)
            case _ if node.op.name.startswith("reduce_"):
                self.ask(node.inputs[0], [_widened(box, node) for box in known])
            case _ if demand.is_empty:  # what has no element is not computed
                for v in node.inputs:
                    self.ask(v, [])
            case _:
                self.whole(*node.inputs)

    def touch(self, value: Value, node: Node) -> None:
        """Some elements are needed for a node's result, nobody can say which."""
        self.ask(value, [])
        demand = self.demands.get(node.output)
        if demand is None or not demand.is_empty:
            self.demands[value].is_touched = True

    def slice(self, node: Node, known: Sequence[Box] | None) -> None:
        (x,), start, step = node.inputs, node.params["start"], node.params["step"]
        if not x.aval.is_static or not node.output.aval.is_static or _strides(step, node.output):
            self.touch(x, node)
            return
        boxes = [_all(node.output)] if known is None else known
        self.ask(x, [tuple((a + lo, a + hi) for (lo, hi), a in zip(box, start)) for box in boxes])

    def update(self, node: Node, known: Sequence[Box] | None) -> None:
        (x, v), start, step = node.inputs, node.params["start"], node.params["step"]
        if not x.aval.is_static or not v.aval.is_static or _strides(step, v):
            self.touch(x, node)
            self.ask(v, known and [])
            return
        window: Box = tuple((a, a + n) for a, n in zip(start, v.shape))
        needed_of_it = [_all(node.output)] if known is None else list(known)
        self.ask(x, _without(needed_of_it, [window]))
        inside = [_common(box, window) for box in needed_of_it]
        self.ask(v, [tuple((lo - a, hi - a) for (lo, hi), a in zip(box, start)) for box in inside])

    def moved(self, node: Node, known: Sequence[Box]) -> None:
        """Operands of a node that says for each element where it comes from."""
        offset = 0
        for k, v in enumerate(node.inputs):
            if not v.aval.is_static:
                self.touch(v, node)
                continue
            boxes: Sequence[Box] | None = known
            match node.op:
                case ops.check if k > 0:
                    boxes = None
                case ops.pad if k > 0:
                    boxes = None if known else []
                case ops.pad:
                    boxes = None if any(node.params["interior"]) else _clipped(known, node.params["low"], v)
                case ops.concat:
                    axis = node.params["axis"]
                    boxes = _clipped(known, [offset if a == axis else 0 for a in range(v.ndim)], v)
                    offset += v.shape[axis]
                case ops.flip:
                    boxes = [_flipped(box, v, node.params["axes"]) for box in known]
                case ops.transpose:
                    places = [node.params["perm"].index(a) for a in range(v.ndim)]
                    boxes = [tuple(box[a] for a in places) for box in known]
                case ops.broadcast:
                    spread = list(zip(v.shape, node.params["axes"]))
                    boxes = [tuple((0, 1) if n == 1 else box[a] for n, a in spread) for box in known]
            self.ask(v, boxes)

    # ------------------------------------------------------------------------------------------------ regions

    def region(self, node: Node) -> None:
        """A region with its bodies swept: they make what is needed of its results, and what that depends on."""
        used = [k for k, v in enumerate(node.outputs) if v in self.demands and not self.demands[v].is_empty]
        wanted = used if node.op is ops.cond else needed(Parts.of(node), used)
        sweeps = {name: _Sweep(body, [0] if name == "test" else wanted) for name, body in node.bodies.items()}
        after = replace(node, params={**node.params, **{name: sweep.graph() for name, sweep in sweeps.items()}})
        parts = Parts.of(after)
        self.nodes.append(after)
        if not used and not after.has_effect:
            return
        self.whole(*parts.head)
        for v, demand in self.entering(parts, sweeps, used):
            self.ask(v, None if demand is None or demand.is_whole else demand.boxes)

    def entering(self, parts: Parts, sweeps: dict[str, _Sweep], used: Sequence[int]) -> Iterable[tuple[Value, Demand | None]]:
        """What goes into a region. It is in memory, unless the region is one that is sure to be unwrapped."""
        maker = self.makers.get(parts.head[0]) if parts.head else None
        course = maker.params["value"] if maker is not None and maker.op is ops.full else None
        if course is None or (parts.node.op is ops.loop and course > 1):
            kept = () if parts.node.op is ops.cond else needed(parts, used)
            yield from ((parts.carried[k], None) for k in kept)
            for n, v in enumerate(parts.captured, parts.first + len(parts.carried)):
                inside = [d for sweep in sweeps.values() if (d := sweep.demands.get(sweep.source.inputs[n])) is not None]
                if inside:
                    read = Demand(v)  # a window that is the same in each iteration moves out of a loop
                    read.add([box for demand in inside for box in demand.boxes])
                    yield v, None if any(d.is_whole or d.is_touched for d in inside if not d.is_empty) else read
            return
        sweep = sweeps["body" if parts.node.op is ops.loop else "then" if course else "orelse"]
        if parts.node.op is ops.loop and course <= 0:
            yield from ((v, self.demands[out]) for v, out in zip(parts.carried, parts.node.outputs) if out in self.demands)
            return
        inputs = sweep.source.inputs[parts.first :]
        yield from ((v, sweep.demands[i]) for v, i in zip((*parts.carried, *parts.captured), inputs) if i in sweep.demands)


# --------------------------------------------------------------------------------------------------------- boxes


def _all(value: Value) -> Box:
    return tuple((0, n) for n in value.shape)


def _size(box: Box) -> int:
    return prod(max(0, hi - lo) for lo, hi in box)


def _common(x: Box, y: Box) -> Box:
    return tuple((max(a, c), min(b, d)) for (a, b), (c, d) in zip(x, y))


def _strides(step: Sequence[int], part: Value) -> bool:
    """Whether the elements of a part are no neighbours."""
    return any(s != 1 and n > 1 for s, n in zip(step, part.shape))


def _flipped(box: Box, value: Value, axes: Sequence[int]) -> Box:
    return tuple((n - hi, n - lo) if a in axes else (lo, hi) for a, (n, (lo, hi)) in enumerate(zip(value.shape, box)))


def _widened(box: Box, node: Node) -> Box:
    """The elements that a box of a reduction's results is made of."""
    kept = iter(box)
    return tuple((0, n) if a in node.params["axes"] else next(kept) for a, n in enumerate(node.inputs[0].shape))


def _clipped(boxes: Iterable[Box], offset: Sequence[int], part: Value) -> list[Box]:
    """What boxes hold of a part that begins at an offset."""
    return [tuple((max(0, lo - a), min(n, hi - a)) for (lo, hi), a, n in zip(box, offset, part.shape)) for box in boxes]


def _without(boxes: Iterable[Box], gone: Iterable[Box]) -> list[Box]:
    """Boxes that hold what the first hold and none of the others does."""
    left = list(boxes)
    for hole in gone:
        left = [piece for box in left for piece in _cut(box, hole)]
    return left


def _cut(box: Box, hole: Box) -> Iterable[Box]:
    shared = _common(box, hole)
    if not _size(shared):
        if _size(box):
            yield box
        return
    rest = list(box)
    for a, ((lo, hi), (start, stop)) in enumerate(zip(box, shared)):
        for end in ((lo, start), (stop, hi)):
            if end[0] < end[1]:
                yield (*rest[:a], end, *rest[a + 1 :])
        rest[a] = (start, stop)
