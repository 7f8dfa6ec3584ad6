"""The text form of loop trees, written and read back: `show_tree(parse_tree(t)) == t`.

for i0 in 0:64 {
  cell s0: f64 = 0.0
  for i1 in 0:100 vector {
    point %0 -> h[i0, i1], s0 add= %s0
  }
  recall %0 = h[i0, i1]
  ...
}
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import get_args

from jitml.fusion.schedule.tree import (
    Accumulate,
    Bind,
    Body,
    ComputePoint,
    Home,
    LoopTree,
    Recall,
    Scratch,
    TreeLoop,
    TreeNode,
)
from jitml.ir.types import I64, dtype_name
from jitml.kernels.ir import Cell, Expr, Kind, Store, Update, affine, sub
from jitml.kernels.text.parser import KernelParser
from jitml.kernels.text.printer import show_buffer, show_expr


def show_tree(tree: LoopTree, mark: TreeLoop | None = None) -> str:
    """
    Args:
        mark: a loop to point at.
    """
    return "\n".join(_shown(tree.body, "  " if mark is not None else "", mark))


def _shown(body: Sequence[TreeNode], indent: str, mark: TreeLoop | None) -> Iterator[str]:
    for node in body:
        if isinstance(node, TreeLoop):
            yield (indent.replace(" ", ">", 1) if node is mark else indent) + f"{_head(node)} {{"
            yield from _shown(node.body, indent + "  ", mark)
            yield indent + "}"
        else:
            yield indent + _line(node)


def _head(loop: TreeLoop) -> str:
    limits = f"{show_expr(loop.start)}:{show_expr(loop.stop)}" + (f":{loop.step}" if loop.step != 1 else "")
    most = f" most {loop.most}" if loop.most != _most(loop.start, loop.stop) else ""
    end = f" end {show_expr(loop.end)}" if loop.end is not None else ""
    end += f" multiple {loop.multiple}" if loop.multiple != 1 else ""
    marks = ("" if loop.kind == "serial" else f" {loop.kind}") + (f" grain {loop.grain}" if loop.grain != 1 else "")
    return f"for {loop.index} in {limits}{most}{end}{marks}" + (f" jam {loop.together}" if loop.together != 1 else "")


def _most(start: Expr, stop: Expr) -> int:
    extent = affine(sub(stop, start))
    return extent[""] if extent is not None and extent.keys() == {""} else -1


def _place(home: Home) -> str:
    return f"{home.buffer}[{', '.join(map(show_expr, home.at))}]"


def _line(node: TreeNode) -> str:
    match node:
        case Bind(index, value):
            return f"bind {index} = {show_expr(value)}"
        case Cell(name, init):
            return f"cell {name}: {dtype_name(init.dtype)} = {show_expr(init)}"
        case Update(cell, value, combine):
            return f"{cell} {combine}= {show_expr(value)}"
        case Store(buffer, at, value, combine):
            return f"{buffer}[{', '.join(map(show_expr, at))}] {combine or ''}= {show_expr(value)}"
        case Scratch(buffer, scope):
            return f"scratch {show_buffer(buffer)} in {scope}"
        case Recall(home):
            return f"recall {home.scalar} = {_place(home)}"
        case ComputePoint(updates, stores, staged):
            homes = (f"{home.scalar} -> {_place(home)}" for home in staged)
            sums = (f"{u.cell} {u.combine}= %{u.of}" for u in updates)
            return "point " + ", ".join([*homes, *sums, *(f"store {name}" for name in stores)])
    raise TypeError(type(node).__name__)


def parse_tree(text: str, sizes: Iterable[str] = ()) -> LoopTree:
    """
    Args:
        sizes: names that limits may mention.

    Raises:
        ParseError: the text is no tree; the message quotes the place.
    """
    parser = _TreeParser(text)
    parser.dtypes.update(dict.fromkeys(sizes, I64))
    found: list[TreeNode] = []
    while parser.kind != "end":
        found.append(parser.node())
    return LoopTree(tuple(found))


class _TreeParser(KernelParser):
    def node(self) -> TreeNode:
        word = self.name()
        match word:
            case "for":
                return self.tree_loop()
            case "point":
                return self.point()
            case "recall":
                scalar = self.scalar()
                self.expect("=")
                return Recall(Home(scalar, *self.place()))
            case "scratch":
                buffer = self.buffer()
                self.buffers[buffer.name] = buffer
                self.expect("in")
                return Scratch(buffer, self.name())  # type: ignore[arg-type]  # as it was written
            case "bind":
                index = self.name()
                self.dtypes[index] = I64
                self.expect("=")
                return Bind(index, self.expression())
            case "cell":
                return Cell(*self.definition())
        if self.accept("["):
            at = self.sequence(self.expression, "]")
            combine = self.combine()
            return Store(word, at, self.expression(), combine)
        combine = self.combine()
        return Update(word, self.expression(), combine)

    def tree_loop(self) -> TreeLoop:
        index = self.name()
        self.expect("in")
        start = self.expression()
        self.expect(":")
        stop = self.expression()
        step = self.integer() if self.accept(":") else 1
        most = self.integer() if self.accept("most") else _most(start, stop)
        end = self.expression() if self.accept("end") else None
        multiple = self.integer() if self.accept("multiple") else 1
        kind = self.next() if self.token in get_args(Kind) else "serial"
        grain = self.integer() if self.accept("grain") else 1
        together = self.integer() if self.accept("jam") else 1
        before = dict(self.dtypes)
        self.dtypes[index] = I64
        body = self.tree_body()
        self.dtypes = before
        return TreeLoop(index, start, stop, step, most, body, kind, grain, together, end, multiple)  # type: ignore[arg-type]  # kind is one of Kind

    def tree_body(self) -> Body:
        self.expect("{")
        found: list[TreeNode] = []
        while not self.accept("}"):
            found.append(self.node())
        return tuple(found)

    def scalar(self) -> str:
        """`%3`, or what is loaded: `x`, `x:1`."""
        if self.accept("%"):
            return f"%{self.next()}"
        return self.numbered()

    def numbered(self) -> str:
        name = self.name()
        return f"{name}:{self.integer()}" if self.accept(":") else name

    def place(self) -> tuple[str, tuple[Expr, ...]]:
        name = self.name()
        self.expect("[")
        return name, self.sequence(self.expression, "]")

    def point(self) -> ComputePoint:
        staged: list[Home] = []
        updates: list[Accumulate] = []
        stores: list[str] = []
        while True:
            if self.token == "%":
                scalar = self.scalar()
                self.expect("->")
                staged.append(Home(scalar, *self.place()))
            elif self.accept("store"):
                stores.append(self.numbered())
            else:
                cell = self.numbered()
                if self.accept("->"):
                    staged.append(Home(cell, *self.place()))
                    if self.accept(","):
                        continue
                    break
                combine = self.combine()
                if combine is None:
                    raise self.fail("a way to combine")
                updates.append(Accumulate(cell, self.scalar().removeprefix("%"), combine))
            if not self.accept(","):
                break
        return ComputePoint(tuple(updates), tuple(stores), tuple(staged))
