"""Types of host results: what does a host call return?

`Returned`: the kinds, dtypes and shapes of its results.

A program takes for granted what the call returns today; a call that is surprised by something else has one compiled for that.
Where a result is of the shape of the arguments, an extent of it is as open as theirs: the call fills the start of memory that is
large enough.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import optree

from jitml.errors import FailedCheck, OtherResult
from jitml.ir.ops.host import padded
from jitml.ir.types import Aval
from jitml.records import dataclass, replace
from jitml.trace.record.pytree import flatten

Array = np.ndarray[Any, Any]
Kind = type  # how a value is shown to Python: np.ndarray, np.generic, or int, float, bool


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
        """What the call hands over: memory for each result."""
        return tuple(Aval(tuple(map(abs, shape)), dtype) for shape, dtype in zip(self.shapes, self.dtypes))

    def admits(self, other: Returned) -> bool:
        """Whether another result, which is there, is one of these."""
        ranks = [len(shape) for shape in self.shapes] == [len(shape) for shape in other.shapes]
        is_like = ranks and (self.spec, self.kinds, self.dtypes) == (other.spec, other.kinds, other.dtypes)
        return is_like and all(n == m or m <= -n for mine, theirs in zip(self.shapes, other.shapes) for n, m in zip(mine, theirs))

    def open_as(self, shapes: Sequence[tuple[int, ...]]) -> Returned:
        """The same where results are known to be of these shapes."""
        return replace(self, shapes=tuple(shapes))

    def hand_over(self, arrays: Sequence[Array]) -> tuple[Array, ...]:
        """Results of these shapes as the program takes them: at the start of larger memory."""
        return tuple(padded(x, tuple(map(abs, shape))) for x, shape in zip(arrays, self.shapes))


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
            raise FailedCheck(message) if claim is None else OtherResult(message, (claim, found))
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
