"""What holds of every loop tree: blocks and threads start outermost, and what runs in lanes or side by side runs in step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jitml.fusion.schedule.tree import LoopTree, Misfit, Scratch, TreeLoop, TreeNode, cells, loops, nodes, updated
from jitml.kernels.ir import Cell, is_ordered, variables_of


def require_legal(tree: LoopTree) -> None:
    """
    Raises:
        Misfit: names the first loop that cannot run as it is meant to.
    """
    try:
        _require_legal_kinds(tree.body, (), cells(tree))
    except Misfit as misfit:
        misfit.tree = tree
        raise


def _require_legal_kinds(body: Sequence[TreeNode], around: tuple[TreeLoop, ...], init: Mapping[str, Cell]) -> None:
    for node in body:
        if isinstance(node, TreeLoop):
            if node.kind == "parallel":
                _require_outermost(node, around, "only such loops are shared among threads")
                _require_apart(node, "threads")
            if node.kind == "block":
                _require_outermost(node, [x for x in around if x.kind != "block"], "blocks of threads take only such loops")
                _require_apart(node, "blocks")
            if node.kind == "thread":
                _require_dealt(node, around, init)
            if node.kind == "vector":
                _require_lanes(node, around)
            if node.together > 1:
                _require_side_by_side(node)
            _require_legal_kinds(node.body, (*around, node), init)


def _require_outermost(loop: TreeLoop, around: Sequence[TreeLoop], why: str) -> None:
    if around:
        raise Misfit(f"{loop.index} does not stand outermost, and {why}", loop)


def _require_apart(loop: TreeLoop, takers: str) -> None:
    if totals := updated(loop.body):
        raise Misfit(f"all iterations of {loop.index} add to {', '.join(totals)}, which {takers} do not share", loop)


def _require_dealt(loop: TreeLoop, around: Sequence[TreeLoop], init: Mapping[str, Cell]) -> None:
    """The threads of a block take iterations in no order, and are no blocks of others."""
    for outer in around:
        if outer.kind in ("thread", "vector", "parallel"):
            raise Misfit(f"threads of a block cannot take {loop.index} inside {outer.index}, which is {outer.kind}", loop)
    for cell, combine in updated(loop.body).items():
        if is_ordered(combine, init[cell].init.dtype):
            raise Misfit(f"the product {cell} is taken in the order of {loop.index}", loop)


def _require_lanes(loop: TreeLoop, around: Sequence[TreeLoop]) -> None:
    """In lanes run neither other lanes nor loops of which each lane has limits of its own."""
    for outer in around:
        if outer.kind == "vector":
            raise Misfit(f"{loop.index} cannot run in lanes inside {outer.index}, which does", loop)
    if any(isinstance(node, Scratch) for node in nodes(loop.body)):
        raise Misfit(f"{loop.index} has scratch of its own, of which there is one and not one for each lane", loop)
    for inner in loops(loop.body):
        if loop.index in variables_of(inner.start, inner.stop):
            what = f"the limits of {inner.index} depend on {loop.index}"
            raise Misfit(f"{what}, so that lanes would run it in their own ways", loop)


def _require_side_by_side(loop: TreeLoop) -> None:
    if loop.kind in ("vector", "unroll"):
        raise Misfit(f"{loop.index} is {loop.kind}, and does not run side by side as well", loop)
    own = {loop.index, *(node.name for node in nodes(loop.body) if isinstance(node, Cell))}
    for node in nodes(loop.body):
        if isinstance(node, Scratch):
            raise Misfit(f"{loop.index} has scratch of its own, which iterations side by side would share", loop)
        if isinstance(node, TreeLoop) and variables_of(node.start, node.stop) & own:
            raise Misfit(f"the limits of {node.index} differ between iterations of {loop.index}", loop)
        if isinstance(node, TreeLoop) and node.together > 1:
            raise Misfit(f"{node.index} inside {loop.index} runs its iterations side by side already", loop)
