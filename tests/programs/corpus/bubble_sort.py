import numpy as np


def bubble_sort(x):
    """Sort in place by neighbouring exchanges, until a pass exchanges nothing; returns the number of passes."""
    n = len(x)
    for passes in range(n):
        swapped = False
        for j in range(n - 1 - passes):
            if x[j] > x[j + 1]:
                x[j], x[j + 1] = x[j + 1], x[j]
                swapped = True
        if not swapped:
            return passes
    return n


def make(size, rng):
    n = {"small": 10, "large": 400}[size]
    return (rng.permutation(n).astype(np.float64),)
