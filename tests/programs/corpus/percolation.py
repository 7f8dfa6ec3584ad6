import numpy as np


def percolation(open_cells):
    """Whether open cells join the top row to the bottom row: water spreads until it does not."""
    wet = np.zeros_like(open_cells)
    wet[0] = open_cells[0]
    while True:
        before = wet.sum()
        wet[1:] |= wet[:-1]
        wet[:-1] |= wet[1:]
        wet[:, 1:] |= wet[:, :-1]
        wet[:, :-1] |= wet[:, 1:]
        wet &= open_cells
        if wet.sum() == before:
            break
    return bool(wet[-1].any()), wet


def make(size, rng):
    n = {"small": 9, "large": 220}[size]
    return (rng.random((n, n)) < 0.65,)
