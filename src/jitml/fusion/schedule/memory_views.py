"""Kernel views of memory: which axes does a kernel see, and which neighbours are merged into one index?

Loops that run as one, and each buffer in the shape that its accesses need.

Two neighbouring loops become one wherever every access moves by the same step across their seam; buffers lose axes of
one element and merge axes to match. What cannot be matched axis by axis is seen flat.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from itertools import pairwise
from math import prod
from typing import TypeAlias

from jitml.ir.dims import Size, bound
from jitml.kernels.analysis.polynomials import Poly, constant, expression, linear_in, plus, polynomial, times
from jitml.kernels.ir import Apply, Buffer, Const, Expr, Load, Var, add, mul, variables_of
from jitml.kernels.sizes import Sizes
from jitml.records import dataclass

USUAL_SIZE = 1009  # of an axis that is open, and of no power of two
Places: TypeAlias = tuple[Expr | None, ...]  # None: an index that is a scalar, known only to the data


@dataclass(frozen=True, slots=True)
class Axis:
    """One loop of a kernel: its name, its extent (of the largest shape), and the group's indices it stands for, outer first.

    `size` is the true extent.
    """

    name: str
    size: Size
    members: tuple[str, ...]

    @property
    def extent(self) -> int:
        return bound(self.size)


def undivided(x: Expr, y: Expr, n: int) -> Expr | None:
    """What an outer and an inner index, of extent n, are quotient and remainder of, if they are."""
    match x, y:
        case Apply("floor_divide", (e, Const(d))), Apply("remainder", (f, Const(r))) if e == f and d == r == n:
            return e
    return None


def merged(x: Expr, y: Expr, n: int) -> Expr:
    """The index of an axis that two are merged into, the inner of extent n: x * n + y, undoing a division with remainder."""
    whole = undivided(x, y, n)
    return add(mul(x, n), y) if whole is None else whole


def steps_of(buffer: Buffer, at: Places, indices: Container[str]) -> dict[str, Poly] | None:
    """By how many elements an address moves with each of the group's indices, over sizes; None if not evenly."""
    place, strides, shape = list(at), list(buffer.element_strides), buffer.shape
    for p in range(len(place) - 1, 0, -1):
        x, y = place[p - 1], place[p]
        if x is not None and y is not None and strides[p - 1] == shape[p] * strides[p]:
            joined = undivided(x, y, shape[p])
            if joined is not None:
                place[p - 1], strides[p - 1] = joined, strides[p]
                place[p] = Const(0)
    total: Poly = {}
    for e, stride in zip(place, strides):
        if e is None or stride == 0:
            continue
        terms = polynomial(e)
        if terms is None:
            return None
        total = plus(total, terms, stride)
    steps = linear_in(total, indices)
    return None if steps is None else {name: step for name, step in steps.items() if name}


def usual(steps: Mapping[str, Poly] | None) -> dict[str, int] | None:
    """Steps as numbers, to be compared: what they are where sizes are as they may well be."""
    if steps is None:
        return None
    return {name: sum(c * USUAL_SIZE ** len(monomial) for monomial, c in step.items()) for name, step in steps.items()}


class Views:
    """Chosen once per kernel, from all its accesses.

    Args:
        axes: the group's loop indices with their extents, outer first.
        fixed: indices that are used other than for addressing, or whose loops are cut.
        barriers: indices that must not be merged with the one before (a row's first).
        sizes: what extents are written as.
    """

    def __init__(
        self,
        axes: Mapping[str, Size],
        buffers: Mapping[str, Buffer],
        accesses: Iterable[tuple[str, Places]],
        fixed: frozenset[str],
        barriers: frozenset[str] = frozenset(),
        *,
        sizes: Sizes,
    ) -> None:
        self._full = buffers
        self.accesses = list(dict.fromkeys(accesses))
        self._steps = [steps_of(buffers[name], at, axes) for name, at in self.accesses]
        self._extents = axes
        self.sizes = {name: polynomial(sizes.expr(n)) or {} for name, n in axes.items()}
        chains = self._merge_axes(axes, fixed, barriers)
        self.buffers = self._shape(chains)
        if self.buffers is None:
            chains = [[name] for name in axes]
            self.buffers = self._shape(chains)
        assert self.buffers is not None
        self.axes = [Axis(f"i{k}", prod(axes[n] for n in chain), tuple(chain)) for k, chain in enumerate(chains)]

    def _merge_axes(self, axes: Mapping[str, Size], fixed: frozenset[str], barriers: frozenset[str]) -> list[list[str]]:
        """The group's indices in runs that one loop can stand for."""
        loose = set(fixed)
        for (_, at), steps in zip(self.accesses, self._steps):
            if steps is None:
                loose |= variables_of(*(e for e in at if e is not None))
        chains: list[list[str]] = []
        for name in axes:
            if chains and name not in barriers:
                before = chains[-1][-1]
                even = all(self._goes_on(s, before, name) for s in self._steps if s is not None)
                if even and before not in loose and name not in loose:
                    chains[-1].append(name)
                    continue
            chains.append([name])
        return chains

    def _shape(self, chains: list[list[str]]) -> dict[str, Buffer] | None:
        """Every buffer as loops over these chains see it; None if one cannot be seen so."""
        self._last = {chain[-1]: f"i{k}" for k, chain in enumerate(chains)}
        self._inner = {name for chain in chains for name in chain[:-1]}
        self._chains = chains
        self._merges: dict[str, list[list[int]] | None] = {}
        views: dict[str, Buffer] = {}
        used: dict[str, list[Places]] = {}
        for name, at in self.accesses:
            used.setdefault(name, []).append(at)
        for name, uses in used.items():
            buffer = self._full[name]
            runs = self._runs(buffer, uses)
            if all(self._reads_well(buffer, runs, at) for at in uses):
                self._merges[name] = runs
                strides = buffer.element_strides
                shape = tuple(prod(buffer.shape[p] for p in run) for run in runs)
                steps = None if buffer.strides is None else tuple(strides[run[-1]] for run in runs)
                views[name] = Buffer(name, buffer.dtype, shape, steps)
                continue
            if buffer.strides is not None:
                return None
            self._merges[name] = None
            views[name] = Buffer(name, buffer.dtype, (buffer.size,))
            if not all(self._reads_well(buffer, [list(range(len(at)))], at) for at in uses):
                return None
        return views

    def _runs(self, buffer: Buffer, uses: Sequence[Places]) -> list[list[int]]:
        """The buffer's axes in runs to be seen as one; axes of one element are dropped."""
        strides = buffer.element_strides
        dims = [p for p, n in enumerate(buffer.shape) if n != 1 or any(at[p] is None for at in uses)]
        runs: list[list[int]] = []
        for p in dims:
            if runs:
                q = runs[-1][-1]
                # What reads at an index from data keeps its axis for all others, too.
                given = [(x, y) for at in uses if (x := at[q]) is not None and (y := at[p]) is not None]
                joins = len(given) == len(uses) and any(self._wants_merge(x, y, buffer.shape[p]) for x, y in given)
                if joins and strides[q] == buffer.shape[p] * strides[p]:
                    runs[-1].append(p)
                    continue
            runs.append([p])
        return runs

    def _wants_merge(self, x: Expr, y: Expr, n: int) -> bool:
        return bool(variables_of(x) & self._inner) or undivided(x, y, n) is not None

    def _reads_well(self, buffer: Buffer, runs: list[list[int]], at: Places) -> bool:
        """Whether an access can be written with the merged loops' indices."""
        for run in runs:
            if len(run) > 1 and any(at[p] is None for p in run):
                return False
            e = self._merged_index(buffer, run, at)
            if e is None:
                continue
            terms = self._linear(e)
            if (terms is None and variables_of(e) & self._inner) or (terms is not None and not self._moves_evenly(terms)):
                return False
        return True

    def _linear(self, e: Expr) -> dict[str, Poly] | None:
        """An index as a sum over the group's indices."""
        whole = polynomial(e)
        return None if whole is None else linear_in(whole, self._extents)

    def _goes_on(self, steps: Mapping[str, Poly], outer: str, inner: str) -> bool:
        """Whether a step of an outer index is one more step of the inner one, behind its last."""
        return steps.get(outer, {}) == times(self.sizes[inner], steps.get(inner, {}))

    def _moves_evenly(self, terms: Mapping[str, Poly]) -> bool:
        """Whether an index of one axis counts through merged loops as if they were one: its range is that of all of them."""
        for chain in self._chains:
            for outer, inner in pairwise(chain):  # of an axis of stride 0 nothing else asks
                if bound(self._extents[outer]) > 1 and not self._goes_on(terms, outer, inner):
                    return False
        return True

    def _merged_index(self, buffer: Buffer, run: Sequence[int], at: Places) -> Expr | None:
        """The index of the one axis that a run of axes is merged into; None if the data knows it."""
        if not run:
            return Const(0)
        e = at[run[0]]
        for p in run[1:]:
            y = at[p]
            assert e is not None and y is not None
            e = merged(e, y, buffer.shape[p])
        return e

    def at(self, name: str, at: Places) -> Places:
        """An access in the kernel's own view and names."""
        buffer = self._full[name]
        runs = self._merges[name]
        if runs is None:
            runs = [list(range(len(at)))]
        joined = (self._merged_index(buffer, run, at) for run in runs)
        return tuple(None if e is None else self.expr(e) for e in joined)

    def expr(self, e: Expr) -> Expr:
        """An index expression over the kernel's loops. Of a merged run only the innermost index counts."""
        if self._inner & variables_of(e) and (whole := polynomial(e)) is not None:
            e = expression({monomial: c for monomial, c in whole.items() if not self._inner.intersection(monomial)})
        return renamed(e, self._last)

    def steps(self, name: str, at: Places) -> dict[str, int] | None:
        """By how many elements an address moves with each of the kernel's loops; of sizes that are open, as they may well be."""
        return usual(self.sized_steps(name, at))

    def extent_of(self, members: Iterable[str]) -> Poly:
        """The extent of a loop that stands for these indices of the group."""
        whole = constant(1)
        for name in members:
            whole = times(whole, self.sizes[name])
        return whole

    def sized_steps(self, name: str, at: Places) -> dict[str, Poly] | None:
        """The same over sizes."""
        steps = steps_of(self._full[name], at, self._extents)
        return None if steps is None else {self._last[n]: c for n, c in steps.items() if n in self._last}


def renamed(e: Expr, names: Mapping[str, str]) -> Expr:
    match e:
        case Var(name):
            return Var(names.get(name, name), e.dtype)
        case Apply():
            return Apply(e.fn, tuple(renamed(a, names) for a in e.args), e.dtype)
        case Load():
            raise AssertionError("index expressions hold no loads")
    return e
