"""List buffers: what does `ys.append(y)` do in a loop that is a region?  It writes a row of memory, and counts.

The memory is set aside before the loop.

The conversion writes `ys.append(y)` as `ys = __jm.push(ys, y)`, for lists that nothing but the name holds (`list_ops.py`). In the
first pass over a body such a name is a `Probe`, which sees what is appended; then memory is made for it, and the name is a
`Growing`: a number, the count, that branches and loops carry as they carry others. After the loop the list is a `TracedList`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import prod
from typing import Any, NoReturn

import optree

from jitml.errors import UnsupportedError
from jitml.ir import ops
from jitml.ir.dims import Size, bound
from jitml.ir.graph import Value
from jitml.ir.types import BOOL
from jitml.records import dataclass, field
from jitml.trace.carried.memory import Demotable
from jitml.trace.lists.traced_list import TracedList, has_containers, holds, put_row
from jitml.trace.record.pytree import NAMESPACE
from jitml.trace.record.recording import Trace, active_trace, unsupported, user_source
from jitml.trace.speculation.modes import Decider, Site
from jitml.trace.speculation.paths import Limit, limit
from jitml.trace.storage.storage import CHANGED_ITEM, Storage
from jitml.trace.storage.strides import kept_strides
from jitml.trace.symbolic.sizes import named, number, value_of_size
from jitml.trace.values.boxing import TracedArray, fresh, read
from jitml.trace.values.kinds import HeldValue, Kind, join, take_apart
from jitml.trace.values.numbers import TracedNumber, of_size, size_of
from jitml.trace.values.ragged import MOST_ELEMENTS
from jitml.trace.values.type_unions import types_of

_FIRST_ROWS = 1 << 16  # of a list of which nobody knows how long it gets
_FIRST_ELEMENTS = 1 << 20
_MOST_ELEMENTS = 1 << 27  # that are set aside where no more than these are needed
_INSTEAD = "Write into an array instead."


class Probe:
    """A list in the first pass over a body: it only sees what is appended. `count` stands for its length."""

    def __init__(self, before: Sequence[Any], loop: Demotable, count: TracedNumber) -> None:
        self.before = before
        self.loop = loop
        self.trace = loop.body.trace
        self.count = count
        self.items: list[Any] = []
        self.is_read = False
        self.is_direct = True  # each iteration appends the same number of items
        self.is_inner = False  # a loop inside the body appends
        self.is_guessed = False  # an item has been read of which only the kind was known

    def push(self, item: Any, loops: int) -> Probe:
        """`loops`: how many are recorded inside the one whose body this is of."""
        self.items.append(item)
        self.is_direct = self.is_direct and active_trace() is self.trace
        self.is_inner = self.is_inner or loops > 0
        return self

    def __getitem__(self, index: Any) -> Any:
        self.is_read = True
        known = [*self.before, *self.items]
        if isinstance(index, slice):
            _refuse_use()
        if not known:  # what its items are, the first iteration tells
            self.loop.demote(UnsupportedError("an item is read of a list that is empty before the loop", source=user_source()))
        if type(index) is int and -len(self.before) <= index < len(self.before) and not self.items:
            return self.before[index]
        self.is_guessed = True
        return known[-1]

    def __iter__(self) -> NoReturn:
        _refuse_use()

    def length(self) -> Any:
        return self.count

    def __bool__(self) -> bool:
        return bool(self.length() > 0)


@dataclass(eq=False)
class Columns:
    """Memory for the items of a list, an array for each of their leaves."""

    head: Sequence[Any]  # items from before that are of another kind
    spec: optree.PyTreeSpec
    kinds: Sequence[Kind]
    arrays: Sequence[TracedArray]
    rows: Size
    limit: Limit | None  # what the program claims about the number of items, if nothing proves it
    firsts: Sequence[Any] = ()  # items from before that are rows too, although their own type is another: `[0]`, then floats
    flags: Sequence[Mapping[type, TracedArray]] = ()  # for each leaf, of which of Python's types it may be, and in which rows
    site: Site = ()
    misfits: bool = False  # whether an item is of another kind, and this pass in vain
    pushed: dict[Storage, int] = field(default_factory=dict)  # how often arrays had been written when they were appended
    is_shared: bool = False  # whether NumPy's items may be arrays that others show, too
    is_written: bool = False  # whether the body writes into rows

    def put(self, place: Any, leaves: Sequence[Any]) -> None:
        """Write a row."""
        self.close()
        put_row(self.arrays, self.kinds, self.flags, place, leaves)
        for column in self.arrays:
            column.storage.rewritten = self._rewrite

    def close(self) -> None:
        """From now on rows are arrays like others."""
        for column in self.arrays:
            column.storage.rewritten = None

    def _rewrite(self) -> None:
        """The body writes into a row: those who show the array that it is a copy of do not see that."""
        self.is_written = True
        if any(storage.appended > 1 or storage.others for storage in self.pushed):
            Decider(self.site).refuse(CHANGED_ITEM, "Append a copy.")
        for storage in self.pushed:
            storage.outdated = Decider(self.site)


@dataclass(frozen=True, eq=False)
class Growing:
    """A list in the body of a captured loop. `count` items are in its columns."""

    columns: Columns
    count: Any

    def push(self, item: Any) -> Growing:
        columns = self.columns
        held = take_apart(item, none_is_leaf=False)
        are_alike = held.spec == columns.spec and all(_fits(a, b) for a, b in zip(held.kinds, columns.kinds))
        if not are_alike or not all(map(_keeps, held.leaves, columns.kinds, columns.flags)):
            columns.misfits = True
            return self
        for leaf in held.leaves:
            if type(leaf) is TracedArray:
                self._remember(leaf)
        columns.put(of_size(self._place()), held.leaves)
        return Growing(columns, _sum(self.count, 1))

    def _remember(self, array: TracedArray) -> None:
        for storage in (array.storage, *array.storage.others):
            storage.appended += 1
        if not array.storage.trace.is_body:
            unsupported("an array that is there before the loop is appended to a list", "Append a copy.")
        if array.storage.trace is not _body():
            array.storage.listed = Decider(self.columns.site)  # other iterations of the innermost loop append it, too
        if self.columns.pushed.setdefault(array.storage, array.storage.writes) != array.storage.writes:
            unsupported("an array is changed after it has been appended to a list", "Append a copy.")

    def _place(self) -> Size:
        columns = self.columns
        size = size_of(self.count)
        if size is not None and columns.limit is None:
            return size
        count = read(self.count)
        if columns.limit is not None:
            count = columns.limit.check(count)
        return _between(count, columns.rows - 1)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice) or self.columns.head:
            _refuse_use()
        return self._stack()[index]

    def __bool__(self) -> bool:
        return bool(self.length() > 0)

    def length(self) -> Any:
        return _sum(self.count, len(self.columns.head))

    def _stack(self) -> TracedList:
        count = self.count
        if type(count) is TracedNumber and count.size is None:
            count = of_size(_between(read(count), self.columns.rows))
        stack = TracedList(self.columns.head, self.columns.spec, self.columns.kinds, self.columns.arrays)
        stack.flags, stack.site = self.columns.flags, self.columns.site
        return stack.part(slice(0, count))

    def finished(self) -> TracedList:
        """The list after the loop."""
        self.columns.close()
        stack = self._stack()
        if self.columns.is_shared:
            stack.listed = Decider(self.columns.site)
        if firsts := self.columns.firsts:
            stack = stack.part(slice(len(firsts), None))
            stack.head = firsts
        return stack.owned()

    def __iter__(self) -> NoReturn:  # without this, Python asks for items until there are none
        _refuse_use()

    def __getattr__(self, name: str) -> Any:
        _refuse_use(f" (.{name})")


def _refuse_use(how: str = "") -> NoReturn:
    unsupported(f"a list that a loop appends to is used in it{how}", _INSTEAD)


def _sum(count: Any, more: int) -> Any:
    """A number of items and some more, which is no number that gets too large."""
    if type(count) is TracedNumber and count.size is None and more:
        return TracedNumber.of_value(active_trace(), ops.add(read(count), number(more)))
    return count + more if more else count


def _body() -> Trace:
    """Of the innermost loop."""
    trace = active_trace()
    return next((around for around in trace.around() if around.is_body), trace.root)


def _between(count: Value, last: Size) -> Size:
    """A number of items as a size, in bounds whatever the program does until a check has told."""
    return named(ops.minimum(ops.maximum(count, number(0)), value_of_size(last)), 0, bound(last))


def _fits(kind: Kind | None, wanted: Kind) -> bool:
    return kind is not None and (kind == wanted or _joined(kind, wanted) == wanted)


def _is_alike(a: Kind | None, b: Kind) -> bool:
    return a is not None and (a.form, a.aval) == (b.form, b.aval)


def _joined(a: Kind, b: Kind) -> Kind | None:
    if a.form == b.form == "array":
        return a if a.aval == b.aval else None
    return join(a, b)


def _strides(kind: Kind) -> tuple[int, ...]:
    """Of rows that lie in memory as the items do."""
    shape = kind.aval.shape
    return (prod(shape), *(kept_strides([(shape, kind.layout)], shape) if kind.form == "array" else ()))


def columns_for(probe: Probe, site: Site, trip: Size | None, *, is_whole: bool) -> tuple[Columns, Size, int] | None:
    """Memory for what a probe has seen, how many items are in it, and how many each iteration adds (0: that is not known).

    Args:
        trip: how often the loop runs at most; None if that is not known.
        is_whole: whether it runs so often.

    Returns:
        None if the items are no values of one type, or hold lists, dicts or objects: rows would be others.
    """
    items = [take_apart(item, none_is_leaf=False) for item in probe.items]
    before = [take_apart(item, none_is_leaf=False) for item in probe.before]
    kinds = _common([*items, *before])
    head: Sequence[Any] = ()
    are_alike = kinds is not None and all(_is_alike(a, b) for held in before for a, b in zip(held.kinds, kinds))
    if kinds is None or not (are_alike or probe.is_read):
        head, before, kinds = probe.before, [], _common(items)
    trace = active_trace()
    sizes = {sym for kind in kinds or () for sym in kind.aval.syms}
    if any(map(has_containers, (*probe.items, *probe.before))) or any(_shares_memory(held.leaves) for held in items):
        return None
    if kinds is None or (head and probe.is_read) or not all(trace.sees(trace.sizes.values[sym]) for sym in sizes):
        return None
    rows_of = [held.leaves for held in (*items, *before)]
    types = [_python_types(leaves, kind) for leaves, kind in zip(zip(*rows_of), kinds)]
    if not all(_keeps(leaf, kind, known) for leaves in rows_of for leaf, kind, known in zip(leaves, kinds, types)):
        return None
    rate = len(items) if probe.is_direct and is_whole else 0
    claim = None
    widest = max(prod(map(bound, kind.aval.shape)) for kind in kinds)
    most = MOST_ELEMENTS if sizes else _MOST_ELEMENTS
    is_bounded = trip is not None and not probe.is_inner and bound(trip) * len(items) * widest <= most
    if sizes and not is_bounded:
        return None  # the memory of items that are perhaps all small
    if trip is not None and is_bounded:
        rows = len(before) + len(items) * (trip if rate else bound(trip))
    else:
        rate = 0
        claim = limit(site, min(_FIRST_ROWS, max(16, _FIRST_ELEMENTS // max(widest, 1))))
        if claim is None:
            return None
        rows = claim.most
    # What lies behind the last item nobody reads.
    arrays = [fresh(ops.empty(shape=(rows, *kind.aval.shape), dtype=kind.aval.dtype), _strides(kind)) for kind in kinds]
    flags = [{which: fresh(ops.empty(shape=(rows,), dtype=BOOL)) for which in known} for known in types]
    firsts = () if head or are_alike else probe.before
    spec = (*items, *before)[0].spec
    columns = Columns(head, spec, kinds, arrays, rows, claim, firsts, flags, site)
    for n, held in enumerate(before):
        columns.put(n, held.leaves)
    return columns, len(before), rate


def _shares_memory(leaves: Sequence[Any]) -> bool:
    """Whether one array, or parts of it, are in several places of an item: in rows they would be apart."""
    storages = [leaf.storage for leaf in leaves if type(leaf) is TracedArray]
    return len(storages) > len(set(storages))


def _python_types(leaves: Sequence[Any], kind: Kind) -> list[type]:
    """Of which types of Python's, besides the kind's own, some leaf may be."""
    if kind.form == "array":
        return []
    found = {which for leaf in leaves for which in types_of(leaf)} - {kind.which}
    return sorted(found, key=lambda which: which.__name__)


def _keeps(leaf: Any, kind: Kind, known: Collection[type]) -> bool:
    """Whether a place of some kind, with truths for these types beside it, keeps all of a number."""
    if kind.form == "array":
        return True
    return holds(leaf, kind) and types_of(leaf) - {kind.which} <= set(known)


def _common(items: Sequence[HeldValue]) -> list[Kind] | None:
    if not items or any(held.spec != items[0].spec for held in items):
        return None
    kinds: list[Kind] = []
    for column in zip(*(held.kinds for held in items)):
        kind = column[0]
        for other in column[1:]:
            kind = _joined(kind, other) if kind is not None and other is not None else None
        if kind is None:
            return None
        kinds.append(kind)
    return kinds or None


def _taken_apart(growing: Any) -> Any:
    return (growing.count,), growing.columns


def _made(columns: Any, count: Any) -> Any:
    return Growing(columns, *count)


optree.register_pytree_node(Growing, _taken_apart, _made, namespace=NAMESPACE)

__all__ = ["Columns", "Growing", "Probe", "columns_for"]
