"""Traced lists: what is a list that a loop has filled?

A `TracedList`: items from before, the rows of arrays, and items appended later.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np
import optree

from jitml.config import CONFIG
from jitml.errors import Cause
from jitml.ir import ops
from jitml.ir.graph import Value
from jitml.ir.types import F64
from jitml.records import dataclass
from jitml.trace.record.pytree import NAMESPACE, children, flatten
from jitml.trace.record.recording import active_trace, unsupported
from jitml.trace.speculation import paths
from jitml.trace.speculation.modes import Decider, Site
from jitml.trace.symbolic.booleans import as_value
from jitml.trace.symbolic.broadcasting import insist_at_least
from jitml.trace.values.array_writes import assign
from jitml.trace.values.boxing import TracedArray, fresh, is_traced, read
from jitml.trace.values.container_identity import MadeInside
from jitml.trace.values.kinds import Kind, join, kind_of, may_hold, rebuilt
from jitml.trace.values.registry import call
from jitml.trace.values.text import TracedText
from jitml.trace.values.type_unions import (
    DTYPES,
    Doubt,
    doubt,
    doubt_of,
    is_exact,
    is_mixed,
    is_of,
    own_type,
    require_decidable,
    typed_value,
)  # fmt: skip


class TracedList(Sequence[Any]):
    """`isinstance(ys, list)` holds. How many rows there are may be known to the running program alone.

    Numbers in a column may be of other types of Python's than it says: `flags` are the truths of that, a column for each type,
    and `site` is where it was left open.
    """

    # Lists have no attributes but their own.
    __slots__ = ("columns", "flags", "given", "head", "kinds", "listed", "site", "spec", "tail")

    def __init__(
        self, head: Sequence[Any], spec: optree.PyTreeSpec, kinds: Sequence[Kind], columns: Sequence[TracedArray]
    ) -> None:
        self.head = head
        self.spec = spec
        self.kinds = kinds
        self.columns = columns
        self.flags: Sequence[Mapping[type, TracedArray]] = [{} for _ in columns]
        self.site: Site = ()
        self.listed: Decider | None = None  # the loop, where arrays among the rows may be others' in NumPy
        self.tail: list[Any] = []
        self.given: dict[int, Any] = {}  # arrays among the rows that have been read, by number: each is one object

    def part(self, rows: slice) -> TracedList:
        """Some of the rows, with the items before them."""
        columns = [call(operator.getitem, column, rows) for column in self.columns]
        stack = TracedList(self.head, self.spec, self.kinds, columns)
        stack.flags = [{t: call(operator.getitem, flag, rows) for t, flag in flags.items()} for flags in self.flags]
        stack.site, stack.listed = self.site, self.listed
        return stack

    @property  # type: ignore[misc]  # as TracedNumber.__class__
    def __class__(self) -> type:
        return list

    @property
    def is_plain(self) -> bool:
        """Whether all items are rows."""
        return not (self.head or self.tail)

    @property
    def rows(self) -> Any:
        return self.columns[0].shape[0]

    def length(self) -> Any:
        """An int or a TracedNumber."""
        return len(self.head) + self.rows + len(self.tail)

    def __len__(self) -> int:
        return len(self.head) + operator.index(self.rows) + len(self.tail)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [*self._items(range(*index.indices(len(self))))]
        part, place = self._locate(index)
        return self._row(place) if part is None else part[place]

    def _locate(self, index: Any) -> tuple[Sequence[Any] | None, Any]:
        """The items around the rows, or None for these, among which an item is, and where."""
        if self.is_plain:
            return None, index
        place, head, tail = operator.index(index), self.head, self.tail
        if 0 <= place < len(head) or -len(tail) <= place < 0:
            return (tail if place < 0 else head), place
        if place >= 0:
            place -= len(head)
            return (None, place) if not tail or self.rows > place else (tail, place - operator.index(self.rows))
        place += len(tail)
        if not head or self.rows >= -place:
            return None, place
        place += operator.index(self.rows) + len(head)
        if place < 0:
            raise IndexError("list index out of range")
        return head, place

    def change(self, *_: Any, **__: Any) -> NoReturn:
        """More is done with it than to read it and to add to it."""
        unsupported("a list that a loop has filled is changed, copied or compared", "Make an array of it, with np.array.")

    __setitem__ = __delitem__ = pop = insert = remove = clear = reverse = sort = copy = change
    __imul__ = __copy__ = __deepcopy__ = change

    def _beside(self, other: Any) -> Any:
        """What an array does with it, the array says."""
        return NotImplemented if is_traced(other) or isinstance(other, (np.ndarray, np.generic)) else self.change()

    __eq__ = __lt__ = __le__ = __gt__ = __ge__ = __add__ = __radd__ = __mul__ = __rmul__ = _beside
    __hash__ = None  # type: ignore[assignment]  # as of lists

    def numbers(self) -> Any:
        """The items as an array, where they are plain Python numbers or NumPy scalars; None if they are not.

        Python numbers beside NumPy's are of NumPy's type, as in sums of them.
        """
        if not self.spec.is_leaf() or self.kinds[0].form == "array":
            return None
        kind, (column,) = self.kinds[0], self.columns
        if any(other is None or other.form == "array" or join(kind, other) != kind for other in self.all_kinds()):
            return None
        ends = [[fresh(ops.reshape(kind.take(x), shape=(1,))) for x in items] for items in (self.head, self.tail)]
        parts = [*ends[0], column, *ends[1]]
        return call(np.concatenate, parts) if len(parts) > 1 else fresh(read(column))

    def all_kinds(self) -> list[Kind | None]:
        """Those of the rows, then of the items around them."""
        return [*self.kinds, *map(kind_of, (*self.head, *self.tail))]

    def rows_as_array(self) -> Any:
        """The items as an array, None if they are not of one shape."""
        whole = self.whole()
        return None if whole is None else fresh(whole)

    def _row(self, index: Any) -> Any:
        if type(index) is not int or type(self.rows) is not int or not self.spec.is_leaf() or self.kinds[0].form != "array":
            return self._new_row(index)
        place = index + self.rows if index < 0 else index
        if place not in self.given:
            self.given[place] = self._new_row(index)
        return self.given[place]

    def _new_row(self, index: Any) -> Any:
        leaves = []
        for kind, column, flags in zip(self.kinds, self.columns, self.flags):
            is_single = kind.form == "array" and column.ndim == 1  # an array of no dimensions, and no scalar
            row = call(operator.getitem, column, (index, ...) if is_single else index)
            if kind.form == "array":
                column.storage.rows_of = Decider(self.site)
                column.storage.listed = self.listed or column.storage.listed
            leaves.append(row if kind.form == "array" else kind.show(read(row)))
            if flags:
                cases = {which: read(call(operator.getitem, flag, index)) for which, flag in flags.items()}
                doubt(leaves[-1].value, cases, Decider(self.site), exact=cases.keys())
        return rebuilt(self.spec, leaves)

    def __iter__(self) -> Iterator[Any]:
        _require_few(len(self))
        # The list may change meanwhile.
        return (self[n] for n in itertools.takewhile(lambda n: n < len(self), itertools.count()))

    def _items(self, places: range) -> Iterator[Any]:
        _require_few(len(places))
        return (self[n] for n in places)

    def append(self, item: Any) -> None:
        if has_containers(item):
            self.change()
        self.tail.append(item)

    def extend(self, items: Any) -> None:
        for item in list(items):  # which may be these
            self.append(item)

    def owned(self) -> TracedList:
        """The list, noted down as one that the function, and the body that is traced, has made itself."""
        active_trace().outside.own[id(self)] = active_trace().local[MadeInside][id(self)] = self
        return self

    def __iadd__(self, items: Any) -> Any:  # type: ignore[misc]  # `+` never comes back
        if hasattr(type(items), "__radd__") and not isinstance(items, list):  # an array, which Python asks first
            return NotImplemented
        self.extend(items)
        return self

    def whole(self) -> Value | None:
        """All items as one array, where they are values of one shape."""
        if not self.spec.is_leaf() or len(self.columns) != 1:
            return None
        (column,) = self.columns
        if self.flags[0]:
            column = self._of_one_type()
        if self.is_plain:
            if column.dtype != F64 or column.ndim > 1:  # of no items NumPy makes an array of no float64
                insist_at_least(column.sizes[0], 1)
            return read(column)
        kinds = [kind_of(item) for item in (*self.head, *self.tail)]
        if any(kind is None or kind.aval.shape != column.aval.shape[1:] for kind in kinds):
            return None
        ends = [call(np.array, list(items)) if items else None for items in (self.head, self.tail)]
        parts = (ends[0], column, ends[1])
        return read(call(np.concatenate, [part for part in parts if part is not None]))

    def _of_one_type(self) -> TracedArray:
        """The column as NumPy makes an array of it, where that depends on the types of Python's that numbers have."""
        (column,), (flags,) = self.columns, self.flags
        rests = call(np.logical_not, functools.reduce(operator.or_, flags.values()))
        tests = {column.dtype: read(call(np.any, rests)), **{DTYPES[t]: read(call(np.any, flag)) for t, flag in flags.items()}}
        choices = [c for n in range(1, len(tests) + 1) for c in itertools.combinations(tests, n)]
        found = list(tests)
        if len({np.result_type(*choice) for choice in choices}) > 1:
            require_decidable(Doubt({which: tests[DTYPES[which]] for which in flags}, Decider(self.site)))
            found = [dtype for dtype, test in tests.items() if paths.decide(test, self.site)]
        return call(np.ndarray.astype, column, np.result_type(*found)) if found else column


class Stacked:
    """An item of a list of which only `columns` looks at the items, whatever containers are in it."""

    __slots__ = ("item",)

    def __init__(self, item: Any) -> None:
        self.item = item


def has_containers(item: Any) -> bool:
    """Whether there is anything in an item that can be changed, but arrays: lists, dicts, objects."""
    parts, spec = children(item)
    if item is None or spec.is_leaf() or type(item) in (TracedText, Stacked):
        return False
    return not isinstance(item, (tuple, slice)) or any(map(has_containers, parts))


def _require_few(count: int) -> None:
    if count > CONFIG.max_unroll:
        unsupported(
            f"{count} items of a list that a loop has filled are taken one by one",
            "Make an array of it, with np.array, or raise the limit JITML_MAX_UNROLL.",
            Cause.UNROLLED,
        )


def holds(leaf: Any, kind: Kind) -> bool:
    """Whether a place of some kind, with truths of types beside it, has room for all of a number."""
    own = own_type(leaf)
    if not may_hold(leaf, kind) or is_mixed(leaf):
        return False
    return doubt_of(leaf) is not None or own is None or is_exact(leaf, own, kind.aval.dtype)


def put_row(
    columns: Sequence[TracedArray],
    kinds: Sequence[Kind],
    flags: Sequence[Mapping[type, TracedArray]],
    place: Any,
    leaves: Sequence[Any],
) -> None:
    """Write an item, taken apart, with the truths of its types."""
    for column, leaf, kind, known in zip(columns, leaves, kinds, flags):
        value = kind.take(leaf)
        assign(call(operator.getitem, column, (place, ...)), value)
        for which, rows in known.items():
            test = as_value(is_of(leaf, which))
            typed_value(value, which, test, exact=is_exact(leaf, which, value.dtype))  # for its checks
            assign(call(operator.getitem, rows, (place, ...)), test)


def columns(items: Sequence[Any]) -> Any:
    """A list of equal trees, each in a `Stacked`, as a tree of arrays, their leaves stacked."""
    return _columns(items).item


def _columns(items: Sequence[Any]) -> Any:
    if type(items) is TracedList and items.is_plain:
        return rebuilt(items.spec, [fresh(read(column)) for column in items.columns])
    leaves, spec = flatten(items[0])
    rows = [flatten(item)[0] for item in items]
    parts = [[row[n] for row in rows] for n in range(len(leaves))]
    return rebuilt(spec, [call(np.array, part) if any(map(is_traced, part)) else np.array(part) for part in parts])


@dataclass(frozen=True)
class _Shape:
    """What a `TracedList` is besides its items."""

    head: int
    spec: optree.PyTreeSpec
    kinds: tuple[Kind, ...]
    types: tuple[tuple[type, ...], ...]
    site: Site
    listed: Decider | None

    def join(self, parts: Sequence[Any]) -> Any:
        """The list itself once the program has run; while it is traced, a `TracedList`."""
        rest = iter(parts)
        head = list(itertools.islice(rest, self.head))
        columns = list(itertools.islice(rest, len(self.kinds)))
        flags = [{which: next(rest) for which in types} for types in self.types]
        tail = list(rest)
        if any(map(is_traced, columns)):
            stack = TracedList(head, self.spec, self.kinds, columns)
            stack.tail, stack.flags, stack.site, stack.listed = tail, flags, self.site, self.listed
            return stack.owned()
        items = [_in_a_list(column, kind) for kind, column in zip(self.kinds, columns)]
        for n, known in enumerate(flags):
            for which, flag in known.items():
                items[n] = [which(item) if is_it else item for item, is_it in zip(items[n], flag)]
        return [*head, *(optree.tree_unflatten(self.spec, row) for row in zip(*items)), *tail]


def _in_a_list(column: Any, kind: Kind) -> Any:
    if kind.form == "array":
        return [column[n, ...] for n in range(len(column))]
    return column.tolist() if kind.form == "number" else column


def _taken_apart(stack: Any) -> Any:
    flags = [flag for flags in stack.flags for flag in flags.values()]
    shape = _Shape(len(stack.head), stack.spec, tuple(stack.kinds), tuple(map(tuple, stack.flags)), stack.site, stack.listed)
    return (*stack.head, *stack.columns, *flags, *stack.tail), shape


def _joined(shape: Any, parts: Any) -> Any:
    return shape.join(list(parts))


optree.register_pytree_node(TracedList, _taken_apart, _joined, namespace=NAMESPACE)
_register: Any = optree.register_pytree_node  # whose stubs ask for a collection
_register(Stacked, lambda x: ((x.item,), None), lambda _, parts: Stacked(*parts), namespace=NAMESPACE)
