"""Vectorization (`vmap`): graphs to graphs over one more axis."""
