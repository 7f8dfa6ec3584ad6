"""Newton's fractal: to which root of z**3 = 1 does each point of the plane go?  A loop over one point, inside of a compiled loop.

Numba compiles the function of one point, and jitml what is around it. It needs Numba (`pip install 'jitml[numba]'`).

Run it with `python examples/elementwise.py`.
"""

import time

import numpy as np

import jitml


@jitml.elementwise
def root(x, y):
    """Which root Newton's method finds from x + iy, counted from 0; 3: none in 50 steps."""
    for _ in range(50):
        square = x * x + y * y
        if square == 0.0:
            return 3
        # z - (z**3 - 1) / (3 z**2)
        real = 2 / 3 * x + (x * x - y * y) / (3 * square * square)
        y = 2 / 3 * y - 2 * x * y / (3 * square * square)
        x = real
        if (x - 1) ** 2 + y**2 < 1e-12:
            return 0
        if (x + 0.5) ** 2 + (abs(y) - 0.75**0.5) ** 2 < 1e-12:
            return 1 if y > 0 else 2
    return 3


def shares(n):
    """The share of the plane around 0 that goes to each root."""
    x = np.linspace(-2, 2, n)
    found = root(x, x[:, None])
    return np.array([(found == k).mean() for k in range(3)])


def main(n=1000):
    fast = jitml.jit(shares)
    fast(n)
    for name, f in (("NumPy with Numba's loop", shares), ("jitml", fast)):
        start = time.perf_counter()
        found = f(n)
        print(f"{name:24} {1e3 * (time.perf_counter() - start):8.1f} ms   shares {found.round(4)}")


if __name__ == "__main__":
    main()
