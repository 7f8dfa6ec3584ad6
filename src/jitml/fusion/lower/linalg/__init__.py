"""Lowering of factorizations."""
