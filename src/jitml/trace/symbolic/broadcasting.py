"""Symbolic broadcasting: which shape do operands have in common, where some sizes are known only to the running program?

Sizes that must agree are claimed to be equal: a `check` of the run. Where one may turn out to be 1 and the other not, they
are taken to fit together as they do in the call that is traced (`paths.fit`); other calls get a program of their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest

from jitml.errors import UnknownSizeError, UnsupportedError
from jitml.ir import ops
from jitml.ir.dims import Dim, Size, limits
from jitml.ir.graph import Value
from jitml.trace.speculation.paths import Fit, fit
from jitml.trace.symbolic.sizes import number, span, value_of_size

Sizes = tuple[int, ...]
_Claim = tuple[tuple[Size, Size], dict[str, str]]  # sizes to tell of, and the error

_DIFFER = {"error": "ValueError", "message": "sizes differ: {} and {}"}
_OTHER_SIZE = "a size is not what this program was compiled for"


def common_sizes(*shapes: Sizes) -> Sizes:
    """The shape that operands of these shapes broadcast to.

    Raises:
        ValueError: known sizes differ, and neither is 1.
    """
    if shapes and shapes.count(shapes[0]) == len(shapes):
        return shapes[0]
    columns = zip_longest(*(shape[::-1] for shape in shapes), fillvalue=1)
    return tuple(_common(column) for column in columns)[::-1]


def _common(sizes: Sequence[int]) -> int:
    wanted = [n for n in dict.fromkeys(sizes) if n != 1]
    known = [n for n in wanted if type(n) is int]
    if len(known) > 1 or (known and any(never_equal(known[0], n) and limits(n)[0] > 1 for n in wanted if type(n) is not int)):
        raise ValueError(f"sizes differ: {wanted}")
    common = known[0] if known else wanted[0] if wanted else 1
    for n in wanted:
        if n != common and _is_stretched(common, n):
            common = n
    return common


def _is_stretched(x: Size, y: Size) -> bool:
    """Whether x is 1, and y another size: by their limits, or else in this call."""
    if 1 in (x, y) or not _may_be_one(x):
        return x == 1
    if never_equal(x, y) and not _may_be_one(y):
        return True
    known = _fit(x, y)
    return never_equal(x, y) if known is None else known.stretches(x)


def is_single(size: Size) -> bool:
    """Whether a size is 1: by its limits, or else in this call, which the program claims."""
    if size == 1 or not _may_be_one(size):
        return size == 1
    known = _fit(size, 1)
    if known is None:
        insist_differ(size, 1)
        return False
    found = not known.stretches(1)
    mine, one = map(value_of_size, known.sizes)
    ops.check(mine, ops.eq(mine, one) if found else ops.ne(mine, one), mine, one, **known.claim)
    return found


def _may_be_one(x: Size) -> bool:
    low, high = span(x)
    return low <= 1 <= high


def _fit(x: Size, y: Size) -> Fit | None:
    """How sizes that differ in form are taken to fit together; None if they can only be equal, or nothing is assumed."""
    return fit(x, y, value_of_size) if _may_be_one(x) or _may_be_one(y) else None


def never_equal(x: Size, y: Size) -> bool:
    """Whether two sizes differ whatever the program finds."""
    low, high = span(x - y)
    return low > 0 or high < 0


def stretch(x: Value, shape: Sequence[int]) -> Value:
    """x broadcast to a shape from `common_sizes`; sizes that are not known to agree are checked."""
    shape = tuple(shape)
    if x.shape == shape:
        return x
    if x.shape:
        x = fitted(x, shape[len(shape) - x.ndim :])
    return x if x.shape == shape else ops.broadcast(x, shape=shape, axes=tuple(range(len(shape) - x.ndim, len(shape))))


def fitted(x: Value, places: Sequence[int]) -> Value:
    """x with axes of these sizes, or of size 1 where it has to be stretched."""
    claims: dict[int, _Claim] = {}
    wanted = list(x.shape)
    for axis, (n, m) in enumerate(zip(x.shape, places)):
        if n != m:
            wanted[axis] = 1 if _is_stretched(n, m) else m
            if 1 not in (n, m) and not never_equal(n, m) and (known := _fit(n, m)) is not None:
                claims[axis] = known.sizes, known.claim
    return _claimed(x, wanted, claims)


def insist(ok: Value, *values: Value, error: str = "ValueError", message: str) -> None:
    """Claim what no value relies on; the program ends with the error if it is false."""
    ops.check(ok, ok, *values, error=error, message=message)


def insist_equal(x: Size, y: Size, message: str = "sizes differ: {} and {}") -> None:
    """Claim that two sizes are equal, even if nothing reads what relies on it."""
    if x != y:
        mine, other = value_of_size(x), value_of_size(y)
        ops.check(mine, ops.eq(mine, other), mine, other, error="ValueError", message=message)


def require_at_least(x: Size, least: int, message: str) -> None:
    """A size that is too small is a ValueError: now if that is known, else of the program."""
    if span(x)[1] < least:
        raise ValueError(message)
    if span(x)[0] < least:
        insist(ops.ge(value_of_size(x), number(least)), message=message)


def insist_at_least(x: Size, least: int) -> None:
    """Claim that a size is not below `least`, because what NumPy does otherwise is not compiled."""
    if isinstance(x, Dim) and span(x)[0] < least:
        insist(ops.ge(value_of_size(x), number(least)), error=UnsupportedError.__name__, message=_OTHER_SIZE)


def insist_differ(x: Size, y: Size) -> None:
    """Claim that two sizes differ, because what NumPy does otherwise is not compiled."""
    if span(x - y)[0] <= 0 <= span(x - y)[1]:
        mine, other = value_of_size(x), value_of_size(y)
        insist(ops.ne(mine, other), error=UnsupportedError.__name__, message=_OTHER_SIZE)


def require_sizes(
    x: Value, shape: Sequence[int], message: str = "sizes differ: {} and {}", *, error: str = "ValueError"
) -> Value:
    """x with the sizes of `shape`, which are claimed to be its own: a check of the run where that is not known."""
    claim = {"error": error, "message": message}
    return _claimed(x, shape, {axis: (pair, claim) for axis, pair in enumerate(zip(x.shape, shape, strict=True))})


def _claimed(x: Value, shape: Sequence[int], claims: Mapping[int, _Claim]) -> Value:
    """x with these sizes, behind checks that they are its own; what fails is said of the claimed ones, by axis."""
    shape = tuple(shape)
    if not any(isinstance(n, Dim) for n in (*x.shape, *shape)):
        return x
    for axis, (n, m) in enumerate(zip(x.shape, shape, strict=True)):
        if n != m and never_equal(n, m):
            raise UnknownSizeError(f"whether the sizes {n} and {m} fit together is known only when the program runs")
        if n != m:
            sizes, claim = claims.get(axis, ((n, m), _DIFFER))
            ok = ops.eq(value_of_size(n), value_of_size(m))
            x = ops.check(x, ok, *map(value_of_size, sizes), **claim)
    return x if x.shape == shape else ops.resize(x, shape=shape)
