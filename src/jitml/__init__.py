"""jitml: a compiler for NumPy code."""
