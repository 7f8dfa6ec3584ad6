"""The derivative rules, a file a family, and those of batching; importing this package fills the tables."""

from jitml.autograd.rules import batching, contraction, host, index_maps, indexed, pointwise, random, reductions, regions

__all__ = ["batching", "contraction", "host", "index_maps", "indexed", "pointwise", "random", "reductions", "regions"]
