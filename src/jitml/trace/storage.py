"""What is mutation, once programs are values?  A `Storage` holds the current value of one base array, a view is a
chain of index maps (`Step`) over it.

Reading a view applies its steps to the storage's value; writing goes back through them (each index map has an exact
inverse, or `update_slice` for a slice) and gives the storage a new value. Thus all views of one storage see all writes.
Strides, counted in elements, are followed only because NumPy's answer to "is this reshape a view?" depends on them.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from jitml.errors import UnsupportedError
from jitml.ir import ops
from jitml.ir.dims import Dim, Size, bound, limits, resolve
from jitml.ir.graph import Value
from jitml.ir.op import Op
from jitml.ir.types import I64, Aval
from jitml.trace.broadcasting import insist_differ, require_sizes
from jitml.trace.context import Trace, active_trace, leaked, refuse, unsupported, user_source
from jitml.trace.decisions import Mode, Site, decisions
from jitml.trace.host import Slot

Ints = tuple[int, ...]


@dataclass(frozen=True)
class Origin:
    """An array that another one may be: which storage, if that is still there, and how it is seen.

    `array` is the very array, where it is from outside.
    """

    storage: Callable[[], Storage | None]
    steps: tuple[Step, ...]
    writeable: bool
    array: Any = None


@dataclass(frozen=True)
class Case:
    """An array is a certain other one if `test` holds, which only the compiled program knows; None: in any other case."""

    test: Value | None
    origin: Origin


class Rival(NamedTuple):
    """A storage that may be the same memory as another one.

    site, mode: the construct that leaves it open, and the mode in which it would not. overlaps: nothing says which of the two
    is to be returned.
    """

    storage: weakref.ref[Storage]
    site: Site
    mode: Mode
    overlaps: bool = False


class Storage:
    """The memory of one base array: what it holds now and, for an array from outside, where it comes from.

    `slot` is the array itself in the host program, `entry` what the graph is given: the same, or a copy in native layout.
    `serial` says which storages are older; `rivals` are those that may be the same memory. Of `cases` the first that holds says
    which of them it is, of all that `whole` shows.
    """

    __slots__ = (
        "__weakref__", "appended", "cases", "entry", "listed", "mutated", "rivals", "serial", "slot", "strides", "trace",
        "value", "whole", "writes",
    )  # fmt: skip
    count = itertools.count()

    def __init__(self, trace: Trace, value: Value, *, strides: Ints | None = None, slot: Slot = -1, entry: Slot = -1) -> None:
        self.trace = trace
        self.value = value
        self.strides = c_strides(value.shape) if strides is None else strides
        self.slot = slot
        self.entry = entry
        self.mutated = False
        self.writes = 0
        self.appended = False  # whether a loop's body has appended it to a list
        self.listed: Site | None = None  # the loop that has left a copy in a list, where NumPy's has the array itself
        self.serial = next(Storage.count)
        self.rivals: list[Rival] = []
        self.cases: tuple[Case, ...] = ()
        self.whole: weakref.ref[Any] | None = None

    @property
    def is_external(self) -> bool:
        """Whether the caller, or a later call, can see what is written here."""
        return self.slot >= 0

    def load(self) -> Value:
        """The current value; refused outside the trace that the storage belongs to."""
        trace = active_trace()
        if self.trace.closed or not self.trace.encloses(trace):
            raise leaked()
        if trace is not self.trace:
            self._enter(trace)
        return self.value

    def store(self, value: Value) -> None:
        """Replace the whole value."""
        trace = active_trace()
        if self.trace.closed or not self.trace.encloses(trace):
            raise leaked()
        if self.listed is not None:
            error = UnsupportedError("an array is changed after a loop has appended it to a list", source=user_source())
            decisions().demote(self.listed, Mode.PLAIN, error)
            refuse(error)
        for rival in self.rivals:
            if rival.storage() is not None:
                self._refuse(value, rival)
        if trace is not self.trace:
            self._enter(trace)
            self._report(trace)
        self.value = value
        self.mutated = True
        self.writes += 1
        trace.root.stores += 1

    def _refuse(self, value: Value, rival: Rival) -> None:
        """It may be the same memory as another one: the construct that left this open is traced in another mode, if it can be."""
        text = (
            f"an array {value.aval} is written that may be, or share memory with, another one: which, only the compiled program"
        )
        error = UnsupportedError(f"{text} decides", source=user_source(), remedy="Copy it in both branches: x = x.copy().")
        decisions().demote(rival.site, rival.mode, error)
        refuse(error)

    def may_be(self, other: Storage, site: Site, mode: Mode, *, overlaps: bool = False) -> None:
        """Only the compiled program knows whether the two are one memory: neither may be written while both are there.

        Args:
            site: the construct that leaves it open, and the mode in which it would not.
            overlaps: nor may both be returned, for the caller would see whether they are.
        """
        self._meet(Rival(weakref.ref(other), site, mode, overlaps))
        for rival in tuple(other.rivals):
            self._meet(Rival(rival.storage, site, mode, overlaps or rival.overlaps))

    def _meet(self, rival: Rival) -> None:
        other = rival.storage()
        if other is None or other is self or any(r.storage() is other and r.overlaps >= rival.overlaps for r in self.rivals):
            return
        self.rivals.append(rival)
        other.rivals.append(rival._replace(storage=weakref.ref(self)))

    @property
    def others(self) -> list[Storage]:
        """What it may be the same memory as, as far as that is still there."""
        return [storage for rival in self.rivals if (storage := rival.storage()) is not None]

    def require_apart(self, returned: Collection[int]) -> None:
        """Refuse to return it if others that are returned (`id`s of storages), or the caller's own, may share its memory."""
        for rival in self.rivals:
            other = rival.storage()
            if rival.overlaps and other is not None and (other.is_external or id(other) in returned):
                text = "arrays are returned that share memory, or do not: only the compiled program decides"
                error = UnsupportedError(text, remedy="Copy one of them: x = x.copy().")
                decisions().demote(rival.site, rival.mode, error)
                refuse(error)

    def _enter(self, trace: Trace) -> None:
        """A body of a region sees what the storage held as the body began through an input of its own."""
        if trace is self.trace or trace.parent is None or self in trace.storages:
            return
        self._enter(trace.parent)
        if trace.is_body:
            inside = trace.builder.add_input(self.value.aval)
            trace.storages[self] = (self.value, inside)
            trace.entered[inside] = self.value
            self.value = inside
        elif trace.hands_on:
            trace.storages[self] = (self.value, self.value)

    def _report(self, trace: Trace) -> None:
        """Everything between the array's own trace and the write has to hand the result on."""
        inner: Trace | None = trace
        while inner is not None and inner is not self.trace:
            if not (inner.is_body or inner.hands_on):
                unsupported(
                    f"an array {self.value.aval} from outside is written inside a function that is being transformed",
                    "Return the new value from the function instead, or write to a copy made inside it.",
                )
            inner.written[self] = None
            inner = inner.parent


def leave_region(pairs: Sequence[tuple[Storage, Storage]], site: Site, mode: Mode, entries: Mapping[Storage, Storage]) -> None:
    """Arrays that a region hands out are new ones after it, and may be the same memory as whatever they may be inside.

    Where that is known already, cases say when; else they may not be returned.

    Args:
        pairs: each storage inside, and a new one that has its contents, or a part of them.
        entries: of a storage that stands for another one inside, that.
    """
    after: dict[Storage, list[Storage]] = {}
    for inside, outside in pairs:
        after.setdefault(inside, []).append(outside)
    for parts in after.values():
        for one, other in itertools.combinations(parts, 2):
            if other not in one.others:
                one.may_be(other, site, mode, overlaps=True)
    for inside, outside in pairs:
        for rival in inside.others:
            for other in after.get(rival) or [entries.get(rival, rival)]:
                if other is not outside and other.trace.encloses(active_trace()) and other not in outside.others:
                    outside.may_be(other, site, mode, overlaps=True)


@dataclass(frozen=True, slots=True)
class Step:
    """One index map of a view's chain."""

    op: Op
    params: dict[str, Any]
    before: Aval
    starts: tuple[Value, ...] = ()  # of a window at a run-time place; of a gather, the places

    def read(self, base: Value) -> Value:
        if self.op is ops.resize:
            return require_sizes(base, self.params["shape"])
        return self.op(base, *self.starts, **self.params)

    def show(self, array: Any, numbers: Mapping[Any, int]) -> Any:
        """NumPy's view of an array; `numbers` are what sizes and starts are in this call."""
        params = {name: resolve(param, numbers) for name, param in self.params.items()} if numbers else self.params
        return self.op.run((array, *(numbers[start] for start in self.starts)), params)

    @property
    def is_window(self) -> bool:
        """Whether it shows a part of its base, so that writing needs to know the rest."""
        return self.op in (ops.slice, ops.dynamic_slice, ops.gather, ops.real, ops.imag)

    def write(self, base: Value, value: Value) -> Value:
        """The base with the part that `read` shows replaced by `value`."""
        params = self.params
        if self.op is ops.slice:
            if value.shape == base.shape:
                return value
            return ops.update_slice(base, value, start=params["start"], step=params["step"])
        if self.op is ops.dynamic_slice:
            return ops.dynamic_update_slice(base, value, *self.starts, step=params["step"])
        if self.op is ops.gather:
            return ops.scatter(base, value, *self.starts, axis=params["axis"], combine="set")
        if self.op is ops.resize:
            return require_sizes(value, self.before.shape)
        if self.op is ops.real:
            return ops.complex(value, ops.imag(base))
        if self.op is ops.imag:
            return ops.complex(ops.real(base), value)
        if self.op is ops.flip:
            return ops.flip(value, axes=params["axes"])
        if self.op is ops.transpose:
            return ops.transpose(value, perm=invert(params["perm"]))
        assert self.op is ops.reshape, f"a view through {self.op} cannot be written"
        return ops.reshape(value, shape=self.before.shape)


@dataclass(frozen=True, slots=True)
class Diagonal(Step):
    """The diagonal of the last two axes, of equal size n: every (n + 1)-th of the elements of such a square in a row."""

    @classmethod
    def of(cls, before: Aval) -> Diagonal:
        return cls(ops.slice, {"diagonal": before.shape[-1]}, before)

    @property
    def _line(self) -> tuple[Ints, dict[str, Ints]]:
        *ahead, n, _ = self.before.shape
        zeros, ones = (0,) * len(ahead), (1,) * len(ahead)
        return (*ahead, n * n), {"start": (*zeros, 0), "stop": (*ahead, n * n), "step": (*ones, n + 1)}

    def read(self, base: Value) -> Value:
        shape, part = self._line
        return ops.slice(ops.reshape(base, shape=shape), **part)

    def write(self, base: Value, value: Value) -> Value:
        shape, part = self._line
        line = ops.update_slice(ops.reshape(base, shape=shape), value, start=part["start"], step=part["step"])
        return ops.reshape(line, shape=self.before.shape)

    def show(self, array: Any, numbers: Mapping[Any, int]) -> Any:
        return _diagonal_of(array)


@dataclass(frozen=True, slots=True)
class OpenDiagonal(Step):
    """The diagonal of the last two axes of sizes that only the running program knows, `down` and `right` of the corner."""

    @classmethod
    def of(cls, before: Aval, down: int, right: int, size: Size) -> OpenDiagonal:
        return cls(ops.gather, {"down": down, "right": right, "size": size}, before)

    @property
    def _at(self) -> tuple[Value, Value]:
        index = ops.iota(shape=(self.params["size"],), axis=0, dtype=I64)
        down, right = self.params["down"], self.params["right"]
        return (index + down if down else index), (index + right if right else index)

    def read(self, base: Value) -> Value:
        return ops.gather(base, *self._at, axis=self.before.ndim - 2)

    def write(self, base: Value, value: Value) -> Value:
        return ops.scatter(base, value, *self._at, axis=self.before.ndim - 2, combine="set")

    def show(self, array: Any, numbers: Mapping[Any, int]) -> Any:
        part = array[..., self.params["down"] :, self.params["right"] :]
        size = min(part.shape[-2:])
        return _diagonal_of(part[..., :size, :size])


def _diagonal_of(squares: Any) -> Any:
    shown = np.einsum("...ii->...i", squares)  # np.diagonal would be read-only
    shown.flags.writeable = squares.flags.writeable
    return shown


def read_through(storage: Storage, steps: tuple[Step, ...]) -> Value:
    """What a view shows now."""
    value = storage.load()
    for step in steps:
        value = step.read(value)
    return value


def write_through(storage: Storage, steps: tuple[Step, ...], value: Value) -> None:
    """Give a view new contents."""
    bases = [storage.load()]
    for position, step in enumerate(steps):
        # Only a window needs to know what surrounds it, so the chain is read no further than the last one.
        if not any(later.is_window for later in steps[position + 1 :]):
            break
        bases.append(step.read(bases[-1]))
    for position in reversed(range(len(steps))):
        base = bases[position] if position < len(bases) else value
        value = steps[position].write(base, value)
    storage.store(value)


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
    return tuple(prod(shape[axis + 1 :]) for axis in range(len(shape)))


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
            return None
        inner = run[-1][1]
        result.extend(inner * s for s in c_strides(tuple(sizes)))
        at, position = at + taken, end
    return tuple(result)


def typical(size: Size) -> int:
    """A number that stands for an unknown size where only its factors matter: every Sym is a prime."""
    if not isinstance(size, Dim):
        return size
    primes = {sym: _PRIMES[n % len(_PRIMES)] for n, sym in enumerate(sorted(size.syms, key=lambda sym: sym.serial))}
    return int(size.evaluate(primes))


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
    made = np.nditer([*few, None], order="K").operands[-1]
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
    if any(limits(n)[0] > 1 and not _may_be(0, gap) for n, gap in apart):
        return False
    for n, gap in apart:
        insist_differ(n, 1)
        insist_differ(gap, 0)
    return not apart


def surely_contiguous(shape: Ints, strides: Ints) -> bool:
    """Whether it is contiguous for all sizes."""
    return prod(shape) == 0 or all(n == 1 or s == c for n, s, c in zip(shape, strides, c_strides(shape)))


def _may_be(number: int, size: Size) -> bool:
    low, high = limits(size)
    return low <= number <= high


def largest_stride(stride: Size) -> int:
    low, high = limits(stride)
    return low if high <= 0 else high


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
