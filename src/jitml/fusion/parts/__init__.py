"""Complex numbers as pairs of real ones: `split` a graph before it is fused. One file of rules for each family of ops."""

from jitml.fusion.parts import arithmetic, elementary, host, moves, reductions, regions, trigonometric  # noqa: F401  # rules
from jitml.fusion.parts.split import Form, holds_complex, split, split_apart, splitting

__all__ = ["Form", "holds_complex", "split", "split_apart", "splitting"]
