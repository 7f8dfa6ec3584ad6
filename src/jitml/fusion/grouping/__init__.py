"""Grouping: which nodes run in one loop nest, whether they may, and whether it pays."""
