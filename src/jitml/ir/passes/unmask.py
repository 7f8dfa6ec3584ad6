"""Computing with masks instead of with what they pick."""

from __future__ import annotations

from jitml.ir import ops
from jitml.ir.graph import Graph, Node, Value
from jitml.ir.rewrite import Producers, sweep
from jitml.ir.types import BOOL, is_inexact

# What may be computed where the mask is false, too. Of 1 in the place of elements that were not picked: those may be there to be
# left out (inf, nan), and their floating-point flags would leave the call to NumPy. No division, and no function with a domain.
_ANYWHERE = frozenset({
    ops.add, ops.sub, ops.mul, ops.neg, ops.abs, ops.minimum, ops.maximum, ops.select, ops.convert, ops.sign,
    ops.eq, ops.ne, ops.lt, ops.le, ops.gt, ops.ge, ops.bit_and, ops.bit_or, ops.bit_xor, ops.bit_not,
})  # fmt: skip
# What raises nothing where it is computed of 1, whatever the other operand: it may take that where the mask is false.
_OF_ONE = frozenset({ops.pow, ops.div, ops.sqrt, ops.log, ops.log2, ops.log10})


def unmask(graph: Graph) -> Graph:
    """`x[mask] = f(y[mask])` becomes `select(mask, f(y), x)`, and `y[mask].sum()` the sum of `select(mask, y, 0)`.

    Picking elements and putting them back are loops that carry a place along, one element at a time; a select is a vector
    operation that fuses with what is around it. Fires where `f` is pointwise and may be computed everywhere.
    """
    if ops.compress not in graph.ops:
        return graph

    def visit(node: Node, producers: Producers) -> Value | None:
        if node.op is ops.scatter:
            return _put_back(node, producers)
        if node.op is ops.reduce_sum and node.inputs[0].ndim == 1:
            return _summed(node, producers)
        return None

    return sweep(graph, visit)


def _put_back(node: Node, producers: Producers) -> Value | None:
    x, v, *indices = node.inputs
    picked = producers.get(indices[0])
    if len(indices) != 1 or node.params["combine"] != "set" or x.ndim != 1 or picked is None or picked.op is not ops.compress:
        return None
    places, mask = picked.inputs
    made = producers.get(places)
    if made is None or made.op is not ops.iota or mask.shape != x.shape:
        return None
    whole = _WholeValues(mask, producers).of(v)
    return None if whole is None else ops.select(mask, whole, x)


def _summed(node: Node, producers: Producers) -> Value | None:
    x = node.inputs[0]
    mask = _mask_of(x, producers)
    if mask is None or x.dtype == BOOL:
        return None
    whole = _WholeValues(mask, producers).of(x)
    if whole is None:
        return None
    return ops.reduce_sum(ops.select(mask, whole, ops.full(value=0, shape=mask.shape, dtype=x.dtype)), axes=(0,))


def _mask_of(x: Value, producers: Producers) -> Value | None:
    """The mask of the first `compress` above a value."""
    waiting, seen = [x], {x}
    while waiting:
        node = producers.get(waiting.pop())
        if node is None:
            continue
        if node.op is ops.compress:
            return node.inputs[1] if node.inputs[0].ndim == 1 else None
        if node.op in _ANYWHERE:
            waiting += [v for v in node.inputs if v not in seen]
            seen.update(node.inputs)
    return None


class _WholeValues:
    """Values over picked elements, computed for all elements."""

    def __init__(self, mask: Value, producers: Producers) -> None:
        self.mask, self.producers = mask, producers
        self.known: dict[Value, Value | None] = {}

    def of(self, x: Value) -> Value | None:
        if x not in self.known:
            node = self.producers.get(x)
            self.known[x] = None if node is None else self._of_node(node)
        return self.known[x]

    def _of_node(self, node: Node) -> Value | None:
        shape = self.mask.shape
        if node.op is ops.compress:
            return node.inputs[0] if node.inputs[1] is self.mask and node.inputs[0].ndim == 1 else None
        if node.op is ops.full:
            whole: Value = ops.full(value=node.params["value"], shape=shape, dtype=node.params["dtype"])
            return whole
        if node.op is ops.broadcast and node.inputs[0].ndim == 0:
            spread: Value = ops.broadcast(node.inputs[0], shape=shape, axes=())
            return spread
        if node.op is ops.resize or (node.op is ops.check and _holds(node, self.producers)):
            return self.of(node.inputs[0])  # picked by one mask, it has the length of all that is
        if node.op in _OF_ONE:
            return self._of_one(node)
        if node.op not in _ANYWHERE:
            return None
        return self._of_operands(node)

    def _of_operands(self, node: Node) -> Value | None:
        operands = [self.of(v) for v in node.inputs]
        if any(v is None for v in operands):
            return None
        result: Value = node.op(*map(self._tamed, node.inputs, operands), **node.params)
        return result

    def _tamed(self, x: Value, whole: Value | None) -> Value:
        """All elements for those that are picked, with 1 for the others."""
        made = self.producers.get(x)
        assert whole is not None
        if made is None or made.op is not ops.compress or not is_inexact(x.dtype):
            return whole
        tamed: Value = ops.select(self.mask, whole, ops.full(value=1.0, shape=self.mask.shape, dtype=x.dtype))
        return tamed

    def _of_one(self, node: Node) -> Value | None:
        """A function of picked elements themselves, and of numbers: of 1 where the mask is false."""
        makers = [self.producers.get(v) for v in node.inputs]
        is_picked = [made is not None and made.op is ops.compress for made in makers]
        if not is_picked[-1 if node.op is ops.div else 0] or node.output.dtype.kind != "f":
            return None
        if any(made is None or made.op not in (ops.compress, ops.full, ops.broadcast) for made in makers):
            return None
        return self._of_operands(node)


def _holds(check: Node, producers: Producers) -> bool:
    """Whether a check says that an integer is itself."""
    made = producers.get(check.inputs[1])
    return made is not None and made.op is ops.eq and made.inputs[0] is made.inputs[1] and made.inputs[0].dtype.kind in "iub"
