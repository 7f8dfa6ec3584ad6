"""The lowering rules, a file a family; importing this package fills the table."""

from jitml.fusion.lower import (  # noqa: F401
    compaction,
    contraction,
    dynamic,
    empty,
    host,
    index_maps,
    indexed,
    linalg,
    pointwise,
    random,
    regions,
    sorting,
)
from jitml.fusion.lower.points import Point, lowering

__all__ = ["Point", "lowering"]
