"""The lowering rules, a file a family; importing this package fills the table."""

from jitml.fusion.lower import compaction, contraction, dynamic, index_maps, indexed, pointwise, regions, sorting  # noqa: F401
from jitml.fusion.lower.points import Point, lowering

__all__ = ["Point", "lowering"]
