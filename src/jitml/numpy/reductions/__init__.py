"""Reductions, sorting, statistics, and the methods of ufuncs."""

from jitml.numpy.reductions import closeness, reductions, sorting, statistics, ufunc_methods

TOPICS = (reductions, statistics, ufunc_methods, sorting, closeness)
