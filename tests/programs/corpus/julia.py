import numpy as np


def julia(width, cx, cy, limit):
    """Escape times of a Julia set, point by point."""
    out = np.zeros((width, width), dtype=np.int32)
    for i in range(width):
        for j in range(width):
            x = -1.5 + 3.0 * j / width
            y = -1.5 + 3.0 * i / width
            n = 0
            while n < limit and x * x + y * y < 4.0:
                x, y = x * x - y * y + cx, 2.0 * x * y + cy
                n += 1
            out[i, j] = n
    return out


def make(size, rng):
    width, limit = {"small": (5, 8), "large": (120, 50)}[size]
    return width, -0.4 + 0.01 * rng.random(), 0.6, limit
