"""Programs that loop, write into arrays, or have results of unknown length, as a JAX user would state them.

Loops are `fori_loop`, `while_loop` and `scan`; what writes says `.at[...]`; a mask stands in for what is selected.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax


def heat_step(u):
    inner = u[1:-1, 1:-1] + 0.1 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1])
    return u.at[1:-1, 1:-1].set(inner)


def jacobi_in_place(u):
    return u.at[1:-1, 1:-1].set(0.2 * (u[1:-1, 1:-1] + u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]))


def adam_update(parameters, gradient, first, second):
    first = 0.9 * first + 0.1 * gradient
    second = 0.999 * second + 0.001 * gradient * gradient
    return parameters - 0.001 * (first / 0.9) / (jnp.sqrt(second / 0.999) + 1e-8), first, second


def advance(u, steps):
    def step(_, u):
        inner = u[1:-1, 1:-1]
        return u.at[1:-1, 1:-1].add(0.2 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * inner))

    return lax.fori_loop(0, steps, step, u)


def life(grid, steps):
    def step(_, grid):
        shifts = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j]
        count = sum(jnp.roll(grid, shift, axis=(0, 1)) for shift in shifts)
        return ((count == 3) | ((grid == 1) & (count == 2))).astype(grid.dtype)

    return lax.fori_loop(0, steps, step, grid)


def escape_times(c, limit):
    def step(_, state):
        z, times = state
        inside = jnp.abs(z) <= 2
        return jnp.where(inside, z**2 + c, z), times + inside

    return lax.fori_loop(0, limit, step, (jnp.zeros_like(c), jnp.zeros(c.shape, jnp.int32)))[1]


def kepler(mean, eccentricity):
    def step(state):
        anomaly, _ = state
        change = (anomaly - eccentricity * jnp.sin(anomaly) - mean) / (1 - eccentricity * jnp.cos(anomaly))
        return anomaly - change, jnp.abs(change).max()

    return lax.while_loop(lambda state: state[1] > 1e-10, step, (mean + eccentricity * jnp.sin(mean), 1.0))[0]


def runge_kutta(slope, state, dt):
    """One classical step of a tuple of arrays."""

    def moved(by, slopes):
        return jax.tree.map(lambda x, k: x + by * k, state, slopes)

    k1 = slope(state)
    k2 = slope(moved(0.5 * dt, k1))
    k3 = slope(moved(0.5 * dt, k2))
    k4 = slope(moved(dt, k3))
    return jax.tree.map(lambda x, a, b, c, d: x + dt / 6 * (a + 2 * b + 2 * c + d), state, k1, k2, k3, k4)


def pendulums(angle, speed, dt, steps):
    def slope(state):
        return state[1], -jnp.sin(state[0]) - 0.1 * state[1]

    return lax.fori_loop(0, steps, lambda _, state: runge_kutta(slope, state, dt), (angle, speed))


def poisson(source, tolerance):
    def step(state):
        u, _ = state
        inner = 0.25 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] + source[1:-1, 1:-1])
        new = u.at[1:-1, 1:-1].set(inner)
        return new, jnp.abs(new - u).max()

    return lax.while_loop(lambda state: state[1] > tolerance, step, (jnp.zeros_like(source), 2 * tolerance))[0]


def shallow_water(height, u, v, steps):
    def step(_, state):
        height, u, v = state
        u = u.at[1:-1].add(-0.2 * (height[1:] - height[:-1]))
        v = v.at[:, 1:-1].add(-0.2 * (height[:, 1:] - height[:, :-1]))
        return height - 0.2 * (u[1:] - u[:-1] + v[:, 1:] - v[:, :-1]), u, v

    return lax.fori_loop(0, steps, step, (height, u, v))


def tridiagonal_solves(lower, diagonal, upper, right):
    def down(carry, row):
        c, d = carry
        low, diagonal, up, right = row
        pivot = diagonal - low * c
        carry = up / pivot, (right - low * d) / pivot
        return carry, carry

    def back(x, row):
        c, d = row
        x = d - c * x
        return x, x

    zero = jnp.zeros_like(right[0])
    _, rows = lax.scan(down, (zero, zero), (lower, diagonal, upper, right))
    rows = rows[0].at[-1].set(0.0), rows[1]
    return lax.scan(back, zero, rows, reverse=True)[1]


def american_put(spot, strike, rate, volatility, steps):
    dt = 1 / steps
    up = jnp.exp(volatility * jnp.sqrt(dt))
    p = (jnp.exp(rate * dt) - 1 / up) / (up - 1 / up)
    discount = jnp.exp(-rate * dt)
    price = spot * up ** (2.0 * jnp.arange(steps + 1) - steps)

    def step(_, state):
        price, value = state
        price = jnp.roll(price, -1) / up
        return price, jnp.maximum(discount * (p * jnp.roll(value, -1) + (1 - p) * value), strike - price)

    return lax.fori_loop(0, steps, step, (price, jnp.maximum(strike - price, 0)))[1][0]


def garch_volatility(returns, omega, alpha, beta):
    def step(variance, today):
        variance = omega + alpha * today**2 + beta * variance
        return variance, variance

    first = returns.var(axis=0)
    _, later = lax.scan(step, first, returns[:-1])
    return jnp.sqrt(jnp.concatenate([first[None], later]))


def gauss_elimination(a, b):
    n = len(b)
    rows = jnp.arange(n)

    def eliminate(k, system):
        pivot = jnp.argmax(jnp.where(rows >= k, jnp.abs(system[:, k]), -1.0))
        system = system.at[k].set(system[pivot]).at[pivot].set(system[k])
        factor = jnp.where(rows > k, system[:, k] / system[k, k], 0.0)
        return system - factor[:, None] * system[k]

    system = lax.fori_loop(0, n, eliminate, jnp.column_stack([a, b]))
    return jax.scipy.linalg.solve_triangular(system[:, :n], system[:, n])


def banded_product(bands, x):
    n = len(x)
    padded = jnp.pad(x, 2)
    return sum(bands[k] * padded[k : k + n] for k in range(5))


def time_warping(x, y):
    def row(above, a):
        def cell(left, at):
            diagonal, up, b = at
            here = jnp.abs(a - b) + jnp.minimum(jnp.minimum(up, left), diagonal)
            return here, here

        _, here = lax.scan(cell, jnp.inf, (above[:-1], above[1:], y))
        return jnp.concatenate([jnp.array([jnp.inf]), here]), None

    first = jnp.full(len(y) + 1, jnp.inf).at[0].set(0.0)
    return lax.scan(row, first, x)[0][-1]


def gauss_seidel(a, b, sweeps):
    def unknown(i, x):
        return x.at[i].set((b[i] - a[i] @ x + a[i, i] * x[i]) / a[i, i])

    return lax.fori_loop(0, sweeps, lambda _, x: lax.fori_loop(0, len(b), unknown, x), jnp.zeros_like(b))


def crc32(message, table):
    def step(crc, byte):
        return table[(crc ^ byte) & 0xFF] ^ (crc >> 8), None

    return lax.scan(step, jnp.uint32(0xFFFFFFFF), message)[0] ^ jnp.uint32(0xFFFFFFFF)


def biquad(x, b, a):
    def step(state, x):
        s1, s2 = state
        y = b[0] * x + s1
        return (b[1] * x - a[1] * y + s2, b[2] * x - a[2] * y), y

    return lax.scan(step, (0.0, 0.0), x)[1]


def coin_ways(coins, amount):
    def with_coin(ways, coin):
        def add(total, ways):
            return ways.at[total].add(ways[total - coin])

        return lax.fori_loop(coin, amount + 1, add, ways), None

    return lax.scan(with_coin, jnp.zeros(amount + 1, jnp.int64).at[0].set(1), coins)[0][amount]


def longest_collatz(limit):
    def length(start):
        def step(state):
            n, length = state
            return jnp.where(n % 2 == 0, n // 2, 3 * n + 1), length + 1

        return lax.while_loop(lambda state: state[0] != 1, step, (start, 1))[1]

    lengths = jax.vmap(length)(jnp.arange(1, limit))
    best = jnp.argmax(lengths)
    return best + 1, lengths[best]


def orbit(state, dt, steps):
    def slope(state):
        x, y, u, v = state
        pull = -1 / (x * x + y * y) ** 1.5
        return jnp.array([u, v, pull * x, pull * y])

    return lax.fori_loop(0, steps, lambda _, state: runge_kutta(slope, state, dt), state)


def attitude(rates, dt):
    def step(q, rate):
        p, r, s = rate
        w, x, y, z = q
        change = jnp.array([-x * p - y * r - z * s, w * p + y * s - z * r, w * r - x * s + z * p, w * s + x * r - y * p])
        q = q + 0.5 * dt * change
        return q / jnp.sqrt((q * q).sum()), None

    return lax.scan(step, jnp.array([1.0, 0.0, 0.0, 0.0]), rates)[0]


def hidden_markov(start, transition, emission, observed):
    def step(belief, symbol):
        belief = (belief @ transition) * emission[:, symbol]
        scale = belief.sum()
        return belief / scale, jnp.log(scale)

    return lax.scan(step, start, observed)[1].sum()


def least_squares_descent(a, b, steps):
    def step(_, x):
        return x - (0.5 / len(b)) * (a.T @ (a @ x - b))

    return lax.fori_loop(0, steps, step, jnp.zeros(a.shape[1]))


def convolution_layer(x, weights):
    out = lax.conv_general_dilated(x, weights, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    return jnp.maximum(out, 0)


def group_means(values, groups, count):
    total = jnp.bincount(groups, weights=values, length=count)
    return total / jnp.maximum(jnp.bincount(groups, length=count), 1)


def spring_forces(position, first, second):
    gap = position[second] - position[first]
    length = jnp.sqrt((gap * gap).sum(axis=1)) + 1e-9
    pull = gap * ((length - 1) / length)[:, None]
    return jnp.zeros_like(position).at[first].add(pull).at[second].add(-pull)


def drawdown(prices):
    loss = 1 - prices / lax.cummax(prices)
    return loss, loss.max()


def streaks(won):
    total = jnp.cumsum(won)
    return total - lax.cummax(jnp.where(won, 0, total))


def without_outliers(x):
    kept = jnp.abs(x - x.mean()) < 3 * x.std()
    return x.mean(where=kept), x.std(where=kept)


def top_scores(scores):
    return tuple(lax.top_k(scores, 10))


def winsorize(x):
    low, high = jnp.quantile(x, jnp.array([0.05, 0.95]))
    return jnp.clip(x, low, high)


def accuracy(logits, labels):
    return (logits.argmax(axis=1) == labels).mean(dtype=jnp.float64)


def equalize(picture):
    levels = jnp.cumsum(jnp.bincount(picture.ravel(), length=256))
    return (255 * levels // levels[-1]).astype(jnp.uint8)[picture]


OWN = {name: function for name, function in list(globals().items()) if getattr(function, "__module__", "") == __name__}
# Arguments that the length of an array depends on.
STATIC = {"american_put": (4,), "coin_ways": (1,), "longest_collatz": (0,), "group_means": (2,)}
