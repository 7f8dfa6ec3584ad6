"""The derivative rules, a file a family, and those of batching; importing this package fills the tables."""

from jitml.autograd.rules import (
    batching,
    calls,
    complex,
    cond_halves,
    contraction,
    dynamic,
    fourier,
    host,
    index_maps,
    indexed,
    loop_halves,
    pointwise,
    random,
    reductions,
    region_transposes,
    regions,
)

__all__ = [
    "batching",
    "calls",
    "complex",
    "cond_halves",
    "contraction",
    "dynamic",
    "fourier",
    "host",
    "index_maps",
    "indexed",
    "loop_halves",
    "pointwise",
    "random",
    "reductions",
    "region_transposes",
    "regions",
]
