"""Traced lists and sequences: lists that loops fill, what a `for` goes over."""
