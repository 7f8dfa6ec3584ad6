"""The derivative rules, a file a family; importing this package fills the tables."""

from jitml.autograd.rules import contraction, host, index_maps, indexed, pointwise, reductions, regions

__all__ = ["contraction", "host", "index_maps", "indexed", "pointwise", "reductions", "regions"]
