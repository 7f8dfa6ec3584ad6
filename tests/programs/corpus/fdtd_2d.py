import numpy as np


def fdtd_2d(ex, ey, hz, source):
    """Maxwell's equations in two dimensions by finite differences in the time domain (Yee 1966)."""
    for t in range(len(source)):
        ey[0, :] = source[t]
        ey[1:, :] -= 0.5 * (hz[1:, :] - hz[:-1, :])
        ex[:, 1:] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
        hz[:-1, :-1] -= 0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1])


def make(size, rng):
    nx, ny, steps = {"small": (10, 12, 5), "large": (300, 360, 150)}[size]
    return rng.random((nx, ny)), rng.random((nx, ny)), rng.random((nx, ny)), np.arange(steps, dtype=np.float64)
