"""Numba: `njit(parallel=True)` of the workload itself, or of the loops that a Numba user would write for it.

Loops stand here and in `numba_learning.py`, `numba_loops.py` and `numba_data.py` for workloads whose NumPy form Numba refuses
(axis keywords, fancy indices), or compiles to something much slower than loops. Numba differentiates nothing: for a gradient it
gets the one written by hand.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba import prange

from peers import numba_data, numba_learning, numba_loops
from workloads import WORKLOADS, Workload, finance

normal_cdf = numba.njit(finance.normal_cdf)


def unit_vectors(v):
    out = np.empty_like(v)
    for i in prange(len(v)):
        length = np.sqrt(v[i, 0] * v[i, 0] + v[i, 1] * v[i, 1] + v[i, 2] * v[i, 2])
        for j in range(3):
            out[i, j] = v[i, j] / length
    return out


def triangle_normal(a, b, c):
    u, v = b - a, c - a
    normal = np.array([u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]])
    return normal / np.sqrt((normal * normal).sum())


def integer_blend(a, b):
    out = np.empty(len(a), np.uint8)
    for i in prange(len(a)):
        out[i] = (np.int32(a[i]) * 3 + np.int32(b[i]) * 5 + 4) >> 3
    return out


def black_scholes(spot, strike, years, rate, volatility):
    out = np.empty_like(spot)
    for i in prange(len(spot)):
        root = volatility[i] * np.sqrt(years[i])
        d1 = (np.log(spot[i] / strike[i]) + (rate + 0.5 * volatility[i] ** 2) * years[i]) / root
        out[i] = spot[i] * cdf(d1) - strike[i] * np.exp(-rate * years[i]) * cdf(d1 - root)
    return out


@numba.njit
def cdf(x):
    k = 1 / (1 + 0.2316419 * abs(x))
    tail = np.exp(-0.5 * x * x) / np.sqrt(2 * np.pi)
    tail = tail * k * (0.319381530 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429))))
    return 1 - tail if x > 0 else tail


def asian_option(noise, spot, strike, drift, volatility):
    total = 0.0
    for i in prange(noise.shape[0]):
        log, mean = 0.0, 0.0
        for j in range(noise.shape[1]):
            log += (drift - 0.5 * volatility**2) / 64 + volatility * noise[i, j]
            mean += spot * np.exp(log)
        total += max(mean / noise.shape[1] - strike, 0.0)
    return total / noise.shape[0]


def standardize_columns(x):
    n, m = x.shape
    out = np.empty_like(x)
    total, square = np.zeros(m), np.zeros(m)
    for i in range(n):
        for j in range(m):
            total[j] += x[i, j]
    mean = total / n
    for i in range(n):
        for j in range(m):
            square[j] += (x[i, j] - mean[j]) ** 2
    scale = np.sqrt(square / n)
    for i in prange(n):
        for j in range(m):
            out[i, j] = (x[i, j] - mean[j]) / scale[j]
    return out


def moments(x):
    mean = x.mean()
    m2 = m3 = m4 = 0.0
    for i in prange(len(x)):
        d = x[i] - mean
        m2 += d * d
        m3 += d * d * d
        m4 += d * d * d * d
    n = len(x)
    return m2 / n, m3 / n / (m2 / n) ** 1.5, m4 / n / (m2 / n) ** 2


def covariance(x):
    mean = np.zeros(x.shape[1])
    for i in range(x.shape[0]):
        mean += x[i]
    mean /= x.shape[0]
    centred = x - mean
    return centred.T @ centred / (len(x) - 1)


def pairwise_distances(x, y):
    dot = x @ y.T
    x2, y2 = np.empty(len(x)), np.empty(len(y))
    for i in prange(len(x)):
        x2[i] = (x[i] * x[i]).sum()
    for j in prange(len(y)):
        y2[j] = (y[j] * y[j]).sum()
    for i in prange(len(x)):
        for j in range(len(y)):
            dot[i, j] = np.sqrt(max(x2[i] + y2[j] - 2 * dot[i, j], 0.0))
    return dot


def cosine_similarity(x, y):
    out = np.empty(len(x))
    for i in prange(len(x)):
        xy = xx = yy = 0.0
        for j in range(x.shape[1]):
            xy += x[i, j] * y[i, j]
            xx += x[i, j] * x[i, j]
            yy += y[i, j] * y[i, j]
        out[i] = xy / np.sqrt(xx * yy)
    return out


def normalized_laplacian(a):
    n = len(a)
    weights, scale = np.empty_like(a), np.empty(n)
    for i in prange(n):
        degree = 0.0
        for j in range(n):
            weights[i, j] = np.exp(-abs(a[i, j] + a[j, i]))
            degree += weights[i, j]
        scale[i] = 1 / np.sqrt(degree)
    for i in prange(n):
        for j in range(n):
            weights[i, j] = (1.0 if i == j else 0.0) - scale[i] * weights[i, j] * scale[j]
    return weights


def tone_curve(picture, low, high):
    out = np.empty_like(picture)
    for i in prange(picture.shape[0]):
        for j in range(picture.shape[1]):
            for k in range(picture.shape[2]):
                x = (np.float32(picture[i, j, k]) / np.float32(255) - np.float32(low)) / np.float32(high - low)
                x = min(max(x, np.float32(0)), np.float32(1))
                x = x * x * (np.float32(3) - np.float32(2) * x)
                out[i, j, k] = np.uint8(x ** np.float32(1 / 2.2) * np.float32(255) + np.float32(0.5))
    return out


def alpha_over(background, layer):
    out = np.empty_like(background)
    for i in prange(out.shape[0]):
        for j in range(out.shape[1]):
            alpha = layer[i, j, 3]
            for k in range(3):
                out[i, j, k] = layer[i, j, k] * alpha + background[i, j, k] * (1 - alpha)
    return out


def downsample(image):
    height, width = image.shape[0] // 4, image.shape[1] // 4
    out = np.empty((height, width))
    for i in prange(height):
        for j in range(width):
            total = 0.0
            for a in range(4):
                for b in range(4):
                    total += image[4 * i + a, 4 * j + b]
            out[i, j] = total / 16
    return out


def wave_step(now, before, speed):
    n, m = now.shape
    out = np.empty_like(now)
    for i in prange(n):
        up, down = (i - 1) % n, (i + 1) % n
        for j in range(m):
            around = now[up, j] + now[down, j] + now[i, j - 1 if j else m - 1] + now[i, j + 1 if j < m - 1 else 0]
            out[i, j] = 2 * now[i, j] - before[i, j] + speed**2 * (around - 4 * now[i, j])
    return out


def heat_step(u):
    out = u.copy()
    for i in prange(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            out[i, j] = u[i, j] + 0.1 * (u[i + 1, j] + u[i - 1, j] + u[i, j + 1] + u[i, j - 1] - 4 * u[i, j])
    return out


def jacobi_in_place(u):
    old = u.copy()
    for i in prange(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            u[i, j] = 0.2 * (old[i, j] + old[i + 1, j] + old[i - 1, j] + old[i, j + 1] + old[i, j - 1])


def reaction_diffusion(u, v):
    n, m = u.shape[0] - 2, u.shape[1] - 2
    new_u, new_v = np.empty((n, m)), np.empty((n, m))
    for i in prange(n):
        for j in range(m):
            a, b = u[i + 1, j + 1], v[i + 1, j + 1]
            lu = u[i, j + 1] + u[i + 2, j + 1] + u[i + 1, j] + u[i + 1, j + 2] - 4 * a
            lv = v[i, j + 1] + v[i + 2, j + 1] + v[i + 1, j] + v[i + 1, j + 2] - 4 * b
            new_u[i, j] = a + 0.16 * lu - a * b * b + 0.06 * (1 - a)
            new_v[i, j] = b + 0.08 * lv + a * b * b - 0.122 * b
    return new_u, new_v


def gradient_magnitude(u):
    n, m = u.shape[0] - 2, u.shape[1] - 2
    out = np.empty((n, m))
    for i in prange(n):
        for j in range(m):
            dx, dy = (u[i + 2, j + 1] - u[i, j + 1]) / 2, (u[i + 1, j + 2] - u[i + 1, j]) / 2
            out[i, j] = np.sqrt(dx * dx + dy * dy)
    return out.max(), out


def n_body_step(position, velocity, mass):
    n = len(position)
    new_position, new_velocity = np.empty_like(position), np.empty_like(velocity)
    for i in prange(n):
        fx = fy = fz = 0.0
        for j in range(n):
            dx, dy, dz = position[j, 0] - position[i, 0], position[j, 1] - position[i, 1], position[j, 2] - position[i, 2]
            d2 = dx * dx + dy * dy + dz * dz + 0.01
            w = mass[j] / (d2 * np.sqrt(d2))
            fx += dx * w
            fy += dy * w
            fz += dz * w
        new_velocity[i, 0] = velocity[i, 0] + 0.01 * fx
        new_velocity[i, 1] = velocity[i, 1] + 0.01 * fy
        new_velocity[i, 2] = velocity[i, 2] + 0.01 * fz
        for a in range(3):
            new_position[i, a] = position[i, a] + 0.01 * new_velocity[i, a]
    return new_position, new_velocity


def lennard_jones_energy(position):
    total = 0.0
    n = len(position)
    for i in prange(n):
        for j in range(n):
            if i != j:
                dx, dy, dz = position[j, 0] - position[i, 0], position[j, 1] - position[i, 1], position[j, 2] - position[i, 2]
                attraction = (1.0 / (dx * dx + dy * dy + dz * dz + 0.1)) ** 3
                total += 4 * (attraction * attraction - attraction)
    return total / 2


def small_products(a, b):
    out = np.empty_like(a)
    for n in prange(len(a)):
        for i in range(3):
            for j in range(3):
                out[n, i, j] = a[n, i, 0] * b[n, 0, j] + a[n, i, 1] * b[n, 1, j] + a[n, i, 2] * b[n, 2, j]
    return out


def small_inverses(m):
    out = np.empty_like(m)
    for n in prange(len(m)):
        a, b, c, d = m[n, 0, 0], m[n, 0, 1], m[n, 1, 0], m[n, 1, 1]
        determinant = a * d - b * c
        out[n, 0, 0], out[n, 0, 1] = d / determinant, -b / determinant
        out[n, 1, 0], out[n, 1, 1] = -c / determinant, a / determinant
    return out


def quaternion_rotation(q, v):
    out = np.empty_like(v)
    for n in prange(len(v)):
        length = np.sqrt(q[n, 0] ** 2 + q[n, 1] ** 2 + q[n, 2] ** 2 + q[n, 3] ** 2)
        w, x, y, z = q[n, 0] / length, q[n, 1] / length, q[n, 2] / length, q[n, 3] / length
        a, b, c = v[n, 0], v[n, 1], v[n, 2]
        tx, ty, tz = 2 * (y * c - z * b), 2 * (z * a - x * c), 2 * (x * b - y * a)
        out[n, 0] = a + w * tx + y * tz - z * ty
        out[n, 1] = b + w * ty + z * tx - x * tz
        out[n, 2] = c + w * tz + x * ty - y * tx
    return out


def spherical_to_cartesian(radius, theta, phi):
    out = np.empty((3, len(radius)))
    for i in prange(len(radius)):
        out[0, i] = radius[i] * np.sin(theta[i]) * np.cos(phi[i])
        out[1, i] = radius[i] * np.sin(theta[i]) * np.sin(phi[i])
        out[2, i] = radius[i] * np.cos(theta[i])
    return out


def smoothing_gradient(x, target):
    n = len(x)
    out = np.empty_like(x)
    for i in prange(n):
        total = 2 * (x[i] - target[i])
        if i > 0:
            step = x[i] - x[i - 1]
            total += 5 * step / np.sqrt(1 + step * step)
        if i < n - 1:
            step = x[i + 1] - x[i]
            total -= 5 * step / np.sqrt(1 + step * step)
        out[i] = total
    return (out,)


def advance(u, steps):
    new = u.copy()
    for _ in range(steps):
        for i in prange(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                new[i, j] = u[i, j] + 0.2 * (u[i + 1, j] + u[i - 1, j] + u[i, j + 1] + u[i, j - 1] - 4 * u[i, j])
        u[:] = new


def fit_gradient(p, t, y):
    a, b, c = 0.0, 0.0, 0.0
    for i in prange(len(t)):
        decay = np.exp(-p[1] * t[i])
        cosine, sine = np.cos(p[2] * t[i]), np.sin(p[2] * t[i])
        twice = 2 * (p[0] * decay * cosine - y[i])
        a += twice * decay * cosine
        b -= twice * p[0] * t[i] * decay * cosine
        c -= twice * p[0] * decay * t[i] * sine
    return (np.array([a, b, c]),)


def life(grid, steps):
    rows, columns = grid.shape
    for _ in range(steps):
        new = np.empty_like(grid)
        for i in prange(rows):
            up, down = (i - 1) % rows, (i + 1) % rows
            for j in range(columns):
                left, right = (j - 1) % columns, (j + 1) % columns
                count = grid[up, left] + grid[up, j] + grid[up, right] + grid[i, left] + grid[i, right]
                count += grid[down, left] + grid[down, j] + grid[down, right]
                new[i, j] = count == 3 or (grid[i, j] == 1 and count == 2)
        grid = new
    return grid


OWN = {
    name: function
    for written in (globals(), vars(numba_data), vars(numba_learning), vars(numba_loops))
    for name, function in written.items()
    if name in WORKLOADS and callable(function)
}


# What has nothing to do in parallel is slower if it is asked to.
SERIAL = {"triangle_normal", "tiny_mix", "american_put", "gauss_elimination", "time_warping", "gauss_seidel", "crc32", "biquad"}
SERIAL |= {"coin_ways", "orbit", "attitude", "robot_arm", "hidden_markov", "group_means", "spring_forces", "drawdown", "streaks"}


def compiled(workload: Workload) -> Callable[..., Any]:
    """The workload as machine code by Numba, compiled at its first call."""
    return numba.njit(parallel=workload.name not in SERIAL)(OWN.get(workload.name, workload.function))
