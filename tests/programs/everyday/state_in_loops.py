"""Loops that keep what they know in dicts and lists, and functions inside that use the loops' names."""

# ruff: noqa  # code as people write it
# mypy: ignore-errors

from __future__ import annotations

import numpy as np

import jitml
from programs.everyday.table import rows

ROWS, calls, session = rows()

X = np.linspace(-1.0, 2.0, 7)
RNG = np.random.default_rng
MANY = 3000  # iterations: too many to be unrolled


@calls(lambda: ({"w": np.zeros(3), "b": np.zeros(1)}, RNG(0).normal(size=(100, 3)), 10))
def adam(params, x, epochs):
    m = {k: np.zeros_like(v) for k, v in params.items()}
    v = {k: np.zeros_like(p) for k, p in params.items()}
    t, history = 0, []
    for epoch in range(epochs):
        total = 0.0
        for s in range(0, len(x), 8):
            xb = x[s : s + 8]
            e = xb @ params["w"] + params["b"] - xb.sum(1) - 1
            total += (e**2).sum()
            g = {"w": xb.T @ e / len(xb), "b": e.mean(keepdims=True)}
            t += 1
            for k in params:
                m[k] = 0.9 * m[k] + 0.1 * g[k]
                v[k] = 0.99 * v[k] + 0.01 * g[k] ** 2
                params[k] -= 0.01 * (m[k] / (1 - 0.9**t)) / (np.sqrt(v[k] / (1 - 0.99**t)) + 1e-8)
        history.append(total)
    return history


@calls((0,), (1,), (MANY,))
def numbers_in_a_dict(n):
    d = {"i": 0, "f": 0, "unchanged": 5}
    for k in range(n):
        d["i"] += k
        d["f"] += 0.5
    return d


@calls(lambda: (X, MANY))
def two_names_for_the_dict(x, n):
    d = {"a": x * 1, "b": x * 2}
    a, e = d["a"], d
    for _ in range(n):
        d["a"] = d["a"] * 0.5 + e["b"]
        e["b"] = d["a"] - 1
    return a, d["a"], e["b"], e is d


@calls(lambda: (X, 50))
def an_item_is_written_under_another_name(x, n):
    d = {"a": x * 1}
    a = d["a"]
    for _ in range(n):
        a += 1
        d["a"] = d["a"] * 0.5
    return a, d


@calls(lambda: ({"w": np.ones(4), "t": 0, "v": np.zeros(4)}, MANY))
def items_written_and_replaced(d, n):
    for _ in range(n):
        d["w"] -= 0.1 * d["w"]
        d["t"] += 1
        d["v"] = d["v"] * 0.9 + d["w"]


@calls(lambda: (X, 10), lambda: (X, MANY))
def ring_of_arrays(x, n):
    xs = [x, x + 1, x + 2]
    for _ in range(n):
        xs.insert(0, xs.pop())
        xs[0] = xs[0] * 0.5 + 1
    return xs


@calls(lambda: (X, 101))
def items_change_places(x, n):
    d = {"p": x, "q": x + 1}
    for _ in range(n):
        d["p"], d["q"] = d["q"] * 0.9, d["p"]
    return d


@calls(lambda: (X,))
def until_it_settles(x):
    state = {"x": x, "n": 0, "error": 1.0}
    while state["error"] > 1e-8:
        new = np.cos(state["x"])
        state["error"] = np.abs(new - state["x"]).max()
        state["x"] = new
        state["n"] += 1
    return state["x"], state["n"]


@calls(lambda: (X, MANY))
def until_a_break(x, n):
    state = {"x": x, "n": 0}
    for i in range(n):
        new = np.cos(state["x"])
        error = np.abs(new - state["x"]).max()
        state["x"] = new
        state["n"] += 1
        if error < 1e-6:
            break
    return state, i


@calls(lambda: (X, 100, 80))
def loops_in_loops(x, n, m):
    state, seen = {"s": 0.0, "h": x}, []
    for i in range(n):
        for j in range(m):
            state["s"] += i * j
            state["h"] = state["h"] * 0.99 + j
        state["s"] *= 0.5
        seen.append(state["s"])
    return state, seen


@calls(lambda: (X, MANY))
def keys_of_the_first_iteration(x, n):
    g = {}
    for i in range(n):
        g["a"] = x * i
        g["b"] = g["a"].sum()
    return g


@calls(lambda: (X, 200))
def keys_in_another_order(x, n):
    g = {"a": x, "b": x + 1}
    for _ in range(n):
        g["a"] = g.pop("a") + 1
    return g, list(g)


@calls(lambda: (X, MANY))
def a_dict_of_the_iteration(x, n):
    for _ in range(n):
        d = {"a": x}
        for _ in range(5):
            d["a"] = d["a"] * 0.9
        x = d["a"] + 1
    return x


def momentum(state, g):
    state["m"] = 0.9 * state["m"] + g
    return state["m"]


@calls(lambda: (X, MANY))
def changed_by_a_helper(x, n):
    state, y = {"m": np.zeros_like(x)}, 0
    for i in range(n):
        y = y + momentum(state, x * i)
    return y, state


@calls(lambda: (X, 30))
def dicts_that_come_to_share(x, n):
    d = {"a": x * 1}
    e = dict(d)
    for _ in range(n):
        d["a"] = d["a"] + 1
        e["a"] = d["a"]
    e["a"][0] = 9
    return d, e


@session()
def gradient_through_a_dict(jit):
    def loss(w, x):
        state = {"h": 0.0}
        for t in range(len(x)):
            state["h"] = np.tanh(w * x[t] + state["h"])
        return state["h"].sum()

    x = RNG(0).normal(size=(300, 2))
    return jit(jitml.grad(loss))(np.array([0.5, 0.2]), x)


@calls(lambda: (2.0, np.array([2.0, 0.0]), 0.01, MANY))
def runge_kutta(mu, y0, dt, n):
    trajectory = np.empty((n + 1, 2))
    trajectory[0] = y0
    f = lambda y: np.array([y[1], mu * (1 - y[0] ** 2) * y[1] - y[0]])
    for i in range(n):
        y = trajectory[i]
        k1 = f(y)
        k2 = f(y + dt / 2 * k1)
        k3 = f(y + dt / 2 * k2)
        trajectory[i + 1] = y + dt / 6 * (k1 + 2 * k2 + 2 * k3 + f(y + dt * k3))
    return trajectory


@calls(*[lambda n=n: (RNG(0).normal(size=60), RNG(0).integers(0, 60, (n, 2))) for n in (0, 1, 30, MANY)])
def ransac(x, pairs):
    y = 2 * x + 1 + 0.05 * np.sin(37 * x)
    best, best_count, weights = None, -1, None
    for k in range(len(pairs)):
        i, j = pairs[k]
        if i == j:
            continue
        slope = (y[j] - y[i]) / (x[j] - x[i])
        model = (slope, y[i] - slope * x[i])
        inliers = np.abs(y - model[0] * x - model[1]) < 0.1
        count = inliers.sum()
        if count > best_count:
            best, best_count, weights = model, count, inliers.astype(float)
    if best is None:
        return None
    return best, best_count, weights


@calls(lambda: (X, MANY), lambda: (-X[:1], MANY))
def best_step_so_far(x, n):
    w, least, best = np.ones(len(x)), np.inf, None
    for k in range(n):
        w -= 0.001 * w * x
        loss = ((w - x) ** 2).sum()
        if loss < least - 1e-9 and k % 3:
            least, best = loss, w.copy()
    return (w if best is None else best), least


@calls(lambda: (X, 40))
def defaults_of_functions_inside(x, n):
    for i in range(n):
        y = x * i
        f = lambda x, y=y: x + y
        x = f(x)
    return x, y


@calls(lambda: (RNG(0).normal(size=(50, 12)),))
def lines_one_by_one(x):
    kernel = np.hanning(5)
    smooth = np.apply_along_axis(lambda line: np.convolve(line, kernel, mode="same"), 1, x)
    ranges = np.apply_along_axis(lambda line: line.max() if line[0] > 0 else line.min(), 1, x)
    return smooth, ranges, np.apply_along_axis(np.linalg.norm, 0, x), np.apply_along_axis(np.argmax, 1, x)


@calls(lambda: (RNG(0).normal(size=(1100, 12)),))
def more_lines_than_are_unrolled(x):
    kernel = np.hanning(5)
    return np.apply_along_axis(lambda line: np.convolve(line, kernel, mode="same"), 1, x)


@calls(lambda: (RNG(0).normal(size=(1100, 12)),))
def ways_through_more_lines_than_are_unrolled(x):
    return np.apply_along_axis(lambda line: line.max() if line[0] > 0 else line.min(), 1, x)


@calls(lambda: (RNG(0).normal(size=(5, 50)), RNG(1).normal(size=50)), host=True)
def line_through_chosen_points(x, y):
    for t in range(len(x)):
        chosen = x[t] > 0
        c = np.polyfit(x[t][chosen], y[chosen], 1)
        y[chosen] = np.polyval(c, x[t][chosen])
    return y
