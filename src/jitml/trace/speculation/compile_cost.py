"""Compile cost: how long is it going to take to compile what has been recorded?"""

from __future__ import annotations

from collections.abc import Iterable

from jitml.ir.graph import Node
from jitml.records import dataclass

# Seconds of a processor, fitted to public programs and to long straight ones; nine in ten are within a factor of 2. Operations of
# cheap families fuse, and most reductions join what they read; of the others each is a loop nest or a call of its own, and some
# passes compare each of them with each.
_PROGRAM, _CHEAP, _OTHER, _PAIR = 0.04, 0.00022, 0.0011, 5e-7
_CHEAP_FAMILIES = frozenset(("dynamic", "index_maps", "pointwise"))


@dataclass(frozen=True)
class ProgramSize:
    """How many operations there are: `cheap` ones, and others."""

    cheap: int = 0
    other: int = 0

    @classmethod
    def of(cls, nodes: Iterable[Node]) -> ProgramSize:
        """Those of nodes and their bodies."""
        cheap = [_is_cheap(inner) for node in nodes for inner in node.walk()]
        return cls(sum(cheap), len(cheap) - sum(cheap))

    def compile_seconds(self, times: float = 1.0) -> float:
        """What it is expected to take to compile them, or so many times as many."""
        cheap, other = times * self.cheap, times * self.other
        return _PROGRAM + _CHEAP * cheap + _OTHER * other + _PAIR * other**2


def _is_cheap(node: Node) -> bool:
    return node.op.family in _CHEAP_FAMILIES or node.op.name.startswith("reduce_")


__all__ = ["ProgramSize"]
