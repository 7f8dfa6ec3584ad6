"""Barriers: between which statements must the threads of a block wait for each other?

Where one touches memory that another has written, or writes what another has touched, and a barrier has not come between. What
thread 0 alone does needs none to follow what it has done alone.
"""

from __future__ import annotations

from jitml.records import dataclass, field


@dataclass
class Touched:
    """Memory that is read and written, by its groups."""

    reads: set[str] = field(default_factory=set)
    writes: set[str] = field(default_factory=set)

    def conflicts(self, other: Touched) -> bool:
        return bool(self.writes & (other.reads | other.writes) or self.reads & other.writes)

    def add(self, other: Touched) -> None:
        self.reads |= other.reads
        self.writes |= other.writes

    def copy(self) -> Touched:
        return Touched(set(self.reads), set(self.writes))


@dataclass
class SinceBarrier:
    """What has been touched since the last barrier: by several threads, and by thread 0 alone."""

    several: Touched = field(default_factory=Touched)
    first: Touched = field(default_factory=Touched)

    def conflicts(self, touched: Touched, *, is_first: bool) -> bool:
        """Whether threads could get into each other's way.

        Args:
            is_first: only thread 0 is about to touch this.
        """
        return self.several.conflicts(touched) or (not is_first and self.first.conflicts(touched))

    def add(self, touched: Touched, *, is_first: bool) -> None:
        (self.first if is_first else self.several).add(touched)

    def merge(self, other: SinceBarrier) -> None:
        """What may have been touched, where the other way may have been taken as well."""
        self.several.add(other.several)
        self.first.add(other.first)

    def copy(self) -> SinceBarrier:
        return SinceBarrier(self.several.copy(), self.first.copy())
