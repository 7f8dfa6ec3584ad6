"""Dynamic shapes: which sizes of the arguments does a trace leave open?  Those that have been seen to change.

The first call of a function is compiled for exactly its sizes. When a later one differs in the length of an array's axis, or in a
Python int whose value was needed (as a shape, a number of iterations), that *place* is opened: it becomes a size that only the
running program knows, between generous limits. Sizes that were equal whenever they were seen are taken for one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from math import prod
from typing import Any, Protocol, TypeVar

import numpy as np

from jitml.config import CONFIG
from jitml.device.array import Array
from jitml.ir import ops
from jitml.ir.graph import Graph
from jitml.records import dataclass, field, replace
from jitml.trace.record.guards import Host, Open, Opened, Place
from jitml.trace.speculation.paths import Path

LEAST_LIMIT = 1 << 16
FURTHEST = 1 << 60  # sums and differences of open sizes have to fit 64 bits; a number beyond is taken for what it is
_MOST_LEFT_OUT = 4  # sizes of which each is tried as the one that cannot be left open
GROWTH = 16  # a limit is so many times what has been seen
_HIGHEST = int(np.iinfo(np.int64).max)  # a size is handed in as such an integer
MOST_BYTES = 1 << 30  # of an array of the largest shape: such memory is reserved, and touched only as far as it is used
MOST_TAKEN = 1 << 24  # the same on a device, where what is reserved is taken; above, limits are as tight as they can be
_TIGHTEST = _HIGHEST  # by what limits are divided for that


@dataclass(frozen=True, slots=True)
class Closed:
    """Sizes for each of which a program is compiled, as calls have shown.

    refused: they cannot be left open.
    costly: they can, but only with host calls that a program for one size does without.
    """

    refused: set[Place] = field(default_factory=set)
    costly: set[Place] = field(default_factory=set)

    def places(self, is_patient: bool) -> set[Place]:
        """is_patient: whether there may be more programs for single sizes, to spare host calls."""
        return self.refused | self.costly if is_patient else self.refused


@dataclass(frozen=True, slots=True)
class SeenArgument:
    """What one argument was in a call: `kind` must be the same for sizes to be compared; the sizes are a shape, or an int.

    itemsize: of an array whose axes can be left open, in bytes; else 0.
    """

    kind: Hashable
    sizes: tuple[int, ...] = ()
    itemsize: int = 0


_PLAIN: dict[type, SeenArgument] = {
    kind: SeenArgument(kind) for kind in (float, bool, complex, str)
}  # of which there may be thousands


def seen(leaves: Sequence[Any]) -> tuple[SeenArgument, ...]:
    """The flattened arguments of a call, as far as sizes matter."""
    return tuple(map(_seen_argument, leaves))


def _seen_argument(leaf: Any) -> SeenArgument:
    if type(leaf) is Array:
        is_regular = leaf.flags.c_contiguous
        return SeenArgument((Array, leaf.dtype, leaf.ndim, is_regular), leaf.shape, leaf.itemsize if is_regular else 0)
    if isinstance(leaf, np.ndarray):
        # Of an array that is not dense in C order, more than its shape would have to be left open.
        is_regular = leaf.ndim < 2 or leaf.flags.c_contiguous
        return SeenArgument((type(leaf), leaf.dtype, leaf.ndim, is_regular), leaf.shape, leaf.itemsize if is_regular else 0)
    kind: type = type(leaf)
    return SeenArgument(kind, (leaf,)) if kind is int else _PLAIN.get(kind) or SeenArgument(kind)


def comparable(before: Sequence[SeenArgument], now: Sequence[SeenArgument]) -> bool:
    """Whether two calls differ in sizes and values at most."""
    return [s.kind for s in before] == [s.kind for s in now]


def open_places(
    opened: Opened, before: Sequence[SeenArgument], now: Sequence[SeenArgument], needed: Collection[int]
) -> dict[Place, Open]:
    """What to leave open, given an earlier variant and a call that it does not fit.

    Args:
        opened: what that variant left open.
        before, now: the call that it was traced for, and this one.
        needed: positions of the ints whose values it needed.
    """
    places = [place for place in _places(now) if place in opened or _changed(place, before, now, needed)]
    sizes = {place: (_size(before, place), _size(now, place)) for place in places}
    sizes = {place: pair for place, pair in sizes.items() if _limit(max(map(abs, pair))) <= _HIGHEST}
    found: dict[Place, Open] = {}
    first: dict[tuple[Hashable, ...], Place] = {}
    for place, pair in sizes.items():
        like = first.setdefault((pair, opened[place].like if place in opened else None), place)
        found[place] = Open(0, _limit(max(pair)), like) if min(pair) >= 0 else Open(-_limit(-min(pair)), _limit(max(pair)), like)
    return _within_memory(found, sizes, now)


def every_place(now: Sequence[SeenArgument]) -> dict[Place, Open]:
    """All axes of all arrays."""
    places = [place for place in _places(now) if place[1] is not None]
    sizes = {place: (_size(now, place),) for place in places}
    return _within_memory({place: Open(0, _limit(max(pair)), place) for place, pair in sizes.items()}, sizes, now)


@dataclass(frozen=True, slots=True)
class VariantKey:
    """What tells variants for arguments of one structure apart: the path, the sizes left open, and the arguments first seen."""

    path: Path = field(default_factory=Path)
    opened: Opened = field(default_factory=dict)
    seen: tuple[SeenArgument, ...] = ()


class Earlier(Protocol):
    """What is asked of a variant's `Traced`."""

    @property
    def key(self) -> VariantKey: ...

    @property
    def host(self) -> Host: ...

    @property
    def graph(self) -> Graph: ...


_Traced = TypeVar("_Traced", bound=Earlier)


def choices(
    earlier: Sequence[Earlier],
    now: Sequence[SeenArgument],
    closed: Collection[Place],
    dynamic: bool | None,
    *,
    is_taken: bool = False,
    before: Sequence[tuple[int, ...] | None] = (),
) -> Iterator[Opened]:
    """What to leave open in a new variant, the best choice first; the last one opens nothing.

    Args:
        earlier: the variants so far, most recent first.
        closed: what could not be left open.
        dynamic: as in `jit`.
        is_taken: whether memory that is reserved is taken. Then the tightest limits are among the choices: less than twice
            what this call has.
    """
    like = next((variant for variant in earlier if comparable(variant.key.seen, now)), None)
    opened: dict[Place, Open] = {}
    if dynamic is not False and like is not None:
        opened = open_places(like.key.opened, like.key.seen, now, like.host.needed_ints())
    elif dynamic is not False and len(now) - len(before) in (0, 1):  # a last one stands for all of nested arguments
        pairs = zip(now, (*before, None))
        known = [x if sizes is None or len(sizes) != len(x.sizes) else replace(x, sizes=sizes) for x, sizes in pairs]
        opened = open_places({}, known, now, range(len(now)))
    if dynamic:
        opened = every_place(now) | opened
    opened = {p: size for p, size in opened.items() if p not in closed and size.low >= -FURTHEST and size.high <= FURTHEST}
    lengths = {place: size for place, size in opened.items() if place[1] is not None}
    for choice in (opened, lengths) if opened != lengths else (opened,):
        if choice:
            yield choice
            factors = (GROWTH, GROWTH**2, _TIGHTEST) if is_taken else (GROWTH, GROWTH**2)
            yield from (_tighter(choice, now, factor) for factor in factors)
    groups = _groups(opened)
    if 1 < len(groups) <= _MOST_LEFT_OUT:
        yield from ({place: opened[place] for place in opened if place not in group} for group in groups)
    yield {}


def with_fewest_calls(traced: _Traced, trace_for: Callable[[Opened], _Traced | None]) -> _Traced:
    """The same, with those sizes closed whose opening makes host calls necessary that a program for one size does without.

    Args:
        trace_for: what is traced with these sizes left open; None where that cannot be compiled.
    """
    found = count_host_calls(traced.graph)
    best = trace_for({}) if found else None
    fewest = found if best is None else count_host_calls(best.graph)
    if best is None or fewest >= found:
        return traced
    opened = traced.key.opened
    groups = _groups(opened)
    for group in groups if len(groups) > 1 else ():
        more = trace_for({**best.key.opened, **{place: opened[place] for place in group}})
        if more is not None and count_host_calls(more.graph) == fewest:
            best = more
    return best


def _groups(opened: Opened) -> list[list[Place]]:
    """The places whose sizes are taken for one."""
    return [[place for place in opened if opened[place].like == like] for like in dict.fromkeys(s.like for s in opened.values())]


def _tighter(opened: Opened, now: Sequence[SeenArgument], factor: int) -> dict[Place, Open]:
    """Lower limits, for a program that makes arrays of their squares."""
    most = {size.like: _size(now, place) for place, size in sorted(opened.items(), key=lambda item: _size(now, item[0]))}
    widest = {size.like: size.high for size in sorted(opened.values(), key=lambda size: size.high)}
    least = {like: _least_limit(n) if factor == _TIGHTEST else 1 << (2 * n).bit_length() for like, n in most.items()}
    highs = {like: max(n, widest[like] // factor) for like, n in least.items()}
    return {place: Open(size.low, min(size.high, highs[size.like]), size.like) for place, size in opened.items()}


def is_excessive(graph: Graph, opened: Opened, now: Sequence[SeenArgument], *, is_taken: bool = False) -> bool:
    """Whether the largest shape of some value is beyond what can be reserved.

    What is only reserved, as what loops save for their derivatives, may be as large as JITML_SAVED_BYTES. Where it is taken,
    limits have to be the tightest, unless all of it is small.
    """
    nodes = list(graph.walk())
    avals = {v.aval for node in nodes for v in node.outputs}
    if is_taken and opened != _tighter(opened, now, _TIGHTEST):
        return any(aval.nbytes > MOST_TAKEN for aval in avals)
    reserved = {node.output.aval for node in nodes if node.op is ops.empty}
    return any(aval.nbytes > (max(MOST_BYTES, CONFIG.saved_bytes) if aval in reserved else MOST_BYTES) for aval in avals)


def count_host_calls(graph: Graph) -> int:
    """How many operations of a graph Python runs."""
    return sum(node.op is ops.host_call for node in graph.walk())


def changed_sizes(earlier: Sequence[Earlier], new: Earlier) -> list[str]:
    """What a new variant leaves open that the one it resembles did not, in words."""
    key = new.key
    like = next((variant.key for variant in earlier if comparable(variant.key.seen, key.seen)), None)
    if like is None:
        return []
    names = {position: new.host.name(slot) for slot, position in new.host.arguments.items()}
    texts = []
    for place in key.opened:
        if place not in like.opened or like.opened[place].high < key.opened[place].high:
            position, axis = place
            name = names[position] if axis is None else f"{names[position]}.shape[{axis}]"
            texts.append(f"{name} was {_size(like.seen, place)}, is {_size(key.seen, place)}, and is left open from here on")
    return texts


def _places(call: Sequence[SeenArgument]) -> Iterator[Place]:
    for position, leaf in enumerate(call):
        if leaf.kind is int:
            yield position, None
        elif leaf.itemsize:
            yield from ((position, axis) for axis in range(len(leaf.sizes)))


def _size(call: Sequence[SeenArgument], place: Place) -> int:
    position, axis = place
    return call[position].sizes[axis or 0]


def _changed(place: Place, before: Sequence[SeenArgument], now: Sequence[SeenArgument], needed: Collection[int]) -> bool:
    return _size(before, place) != _size(now, place) and (place[1] is not None or place[0] in needed)


def _limit(size: int) -> int:
    """
    >>> _limit(100), _limit(5000)
    (65536, 131072)
    """
    return max(LEAST_LIMIT, 1 << (GROWTH * size - 1).bit_length())


def _least_limit(size: int) -> int:
    """
    >>> _least_limit(0), _least_limit(5), _least_limit(8)
    (1, 8, 8)
    """
    return 1 << max(0, size - 1).bit_length()


def _within_memory(
    found: dict[Place, Open], sizes: Mapping[Place, tuple[int, ...]], now: Sequence[SeenArgument]
) -> dict[Place, Open]:
    """Tighter limits for arrays with several open axes, which could not even be reserved."""
    for position, leaf in enumerate(now):
        axes = [place for place in found if place[0] == position and place[1] is not None]
        fixed = prod(n for axis, n in enumerate(leaf.sizes) if (position, axis) not in found)
        while len(axes) > 1 and fixed * leaf.itemsize * prod(found[place].high for place in axes) > MOST_BYTES:
            widest = max(axes, key=lambda place: found[place].high / max(1, *sizes[place]))
            if found[widest].high < 4 * max(1, *sizes[widest]):
                break
            like = found[widest].like
            for place in [place for place in found if found[place].like == like]:
                found[place] = Open(found[place].low, found[place].high // 2, like)
    return found
