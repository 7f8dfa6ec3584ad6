"""Symbolic sizes and booleans: what only the running program knows."""
