"""Heat spreading in a plate: an explicit solver written with slices, one jitted call a step.

Run it with `python examples/heat.py`.
"""

import time

import numpy as np

import jitml


def advance(u, diffusivity, dt):
    """One explicit step of the heat equation on a unit grid; the border stays as it is."""
    u[1:-1, 1:-1] += dt * diffusivity[1:-1, 1:-1] * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1])


def plate(n):
    u = np.zeros((n, n))
    u[0, :] = 100.0
    u[n // 4 : n // 3, n // 4 : n // 3] = 80.0
    y, x = np.mgrid[0:n, 0:n] / n
    return u, 0.5 + 0.5 * np.sin(6 * x) ** 2 * np.cos(4 * y) ** 2


def main(n=1000, steps=50):
    fast = jitml.jit(advance)
    results = {}
    for name, step in (("NumPy", advance), ("jitml", fast)):
        u, diffusivity = plate(n)
        step(u.copy(), diffusivity, 0.2)  # compile before timing
        start = time.perf_counter()
        for _ in range(steps):
            step(u, diffusivity, 0.2)
        print(f"{name}: {(time.perf_counter() - start) / steps * 1e3:.2f} ms a step")
        results[name] = u
    print("equal:", np.array_equal(results["NumPy"], results["jitml"]))


if __name__ == "__main__":
    main()
