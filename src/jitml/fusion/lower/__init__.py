"""The lowering rules, a file a family; importing this package fills the table."""

from jitml.fusion.lower import (  # noqa: F401
    checks,
    compaction,
    contraction,
    dynamic,
    host,
    index_maps,
    indexed,
    pointwise,
    random,
    scans,
)
from jitml.fusion.lower.linalg import factorizations  # noqa: F401
from jitml.fusion.lower.points import Point, lowering
from jitml.fusion.lower.sort import sorting  # noqa: F401

__all__ = ["Point", "lowering"]
