"""The batching rules, a file a family; importing this package fills the table."""

from jitml.autograd.rules.batching import (
    calls,
    contraction,
    dynamic,
    fft,
    host,
    index_maps,
    indexed,
    linalg,
    places,
    pointwise,
    ragged,
    random,
    reductions,
    regions,
)

__all__ = [
    "calls",
    "contraction",
    "dynamic",
    "fft",
    "host",
    "index_maps",
    "indexed",
    "linalg",
    "places",
    "pointwise",
    "ragged",
    "random",
    "reductions",
    "regions",
]
