import numpy as np


def pair_forces(x, f):
    """Lennard-Jones forces between all pairs, added into f; returns the potential energy."""
    energy = 0.0
    n = len(x)
    for i in range(n):
        for j in range(i + 1, n):
            dx = x[i, 0] - x[j, 0]
            dy = x[i, 1] - x[j, 1]
            r2 = dx * dx + dy * dy
            if r2 < 6.25:
                s6 = 1.0 / (r2 * r2 * r2)
                energy += 4.0 * (s6 * s6 - s6)
                g = 24.0 * (2.0 * s6 * s6 - s6) / r2
                f[i, 0] += g * dx
                f[i, 1] += g * dy
                f[j, 0] -= g * dx
                f[j, 1] -= g * dy
    return energy


def verlet(x, v, dt, steps):
    """Molecular dynamics in the plane by velocity Verlet (Verlet 1967), pairs by scalar loops."""
    f = np.zeros_like(x)
    energy = pair_forces(x, f)
    for _ in range(steps):
        v += 0.5 * dt * f
        x += dt * v
        f[:] = 0.0
        energy = pair_forces(x, f)
        v += 0.5 * dt * f
    return energy + 0.5 * np.sum(v * v)


def make(size, rng):
    side, steps = {"small": (3, 3), "large": (7, 20)}[size]
    grid = np.arange(side * 1.0)
    x = 1.2 * np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2)
    return x + 0.01 * rng.random(x.shape), 0.1 * rng.standard_normal(x.shape), 0.002, steps
