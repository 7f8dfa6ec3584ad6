"""Complex numbers as pairs of real ones: `split` a graph before it is fused. One file of rules for each family of ops."""

from jitml.fusion.complex import (
    arithmetic,  # noqa: F401
    elementary,  # noqa: F401
    host,  # noqa: F401
    moves,  # noqa: F401
    reductions,  # noqa: F401
    regions,  # noqa: F401
    trigonometric,  # noqa: F401
)
from jitml.fusion.complex.split import Form, holds_complex, split, split_apart, splitting

__all__ = ["Form", "holds_complex", "split", "split_apart", "splitting"]
