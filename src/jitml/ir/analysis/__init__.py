"""Analyses of graphs: limits of integers, floating-point errors, generators, validity."""
