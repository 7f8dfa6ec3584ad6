"""Lists, dicts, dataclasses and objects that are handed in and changed, and what is counted and collected in them."""

# ruff: noqa  # code as people write it
# mypy: ignore-errors

from __future__ import annotations

from collections import Counter, defaultdict, deque, namedtuple
from dataclasses import dataclass, field

import numpy as np

from programs.everyday.table import rows

ROWS, calls, session = rows()

X = np.linspace(-1.0, 2.0, 7)
Y = np.linspace(3.0, 1.0, 7)


def params(n=3):
    return {"w": np.arange(float(n)), "b": np.zeros(1)}


@calls(lambda: (params(), X[:3]), lambda: (params(), Y[:3]), lambda: (params(5), X[:5]))
def sgd_step_on_a_dict(params, grad):
    params["w"] -= 0.1 * grad
    params["b"] += grad.sum()
    return params["w"].sum()


@calls(lambda: ({"x": X},), lambda: ({"x": Y},), lambda: ({"x": Y[:3]},))
def a_dict_gets_a_new_item(d):
    d["y"] = d["x"] + 1
    return d["y"].sum()


@calls(
    lambda: ({"x": X, "n": 1},),
    lambda: ({"x": Y, "n": 2},),
    lambda: ({"x": Y[:3], "n": 5},),
)
def a_dict_item_is_replaced(d):
    d["x"] = d["x"] * 2
    d["n"] += 1


@calls(lambda: ([], X), lambda: ([1.5], Y), lambda: ([1.5, 2.0], Y[:2]))
def history_of_losses(history, x):
    loss = (x**2).mean()
    history.append(loss)
    return loss


@calls(lambda: ([X, Y], 2.0), lambda: ([Y, X], 3.0), lambda: ([Y[:2], X[:2], X[:2]], 3.0))
def items_of_a_list_are_replaced(xs, a):
    for i in range(len(xs)):
        xs[i] = xs[i] * a
    return sum(x.sum() for x in xs)


@dataclass
class State:
    x: np.ndarray
    v: np.ndarray
    t: float = 0.0
    steps: int = 0


@calls(
    lambda: (State(X, Y), 0.1),
    lambda: (State(Y, X, 1.0, 7), 0.2),
    lambda: (State(Y[:2], X[:2], 1.0, 7), 0.2),
)
def leapfrog(state, dt):
    state.v -= 0.5 * dt * state.x
    state.x += dt * state.v
    state.v -= 0.5 * dt * state.x
    state.t += dt
    state.steps += 1
    return (state.v**2 + state.x**2).sum() / 2


@calls(
    lambda: (State(X, Y), 0.1),
    lambda: (State(Y, X, 1.0, 7), 0.2),
    lambda: (State(Y[:2], X[:2], 1.0, 7), 0.2),
)
def euler_with_new_arrays(state, dt):
    state.x = state.x + dt * state.v
    state.v = state.v - dt * state.x
    state.t = state.t + dt
    return state


class Body:
    def __init__(self, position, mass=1.0):
        self.position = position
        self.mass = mass
        self.trail = []
        self.count = 0


@calls(lambda: (Body(X), 0.5), lambda: (Body(Y, 2.0), 0.25), lambda: (Body(Y[:2], 2.0), 0.25))
def an_object_is_moved(body, dt):
    body.position += dt / body.mass
    body.count += 1
    body.last = body.position.max()
    return body.position.sum()


@calls(lambda: (Body(X), 0.5), lambda: (Body(Y, 2.0), 0.25), lambda: (Body(Y[:2], 2.0), 0.25))
def an_object_keeps_a_trail(body, dt):
    body.position = body.position + dt
    body.trail.append(body.position.copy())
    return len(body.trail)


@calls(lambda: ({}, X), lambda: ({"a": 1}, Y), lambda: ({}, Y[:3]))
def a_cache_in_a_dict(cache, x):
    if "norm" not in cache:
        cache["norm"] = np.linalg.norm(x)
    return x / cache["norm"]


@calls(
    lambda: ({"m": [np.zeros(3), np.ones(3)], "t": 0}, X[:3]),
    lambda: ({"m": [np.ones(3), np.ones(3)], "t": 4}, Y[:3]),
    lambda: ({"m": [np.ones(2), np.ones(2)], "t": 4}, Y[:2]),
)
def adam_state(state, g):
    state["t"] += 1
    m, v = state["m"]
    m[:] = 0.9 * m + 0.1 * g
    v *= 0.99
    v += 0.01 * g * g
    correction = 1 - 0.9 ** state["t"]
    return m / correction / (np.sqrt(v) + 1e-8)


@calls(lambda: (np.array([3, 1, 3, 2, 1]),), lambda: (np.array([3, 1, 1, 2, 1]),), lambda: (np.array([7, 7]),))
def counting_in_a_dict(words):
    counts = {}
    for w in words:
        counts[w] = counts.get(w, 0) + 1
    return sorted(counts.items())


@calls(lambda: (np.array([3, 1, 3, 2, 1]),), lambda: (np.array([3, 1, 1, 2, 1]),), lambda: (np.array([7, 7]),))
def counting_in_a_dict_of_ints(words):
    counts = {}
    for w in words:
        w = int(w)
        if w in counts:
            counts[w] += 1
        else:
            counts[w] = 1
    return counts


@calls(lambda: (np.array([3, 1, 3, 2, 1]), X[:5]), lambda: (np.array([3, 1, 1, 2, 1]), Y[:5]), lambda: (np.array([7, 7]), X[:2]))
def grouping_in_a_defaultdict(keys, values):
    groups = defaultdict(list)
    for k, v in zip(keys, values):
        groups[int(k)].append(v)
    return {k: np.mean(vs) for k, vs in groups.items()}


@calls(lambda: (np.array([3, 1, 3, 2, 1]),), lambda: (np.array([3, 1, 1, 2, 1]),), lambda: (np.array([7, 7]),))
def a_counter_of_a_list(words):
    return dict(Counter(words.tolist()))


@calls(lambda: (np.array([0, 2, 1]), X[:3]), lambda: (np.array([2, 2, 1]), Y[:3]), lambda: (np.array([1]), Y[:1]))
def a_dict_of_numbers_as_table(kinds, x):
    table = {0: 1.0, 1: 2.5, 2: -1.0}
    total = 0.0
    for k, v in zip(kinds, x):
        total += table[int(k)] * v
    return total


@calls(lambda: (2, X), lambda: (3, Y), lambda: (9, X))
def a_dict_looked_up_by_an_argument(n, x):
    table = {2: 0.5, 3: 0.25}
    return x * table.get(n, 1.0)


@calls(lambda: (X,), lambda: (Y,), lambda: (X[:3],))
def a_list_with_numbers_of_both_kinds(x):
    out = [0, 1]
    for i in range(2, 6):
        out.append(x[i % 3] + out[i - 1])
    return out


@calls(lambda: (X,), lambda: (Y,), lambda: (X[:3],))
def a_list_of_python_and_numpy_numbers(x):
    out = [1, 2.5]
    for v in x:
        out.append(v)
    return out


@calls(lambda: (np.arange(4),), lambda: (np.arange(4) * 2,), lambda: (np.arange(2),))
def a_list_of_ints_and_numpy_ints(x):
    out = [0]
    for i in range(len(x)):
        out.append(out[-1] + x[i])
    return out, sum(out)


@calls(lambda: (np.arange(4),), lambda: (np.arange(4) * 2,), lambda: (np.arange(2),))
def a_total_that_begins_as_an_int(x):
    total = 0
    totals = []
    for v in x:
        total += v
        totals.append(total)
    return totals, total


@calls(lambda: (X, 3), lambda: (Y, 2), lambda: (Y[:4], 2))
def a_moving_window_in_a_deque(x, n):
    window = deque(maxlen=n)
    means = []
    for v in x:
        window.append(v)
        means.append(sum(window) / len(window))
    return np.array(means)


Particle = namedtuple("Particle", "x v")


@calls(lambda: (Particle(X, Y), 0.1), lambda: (Particle(Y, X), 0.3), lambda: (Particle(Y[:2], X[:2]), 0.3))
def a_namedtuple_is_replaced(p, dt):
    p = p._replace(x=p.x + dt * p.v)
    return p, Particle(v=p.v * 2, x=p.x[::-1])


@dataclass(frozen=True)
class Fit:
    slope: float
    offset: float
    residuals: np.ndarray
    names: list = field(default_factory=list)


@calls(lambda: (X, Y), lambda: (X, X**2), lambda: (X[:4], Y[:4]))
def a_dataclass_is_returned(x, y):
    xm, ym = x.mean(), y.mean()
    slope = ((x - xm) * (y - ym)).sum() / ((x - xm) ** 2).sum()
    offset = ym - slope * xm
    return Fit(slope, float(offset), y - slope * x - offset, ["a"])


@calls(
    lambda: ([3.0, 1.0], {"a": [X]}),
    lambda: ([2.0, 1.0], {"a": [Y]}),
    lambda: ([2.0], {"a": [Y, X]}),
)
def containers_inside_containers_are_changed(xs, d):
    d["a"].append(d["a"][0] * xs[0])
    xs.insert(0, d["a"][-1].sum())
    xs.pop()
    return len(xs)


@calls(lambda: ([4, 2, 3],), lambda: ([1, 9],), lambda: ([],))
def a_list_argument_is_sorted_in_place(xs):
    xs.sort()
    return np.array(xs).sum()


@calls(
    lambda: (State(X, Y), X),
    lambda: (State(X, Y), Y),
    lambda: (State(X[:2], Y[:2]), Y[:2]),
)
def a_state_is_changed_under_a_condition(state, f):
    if f.sum() > 4:
        state.x = state.x * 2
    else:
        state.v = state.v + f
    return state.x.sum()


@session(refused="is the same list")
def two_names_of_one_list(jit):
    @jit
    def push(xs, ys, x):
        xs.append(x.sum())
        return len(ys)

    a = [1.0]
    return push(a, a, X), a, push(a, [], Y), a


@session()
def a_global_counter_and_cache(jit):
    calls_made = []

    @jit
    def f(x):
        return x * len(calls_made)

    out = [f(X)]
    calls_made.append(1)
    out.append(f(X))
    return out
