"""Demand analysis: which elements of a value are surely computed, and which of a node's operands are they computed from?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import prod
from typing import TypeAlias

from jitml.ir import ops
from jitml.ir.dims import have_elements_if
from jitml.ir.graph import Node, Value
from jitml.records import dataclass

Box: TypeAlias = tuple[tuple[int, int], ...]  # per axis: from, to
_MOST_BOXES = 24  # more are not told apart


@dataclass(frozen=True, slots=True)
class Demand:
    """Elements of a value that are surely computed: fewer may be said than are, never more.

    Args:
        boxes: where they lie, in an array of known shape; None: everywhere.
        is_vague: there may be others, nobody can say which: perhaps none, if a later pass sees that all are overwritten.
    """

    boxes: tuple[Box, ...] | None
    is_vague: bool = False

    @property
    def is_whole(self) -> bool:
        return self.boxes is None

    @property
    def is_nothing(self) -> bool:
        return self.boxes == () and not self.is_vague

    @property
    def is_sure(self) -> bool:
        """Whether some element surely is computed."""
        return self.boxes != ()

    @property
    def blurred(self) -> Demand:
        """The same of elements that lie elsewhere."""
        return NOTHING if self.is_nothing else SOME

    def moved(self, value: Value, place: Callable[[Box], Box]) -> Demand:
        """The same of an operand, of which a box of the result needs what `place` says, and all of the result everything."""
        if self.boxes is None or (self.boxes and not value.aval.is_static):
            return demanded(value, self.blurred if self.boxes else self)
        return demanded(value, Demand(tuple(map(place, self.boxes)), self.is_vague))


NOTHING, SOME, WHOLE = Demand(()), Demand((), is_vague=True), Demand(None)


def demanded(value: Value, *demands: Demand) -> Demand:
    """What several demands of a value are together."""
    if 0 in value.shape:
        return NOTHING
    for d in demands:
        if d.boxes is None:
            return WHOLE
    boxes = [box for d in demands for box in d.boxes or () if elements(box)][:_MOST_BOXES]
    if boxes and sum(map(elements, boxes)) >= prod(value.shape) and not _without([_all(value)], boxes):
        return WHOLE
    return Demand(tuple(boxes), any(d.is_vague for d in demands))


def undemanded(value: Value, demand: Demand) -> tuple[Box, ...]:
    """Boxes of all the elements of a value of known shape that are not surely computed."""
    return () if demand.boxes is None else tuple(_without([_all(value)], demand.boxes))


def asked(node: Node, demand: Demand) -> list[Demand]:
    """What a node with one result asks of each of its operands, where `demand` is what is asked of the result."""
    (x, *others) = node.inputs
    match node.op:
        case ops.gather:  # its indices are checked, whatever is read
            return [demand.blurred, *[WHOLE] * len(others)]
        case ops.check:
            return [demand, *[WHOLE] * len(others)]
        case _ if demand.is_nothing:
            return [NOTHING] * len(node.inputs)
        case ops.compress | ops.dynamic_slice:
            return [SOME, *[WHOLE] * len(others)]
        case ops.reshape:
            return [demand if demand.is_whole else SOME]
        case ops.slice:
            return [_of_sliced(node, demand)]
        case ops.update_slice:
            return _of_updated(node, demand)
        case ops.dynamic_update_slice:  # what it writes may lie where nothing is needed
            return [WHOLE if demand.is_whole else SOME] * 2 + [WHOLE] * (len(others) - 1)
        case ops.flip:
            return [demand.moved(x, lambda box: _flipped(box, x, node.params["axes"]))]
        case ops.transpose:
            places = [node.params["perm"].index(a) for a in range(x.ndim)]
            return [demand.moved(x, lambda box: tuple(box[a] for a in places))]
        case ops.broadcast:
            spread = list(zip(x.shape, node.params["axes"]))
            if not have_elements_if(node.output.shape, x.shape):
                return [demand.blurred]
            return [demand.moved(x, lambda box: tuple((0, 1) if n == 1 else box[a] for n, a in spread))]
        case ops.pad:
            is_near = demand.is_whole or not any(node.params["interior"])
            around = WHOLE if node.output.aval.is_static else SOME
            return [demand.moved(x, _clipped(x, node.params["low"])) if is_near else SOME, around]
        case ops.concat:
            return _of_parts(node, demand)
        case _ if node.op.name.startswith("reduce_"):
            return [demand.moved(x, lambda box: _widened(box, node))]
        case _ if node.op.is_pointwise or node.op is ops.resize:
            return [demand] * len(node.inputs)
    return [WHOLE if demand.is_sure else SOME] * len(node.inputs)


def _of_sliced(node: Node, demand: Demand) -> Demand:
    (x,), start = node.inputs, node.params["start"]
    if not x.aval.is_static or not node.output.aval.is_static or _strides(node.params["step"], node.output):
        return SOME
    boxes = [_all(node.output)] if demand.boxes is None else demand.boxes
    return Demand(tuple(tuple((a + lo, a + hi) for (lo, hi), a in zip(box, start)) for box in boxes), demand.is_vague)


def _of_updated(node: Node, demand: Demand) -> list[Demand]:
    """Nothing is needed of what is overwritten, nor of what is written where nothing is needed."""
    (x, v), start = node.inputs, node.params["start"]
    if v.aval == x.aval:
        return [NOTHING, demand]
    if not x.aval.is_static or not v.aval.is_static or _strides(node.params["step"], v):
        if demand.is_whole:
            return [SOME, WHOLE]
        return [SOME if demand.is_vague else NOTHING] * 2
    window: Box = tuple((a, a + n) for a, n in zip(start, v.shape))
    boxes = [_all(x)] if demand.boxes is None else demand.boxes
    around = Demand(tuple(_without(boxes, [window])), demand.is_vague)
    return [around, Demand(tuple(map(_clipped(v, start), boxes)), demand.is_vague)]


def _of_parts(node: Node, demand: Demand) -> list[Demand]:
    axis, offset, found = node.params["axis"], 0, []
    for v in node.inputs:
        found.append(demand.moved(v, _clipped(v, [offset if a == axis else 0 for a in range(v.ndim)])))
        offset += v.shape[axis]
    return found


# --------------------------------------------------------------------------------------------------------- boxes


def _all(value: Value) -> Box:
    return tuple((0, n) for n in value.shape)


def elements(box: Box) -> int:
    """How many there are in a box."""
    return prod(max(0, hi - lo) for lo, hi in box)


def _strides(step: Sequence[int], part: Value) -> bool:
    """Whether the elements of a part are no neighbours."""
    return any(s != 1 and n > 1 for s, n in zip(step, part.shape))


def _flipped(box: Box, value: Value, axes: Sequence[int]) -> Box:
    return tuple((n - hi, n - lo) if a in axes else (lo, hi) for a, (n, (lo, hi)) in enumerate(zip(value.shape, box)))


def _widened(box: Box, node: Node) -> Box:
    """The elements that a box of a reduction's results is made of."""
    kept = iter(box)
    return tuple((0, n) if a in node.params["axes"] else next(kept) for a, n in enumerate(node.inputs[0].shape))


def _clipped(part: Value, offset: Sequence[int]) -> Callable[[Box], Box]:
    """What a box holds of a part that begins at an offset."""
    return lambda box: tuple((max(0, lo - a), min(n, hi - a)) for (lo, hi), a, n in zip(box, offset, part.shape))


def _without(boxes: Iterable[Box], gone: Iterable[Box]) -> list[Box]:
    """Boxes that hold what the first hold and none of the others does."""
    left = list(boxes)
    for hole in gone:
        left = [piece for box in left for piece in _cut(box, hole)]
    return left


def _cut(box: Box, hole: Box) -> Iterable[Box]:
    shared: Box = tuple((max(a, c), min(b, d)) for (a, b), (c, d) in zip(box, hole))
    if not elements(shared):
        if elements(box):
            yield box
        return
    rest = list(box)
    for a, ((lo, hi), (start, stop)) in enumerate(zip(box, shared)):
        for end in ((lo, start), (stop, hi)):
            if end[0] < end[1]:
                yield (*rest[:a], end, *rest[a + 1 :])
        rest[a] = (start, stop)
