"""Lowering of sorts and searches."""
