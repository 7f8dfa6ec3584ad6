"""Carried aliases: after a loop, which array of before may a name still stand for?

The loop carries what says so: a truth for each such array.

A name's array may be the one it was before the first iteration, because none has run or a branch has kept it, or another one from
before, that a branch has chosen. What is not as simple as that may not be returned beside those arrays (`Storage.require_apart`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import combinations

from jitml.ir.graph import Value
from jitml.trace.carried.memory import Carried, CarriedMemory
from jitml.trace.speculation.modes import Decider
from jitml.trace.storage.storage import AliasOrigin, Case, Storage
from jitml.trace.symbolic.booleans import Truth, all_of, choose
from jitml.trace.values.aliases import is_known, left_behind, link, of_either, of_some_iteration, origin_of, others, possible
from jitml.trace.values.boxing import TracedArray

Target = (
    AliasOrigin | Storage
)  # a Storage: what a name was before the loop; as an item, whatever that name is as the iteration begins
Item = tuple[Truth, Target | None]


class Remains:
    """Of all arrays that a loop hands out; made at the end of its body, which runs at least `least` times.

    flags: of an entry (a storage as the loop begins), what its name may stand for as an iteration begins, and the truth of it.
    results: of a storage at the end of the body, what may be said of it after the loop, and which of the `carried` says whether.
    doubts: storages at the end, and what they may share memory with in a way that is not followed.
    """

    def __init__(self, memory: CarriedMemory, least: int) -> None:
        self.memory = memory
        self.body = memory.loop.body
        self.decider = memory.loop.decider
        self.carried: list[Carried] = []
        self.entries = {now.storage: entry for entry, (_, now, _) in memory.known.items()}
        self.flags: dict[Storage, list[tuple[Target, Value]]] = {}
        self.results: list[tuple[Storage, list[tuple[Target, int]]]] = []
        self.doubts: list[tuple[Storage, Storage]] = []
        ends = [(before, end, self._items(end)) for before, end in memory.handed]
        self.read = {end.storage: {item for _, item in items if isinstance(item, Storage)} for _, end, items in ends}
        kept = [(before, end, items) for before, end, items in ends if before is not None and before.storage in memory.known]
        following = {before.storage: [item for _, item in items if item is not None] for before, _, items in kept}
        made = {item for before, _, items in ends if before is None for _, item in items if isinstance(item, Storage)}
        for entry, targets in _wanted(following, made, least, self.decider).items():
            self.flags[entry] = [(target, self.body.truth()) for target in targets]
        for before, end, items in kept:
            self._carry(before.storage, end, items)
        for other, end, items in ends:
            if other is None:
                self._make(end, items)
            elif other.storage not in memory.known:
                self.doubts.append((end.storage, other.storage))

    def _items(self, end: TracedArray) -> list[Item]:
        """What an array at the end of the body may be, the first that holds; None for what the body has made."""
        if end.storage in self.entries:
            return [(True, self._item(end, origin_of(end)))]
        is_made = end.storage.trace is self.body.trace
        return [(test, self._item(end, origin)) for test, origin in (others(end) if is_made else possible(end))]

    def _item(self, end: TracedArray, origin: AliasOrigin) -> Target | None:
        storage = origin.storage()
        if storage is None:
            return None
        entry = self.entries.get(storage)
        if entry is not None and not origin.steps and origin.array() is self.memory.known[entry][1]:
            return entry
        if entry is None and storage.trace is self.body.trace:
            return None
        if entry is None and is_known(origin.steps, self.body.parent):
            return of_some_iteration(origin, self.memory.loop.born, self.decider)
        self.doubts.append((end.storage, storage if entry is None else entry))
        return None

    def _carry(self, entry: Storage, end: TracedArray, items: Sequence[Item]) -> None:
        """Of a name that is there before the loop."""
        found = [self._follow(target, target is entry, start, items) for target, start in self._flags(entry)]
        self.results.append((end.storage, found))

    def _make(self, end: TracedArray, items: Sequence[Item]) -> None:
        """Of a name that the body binds first."""
        targets = _distinct([target for _, item in items for target in self._targets(item)], self.decider)
        self.results.append((end.storage, [self._follow(target, False, self.body.truth(), items) for target in targets]))

    def _follow(self, target: Target, before: bool, start: Value, items: Sequence[Item]) -> tuple[Target, int]:
        """Carry whether a name's array is the target."""
        self.carried.append(Carried.of_truth(lambda: before, start, self._holds(items, target)))
        return target, len(self.carried) - 1

    def _targets(self, item: Target | None) -> list[Target]:
        return [item] if isinstance(item, AliasOrigin) else [target for target, _ in self._flags(item)]

    def _flags(self, item: Target | None) -> list[tuple[Target, Value]]:
        return self.flags.get(item, []) if isinstance(item, Storage) else []

    def _holds(self, items: Sequence[Item], target: Target) -> Truth:
        """Whether, at the end of the body, an array is the target."""
        holds: Truth = False
        for test, item in reversed(items):
            known = next((flag for other, flag in self._flags(item) if other == target), None)
            holds = choose(test, isinstance(item, AliasOrigin) and item == target if known is None else known, holds)
        return holds

    def finish(self, values: Sequence[Value]) -> None:
        """The loop has run: `values` are what it has carried for this."""
        after = self.memory.after
        for end, found in self.results:
            cases = [case for target, n in found for case in self._cases(target, values[n])]
            if cases and end in after:
                link(after[end], cases, self.decider)
        doubts = [(after[end].storage, other) for end, other in self.doubts if end in after]
        for (one, entries), (other, rest) in combinations(self.read.items(), 2):
            if one in after and other in after and not entries.isdisjoint(rest):  # both may be what one of them was
                doubts.append((after[one].storage, after[other].storage))
        for storage, other in doubts:
            storage.may_be(other, self.decider, overlaps=True)

    def _cases(self, target: Target, holds: Value) -> list[Case]:
        if isinstance(target, AliasOrigin):
            return [Case(holds, target)]
        before, now, _ = self.memory.known[target]
        # What iterations write is in the memory that names hand on; the old one, which nobody else sees, is as it was.
        shown = left_behind if now.storage.mutated else lambda origin: origin
        return [Case(all_of(holds, test), shown(origin)) for test, origin in possible(before)]


def _wanted(
    following: Mapping[Storage, list[Target]], made: Collection[Storage], least: int, decider: Decider
) -> dict[Storage, list[Target]]:
    """What each entry's name may be when it matters: after the loop, and, for what the body makes of it, in the last iteration.

    And what has to be known on the way there. After so many iterations as there are names, only what comes back is left.

    Args:
        following: what each of the names may be after an iteration.
    """
    now: dict[Storage, list[Target]] = {entry: [entry] for entry in following}
    ever: dict[Storage, list[Target]] = {entry: [entry] for entry in following}
    wanted: dict[Storage, list[Target]] = {entry: [] for entry in following}
    least = min(least, len(following) + 1)
    for n in range(least + len(following) + 1):
        for entry, targets in now.items():
            ever[entry] = _distinct([*ever[entry], *targets], decider)
            if n >= least - (entry in made):
                wanted[entry] = _distinct([*wanted[entry], *targets], decider)
        now = {
            entry: _distinct([t for item in items for t in (now.get(item, []) if isinstance(item, Storage) else [item])], decider)
            for entry, items in following.items()
        }
    for _ in following:
        for entry, items in following.items():
            for item in items:
                if isinstance(item, Storage) and item in wanted:
                    wanted[item] = _distinct([*wanted[item], *(t for t in wanted[entry] if t in ever[item])], decider)
    return wanted


def _distinct(targets: Sequence[Target], decider: Decider) -> list[Target]:
    """Each of them once; views have no hash."""
    found: list[Target] = []
    for target in targets:
        known = next((n for n, other in enumerate(found) if other == target), None)
        if known is None:
            found.append(target)
        elif isinstance(target, AliasOrigin) and isinstance(other := found[known], AliasOrigin):
            found[known] = of_either(other, target, decider)
    return found


__all__ = ["Remains"]
