"""When does a jitted function get native entries, and lose them?  And a section?

A function that its variants have answered often, from Python, is worth it: its recent variants' entries ask one after the other,
and the last one goes on to Python. What Python has to know of calls it finds out there: as soon as one comes that compiled code
could not answer, or another variant is made, Python answers again, until they are built anew.

A section is no longer than a few statements, so its entry is what is compared with them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Any

import numpy as np

from jitml.codegen.llvm.runtime.executable import NativeExecutable
from jitml.dispatch.direct_calls import call_directly
from jitml.dispatch.entry import MISS
from jitml.dispatch.specialize import Variant
from jitml.native_entry.forwarder import forwarder
from jitml.native_entry.link import linked
from jitml.native_entry.plan import planned
from jitml.native_entry.plan_data import EntryPlan, SectionArguments, Unplanned
from jitml.sections.watchers import UNWATCHED
from jitml.trace.traced import Traced

if TYPE_CHECKING:
    from jitml.jitted import Jit

_MOST = 8  # entries that may have to ask before the one that answers
_Program = tuple[Hashable, Traced, Callable[[Sequence[Any]], Any]]  # the structure of its arguments, and how Python enters it
_Found = list[tuple[EntryPlan, NativeExecutable]]


class NativeEntries:
    """Those of one function.

    Args:
        jitted: gives its object, which holds this.
    """

    def __init__(self, jitted: Callable[[], Jit | None]) -> None:
        self._jitted = jitted
        self._hits = _counts()
        self._known_hits = 0
        self._is_used = False

    def take_over(self, variants: Iterable[tuple[Hashable, Variant]], following: Callable[..., Any]) -> None:
        """Have the entries of variants answer that have one.

        Args:
            variants: with the structures of their arguments, most recent first.
            following: answers all other calls.
        """
        entry, jitted = _chained(_planned(_programs(variants)), following, self._hits), self._jitted()
        if entry is not following and jitted is not None:
            self._is_used = True
            if not jitted.forwarder:
                call_directly(type(jitted), forwarder())
            jitted.answer_in_turn(repeat(entry), entry)

    def leave(self) -> bool:
        """Have Python answer again; whether it did not."""
        was_used, self._is_used = self._is_used, False
        jitted = self._jitted()
        if was_used and jitted is not None and jitted.alone is None:
            jitted.go_on()
        return was_used

    def have_answered(self) -> bool:
        """Whether there were calls for them since this was asked last."""
        before, self._known_hits = self._known_hits, int(self._hits[0])
        return self._known_hits != before


class SectionEntries:
    """Those of one section, of the variants that it has.

    Args:
        following: answers all other calls.
        names, held: see `SectionArguments`.

    Attributes:
        called: what its frame calls; `None` if no variant has an entry.
        tried: the same, but that it says `MISS` in place of what follows.
    """

    def __init__(
        self,
        variants: Iterable[tuple[Hashable, Variant]],
        following: Callable[..., Any],
        names: tuple[str, ...],
        held: tuple[int, ...],
    ) -> None:
        found, self._hits = _planned(_programs(variants), SectionArguments(names, held, UNWATCHED)), _counts()
        self.called = _chained(found, following, self._hits) if found else None
        self.tried = _chained(found, missed, _counts())

    @property
    def hits(self) -> int:
        """Calls that have been answered."""
        return int(self._hits[0])

    def answer(self, calls: int) -> None:
        """Let so many more be answered."""
        self._hits[1] = self._hits[0] + calls


def alone(key: Hashable, variant: Variant, enter: Callable[[Sequence[Any]], Any]) -> Callable[..., Any]:
    """The entry of one variant, that says `MISS` where another one would be asked.

    Args:
        enter: what would be asked in Python.
    """
    return _chained(_planned([(key, variant.traced, enter)]), missed, _counts())


def missed(*_: Any, **__: Any) -> Any:
    return MISS


def _counts() -> np.ndarray[Any, Any]:
    """How many calls there were, and may be."""
    return np.array([0, sys.maxsize], np.int64)


def _programs(variants: Iterable[tuple[Hashable, Variant]]) -> Iterator[_Program]:
    return ((key, variant.traced, variant.enter) for key, variant in variants)


def _planned(programs: Iterable[_Program], section: SectionArguments | None = None) -> _Found:
    found: _Found = []
    for key, traced, enter in programs:
        executable = getattr(enter, "execute", None)  # none as long as answers are checked, or timed
        if len(found) < _MOST and type(executable) is NativeExecutable and executable.is_plain and traced.device is None:
            shaped = executable.shaped if executable.interface.measured is not None else None
            try:
                found.append((planned(key, traced, executable.interface, shaped, section), executable))
            except Unplanned:
                continue
    return found


def _chained(found: _Found, following: Callable[..., Any], hits: np.ndarray[Any, Any]) -> Callable[..., Any]:
    """What asks one entry after the other."""
    for plan, executable in reversed(found):
        following = linked(plan, executable, following, hits)
    return following


__all__ = ["NativeEntries", "SectionEntries", "alone", "missed"]
