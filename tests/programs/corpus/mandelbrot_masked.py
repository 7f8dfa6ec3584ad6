import numpy as np


def mandelbrot_masked(x, y, limit):
    """Escape times by masks: points that are still inside go on, the others keep their count."""
    cx, cy = np.meshgrid(x, y)
    zx = np.zeros_like(cx)
    zy = np.zeros_like(cy)
    count = np.zeros(cx.shape, dtype=np.int64)
    for n in range(limit):
        inside = zx * zx + zy * zy < 4.0
        count[inside] = n
        a, b = zx[inside], zy[inside]
        zx[inside] = a * a - b * b + cx[inside]
        zy[inside] = 2.0 * a * b + cy[inside]
    count[count == limit - 1] = 0
    return count


def make(size, rng):
    w, h, limit = {"small": (9, 7, 10), "large": (300, 250, 60)}[size]
    return np.linspace(-2.25, 0.75, w) + 0.01 * rng.random(), np.linspace(-1.25, 1.25, h), limit
