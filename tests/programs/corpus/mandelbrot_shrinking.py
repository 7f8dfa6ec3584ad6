import numpy as np


def mandelbrot_shrinking(x, y, limit):
    """Escape times with arrays that shrink to the points still inside."""
    cx, cy = [grid.ravel() for grid in np.meshgrid(x, y)]
    count = np.zeros(cx.size, dtype=np.int64)
    index = np.arange(cx.size)
    zx, zy = np.zeros(cx.size), np.zeros(cx.size)
    for n in range(limit):
        if index.size == 0:
            break
        zx, zy = zx * zx - zy * zy + cx, 2.0 * zx * zy + cy
        out = zx * zx + zy * zy > 4.0
        count[index[out]] = n + 1
        stay = ~out
        index, zx, zy, cx, cy = index[stay], zx[stay], zy[stay], cx[stay], cy[stay]
    return count.reshape(y.size, x.size)


def make(size, rng):
    w, h, limit = {"small": (9, 7, 10), "large": (300, 250, 80)}[size]
    return np.linspace(-2.25, 0.75, w) + 0.01 * rng.random(), np.linspace(-1.25, 1.25, h), limit
