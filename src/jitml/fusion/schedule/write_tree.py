"""From a loop tree to statements: loops as the tree has them, and at its points the scalars, named where that is worth it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from jitml.fusion.lower.scalars import Scalar
from jitml.fusion.schedule.jam import side_by_side
from jitml.fusion.schedule.loop_writer import LoopWriter
from jitml.fusion.schedule.nest import GroupNest
from jitml.fusion.schedule.tree import Bind, Body, ComputePoint, Home, LoopTree, Recall, Scratch, TreeLoop
from jitml.ir.types import DType
from jitml.kernels.ir import Apply, Cell, Expr, Let, Load, Store, Update, Var, walk_expression

Temporary = Callable[[DType, tuple[int, ...]], str]


def write(tree: LoopTree, nest: GroupNest, writer: LoopWriter, temporary: Temporary) -> None:
    """Add the loops of one box to a kernel.

    Args:
        temporary: gives an array between two nests a place in the program; returns its name.
    """
    _TreeWriter(nest, writer, temporary).body(tree.body)


class _TreeWriter:
    def __init__(self, nest: GroupNest, writer: LoopWriter, temporary: Temporary) -> None:
        self.nest, self.writer, self.temporary = nest, writer, temporary
        self.buffers: dict[str, str] = {}  # memory of the tree -> its name in the kernel

    def body(self, body: Body) -> None:
        for node in body:
            match node:
                case TreeLoop():
                    self.loop(node)
                case ComputePoint():
                    self.point(node)
                case Cell(name, init):
                    self.writer.cell(name, self.expr(init))
                case Update(cell, value, combine):
                    self.writer.add(Update(cell, self.expr(value), combine))
                case Store(buffer, at, value, combine):
                    self.writer.add(Store(self.buffers.get(buffer, buffer), at, value, combine))
                case Recall(home):
                    scalar = self.nest.stageable[home.scalar]
                    self.writer.stage(scalar, Load(*self.place(home), scalar.dtype))
                case Scratch():
                    self.scratch(node)
                case Bind(index, value):
                    self.writer.bind(index, value, self.nest.members(index))

    def loop(self, loop: TreeLoop) -> None:
        w = self.writer
        members = self.nest.members(loop.index)
        with w.loop(loop.index, loop.start, loop.stop, loop.kind, step=loop.step, grain=loop.grain, binds=members):
            self.body(loop.body)
        if loop.together > 1:
            w.replace_last(side_by_side(w.last, loop.together))

    def scratch(self, node: Scratch) -> None:
        buffer = node.buffer
        if node.scope == "memory":
            self.buffers[buffer.name] = self.temporary(buffer.dtype, buffer.shape)
        else:
            self.buffers[buffer.name] = self.writer.scratch(buffer)

    def place(self, home: Home) -> tuple[str, tuple[Expr, ...]]:
        return self.buffers.get(home.buffer, home.buffer), home.at

    def expr(self, expr: Expr) -> Expr:
        """What stands in the tree, with the kernel's names."""
        match expr:
            case Load(buffer, at, dtype):
                return Load(self.buffers.get(buffer, buffer), at, dtype)
            case Apply(fn, args, dtype):
                return Apply(fn, tuple(map(self.expr, args)), dtype)
        return expr

    def point(self, point: ComputePoint) -> None:
        w, nest = self.writer, self.nest
        stores = [nest.stored[name] for name in point.stores]
        staged: list[Scalar] = [nest.stageable[home.scalar] for home in point.staged]
        operands = [nest.reductions[update.of].operand for update in point.updates]
        values = w.values([*staged, *operands, *(s.scalar for s in stores)])
        kept = {store.buffer for store in stores}
        for home, value in zip(point.staged, values):
            if home.buffer not in kept:
                w.add(Store(*self.place(home), value))
        values = values[len(staged) :]
        for update, value in zip(point.updates, values):
            w.add(Update(update.cell, value, update.combine))
        results = self.before_overwritten([s.buffer for s in stores], values[len(operands) :])
        for store, value in zip(stores, results):
            w.store(store.buffer, store.at, value)

    def before_overwritten(self, buffers: Sequence[str], values: Sequence[Expr]) -> list[Expr]:
        """The values to store; one that reads what waits in the output of an earlier store is named ahead of them all."""
        w, written, result = self.writer, set[str](), []
        for buffer, value in zip(buffers, values):
            if any(isinstance(e, Load) and e.buffer in written for e in walk_expression(value)):
                name = w.fresh()
                w.add(Let(name, value))
                value = Var(name, value.dtype)
            written.add(buffer)
            result.append(value)
        return result
