"""Reductions, sorting, statistics, and the methods of ufuncs."""
