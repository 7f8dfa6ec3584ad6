"""Particles, rotations and many small matrices."""

from __future__ import annotations

import numpy as np

from workloads.workload import workload


@workload(lambda n, rng: (rng.standard_normal((n, 3)), rng.standard_normal((n, 3)), rng.uniform(0.5, 1, n)), small=8, full=1000)
def n_body_step(position, velocity, mass):
    gap = position[None, :, :] - position[:, None, :]
    distance2 = (gap * gap).sum(axis=-1) + 0.01
    force = gap * (mass[None, :] / (distance2 * np.sqrt(distance2)))[:, :, None]
    velocity = velocity + 0.01 * force.sum(axis=1)
    return position + 0.01 * velocity, velocity


@workload(lambda n, rng: (10 * rng.uniform(0, 1, (n, 3)),), small=8, full=1000)
def lennard_jones_energy(position):
    x, y, z = position[:, 0], position[:, 1], position[:, 2]
    distance2 = (x[:, None] - x) ** 2 + (y[:, None] - y) ** 2 + (z[:, None] - z) ** 2
    attraction = (1.0 / (distance2 + 0.1)) ** 3
    pairs = 4 * (attraction * attraction - attraction)
    return (pairs.sum() - np.trace(pairs)) / 2


@workload(lambda n, rng: (rng.standard_normal((n, 3, 3)), rng.standard_normal((n, 3, 3))), small=6, full=100_000)
def small_products(a, b):
    return a @ b


@workload(lambda n, rng: (rng.standard_normal((n, 2, 2)) + 3 * np.eye(2),), small=7, full=200_000)
def small_inverses(m):
    a, b, c, d = m[:, 0, 0], m[:, 0, 1], m[:, 1, 0], m[:, 1, 1]
    rows = np.stack([np.stack([d, -b], axis=-1), np.stack([-c, a], axis=-1)], axis=-2)
    return rows / (a * d - b * c)[:, None, None]


@workload(lambda n, rng: (rng.standard_normal((n, 4)), rng.standard_normal((n, 3))), small=5, full=200_000)
def quaternion_rotation(q, v):
    q = q / np.sqrt((q * q).sum(axis=1, keepdims=True))
    w, x, y, z = q[:, 0], q[:, 1], q[:, 2], q[:, 3]
    a, b, c = v[:, 0], v[:, 1], v[:, 2]
    tx, ty, tz = 2 * (y * c - z * b), 2 * (z * a - x * c), 2 * (x * b - y * a)
    return np.stack([a + w * tx + y * tz - z * ty, b + w * ty + z * tx - x * tz, c + w * tz + x * ty - y * tx], axis=1)


@workload(lambda n, rng: tuple(rng.uniform(0.1, 3, n) for _ in range(3)), small=20, full=500_000)
def spherical_to_cartesian(radius, theta, phi):
    return np.stack([radius * np.sin(theta) * np.cos(phi), radius * np.sin(theta) * np.sin(phi), radius * np.cos(theta)])
