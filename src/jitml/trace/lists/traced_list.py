"""Traced lists: what is a list that a loop has filled?

A `TracedList`: items from before, the rows of arrays, and items appended later.
"""

from __future__ import annotations

import copy
import functools
import itertools
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import optree

from jitml.config import CONFIG
from jitml.errors import Cause
from jitml.ir import ops
from jitml.ir.graph import Value
from jitml.ir.types import BOOL, F64
from jitml.records import dataclass
from jitml.trace.lists.row_aliasing import changeable, mark_row
from jitml.trace.record.pytree import NAMESPACE, flatten
from jitml.trace.record.recording import active_trace, unsupported
from jitml.trace.speculation import paths
from jitml.trace.speculation.modes import Decider, Site
from jitml.trace.symbolic.booleans import as_value
from jitml.trace.symbolic.broadcasting import insist_at_least
from jitml.trace.values.array_writes import assign
from jitml.trace.values.boxing import TracedArray, fresh, fresh_like, is_traced, read
from jitml.trace.values.container_identity import MadeInside
from jitml.trace.values.kinds import Kind, join, kind_of, may_hold, rebuilt, take_apart
from jitml.trace.values.registry import call
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
    types_of,
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

    def __setitem__(self, index: Any, item: Any) -> None:
        part, place = self._locate(index) if not isinstance(index, slice) else ((), 0)
        if part is None and self._set_row(place, item):
            return
        if part is self.tail:
            self.tail[place] = item
            return
        self.change(operator.setitem, index, item)

    def __delitem__(self, index: Any) -> None:
        part: Sequence[Any] | None = None
        place: Any = index
        if not isinstance(index, slice):
            part, place = self._locate(index)
        if part is self.tail:
            del self.tail[place]
        elif part is not None:
            place %= len(part)
            self.head = [*part[:place], *part[place + 1 :]]
        elif not (type(place) is int and self._take_row(place)):
            self.change(operator.delitem, index)

    def _take_row(self, place: int) -> bool:
        """Whether a row could be taken out of the rows; an array that is one of them stays where it is."""
        self._row(place)  # which there has to be
        before, after = self.part(slice(None, place)), self.part(slice(place + 1 or None, None))
        if place in (0, -1):
            self._take_rows(before if place else after)
            return True
        if any(kind.form == "array" for kind in self.kinds):
            return False
        self.given = {}
        self.columns = [call(np.concatenate, both) for both in zip(before.columns, after.columns)]
        self.flags = [{t: call(np.concatenate, [a[t], b[t]]) for t in a} for a, b in zip(before.flags, after.flags)]
        return True

    def change(self, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """What a function that changes its first argument, a list, does to all items, each for itself."""
        items = list(self)  # an array among the rows stays itself, and no copy of it
        result = function(items, *args, **options)
        self.clear()
        self.head = items
        return result

    def _take_rows(self, other: TracedList) -> None:
        self.columns, self.flags, self.given = other.columns, other.flags, {}

    def _set_row(self, place: Any, item: Any) -> bool:
        """Whether an item could be written into the rows."""
        if changeable(item):
            Decider(self.site).refuse("an item of a list that a loop has filled is replaced", "Use an array, and write into it.")
        held = take_apart(item, none_is_leaf=False)
        if held.spec != self.spec or not all(map(_fits, held.leaves, held.kinds, self.kinds)):
            return False
        columns = [fresh_like(read(column), column) for column in self.columns]
        flags = [{which: fresh(read(flag)) for which, flag in known.items()} for known in self.flags]
        for leaf, kind, known in zip(held.leaves, self.kinds, flags):
            for which in types_of(leaf) - {kind.which, *known}:
                known[which] = fresh(ops.full(value=False, shape=columns[0].sizes[:1], dtype=BOOL))
        put_row(columns, self.kinds, flags, place, held.leaves)
        self.columns, self.flags, self.given = columns, flags, {}
        return True

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
        item = rebuilt(self.spec, leaves)
        mark_row(item, Decider(self.site), (self, index))
        return item

    def __iter__(self) -> Iterator[Any]:
        _require_few(len(self))
        # The list may change meanwhile.
        return (self[n] for n in itertools.takewhile(lambda n: n < len(self), itertools.count()))

    def _items(self, places: range) -> Iterator[Any]:
        _require_few(len(places))
        return (self[n] for n in places)

    def append(self, item: Any) -> None:
        self.tail.append(item)

    def extend(self, items: Any) -> None:
        self.tail.extend(list(items))  # which may be these

    def pop(self, place: Any = -1, /) -> Any:
        item = self[place]
        del self[place]
        return item

    def insert(self, place: Any, item: Any, /) -> None:
        if type(place) is int and place == 0:
            self.head = [item, *self.head]
        else:
            self.change(list.insert, place, item)

    def remove(self, item: Any, /) -> None:
        self.change(list.remove, item)

    def clear(self) -> None:
        self.head, self.tail = [], []
        self._take_rows(self.part(slice(0, 0)))

    def reverse(self) -> None:
        self.change(list.reverse)

    def sort(self, **options: Any) -> None:
        self.change(list.sort, **options)

    def index(self, *args: Any) -> Any:
        return [*self].index(*args)

    def copy(self) -> TracedList:
        other = TracedList(self.head, self.spec, self.kinds, self.columns)
        other.given = self.given  # until one of them gets other rows
        other.flags, other.site, other.listed, other.tail = self.flags, self.site, self.listed, [*self.tail]
        return other.owned()

    __copy__ = copy

    def owned(self) -> TracedList:
        """The list, noted down as one that the function, and the body that is traced, has made itself."""
        active_trace().outside.own[id(self)] = active_trace().local[MadeInside][id(self)] = self
        return self

    def _compared(self, compare: Callable[[Any, Any], Any], other: Any) -> Any:
        mine = [*self]
        if other is self:  # of which each item is itself
            return compare(mine, mine)
        return compare(mine, [*other]) if isinstance(other, list) else NotImplemented

    __eq__ = functools.partialmethod(_compared, operator.eq)
    __lt__ = functools.partialmethod(_compared, operator.lt)
    __le__ = functools.partialmethod(_compared, operator.le)
    __gt__ = functools.partialmethod(_compared, operator.gt)
    __ge__ = functools.partialmethod(_compared, operator.ge)

    __hash__ = None  # type: ignore[assignment]  # as of lists

    def __add__(self, other: Any) -> Any:
        return [*self, *other] if isinstance(other, list) else NotImplemented

    def __radd__(self, other: Any) -> Any:
        return [*other, *self] if isinstance(other, list) else NotImplemented

    def __iadd__(self, items: Any) -> Any:
        if hasattr(type(items), "__radd__") and not isinstance(items, list):  # an array, which Python asks first
            return NotImplemented
        self.extend(items)
        return self

    def __mul__(self, times: Any) -> Any:
        return [*self] * times

    __rmul__ = __mul__

    def __imul__(self, times: Any) -> Any:
        self.change(operator.imul, times)
        return self

    def __deepcopy__(self, known: dict[int, Any]) -> Any:
        return copy.deepcopy([*self], known)

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


def _fits(leaf: Any, kind: Kind | None, wanted: Kind) -> bool:
    """Whether a number may stand in a place of some kind; an array is itself the item, and no copy of it."""
    if kind is None or "array" in (kind.form, wanted.form):
        return False
    return join(kind, wanted) == wanted and holds(leaf, wanted)


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
    """A list of equal trees as a tree of arrays, their leaves stacked."""
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
