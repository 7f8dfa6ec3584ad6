"""Classes, closures, partials, recursion: how people wrap their NumPy code."""

# ruff: noqa  # code as people write it
# mypy: ignore-errors

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from programs.everyday.table import rows

ROWS, calls, session = rows()

X = np.linspace(-1.0, 2.0, 7)
Y = np.linspace(3.0, 1.0, 7)


@session()
def a_model_with_jitted_methods(jit):
    class Regression:
        def __init__(self, n):
            self.w = np.zeros(n)
            self.rate = 0.1

        @jit
        def predict(self, x):
            return x @ self.w

        @jit
        def step(self, x, y):
            error = self.predict(x) - y
            self.w -= self.rate * x.T @ error / len(y)
            return (error**2).mean()

    rng = np.random.default_rng(0)
    model = Regression(3)
    losses = []
    for n in (5, 5, 8):
        x = rng.normal(size=(n, 3))
        losses.append(model.step(x, x @ np.array([1.0, 2.0, 3.0])))
    model.rate = 0.5
    losses.append(model.step(x, x.sum(1)))
    other = Regression(3)
    losses.append(other.step(x, x.sum(1)))
    return losses, model.w, other.w


@session()
def an_optimizer_counts_its_steps(jit):
    class Momentum:
        def __init__(self, n):
            self.v = np.zeros(n)
            self.t = 0

        @jit
        def update(self, g):
            self.t += 1
            self.v = 0.9 * self.v + g
            return self.v / self.t

    m = Momentum(7)
    return [m.update(X), m.update(Y), m.update(X)], m.t, m.v


@session()
def a_running_mean_in_self(jit):
    class Running:
        def __init__(self):
            self.count = 0
            self.mean = 0.0
            self.seen = []

        @jit
        def add(self, x):
            self.count += 1
            self.mean += (x.mean() - self.mean) / self.count
            self.seen.append(x.max())
            return self.mean

    r = Running()
    return [r.add(X), r.add(Y), r.add(Y[:2])], r.count, r.mean, r.seen


@session()
def static_class_methods_and_properties(jit):
    class Geometry:
        scale = 2.0

        def __init__(self, side):
            self.side = side

        @property
        def area(self):
            return self.side**2

        @staticmethod
        @jit
        def norm(x):
            return np.sqrt((x * x).sum())

        @classmethod
        def scaled(cls, x):
            return x * cls.scale

        @jit
        def total(self, x):
            return self.scaled(x).sum() * self.area

    g = Geometry(3.0)
    out = [g.norm(X), g.total(X), Geometry(2.0).total(Y), Geometry.norm(Y[:3])]
    Geometry.scale = 3.0
    return out, g.total(X)


@session()
def a_partial_of_a_jitted_function_and_jit_of_a_partial(jit):
    def scale(x, a, *, b=1.0):
        return x * a + b

    f = functools.partial(jit(scale), a=2.0)
    g = jit(functools.partial(scale, a=3.0, b=0.5))
    return f(X), f(Y, b=2.0), g(Y), g(X[:3])


@session()
def lambdas_and_closures(jit):
    def make(a):
        return jit(lambda x: np.tanh(a * x))

    fs = [make(a) for a in (1.0, 2.0)]
    return [f(x) for f in fs for x in (X, Y, Y[:3])]


@session(as_python="assigns the global or nonlocal name")
def a_closure_counts_with_nonlocal(jit):
    n = 0

    def count(x):
        nonlocal n
        n += 1
        return x * n

    f = jit(count)
    return f(X), f(Y), f(X[:2]), n


@calls((X,), (Y,), (X[:3],), as_python="assigns the global or nonlocal name")
def a_nested_function_counts_with_nonlocal(x):
    evaluations = 0

    def f(t):
        nonlocal evaluations
        evaluations += 1
        return np.sin(t) * x

    total = f(0.0) + f(0.5) + f(1.0)
    return total, evaluations


@calls((X, 0.1), (Y, 0.2), (X[:3], 0.2))
def a_helper_with_args_and_kwargs(x, h):
    def rhs(t, y, *args, **kwargs):
        return -kwargs["k"] * y + args[0] * t + len(args)

    def rk4(f, t, y, h, *args, **kwargs):
        k1 = f(t, y, *args, **kwargs)
        k2 = f(t + h / 2, y + h / 2 * k1, *args, **kwargs)
        k3 = f(t + h / 2, y + h / 2 * k2, *args, **kwargs)
        k4 = f(t + h, y + h * k3, *args, **kwargs)
        return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

    for i in range(5):
        x = rk4(rhs, i * h, x, h, 1.0, 2.0, k=0.5)
    return x


@session()
def arguments_by_stars(jit):
    @jit
    def total(*xs, scale=1.0, **named):
        out = sum(x.sum() for x in xs) * scale
        for name, value in sorted(named.items()):
            out = out + len(name) * value
        return out

    return total(X), total(X, Y), total(X, Y, scale=2.0, a=1.0, bb=X), total(scale=3), total(Y[:2], b=Y)


@session()
def a_mutable_default_collects(jit):
    @jit
    def collect(x, seen=[]):
        seen.append(x.sum())
        return len(seen)

    return collect(X), collect(Y), collect(X[:2])


@session()
def a_default_array_is_read(jit):
    weights = np.arange(7.0)

    @jit
    def f(x, w=weights):
        return (x * w).sum()

    out = [f(X), f(Y)]
    weights += 1
    return out, f(X), f(X, Y)


@calls((X, 0.5), (Y, -0.5), (X[:4], 0.5))
def a_generator_as_helper(x, a):
    def windows(x, n):
        for i in range(len(x) - n + 1):
            yield x[i : i + n]

    return [w.mean() * a for w in windows(x, 2)]


@calls((X, 3), (Y, 2), (X[:4], 1))
def a_generator_with_a_changing_state(x, n):
    def halvings(y):
        while True:
            yield y
            y = y / 2

    total = 0
    for k, y in enumerate(halvings(x)):
        if k == n:
            break
        total = total + y.sum()
    return total


@calls((np.arange(6.0).reshape(2, 3),), (np.ones((2, 3)),), (np.ones((4, 1)),))
def recursion_over_halves(a):
    def pairwise(x):
        if len(x) <= 2:
            return x.sum()
        mid = len(x) // 2
        return pairwise(x[:mid]) + pairwise(x[mid:])

    return pairwise(a.ravel())


@calls((8, X), (5, Y), (12, X))
def memoized_recursion(n, x):
    memo = {}

    def fib(k):
        if k < 2:
            return k
        if k not in memo:
            memo[k] = fib(k - 1) + fib(k - 2)
        return memo[k]

    return x * fib(n)


@session()
def formats_in_exceptions_and_names(jit):
    @jit
    def f(x, n):
        key = f"layer{n}"
        table = {"layer1": 2.0, "layer2": 3.0}
        if n > 2:
            raise KeyError(f"no {key}: {x.shape}")
        return x * table[key], f"{x.sum():.3f} of {n}"

    out = [f(X, 1), f(Y, 2)]
    try:
        f(X, 3)
    except KeyError as error:
        out.append(str(error))
    return out


COUNTER = 0


@session(as_python="assigns the global or nonlocal name")
def a_global_counter(jit):
    global COUNTER
    COUNTER = 0

    @jit
    def f(x):
        global COUNTER
        COUNTER += 1
        return x * COUNTER

    return f(X), f(Y), f(X[:2]), COUNTER


@session()
def an_object_with_operators(jit):
    @dataclass
    class Dual:
        value: np.ndarray
        slope: np.ndarray

        def __mul__(self, other):
            return Dual(self.value * other.value, self.value * other.slope + self.slope * other.value)

        def __add__(self, other):
            return Dual(self.value + other.value, self.slope + other.slope)

        def __len__(self):
            return len(self.value)

    @jit
    def square_plus(d):
        return d * d + d, len(d)

    return square_plus(Dual(X, np.ones(7))), square_plus(Dual(Y, X)), square_plus(Dual(Y[:2], X[:2]))


@session()
def a_callable_object_and_inheritance(jit):
    class Layer:
        def __call__(self, x):
            return self.activate(x @ self.w + self.b)

        def activate(self, x):
            return x

    class Relu(Layer):
        def __init__(self, w, b):
            self.w, self.b = w, b

        def activate(self, x):
            return np.maximum(super().activate(x), 0)

    layers = [Relu(np.ones((7, 3)), np.zeros(3)), Relu(np.eye(3), -np.ones(3))]

    @jit
    def network(x):
        for layer in layers:
            x = layer(x)
        return x

    out = [network(X), network(Y)]
    layers[0].w *= 2
    layers.append(Relu(np.eye(3), np.ones(3)))
    return out, network(X)


@session(as_python="answers with what it has kept")
def a_decorated_helper_and_a_cached_one(jit):
    def logged(f):
        @functools.wraps(f)
        def inner(*args, **kwargs):
            return f(*args, **kwargs) + 1

        return inner

    @logged
    def double(x):
        return 2 * x

    @functools.lru_cache(maxsize=None)
    def nodes(n):
        return np.polynomial.legendre.leggauss(n)

    @jit
    def integrate(f_scale, n):
        t, w = nodes(n)
        return (w * double(np.cos(t) * f_scale)).sum()

    return integrate(1.0, 3), integrate(2.0, 3), integrate(2.0, 5)


@session(as_python="`with` enters a")
def a_context_manager_of_the_user(jit):
    class Scope:
        def __init__(self, log):
            self.log = log

        def __enter__(self):
            self.log.append("in")
            return self

        def __exit__(self, *error):
            self.log.append("out")
            return False

    @jit
    def f(x):
        log = []
        with Scope(log):
            y = x * 2
        return y, log

    return f(X), f(Y), f(Y[:2])


@session()
def a_jitted_function_changes_an_object_in_a_closure(jit):
    class Stats:
        calls = 0

    stats = Stats()

    @jit
    def f(x):
        stats.calls += 1
        stats.last = x.sum()
        return x * 2

    return f(X), f(Y), f(Y[:2]), stats.calls, stats.last
