"""Types of host results: what does a host call return?

`Returned`: the kinds, dtypes and shapes of its results, of which some extents may be open.

The first program takes for granted what the call returns today. A call that is surprised by another shape has one compiled that
leaves the extents open which have changed (`Returned.widened`): then the call fills the start of memory that is large enough, and
says how much of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
import optree

from jitml.errors import FailedCheck, OtherResult
from jitml.ir.ops.host import padded
from jitml.ir.types import I64, Aval
from jitml.records import dataclass, replace
from jitml.trace.record.pytree import flatten

Array = np.ndarray[Any, Any]
Kind = type  # how a value is shown to Python: np.ndarray, np.generic, or int, float, bool

_MOST_ELEMENTS = 1 << 24  # that are set aside for a result of unknown shape


@dataclass(frozen=True, slots=True)
class Returned:
    """The structure of a result, and kind, dtype and shape of its leaves. A negative extent is open: `-n` is at most n."""

    spec: optree.PyTreeSpec
    kinds: tuple[Kind, ...]
    dtypes: tuple[np.dtype[Any], ...]
    shapes: tuple[tuple[int, ...], ...]

    def __str__(self) -> str:
        return ", ".join(
            f"{dtype}[{', '.join(str(n) if n >= 0 else f'at most {-n}' for n in shape)}]"
            for dtype, shape in zip(self.dtypes, self.shapes)
        )

    @property
    def avals(self) -> tuple[Aval, ...]:
        """What the call hands over: memory for each result, then each open extent."""
        memory = [Aval(tuple(map(abs, shape)), dtype) for shape, dtype in zip(self.shapes, self.dtypes)]
        return (*memory, *[Aval((), I64)] * len(self.open_axes))

    @property
    def open_axes(self) -> list[tuple[int, int]]:
        """Those extents that are open: of which result, and of which of its axes."""
        return [(k, axis) for k, shape in enumerate(self.shapes) for axis, n in enumerate(shape) if n < 0]

    def admits(self, other: Returned) -> bool:
        """Whether another result, which is there, is one of these."""
        return self._is_like(other) and all(
            n == m or m <= -n for mine, theirs in zip(self.shapes, other.shapes) for n, m in zip(mine, theirs)
        )

    def _is_like(self, other: Returned) -> bool:
        ranks = [len(shape) for shape in self.shapes] == [len(shape) for shape in other.shapes]
        return ranks and (self.spec, self.kinds, self.dtypes) == (other.spec, other.kinds, other.dtypes)

    def widened(self, other: Returned) -> Returned:
        """What admits both; just the other one where no open extent makes up for the difference."""
        if not self._is_like(other):
            return other
        shapes = tuple(tuple(map(_widened, mine, theirs)) for mine, theirs in zip(self.shapes, other.shapes))
        is_large = any(prod(map(abs, shape)) > _MOST_ELEMENTS for shape in shapes)
        return other if is_large else replace(self, shapes=shapes)

    def open_extents(self, seen: Returned) -> dict[int, int]:
        """What the open extents are in a result that is there -> as which they are open."""
        if not self.admits(seen):
            return {}
        return {seen.shapes[k][axis]: self.shapes[k][axis] for k, axis in self.open_axes}

    def opened_like(self, extents: Mapping[int, int]) -> Returned:
        """Open where extents are those of which it is known that they change: they are probably the same, and change together."""
        return replace(self, shapes=tuple(tuple(extents.get(n, n) for n in shape) for shape in self.shapes))

    def open_as(self, shape: tuple[int, ...]) -> Returned:
        """The same where each result is known to be of this shape."""
        return replace(self, shapes=(shape,) * len(self.shapes))

    def hand_over(self, arrays: Sequence[Array]) -> tuple[Array, ...]:
        """Results of these shapes as the program takes them: at the start of larger memory, and the open extents."""
        sizes = tuple(np.asarray(arrays[k].shape[axis], I64) for k, axis in self.open_axes)
        return (*(padded(x, tuple(map(abs, shape))) for x, shape in zip(arrays, self.shapes)), *sizes)


def _widened(extent: int, other: int) -> int:
    if extent == other or other <= -extent:
        return extent
    return -(1 << (2 * max(abs(extent), other)).bit_length())  # a few steps reach any size


def returned(result: Any) -> tuple[Returned, list[Array]]:
    """What a function has returned, as arrays."""
    leaves, spec = flatten(result)
    arrays = [np.asarray(leaf) for leaf in leaves]
    kinds = tuple(map(_kind, leaves))
    return Returned(spec, kinds, tuple(x.dtype for x in arrays), tuple(x.shape for x in arrays)), arrays


def _kind(leaf: Any) -> Kind:
    return np.ndarray if isinstance(leaf, np.ndarray) else np.generic if isinstance(leaf, np.generic) else type(leaf)


def checked(name: str, call: Callable[..., Any], foreseen: Returned, claim: int | None) -> Callable[..., tuple[Array, ...]]:
    """A function of arrays as the program calls it.

    Args:
        claim: the number of the assumption that it returns what is foreseen.
    """

    leaves = tuple(zip(foreseen.kinds, foreseen.dtypes, foreseen.shapes))

    def run(*arrays: Array) -> tuple[Array, ...]:
        result = call(arrays)
        if (same := _as_before(result, foreseen.spec, leaves)) is not None:
            return same
        found, results = returned(result)
        if not foreseen.admits(found):
            message = f"{name} returned {found} where {foreseen} was foreseen"
            raise FailedCheck(message) if claim is None else OtherResult(message, (claim, foreseen.widened(found)), found)
        return foreseen.hand_over(results)

    return run


def _as_before(
    result: Any, spec: optree.PyTreeSpec, leaves: Sequence[tuple[Kind, np.dtype[Any], tuple[int, ...]]]
) -> tuple[Array, ...] | None:
    """A result as arrays if it is just what was foreseen, as most are: loops call for single numbers."""
    try:
        parts = spec.flatten_up_to(result)
    except ValueError:
        return None
    arrays = tuple(map(np.asarray, parts))
    for part, x, (kind, dtype, shape) in zip(parts, arrays, leaves, strict=True):
        if _kind(part) is not kind or x.dtype != dtype or x.shape != shape:
            return None
    return arrays
