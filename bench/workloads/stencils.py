"""Differences on grids, written with slices."""

from __future__ import annotations

import numpy as np

from workloads.workload import workload


def _grid(n, rng):
    return (rng.standard_normal((n, n)),)


@workload(_grid, small=11, full=1000)
def heat_step(u):
    new = u.copy()
    new[1:-1, 1:-1] = u[1:-1, 1:-1] + 0.1 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1])
    return new


@workload(_grid, small=11, full=1000, mutates=(0,))
def jacobi_in_place(u):
    u[1:-1, 1:-1] = 0.2 * (u[1:-1, 1:-1] + u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2])


@workload(lambda n, rng: (rng.standard_normal((n, n)), rng.standard_normal((n, n)), 0.3), small=10, full=1000)
def wave_step(now, before, speed):
    laplacian = np.roll(now, 1, 0) + np.roll(now, -1, 0) + np.roll(now, 1, 1) + np.roll(now, -1, 1) - 4 * now
    return 2 * now - before + speed**2 * laplacian


@workload(lambda n, rng: (rng.standard_normal(n), 0.4), small=30, full=2_000_000)
def upwind_advection(u, courant):
    flux = courant * u
    return u[1:-1] - (flux[1:-1] - flux[:-2]) + 0.05 * (u[2:] - 2 * u[1:-1] + u[:-2])


@workload(lambda n, rng: (rng.uniform(0, 1, (n, n)), rng.uniform(0, 1, (n, n))), small=10, full=700)
def reaction_diffusion(u, v):
    def spread(a):
        return a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] - 4 * a[1:-1, 1:-1]

    inner_u, inner_v = u[1:-1, 1:-1], v[1:-1, 1:-1]
    reaction = inner_u * inner_v * inner_v
    new_u = inner_u + 0.16 * spread(u) - reaction + 0.06 * (1 - inner_u)
    new_v = inner_v + 0.08 * spread(v) + reaction - 0.122 * inner_v
    return new_u, new_v


@workload(_grid, small=9, full=1000)
def gradient_magnitude(u):
    dx = (u[2:, 1:-1] - u[:-2, 1:-1]) / 2
    dy = (u[1:-1, 2:] - u[1:-1, :-2]) / 2
    return np.sqrt(dx**2 + dy**2).max(), np.sqrt(dx**2 + dy**2)
