"""Strides: how do an array's axes lie in memory?

Strides, in elements, of views, of reshaped and of new arrays, as NumPy has them.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from math import ceil, floor, prod
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from jitml.ir import ops
from jitml.ir.dims import Dim, Size, bound, limits
from jitml.ir.op import Op
from jitml.trace.symbolic.broadcasting import insist_differ

Ints = tuple[int, ...]


def invert(perm: Ints) -> Ints:
    """The permutation that undoes `perm`.

    >>> invert((2, 0, 1))
    (1, 2, 0)
    """
    return tuple(sorted(range(len(perm)), key=perm.__getitem__))


def c_strides(shape: Ints) -> Ints:
    """Strides in elements of a C-contiguous array.

    >>> c_strides((2, 3, 4))
    (12, 4, 1)
    """
    if len(shape) == 1:
        return (1,)
    return tuple([prod(shape[axis + 1 :]) for axis in range(len(shape))])


def in_elements(strides: Ints, itemsize: int) -> Ints:
    """Strides in bytes as such in elements; fractions where elements are parts of larger ones.

    >>> in_elements((32, 8), 4), in_elements((5,), 4)
    ((8, 2), (Fraction(5, 4),))
    """
    if all(s % itemsize == 0 for s in strides):
        return tuple(s // itemsize for s in strides)
    from fractions import Fraction  # few need it

    return tuple(s // itemsize if s % itemsize == 0 else Fraction(s, itemsize) for s in strides)  # type: ignore[misc]


def view_strides(op: Op, params: dict[str, Any], shape: Ints, strides: Ints) -> Ints | None:
    """Strides of an index map's result; None if NumPy has to copy (a reshape of memory that is not regular enough)."""
    if op is ops.resize:
        return strides
    if op in (ops.real, ops.imag):
        return tuple(2 * s for s in strides)
    if op in (ops.slice, ops.dynamic_slice):
        return tuple(a * s for a, s in zip(strides, params["step"]))
    if op is ops.flip:
        return tuple(-s if axis in params["axes"] else s for axis, s in enumerate(strides))
    if op is ops.transpose:
        return tuple(strides[p] for p in params["perm"])
    if op is ops.broadcast:
        moved = {axis: (0 if n != params["shape"][axis] else s) for axis, n, s in zip(params["axes"], shape, strides)}
        return tuple(moved.get(axis, 0) for axis in range(len(params["shape"])))
    return reshape_strides(shape, strides, params["shape"])


def reshape_strides(shape: Ints, strides: Ints, new: Ints) -> Ints | None:
    """Strides after a reshape without a copy, or None where NumPy copies.

    Both shapes are cut into the shortest runs of axes of equal size; a run can be re-cut only if its old axes step
    through memory as one axis would.

    >>> reshape_strides((4, 6), (6, 1), (24,)), reshape_strides((6, 4), (1, 6), (24,)), reshape_strides((4, 6), (12, 2), (2, 12))
    ((1,), None, (24, 2))
    """
    if surely_contiguous(shape, strides):
        return c_strides(new)
    old = [(n, s) for n, s in zip(shape, strides) if n != 1]
    result: list[int] = []
    position = at = 0
    while at < len(new):
        if new[at] == 1:
            result.append(result[-1] * 1 if result else 1)
            at += 1
            continue
        sizes, taken, end = [new[at]], 1, position + 1
        total = old[position][0]
        size = new[at]
        while size != total:
            if typical(size) < typical(total):
                size *= new[at + taken]
                sizes.append(new[at + taken])
                taken += 1
            else:
                total *= old[end][0]
                end += 1
        run = old[position:end]
        if any(left[1] != right[0] * right[1] for left, right in itertools.pairwise(run)):
            for n, _ in run:
                insist_differ(n, 1)  # an axis that NumPy would not look at
            inner_ends = (range(1, len(run)), range(1, len(sizes)))
            for i, j in itertools.product(*inner_ends):  # where it could cut the run in two
                insist_differ(prod(n for n, _ in run[:i]), prod(sizes[:j]))
            return None
        inner = run[-1][1]
        result.extend(inner * s for s in c_strides(tuple(sizes)))
        at, position = at + taken, end
    return tuple(result)


def typical(size: Size) -> int:
    """A number that stands for an unknown size where only its factors matter, not its sign: every Sym is a prime."""
    if not isinstance(size, Dim):
        return size
    primes = {sym: _PRIMES[n % len(_PRIMES)] for n, sym in enumerate(sorted(size.syms, key=lambda sym: sym.serial))}
    return abs(int(size.evaluate(primes)))


_PRIMES = (10007, 10009, 10037, 10039, 10061)


def kept_strides(operands: Sequence[tuple[Ints, Ints]], shape: Ints) -> Ints:
    """Strides of the new array that NumPy makes of these operands (their shapes and strides) with `order="K"`.

    NumPy's own iterator decides the order of axes, on stand-ins of two elements an axis.

    >>> kept_strides([((4, 6), (1, 4))], (4, 6)), kept_strides([((4, 6), (1, 4)), ((4, 6), (6, 1))], (4, 6))
    ((1, 4), (6, 1))
    """
    if prod(shape) == 0 or all(surely_contiguous(*operand) for operand in operands):
        return c_strides(shape)
    byte = np.empty(1, np.int8)
    # Where sizes are unknown, the largest stand for all: axes are ordered in the same way for any other above 1.
    few = [as_strided(byte, [min(bound(n), 2) for n in extent], map(largest_stride, strides)) for extent, strides in operands]
    return ordered_as(np.nditer([*few, None], order="K").operands[-1], shape)


def copied_strides(operand: tuple[Ints, Ints], shape: Ints) -> Ints:
    """Strides of NumPy's `order="K"` copy of an array (its shape and strides), or of another shape like it; NumPy itself decides.

    Ufuncs order axes that do not move through memory (`kept_strides`) in another way.

    >>> copied_strides(((4, 6), (0, 1)), (4, 6)), kept_strides([((4, 6), (0, 1))], (4, 6))
    ((1, 4), (6, 1))
    """
    if prod(shape) == 0 or surely_contiguous(*operand):
        return c_strides(shape)
    return ordered_as(np.empty_like(lying_like(*operand, np.dtype(np.int8), 2)), shape)


def joined_strides(operands: Sequence[tuple[Ints, Ints]], axis: int, shape: Ints) -> Ints:
    """Strides of the array that np.concatenate makes of these operands (their shapes and strides); NumPy itself decides.

    >>> joined_strides([((3, 1, 4), (1, 0, 3))] * 2, 1, (3, 2, 4))
    (2, 1, 6)
    """
    if prod(shape) == 0 or all(surely_contiguous(*operand) for operand in operands):
        return c_strides(shape)
    return ordered_as(np.concatenate([lying_like(*operand, np.dtype(np.int8), 2) for operand in operands], axis), shape)


def lying_like(sizes: Ints, layout: Ints, dtype: np.dtype[Any], most: int | None = None) -> np.ndarray[Any, Any]:
    """Zeros that lie in memory as an array of these sizes and strides, in elements, does (`small_layout`)."""
    extent, steps = small_layout(sizes, layout, most)
    first = -sum(step * (n - 1) for n, step in zip(extent, steps) if step < 0 < n)
    memory = np.zeros(1 + sum(abs(step) * (n - 1) for n, step in zip(extent, steps) if n), dtype)
    return as_strided(memory[first:], extent, [step * dtype.itemsize for step in steps])


@functools.lru_cache(maxsize=4096)
def small_layout(sizes: Ints, layout: Ints, most: int | None = None) -> tuple[Ints, Ints]:
    """Sizes and strides of the same order, with the same ties, gaps and directions.

    Args:
        most: how many elements an axis may have.

    >>> small_layout((90, 70), (-1, 180), 3)
    ((3, 3), (-1, 6))
    """
    extent = tuple(bound(n) if most is None else min(bound(n), most) for n in sizes)
    apart = [abs(largest_stride(stride)) for stride in layout]
    steps, step, packed = {0: 0}, 1, 1
    for stride in sorted({*apart} - {0}):
        axes = [axis for axis, other in enumerate(apart) if other == stride and sizes[axis] != 1]
        if axes and stride > packed:  # there is a gap
            step *= 2
        steps[stride] = step
        step += step * sum(extent[axis] - 1 for axis in axes if extent[axis])
        packed = max(packed, stride * prod(bound(sizes[axis]) for axis in axes))
    return extent, tuple(steps[stride] if largest_stride(s) >= 0 else -steps[stride] for stride, s in zip(apart, layout))


def ordered_as(made: np.ndarray[Any, Any], shape: Ints) -> Ints:
    """Strides without gaps, of axes in the order in which those of another array lie."""
    inner_first = sorted(range(len(shape)), key=lambda axis: (abs(made.strides[axis]), -axis))
    result = [0] * len(shape)
    step = 1
    for axis in inner_first:
        result[axis] = step
        step *= shape[axis]
    return tuple(result)


def is_contiguous(shape: Ints, strides: Ints) -> bool:
    """C-contiguous as NumPy says it: axes of length 1 may have any stride, empty arrays always are.

    Where it depends on a size that only the running program knows, it is not, and the program is made to see to it.
    """
    if prod(shape) == 0:
        return True
    apart = [(n, s - c) for n, s, c in zip(shape, strides, c_strides(shape)) if n != 1 and s != c]
    if not apart:
        return True
    for n in shape:  # of an empty array, any memory would do
        insist_differ(n, 0)
    if any(limits(n)[0] > 1 and not _may_be(0, gap) for n, gap in apart):
        return False
    for n, gap in apart:
        insist_differ(n, 1)
        insist_differ(gap, 0)
    return False


def surely_contiguous(shape: Ints, strides: Ints) -> bool:
    """Whether it is contiguous for all sizes."""
    wanted = c_strides(shape)
    return strides == wanted or prod(shape) == 0 or all(n == 1 or s == c for n, s, c in zip(shape, strides, wanted))


def _may_be(number: int, size: Size) -> bool:
    low, high = limits(size)
    return low <= number <= high


def largest_stride(stride: Size) -> int:
    """The number, rounded away from 0, that stands for a stride where axes are ordered."""
    low, high = limits(stride)
    return floor(low) if high <= 0 else ceil(high)


def memory_order(shape: Sequence[Any], strides: Sequence[Any]) -> Ints | None:
    """The axes from the longest stride to the shortest; None if that is C order. Sizes that are unknown are taken for long ones.

    >>> memory_order((4, 6), (1, 4)), memory_order((4, 6), (6, 1)), memory_order((4, 1, 6), (1, 9, 4))
    ((1, 0), None, (2, 1, 0))
    """
    if 0 in shape or 0 in strides:
        return None
    long = [axis for axis, n in enumerate(shape) if n != 1]
    ordered = sorted(long, key=lambda axis: (-abs(largest_stride(strides[axis])), axis))
    if ordered == long:
        return None
    places = dict(zip(long, ordered))
    return tuple(places.get(axis, axis) for axis in range(len(shape)))
