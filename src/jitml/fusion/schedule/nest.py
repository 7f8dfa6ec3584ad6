"""Loop nests: what is a loop nest before its loops are chosen?  One box of a group, and what schedules ask about it."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from functools import cached_property
from math import prod

from jitml.fusion.grouping.scalarize import Points, Reduced, Stored
from jitml.fusion.lower.scalars import Scalar
from jitml.fusion.schedule.memory_views import Axis, Views
from jitml.ir.types import DType
from jitml.kernels.analysis.mixed_radix import SizedDigit, certainly_zero
from jitml.kernels.analysis.polynomials import Poly, constant, plus, raised, times, variables
from jitml.kernels.ir import Apply, Const, Expr, add, affine, as_expr, floor_divide, sub
from jitml.kernels.metrics import USUAL_TRIPS
from jitml.kernels.sizes import Sizes
from jitml.kernels.target import Target
from jitml.records import dataclass


@dataclass
class GroupNest:
    """One box of a group on its way to loops.

    rows: the group's indices that are not reduced over.
    """

    points: Points
    views: Views
    rows: frozenset[str]
    target: Target
    sizes: Sizes

    def __post_init__(self) -> None:
        self._members = {a.name: a.members for a in self.views.axes}
        self.axes = [a for a in self.views.axes if any(name in self.points.ranges for name in a.members)]
        self.outer = [a for a in self.axes if self.rows.issuperset(a.members)]
        self.inner = [a for a in self.axes if a not in self.outer]
        self.time = self._time() if self.is_apart and self.size(self.axes) else 0.0

    @cached_property
    def is_apart(self) -> bool:
        """Whether what is stored is told apart by sizes, whatever these are: else one thread stores it.

        That is what the race proof finds of the loops, however they are cut.
        """
        found = [self.views.sized_steps(s.buffer, s.at) for s in self.points.stores]
        return all(steps is not None and self._tells_apart(steps) for steps in found)

    def _tells_apart(self, steps: Mapping[str, Poly]) -> bool:
        """Whether each element is stored once, in the loops that its address moves with."""
        if not any(variables(step) for step in steps.values()):
            return True
        extents = {a.name: self.views.extent_of(a.members) for a in self.axes}
        least = {name: sym.low for sym, name in self.sizes.names.items()}
        digits = []
        for name, step in steps.items():
            most = times(step, plus(extents.get(name, {}), constant(-1)))
            digits.append(SizedDigit(step, times(most, constant(-1)), most, {name: 1}))
        zero = certainly_zero(digits, {}, raised(least, extents.values()))
        return zero is not None and len(zero) == len(digits)

    def _time(self) -> float:
        """Nanoseconds of one thread: the work, or the traffic with memory or cache if that takes longer."""
        scalars, points = all_scalars(self.points), self.size(self.axes)
        flops = sum(self.target.cost.work_of(s.value) for s in scalars if s.kind == "apply") + len(self.points.reductions)
        accesses = [(s.value, s.places, s.dtype) for s in scalars if s.kind == "load"]
        accesses += [(s.buffer, s.at, s.scalar.dtype) for s in self.points.stores]
        touched, held = 0, dict[str, int]()
        for buffer, at, dtype in accesses:
            nbytes = self._bytes(self.views.steps(buffer, at), dtype)
            touched += nbytes
            held[buffer] = max(held.get(buffer, 0), nbytes)  # several windows of one array are the same memory
        return self.target.cost.loop_ns(points * flops, touched, sum(held.values()))

    def _bytes(self, steps: dict[str, int] | None, dtype: DType) -> int:
        """What an access touches: one element for each iteration of the loops that it moves with."""
        axes = self.axes if steps is None else [a for a in self.axes if steps.get(a.name)]
        return self.size(axes) * dtype.itemsize

    def limits(self, axis: Axis) -> tuple[int, int]:
        """Where a loop starts and ends; where it ends at the latest, if its extent is known only when the program runs."""
        return self.points.ranges[axis.members[0]] if len(axis.members) == 1 else (0, axis.extent)

    def stop(self, axis: Axis) -> Expr:
        """Where a loop ends."""
        _, high = self.limits(axis)
        if isinstance(axis.size, int):
            return Const(high)
        stop = self.sizes.expr(axis.size)
        return stop if high == axis.extent else least(stop, high)

    def span(self, axis: Axis) -> tuple[Expr, Expr]:
        """Where a loop starts and ends, to be written."""
        return Const(self.limits(axis)[0]), self.stop(axis)

    def extent(self, axis: Axis) -> int:
        low, high = self.limits(axis)
        return high - low

    def size(self, axes: Iterable[Axis]) -> int:
        return prod(map(self.extent, axes))

    def grain(self, axis: Axis, size: int = 1) -> int:
        """Pieces of an axis that are worth handing to a thread; other axes that are open are not taken to be at their longest."""
        steps, time = -(-self.extent(axis) // size), self.time
        for other in self.axes:
            if other is not axis and not isinstance(other.size, int):
                time *= min(1.0, USUAL_TRIPS / self.extent(other))
        return max(1, min(steps, round(self.target.cost.grain_ns * steps / max(time, 1.0))))

    def contiguous_along(self, axis: Axis, other: Axis, near: Container[int] = (1,)) -> int:
        """How many loads step by one element along an axis, or by what else is near, of those that move with both.

        A row of a table that is chosen by an index moves with the index, in no even steps.
        """
        count = 0
        for s in self.loads:
            steps, chosen = self.views.steps(s.value, s.places), frozenset[str]().union(*(i.variables for i in s.args))
            if steps is None or steps.get(axis.name, 0) not in near or not chosen.isdisjoint(axis.members):
                continue
            count += bool(steps.get(other.name)) or not chosen.isdisjoint(other.members)
        return count

    def load_steps(self) -> list[dict[str, int] | None]:
        return [self.views.steps(s.value, s.places) for s in self.loads]

    @cached_property
    def loads(self) -> list[Scalar]:
        return [s for s in all_scalars(self.points) if s.kind == "load"]

    # ------------------------------------------------------------------------------------------- names in loop trees

    @cached_property
    def stored(self) -> dict[str, Stored]:
        """What is stored, by the buffer's name; `h:1` is what is stored to h in a second place."""
        found: dict[str, Stored] = {}
        for store in self.points.stores:
            count = sum(other.buffer == store.buffer for other in found.values())
            found[f"{store.buffer}:{count}" if count else store.buffer] = store
        return found

    def names_of(self, stores: Iterable[Stored]) -> tuple[str, ...]:
        names = {id(store): name for name, store in self.stored.items()}
        return tuple(names[id(store)] for store in stores)

    @cached_property
    def reductions(self) -> dict[str, Reduced]:
        """The reductions, by their cells."""
        return {r.cell: r for r in self.points.reductions}

    @cached_property
    def scalars(self) -> dict[str, Scalar]:
        """What is computed, numbered: `%0` is made of none of the others."""
        roots = [r.operand for r in self.points.reductions] + [s.scalar for s in self.points.stores]
        return {f"%{n}": s for n, s in enumerate(s for s in operands_first(roots) if s.kind == "apply")}

    @cached_property
    def stageable(self) -> dict[str, Scalar]:
        """What may wait in memory: what is computed, and what is loaded, by its buffer's name; `x:1` is a second load of x."""
        loads: dict[str, Scalar] = {}
        for s in self.loads:
            count = sum(other.value == s.value for other in loads.values())
            loads[f"{s.value}:{count}" if count else str(s.value)] = s
        return self.scalars | loads

    def describe_scalars(self) -> str:
        """What the numbers stand for: `%0 = sub(x, s0), %1 = exp(%0)`."""
        names = {s: name for name, s in self.scalars.items()}

        def shown(s: Scalar) -> str:
            return names.get(s) or ("index" if s.kind == "index" else str(s.value))

        return ", ".join(f"{name} = {s.value}({', '.join(map(shown, s.args))})" for name, s in self.scalars.items())

    def knows(self, name: str) -> bool:
        """Whether a name stands for an index, a cell, a buffer or a size already."""
        axes = {n for axis in self.views.axes for n in (axis.name, *axis.members)}
        cells = {n for cell in self.reductions for n in (cell, f"{cell}b")}
        return name in axes | cells | (self.views.buffers or {}).keys() or name in self.sizes.names.values()

    def members(self, index: str) -> tuple[str, ...]:
        """The group's indices that a loop over an axis stands for; none for a loop over pieces of one."""
        return self._members.get(index, ())


def all_scalars(points: Points) -> list[Scalar]:
    """Every scalar of a box, each once."""
    return reachable([s.scalar for s in points.stores] + [r.operand for r in points.reductions])


def operands_first(roots: Iterable[Scalar]) -> list[Scalar]:
    """What scalars are made of, and they themselves, each once and after its operands."""
    order: dict[Scalar, None] = {}
    stack = list(roots)[::-1]
    while stack:
        s = stack[-1]
        missing = [a for a in s.args if a not in order]
        if missing:
            stack += reversed(missing)
        else:
            order[stack.pop()] = None
    return list(order)


def reachable(roots: Iterable[Scalar], known: Container[Scalar] = ()) -> list[Scalar]:
    """What scalars are made of, and they themselves, each once; not what is known, nor what only that is made of."""
    seen: dict[Scalar, None] = {}
    stack = list(roots)[::-1]
    while stack:
        s = stack.pop()
        if s not in seen and s not in known:
            seen[s] = None
            stack += s.args[::-1]
    return list(seen)


def least(x: Expr, y: Expr | int) -> Expr:
    return Apply("minimum", (x, as_expr(y)))


def chunk_stop(start: Expr, step: int, low: Expr, stop: Expr) -> Expr:
    """The end of a chunk that begins at `start`, of a loop from `low` to `stop`."""
    extent = affine(sub(stop, low))
    whole = extent is not None and extent.keys() == {""} and extent[""] % step == 0
    return add(start, step) if whole else least(add(start, step), stop)


def chunk_count(step: int, low: Expr, stop: Expr) -> Expr:
    """How many chunks there are; below 1 where there is nothing to do."""
    return floor_divide(stop - low + (step - 1), step)
