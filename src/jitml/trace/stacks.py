"""What does `ys.append(y)` do in a loop that is one node?  It writes row i of an array; a `Stack` is the list after the loop.

The conversion writes `ys.append(y)` as `ys = __jm.push(ys, y)`. In a captured loop the name then holds a `Growing`, an object
that nothing but the next `push` accepts, so that whoever looks into the list has the loop unrolled. That nothing else holds the
list is known from the function's text (`rewrite.only_named`).
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import optree

from jitml.ir import ops
from jitml.ir.graph import Value
from jitml.trace.context import active_trace, unsupported
from jitml.trace.names import Held, Kind, kind_of
from jitml.trace.registry import call
from jitml.trace.tracers import TracedArray, fresh, is_traced, read
from jitml.trace.tree import NAMESPACE, flatten, unflatten


@dataclass(eq=False)
class Growing:
    """A list in the body of a captured loop, with what this iteration has appended."""

    before: Any  # the list as the loop begins
    item: Any = None
    pushed: bool = False

    def push(self, item: Any) -> Growing:
        if self.pushed:
            unsupported("two items are appended to a list in one iteration", "Append a tuple, or write into an array.")
        return Growing(self.before, item, True)

    def __getattr__(self, name: str) -> Any:
        unsupported(f"a list that a loop appends to is used in it (.{name})", "Write into an array instead.")

    def __len__(self) -> NoReturn:  # noqa: PLE0303  # never returns; `bool` asks for it, too
        unsupported("a list that a loop appends to is used in it", "Write into an array instead.")

    def __iter__(self) -> NoReturn:
        unsupported("a list that a loop appends to is used in it", "Write into an array instead.")


class Stack(Sequence[Any]):
    """Items that were there before, the rows of arrays, and items appended later. `isinstance(ys, list)` holds."""

    def __init__(
        self, head: Sequence[Any], spec: optree.PyTreeSpec, kinds: Sequence[Kind], columns: Sequence[TracedArray]
    ) -> None:
        self.head = head
        self.spec = spec
        self.kinds = kinds
        self.columns = columns
        self.tail: list[Any] = []

    @property  # type: ignore[misc]  # as TracedNumber.__class__
    def __class__(self) -> type:
        return list

    @property
    def rows(self) -> int:
        return int(self.columns[0].shape[0])

    def __len__(self) -> int:
        return len(self.head) + self.rows + len(self.tail)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[n] for n in range(*index.indices(len(self)))]
        if not (self.head or self.tail):
            return self._row(index)
        place = range(len(self))[operator.index(index)]
        if place < len(self.head):
            return self.head[place]
        place -= len(self.head)
        return self._row(place) if place < self.rows else self.tail[place - self.rows]

    def _row(self, index: Any) -> Any:
        leaves = []
        for kind, column in zip(self.kinds, self.columns):
            row = call(operator.getitem, column, index)
            leaves.append(row if kind.form == "array" else kind.show(read(row)))
        return optree.tree_unflatten(self.spec, leaves)

    def __iter__(self) -> Iterator[Any]:
        return (self[n] for n in range(len(self)))

    def append(self, item: Any) -> None:
        self.tail.append(item)

    def extend(self, items: Any) -> None:
        self.tail.extend(items)

    def copy(self) -> list[Any]:
        return list(self)

    def __add__(self, other: Any) -> list[Any]:
        return [*self, *other]

    def __radd__(self, other: Any) -> list[Any]:
        return [*other, *self]

    def __getattr__(self, name: str) -> Any:
        if hasattr(list, name):
            unsupported(f"list.{name} of a list that a loop has filled is not compiled", "Make it an array, with np.array.")
        raise AttributeError(f"'list' object has no attribute {name!r}")

    def whole(self) -> Value | None:
        """All items as one array, where they are values of one shape."""
        if not self.spec.is_leaf() or len(self.columns) != 1:
            return None
        (column,) = self.columns
        if not (self.head or self.tail):
            return read(column)
        kinds = [kind_of(item) for item in (*self.head, *self.tail)]
        if any(kind is None or kind.aval.shape != column.aval.shape[1:] for kind in kinds):
            return None
        ends = [call(np.array, list(items)) if items else None for items in (self.head, self.tail)]
        parts = (ends[0], column, ends[1])
        return read(call(np.concatenate, [part for part in parts if part is not None]))


def columns(items: Sequence[Any]) -> Any:
    """A list of equal trees as a tree of arrays, their leaves stacked."""
    if type(items) is Stack and not (items.head or items.tail):
        return optree.tree_unflatten(items.spec, [fresh(read(column)) for column in items.columns])
    leaves, spec = flatten(items[0])
    rows = [flatten(item)[0] for item in items]
    parts = [[row[n] for row in rows] for n in range(len(leaves))]
    return unflatten(spec, [call(np.array, part) if any(map(is_traced, part)) else np.array(part) for part in parts])


def row_of(value: Value, like: Value, index: Value) -> Value:
    """`like`, with row `index` replaced by `value`."""
    row = ops.reshape(value, shape=(1, *value.shape))
    zero = ops.full(value=0, shape=(), dtype=index.dtype)
    return ops.dynamic_update_slice(like, row, index, *(zero for _ in value.shape), step=(1,) * row.ndim)


def stacked(growing: Growing, held: Held, results: Sequence[Value]) -> Stack:
    """The list after the loop."""
    kinds = [kind for kind in held.kinds if kind is not None]
    stack = Stack(list(growing.before), held.spec, kinds, [fresh(value) for value in results])
    active_trace().root.own[id(stack)] = stack
    return stack


optree.register_pytree_node(Stack, lambda stack: (list(stack), None), lambda _, items: list(items), namespace=NAMESPACE)
