"""Checks: the operand itself. (Loops and branches are steps of a program: `fusion/grouping/regions.py`.)"""

from __future__ import annotations

from jitml.fusion.lower.points import Point, lowering
from jitml.fusion.lower.scalars import Scalar
from jitml.ir import ops


@lowering.rule(ops.check)
def lower_check(p: Point) -> Scalar:
    """Whoever reads it runs after the check, which grouping sees to."""
    return p.read(0, p.index)
