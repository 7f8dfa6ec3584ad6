"""Peephole rewrites of the steps of a kernel program."""
