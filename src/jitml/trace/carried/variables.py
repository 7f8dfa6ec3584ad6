"""Loop-carried variables: a name in a loop stays what it is, is carried to the next iteration, or the body makes it.

`Name` holds this for one name and one pass. A carried array gets new memory in each pass (`memory.py`); names that share memory
go on sharing it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from jitml.errors import JitmlError, UnsupportedError
from jitml.imports.late import late
from jitml.ir.dims import Sym
from jitml.ir.graph import Value
from jitml.records import dataclass
from jitml.trace.carried.body import RegionBody
from jitml.trace.carried.leaves import CarriedLeaf, settles
from jitml.trace.carried.memory import Carried, CarriedMemory, Demotable
from jitml.trace.carried.sizes import Varying
from jitml.trace.record.recording import user_source
from jitml.trace.rewrite.driver_protocol import OURS, UNDEF
from jitml.trace.speculation.modes import Mode, Site, decisions
from jitml.trace.symbolic.booleans import Truth, as_value
from jitml.trace.values.boxing import TracedArray
from jitml.trace.values.kinds import (
    FLAG,
    HeldValue,
    Kind,
    by_leaves,
    is_filled,
    kind_of,
    same,
    take_all_apart,
    take_apart,
    told,
)
from jitml.trace.values.open_names import OpenName, bound, may_be_unbound, open_name, parts, payload, placeholder
from jitml.trace.values.ragged import SIZE, ragged
from jitml.trace.values.type_unions import types_of

if TYPE_CHECKING:
    from jitml.trace.carried import induction_limits
else:
    induction_limits = late("jitml.trace.carried.induction_limits")


class Name:
    """A name that the body may bind."""

    def __init__(self, name: str, entry: Any, direction: int = 0) -> None:
        self.name = name
        self.direction = direction  # of an int that the loop counts with
        self.furthest: int | None = None  # where iterations leave it at most, if an array is as long
        self.first: HeldValue | None = None  # as the body has bound it, before it was known that it does
        self.chance: Truth = True  # and the truth of that it has
        self.unseen: set[Sym] = set()  # sizes of that which the body alone knows
        self._take_entry(entry)

    def _take_entry(self, entry: Any) -> None:
        self.given = entry  # as the frame has it
        self.entry, *self.truths = parts(entry)  # what it holds, whether it is bound, and whether it is not None
        # Of both, whether an iteration may begin with either: then the truth of it is carried, too.
        self.is_open = [t is not True for t in (entry.bound, entry.there)] if type(entry) is OpenName else [False, False]
        self.held: HeldValue | None = None if self.entry is UNDEF else take_apart(self.entry)
        self.leaves = [CarriedLeaf.of(leaf) for leaf in self.held.leaves] if self.held else []
        # Numbers and scalars are carried from the first pass on; whether the name keeps an array the end of the body shows.
        first = self.leaves[0].kind if self.held is not None and self.held.spec.is_leaf() else None
        self.is_carried = first is not None and first.form != "array"
        # A flag says that the loop has ended, so that no body begins with it set; nor with the value that is returned.
        self.is_flag = self.name.startswith(OURS)
        if self.is_flag:
            self.is_carried = False
        self.is_assumed = False  # to be carried: this pass shows whether it is
        self.start: Any = entry
        self.flags: list[Truth] = []

    def assume_carried(self) -> None:
        """An earlier recording of the loop carried it: so does the first pass of this one, which shows whether that is needed."""
        if self.held is not None and not self._is_made and not self.is_carried:
            self.is_carried = self.is_assumed = True

    def prepare(self, loop: Demotable, *, is_whole: bool) -> None:
        """What the next pass needs outside the body. `is_whole`: the loop runs as often as it can."""
        if self.first is not None:
            leaves = [self._placeholder(leaf, kind, loop.missing) for leaf, kind in zip(self.first.leaves, self.first.kinds)]
            bound, there = (t if t is True else as_value(t) for t in (self.truths[0], not self.is_open[1]))
            entry = self.first.rebuild(leaves)
            self._take_entry(entry if bound is there is True else OpenName(self.name, entry, bound, there, loop.decider))
            self.is_carried, self.first = True, None

    def _placeholder(self, leaf: Any, kind: Kind | None, missing: dict[tuple[int, Truth], Any]) -> Any:
        """What the name holds before it is bound; one object for names that are bound to one, and always together."""
        key = id(leaf), self.chance
        if key not in missing:
            missing[key] = placeholder(leaf, kind, self.unseen)
        return missing[key]

    def begin(self, body: RegionBody, memory: CarriedMemory) -> None:
        """What the name holds as a pass begins."""
        if not self.is_carried or self.held is None:
            self.start = False if self.is_flag and [leaf.kind for leaf in self.leaves] == [FLAG] else self.given
            return
        leaves = [leaf.begin(self.name, memory) for leaf in self.leaves]
        if self.direction and [leaf.kind for leaf in self.leaves] == [SIZE]:
            (only,) = self.leaves
            assert only.start is not None
            count = induction_limits.counted(only.start, only.entry, self.direction, self.furthest)
            leaves = leaves if count is None else [count]
        self.start = self.held.rebuild(leaves)
        self.flags = [body.truth() if is_open else True for is_open in self.is_open]
        if any(self.is_open):
            self.start = OpenName(self.name, self.start, self.flags[0], self.flags[1], memory.loop.decider)

    def moves(self, end: Any, loop: Demotable) -> bool:
        """Whether the end of a pass shows that more is carried, or in another type, than it took for granted."""
        if self._is_made:
            return self._is_first_seen(end, loop.body)
        assumed, self.is_assumed = self.is_assumed, False
        if same(self.start, end) and not self._varies:
            self.is_carried = self.is_carried and not assumed
            return assumed
        end, *truths = self._parts(end)
        if end is UNDEF:
            loop.demote(self._error("is deleted in the loop"), Mode.PLAIN)
        assert self.held is not None
        opened = [is_open or truth is not True for is_open, truth in zip(self.is_open, truths)]
        if self.entry is None and truths[1] is not True:
            self._see_first(end, truths[1], loop.body)
            self.is_open[1] = True
            return True
        held = take_apart(end)
        if held.spec != self.held.spec:
            loop.demote(self._error("becomes something else in the loop"))
        moved = not self.is_carried or opened != self.is_open or self._finds_limit(end, loop.body)
        self.is_open = opened
        leaves = [self._leaf_moves(leaf, after, loop) for leaf, after in zip(self.leaves, held.leaves)]
        self.is_carried = True
        return moved or any(leaves)

    def _leaf_moves(self, leaf: CarriedLeaf, end: Any, loop: Demotable) -> bool:
        """The same of one leaf."""
        before, after = leaf.kind, kind_of(end)
        if loop.extents.see(self.name, leaf, after):
            return False
        # What is not carried yet stays what it is: the next pass shows how the first iteration uses it.
        if before != after or (before is None and not same(leaf.entry, end)):
            joined = leaf.joined(end)
            is_strict = joined is not None and self.is_carried and not leaf.may_join(joined, loop.body)
            if is_strict and not (settles(end, types_of(leaf.entry)) and loop.decider.mode is Mode.PEELED):
                leaf.is_strict, is_strict = True, False
            if joined is None or is_strict:
                reason = f"is {told(leaf.entry)} first and {told(end)} later"
                loop.demote(self._error(reason, self._as(leaf.entry, end)))
            if self.is_carried or before is None:
                leaf.kind = joined
        return (leaf.see(end) and self.is_carried) or leaf.kind != before

    def _finds_limit(self, end: Any, body: RegionBody) -> bool:
        """Whether the pass has made an array that is as long as what the loop counts with, and shows how far it counts."""
        if self.direction and self.furthest is None and induction_limits.ask_for_limits(body.trace.builder.nodes):
            self.furthest = induction_limits.furthest(end, self.direction)
            return self.furthest is not None
        return False

    def is_missing_in(self, error: NameError) -> bool:
        """Whether the error says that the name is not bound, which it is not before the first iteration."""
        return self.entry is UNDEF and not self.is_flag and f"'{self.name}'" in str(error)

    def _is_first_seen(self, end: Any, body: RegionBody) -> bool:
        """Whether the body may bind the name: then the next pass carries it, and whether it is there."""
        if not may_be_unbound(end):
            return False
        self.is_open[1] = end.there is not True
        self._see_first(end.value, end.bound, body)
        return True

    def _see_first(self, end: Any, chance: Truth, body: RegionBody) -> None:
        self.first = take_all_apart(end)
        self.chance = chance
        self.unseen = _inner_syms(self.first.kinds, body)

    def _parts(self, end: Any) -> tuple[Any, Truth, Truth]:
        """What the name holds as the body ends if it is not None, with the truths of that; where it is, no matter what."""
        end, bound, there = parts(end)
        return (payload(self.start), bound, False) if end is None and self.is_open[1] else (end, bound, there)

    @property
    def _varies(self) -> bool:
        return any(type(leaf.kind) is Varying for leaf in self.leaves)

    @property
    def _is_made(self) -> bool:
        return self.entry is UNDEF or self.is_flag

    def _error(self, what: str, remedy: str = "") -> JitmlError:
        return UnsupportedError(f"{self.name} {what}", source=user_source(), remedy=remedy)

    def _as(self, before: Any, after: Any) -> str:
        """How to begin with a number of the type that iterations end with."""
        kind = kind_of(after)
        if kind is None or kind.form == "array" or kind_of(before) is None or not self.name.isidentifier():
            return ""
        number = repr(before) if type(before) in (int, float, bool) else "..."
        which = f"np.{kind.aval.dtype}" if kind.python is None else kind.python.__name__
        return f"Give it one type: write `{self.name} = {which}({number})` before the loop."

    @property
    def kept(self) -> Any:
        """What the name has held since before the loop, if it holds that in each iteration."""
        return UNDEF if self.is_carried else self.given

    def arrays(self, x: Any) -> list[TracedArray]:
        """The arrays among the leaves of what the name holds, where the loop hands it on."""
        x, bound, _ = self._parts(x)
        if bound is False or (not self.is_carried and not self._is_made):
            return []
        apart = take_all_apart if self._is_made else take_apart
        return [leaf for leaf in apart(x).leaves if type(leaf) is TracedArray]

    def outcome(self, end: Any, body: RegionBody, site: Site, least: int, memory: CarriedMemory) -> CarriedOutcome:
        """What the loop carries for this name, and what the name holds after it; `least` is how often the body runs at least."""
        if self._is_made:
            return self._made(end, body, site, least, memory)
        if not self.is_carried:
            kept = by_leaves(self.given, end, partial(memory.kept, least))
            return CarriedOutcome([], lambda _: kept)
        assert self.held is not None
        end, *truths = self._parts(end)
        return self._outcome(self.leaves, take_apart(end), [*zip(self.truths, self.flags, truths)], memory, least)

    def _outcome(
        self,
        leaves: Sequence[CarriedLeaf],
        ends: HeldValue,
        truths: Sequence[tuple[Truth, Truth, Truth]],
        memory: CarriedMemory,
        least: int,
    ) -> CarriedOutcome:
        """What the loop carries for leaves, and for the truths that the name is bound, and is not None.

        truths: as the loop begins, as its body begins, a constant if it is not carried, and as the body ends.
        """
        outcomes = [leaf.outcome(end, memory, least) for leaf, end in zip(leaves, ends.leaves)]
        carried = [one for some, _ in outcomes for one in some]
        open_truths = [(before, start, end) for before, start, end in truths if not isinstance(start, bool)]
        carried += [Carried.of_truth(partial(as_value, before), start, end) for before, start, end in open_truths]

        def show(results: list[Value]) -> Any:
            following = iter(results)
            value = ends.rebuild([shown([next(following) for _ in some]) for some, shown in outcomes])
            bound, there = (start if isinstance(start, bool) else next(following) for _, start, _ in truths)
            return open_name(self.name, value, bound, there, memory.loop.decider)

        return CarriedOutcome(carried, show)

    def _made(self, end: Any, body: RegionBody, site: Site, least: int, memory: CarriedMemory) -> CarriedOutcome:
        if end is UNDEF or same(self.start, end):
            return CarriedOutcome([], lambda _: self.entry)
        is_unsure = may_be_unbound(end)
        end, _, there = self._parts(bound(end))
        ends = take_all_apart(end)
        if is_filled(end):
            if id(end) in memory.lists:
                memory.loop.demote(self._error("is a list that has another name, too"), Mode.PLAIN)
            memory.lists.add(id(end))
        is_ragged, holds_made = bool(_inner_syms(ends.kinds, body)), body.has_made(ends.others)
        may_be_lost = not self.is_flag and not is_unsure and (least == 0 or is_ragged or holds_made)
        if may_be_lost and not decisions().wants(self.name, site):
            return CarriedOutcome([], lambda _: UNDEF)
        if holds_made:
            memory.loop.demote(self._error("is an object that each iteration makes anew"), Mode.PLAIN)
        for leaf in ends.leaves:
            if type(leaf) is TracedArray and not same(memory.made.setdefault(leaf.storage, leaf), leaf):
                memory.loop.demote(self._error("is a view of an array that has another name, too"), Mode.PLAIN)
        kinds = [kind and (ragged([kind], body.parent, is_complete=False) or kind) for kind in ends.kinds]
        arrays = {leaf.storage for leaf in ends.leaves if type(leaf) is TracedArray}
        is_shared = any(s in memory.shared or s.trace is not body.trace for s in arrays)
        if is_ragged and (_inner_syms(kinds, body) or self.held is not None or is_shared):
            memory.loop.demote(self._error("has a size that differs from iteration to iteration"), Mode.PLAIN)
        # A flag or a value to return may be there from an iteration before.
        leaves = self.leaves if self.held is not None else [CarriedLeaf.of(UNDEF) for _ in ends.leaves]
        if (self.held is not None and self.held.spec != ends.spec) or not all(
            leaf.make(end, kind, body) for leaf, end, kind in zip(leaves, ends.leaves, kinds)
        ):
            memory.loop.demote(self._error("differs from iteration to iteration"), Mode.PLAIN)
        bound_at = body.truth() if not self.is_flag and least == 0 else True
        there_at = body.truth() if there is not True else True
        return self._outcome(leaves, ends, [(False, bound_at, True), (False, there_at, there)], memory, least)


@dataclass
class CarriedOutcome:
    """What a loop carries for a name, and how its value is made from the results."""

    carried: list[Carried]
    show: Callable[[list[Value]], Any]


def _inner_syms(kinds: Iterable[Kind | None], body: RegionBody) -> set[Sym]:
    """The sizes that the body alone knows."""
    sizes = body.trace.sizes.values
    return {sym for kind in kinds if kind is not None for sym in kind.aval.syms if not body.parent.sees(sizes[sym])}
