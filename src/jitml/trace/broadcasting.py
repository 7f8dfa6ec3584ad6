"""Which shape do operands have in common, where some sizes are known only to the running program?

Sizes that must agree are claimed to be equal: a `check` of the run. That also excludes what NumPy would do if one of them turned
out to be 1 and the other not; such a call runs through NumPy.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from jitml.errors import UnknownSizeError
from jitml.ir import ops
from jitml.ir.dims import Dim, Size, limits
from jitml.ir.graph import Value
from jitml.trace.sizes import number, span, value_of_size

Sizes = tuple[int, ...]


def common_sizes(*shapes: Sizes) -> Sizes:
    """The shape that operands of these shapes broadcast to.

    Raises:
        ValueError: known sizes differ, and neither is 1.
    """
    columns = zip_longest(*(shape[::-1] for shape in shapes), fillvalue=1)
    return tuple(_common(column) for column in columns)[::-1]


def _common(sizes: Sequence[int]) -> int:
    wanted = [n for n in dict.fromkeys(sizes) if n != 1]
    known = [n for n in wanted if type(n) is int]
    if len(known) > 1 or (known and any(never_equal(known[0], n) and limits(n)[0] > 1 for n in wanted if type(n) is not int)):
        raise ValueError(f"sizes differ: {wanted}")
    return known[0] if known else wanted[0] if wanted else 1


def never_equal(x: Size, y: Size) -> bool:
    """Whether two sizes differ whatever the program finds."""
    low, high = span(x - y)
    return low > 0 or high < 0


def stretch(x: Value, shape: Sequence[int]) -> Value:
    """x broadcast to a shape from `common_sizes`; sizes that are not known to agree are checked."""
    shape = tuple(shape)
    if x.shape == shape:
        return x
    places = shape[len(shape) - x.ndim :]
    x = require_sizes(x, tuple(1 if n == 1 or never_equal(n, m) else m for n, m in zip(x.shape, places)))
    return x if x.shape == shape else ops.broadcast(x, shape=shape, axes=tuple(range(len(shape) - x.ndim, len(shape))))


def insist(ok: Value, *values: Value, error: str = "ValueError", message: str) -> None:
    """Claim what no value relies on; the program ends with the error if it is false."""
    ops.check(ok, ok, *values, error=error, message=message)


def insist_equal(x: Size, y: Size) -> None:
    """Claim that two sizes are equal, even if nothing reads what relies on it."""
    if x != y:
        mine, other = value_of_size(x), value_of_size(y)
        ops.check(mine, ops.eq(mine, other), mine, other, error="ValueError", message="sizes differ: {} and {}")


def require_at_least(x: Size, least: int, message: str) -> None:
    """A size that is too small is a ValueError: now if that is known, else of the program."""
    if span(x)[1] < least:
        raise ValueError(message)
    if span(x)[0] < least:
        insist(ops.ge(value_of_size(x), number(least)), message=message)


def insist_at_least(x: Size, least: int) -> None:
    """Claim that a size is not below `least`, because what NumPy does otherwise is not compiled."""
    if isinstance(x, Dim):
        require_at_least(x, least, "a size is not what this program was compiled for")


def insist_differ(x: Size, y: Size) -> None:
    """Claim that two sizes differ, because what NumPy does otherwise is not compiled."""
    if span(x - y)[0] <= 0 <= span(x - y)[1]:
        mine, other = value_of_size(x), value_of_size(y)
        ops.check(mine, ops.ne(mine, other), error="ValueError", message="a size is not what this program was compiled for")


def require_sizes(
    x: Value, shape: Sequence[int], message: str = "sizes differ: {} and {}", *, error: str = "ValueError"
) -> Value:
    """x with the sizes of `shape`, which are claimed to be its own: a check of the run where that is not known."""
    shape = tuple(shape)
    if not any(isinstance(n, Dim) for n in (*x.shape, *shape)):
        return x
    for n, m in zip(x.shape, shape, strict=True):
        if n != m and never_equal(n, m):
            raise UnknownSizeError(f"whether the sizes {n} and {m} fit together is known only when the program runs")
        if n != m:
            mine, wanted = value_of_size(n), value_of_size(m)
            x = ops.check(x, ops.eq(mine, wanted), mine, wanted, error=error, message=message)
    return x if x.shape == shape else ops.resize(x, shape=shape)
