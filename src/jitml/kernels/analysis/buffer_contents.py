"""Value analysis of buffers: what is known of what buffers hold?

Which numbers a check has looked at, and between which limits integers lie.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from jitml.ir.types import BOOL, is_integer
from jitml.kernels.ir import Expr, Load, Store, Var, walk_expression
from jitml.records import dataclass, field


@dataclass(frozen=True, slots=True)
class KnownContents:
    """What is known of buffers' contents: those that a check has looked at, and the range of integers and truths (None: any).

    made_of: of numbers, the buffers that they come from in the end.
    ended: by a check that always fails: what comes next is never reached.
    """

    checked: frozenset[str] = frozenset()
    values: Mapping[str, tuple[int, int] | None] = field(default_factory=dict)
    made_of: Mapping[str, frozenset[str]] = field(default_factory=dict)
    ended: bool = False

    def without(self, written: Collection[str]) -> KnownContents:
        """What is still known when something has been written of which nothing is."""
        made_of = {name: of for name, of in self.made_of.items() if name not in written and of.isdisjoint(written)}
        return KnownContents(self.checked - set(written), {**self.values, **dict.fromkeys(written)}, made_of)


NOTHING = KnownContents()


class BufferContents:
    """The same while the statements of a kernel are gone through. `origins`: the buffers that a variable's value depends on."""

    def __init__(self, known: KnownContents) -> None:
        self.values = dict(known.values)
        self.origins: dict[str, frozenset[str]] = {}
        self._checked = set(known.checked)
        self._unchecked: set[str] = set()  # buffers that have been written what no check has looked at
        self._made_of = dict(known.made_of)
        self.ended = known.ended

    @property
    def known(self) -> KnownContents:
        return KnownContents(frozenset(self._checked), self.values, self._made_of, self.ended)

    def check(self, condition: Expr) -> None:
        """A check has looked at all that its condition depends on."""
        origin = self.origin(condition)
        self._checked |= origin | self._sources(origin)

    def store(self, store: Store, bounds: tuple[int | None, int | None]) -> None:
        """What a store says of a buffer's contents: values made of checked ones, or all within some bounds."""
        buffer, origins = store.buffer, self.origin(store.value)
        if store.combine is not None:
            origins |= {buffer}
        if not origins <= self._checked:
            self._unchecked.add(buffer)
        if buffer in self._unchecked:
            self._checked.discard(buffer)
        elif origins:
            self._checked.add(buffer)
        sources = self._sources(origins)
        self._made_of = {name: of for name, of in self._made_of.items() if buffer not in {name, *of}}
        if not store.at and buffer not in sources:
            self._made_of[buffer] = sources
        if is_integer(store.value.dtype) or store.value.dtype == BOOL:
            least, greatest = bounds
            if least is None or greatest is None:
                self.values[buffer] = None
            elif (before := self.values.get(buffer, (least, greatest))) is not None:
                self.values[buffer] = (min(least, before[0]), max(greatest, before[1]))

    def is_checked(self, expr: Expr) -> bool:
        """Whether a check has looked at all that a value depends on, or at all that this is made of."""
        origins = self.origin(expr)
        sources = self._sources(origins)
        return bool(origins) and (origins <= self._checked or (bool(sources) and sources <= self._checked))

    def origin(self, expr: Expr) -> frozenset[str]:
        """The buffers that a value depends on."""
        found: set[str] = set()
        for e in walk_expression(expr):
            if isinstance(e, Load):
                found.add(e.buffer)
            elif isinstance(e, Var):
                found |= self.origins.get(e.name, frozenset())
        return frozenset(found)

    def _sources(self, names: frozenset[str]) -> frozenset[str]:
        """The buffers that numbers come from in the end."""
        return frozenset().union(*(self._made_of.get(name, {name}) for name in names))
