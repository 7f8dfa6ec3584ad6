"""Long loops that write in place: springs over thousands of steps, and an iteration that runs until it has converged."""

from __future__ import annotations

import numpy as np

from autodiff.tasks import Gradient
from autodiff.workload import differentiated

DT = 0.002


def _springs(n, rng):
    return rng.standard_normal(32), rng.standard_normal(32), rng.uniform(1, 2, 31), n


def _springs_by_hand(q, p, stiffness, steps):
    path = np.empty((steps + 1, len(q)))
    path[0] = q
    p = p + 0.5 * DT * force(q, stiffness)
    for n in range(steps):
        path[n + 1] = path[n] + DT * p
        p = p + (DT if n < steps - 1 else 0.5 * DT) * force(path[n + 1], stiffness)
    d_q, d_p, d_stiffness = path[steps].copy(), p.copy(), np.zeros_like(stiffness)
    for n in range(steps, -1, -1):
        # A kick: p += weight * force(q); then the drift before it.
        pull = d_p * (0.5 * DT if n in (0, steps) else DT)
        stretch = path[n, 1:] - path[n, :-1]
        d_tension = pull[:-1] - pull[1:]
        d_stiffness += d_tension * (stretch + 0.5 * stretch**3)
        d_stretch = d_tension * stiffness * (1 + 1.5 * stretch**2)
        d_q -= 0.1 * pull
        d_q[1:] += d_stretch
        d_q[:-1] -= d_stretch
        if n:
            d_p = d_p + DT * d_q
    return d_q, d_p, d_stiffness


def force(q, stiffness):
    stretch = q[1:] - q[:-1]
    tension = stiffness * (stretch + 0.5 * stretch**3)
    f = -0.1 * q
    f[:-1] += tension
    f[1:] -= tension
    return f


@differentiated(Gradient((0, 1, 2)), _springs_by_hand, _springs, small=20, full=10_000, bounded=False)
def leapfrog(q, p, stiffness, steps):
    q, p = q.copy(), p.copy()
    for _ in range(steps):
        p += 0.5 * DT * force(q, stiffness)
        q += DT * p
        p += 0.5 * DT * force(q, stiffness)
    return 0.5 * ((q * q).sum() + (p * p).sum())


TOLERANCE = 1e-11
LIMIT = 1000  # iterations, for those who have to know in advance


def _plate(n, rng):
    return rng.standard_normal((n, n)), rng.uniform(2, 4, (n, n)), rng.standard_normal((n + 2, n + 2))


def _plate_by_hand(source, conductivity, target):
    u = np.zeros(target.shape)
    kept, change = [], 1.0
    weight = 1 / (4 * conductivity + 1)
    while change > TOLERANCE:
        around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        new = (conductivity * around + source) * weight
        kept.append((around, new))
        change = np.abs(new - u[1:-1, 1:-1]).max()
        u[1:-1, 1:-1] = new
    d_u, d_source, d_conductivity = u - target, np.zeros_like(source), np.zeros_like(conductivity)
    while kept:
        around, new = kept.pop()
        back = d_u[1:-1, 1:-1] * weight
        d_source += back
        d_conductivity += back * (around - 4 * new)
        back *= conductivity
        d_u[1:-1, 1:-1] = 0
        for part in (d_u[:-2, 1:-1], d_u[2:, 1:-1], d_u[1:-1, :-2], d_u[1:-1, 2:]):
            part += back
    return d_source, d_conductivity


@differentiated(Gradient((0, 1)), _plate_by_hand, _plate, small=5, full=64, bounded=False)
def jacobi(source, conductivity, target):
    u = np.zeros(target.shape)
    change = 1.0
    while change > TOLERANCE:
        around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        new = (conductivity * around + source) / (4 * conductivity + 1)
        change = np.abs(new - u[1:-1, 1:-1]).max()
        u[1:-1, 1:-1] = new
    return 0.5 * ((u - target) ** 2).sum()
