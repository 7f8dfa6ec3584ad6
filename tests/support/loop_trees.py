"""Loop trees as text, and schedule primitives applied to them."""

from __future__ import annotations

from typing import Any

from jitml.fusion.schedule.primitives import apply
from jitml.fusion.schedule.tree import LoopTree
from jitml.fusion.schedule.tree_text import parse_tree, show_tree
from jitml.kernels.schedule import parse_schedule

NO_NEST: Any = None  # only `stage` asks for one


def scheduled(text: str) -> LoopTree:
    """The tree in a text after the primitives behind `apply`; its loops may run to `n`."""
    before, _, primitives = text.partition("apply ")
    tree = parse_tree(before, sizes=("n",))
    for primitive in parse_schedule(primitives).boxes[0]:
        tree = apply(tree, primitive, NO_NEST)
    assert show_tree(parse_tree(show_tree(tree), sizes=("n",))) == show_tree(tree)
    return tree
