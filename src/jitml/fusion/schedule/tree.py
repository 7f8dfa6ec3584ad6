"""The loop tree: what a group's loops look like before they are written as statements.

A tree holds loops, the cells of reductions and the memory of partial results, and at its leaves `ComputePoint`: what happens at
one point, by name. `%s0` is the operand of the reduction s0, `%3` a scalar by its place in the group (`GroupNest.scalars`), `h`
the value that is stored to h. Primitives (`primitives/`) take a tree and return another; `write_tree.py` makes statements of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Literal, TypeAlias

from jitml.errors import ScheduleError
from jitml.kernels.ir import Buffer, Cell, Combine, Const, Expr, Kind, Store, Update, variables_of
from jitml.records import dataclass, replace


@dataclass(frozen=True, slots=True)
class TreeLoop:
    """`for index in start:stop:step`, over an axis or a part of it.

    most: the most steps of 1 there may be from start to stop. together: how many iterations run side by side (`jam`).
    end: of a chunk, where the last chunk ends. multiple: of a piece, a number that divides its steps of 1, however many.
    """

    index: str
    start: Expr
    stop: Expr
    step: int
    most: int
    body: tuple[TreeNode, ...]
    kind: Kind = "serial"
    grain: int = 1
    together: int = 1
    end: Expr | None = None
    multiple: int = 1

    @property
    def divisor(self) -> int:
        """A number that divides the steps of 1 from start to stop."""
        if isinstance(self.start, Const) and isinstance(self.stop, Const):
            return max(1, int(self.stop.value) - int(self.start.value))
        return self.multiple


@dataclass(frozen=True, slots=True)
class Bind:
    """An index as an expression of others, in place of a loop over it."""

    index: str
    value: Expr


@dataclass(frozen=True, slots=True)
class Home:
    """Where a scalar waits in memory."""

    scalar: str
    buffer: str
    at: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Accumulate:
    """`cell combine= %of`: the operand of a reduction."""

    cell: str
    of: str
    combine: Combine


@dataclass(frozen=True, slots=True)
class ComputePoint:
    """What happens at one point: scalars go to where they wait, operands into cells, results into outputs."""

    updates: tuple[Accumulate, ...]
    stores: tuple[str, ...]
    staged: tuple[Home, ...] = ()


@dataclass(frozen=True, slots=True)
class Recall:
    """From here to the end of the block, a staged scalar is read back."""

    home: Home


@dataclass(frozen=True, slots=True)
class Scratch:
    """Memory for the rest of the block: on the stack of a thread, or an array between two nests."""

    buffer: Buffer
    scope: Literal["stack", "memory"] = "stack"


TreeNode: TypeAlias = TreeLoop | Bind | ComputePoint | Recall | Scratch | Cell | Update | Store
Body: TypeAlias = tuple[TreeNode, ...]


@dataclass(frozen=True, slots=True)
class LoopTree:
    """The loops of one box of a group."""

    body: Body


# ------------------------------------------------------------------------------------------------------- questions


def nodes(body: Sequence[TreeNode]) -> Iterator[TreeNode]:
    """Every node, outer before inner, in order."""
    for node in body:
        yield node
        if isinstance(node, TreeLoop):
            yield from nodes(node.body)


def loops(body: Sequence[TreeNode]) -> Iterator[TreeLoop]:
    return (node for node in nodes(body) if isinstance(node, TreeLoop))


def named(name: str, tree: LoopTree) -> list[TreeLoop]:
    """The loops that a schedule means: `i0` is every loop over that index, `i0.1` the second of them."""
    index, _, place = name.partition(".")
    found = [loop for loop in loops(tree.body) if loop.index == index]
    found = found[int(place) : int(place) + 1] if place else found
    if not found:
        there = dict.fromkeys(loop.index for loop in loops(tree.body))
        raise Misfit(f"no loop is called {name}; the loops are {', '.join(there) or 'none'}")
    return found


def chain(loop: TreeLoop) -> list[TreeLoop]:
    """A loop, and those in it as long as a loop holds nothing but the next."""
    found = [loop]
    while len(found[-1].body) == 1 and isinstance(inner := found[-1].body[0], TreeLoop):
        found.append(inner)
    return found


def updated(body: Sequence[TreeNode]) -> dict[str, Combine]:
    """The cells from outside that are updated, and how."""
    own = {node.name for node in nodes(body) if isinstance(node, Cell)}
    found: dict[str, Combine] = {}
    for node in nodes(body):
        if isinstance(node, ComputePoint):
            found |= {u.cell: u.combine for u in node.updates if u.cell not in own}
        elif isinstance(node, Update) and node.cell not in own and node.combine is not None:
            found[node.cell] = node.combine
    return found


def cells(tree: LoopTree) -> dict[str, Cell]:
    """The cells of reductions, by name; where there are several of one name, the one with the identity."""
    return {node.name: node for node in reversed([*nodes(tree.body)]) if isinstance(node, Cell)}


def names(tree: LoopTree) -> set[str]:
    """The names that are taken: indices, cells and memory, and what limits mention."""
    found: set[str] = set()
    for node in nodes(tree.body):
        match node:
            case TreeLoop(index, start, stop):
                found |= {index, *variables_of(start, stop)}
            case Bind(index):
                found.add(index)
            case Scratch(buffer):
                found.add(buffer.name)
            case Cell(name):
                found.add(name)
            case ComputePoint(_, stores):
                found |= {*stores}
    return found


# --------------------------------------------------------------------------------------------------------- changes


class Misfit(ScheduleError):
    """A primitive does not fit a tree. It is about `loop`; `tree` is what it would make, if that is where the loop is."""

    def __init__(self, message: str, loop: TreeLoop | None = None) -> None:
        super().__init__(message)
        self.loop = loop
        self.tree: LoopTree | None = None


def changed(body: Body, change: Callable[[TreeLoop], Body | None]) -> Body:
    """A body in which loops are replaced, those outside first; None leaves a loop, and looks into it."""
    result: list[TreeNode] = []
    for node in body:
        if isinstance(node, TreeLoop):
            new = change(node)
            result += (replace(node, body=changed(node.body, change)),) if new is None else new
        else:
            result.append(node)
    return tuple(result)


def with_block(body: Body, old: Body, new: Body) -> Body:
    """A body in which one block, this very one, is another."""
    if body is old:
        return new
    return tuple(replace(node, body=with_block(node.body, old, new)) if isinstance(node, TreeLoop) else node for node in body)


def with_loops(tree: LoopTree, name: str, change: Callable[[TreeLoop], Body]) -> LoopTree:
    """The tree with every loop of this name changed. A loop may be what its own body's loops are named: those stay."""
    chosen = {id(loop) for loop in named(name, tree)}
    return LoopTree(changed(tree.body, lambda loop: change(loop) if id(loop) in chosen else None))


def nested(over: Sequence[TreeLoop], body: Body) -> Body:
    """These loops, one in the other, around a body."""
    for loop in reversed(over):
        body = (replace(loop, body=body),)
    return body
