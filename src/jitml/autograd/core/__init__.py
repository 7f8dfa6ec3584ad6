"""Automatic differentiation of graphs: forward mode, transposition, and what both need."""
