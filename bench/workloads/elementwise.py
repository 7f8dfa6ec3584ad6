"""Chains of pointwise arithmetic, large and tiny."""

from __future__ import annotations

import numpy as np

from workloads.workload import workload


@workload(lambda n, rng: (rng.standard_normal(n),), small=37, full=1_000_000)
def polynomial(x):
    return ((((0.2 * x - 1.1) * x + 0.7) * x - 2.5) * x + 0.3) * x + 1.0


@workload(lambda n, rng: (np.linspace(0.0, 20.0, n), 0.1, 3.0), small=50, full=1_000_000)
def damped_wave(t, decay, frequency):
    return np.exp(-decay * t) * np.cos(frequency * t + 0.5)


@workload(lambda n, rng: (rng.standard_normal((n, 256)).astype(np.float32),), small=3, full=4096, rtol=1e-5)
def gelu(x):
    return 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x**3)))


@workload(lambda n, rng: (rng.standard_normal(n), rng.standard_normal(n)), small=40, full=2_000_000)
def leaky_blend(x, y):
    z = np.where(x > 0, x, 0.01 * x)
    return np.maximum(z, y) - np.minimum(z, y) + np.abs(x - y)


@workload(lambda n, rng: (rng.uniform(-180, 180, n), rng.uniform(-90, 90, n), 8.55, 47.37), small=30, full=500_000)
def haversine(longitude, latitude, longitude0, latitude0):
    x, y = np.radians(longitude), np.radians(latitude)
    x0, y0 = np.radians(longitude0), np.radians(latitude0)
    a = np.sin((y - y0) / 2) ** 2 + np.cos(y) * np.cos(y0) * np.sin((x - x0) / 2) ** 2
    return 2 * 6371.0 * np.arcsin(np.sqrt(a))


@workload(lambda n, rng: (rng.standard_normal((n, 3)),), small=11, full=500_000)
def unit_vectors(v):
    return v / np.sqrt((v * v).sum(axis=1, keepdims=True))


@workload(lambda n, rng: tuple(rng.standard_normal(n) for _ in range(3)), small=3, full=3)
def triangle_normal(a, b, c):
    u, v = b - a, c - a
    normal = np.stack([u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]])
    return normal / np.sqrt((normal * normal).sum())


@workload(lambda n, rng: (rng.standard_normal(n), rng.standard_normal(n), 0.3), small=3, full=3)
def tiny_mix(x, y, t):
    return (1 - t) * x + t * y


@workload(
    lambda n, rng: (rng.integers(0, 256, n).astype(np.uint8), rng.integers(0, 256, n).astype(np.uint8)), small=100, full=2_000_000
)
def integer_blend(a, b):
    return ((a.astype(np.int32) * 3 + b.astype(np.int32) * 5 + 4) >> 3).astype(np.uint8)
