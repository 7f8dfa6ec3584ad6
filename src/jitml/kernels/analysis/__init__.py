"""Analyses of kernels: ranges, dependences, races."""
