"""What is done to dataclasses and objects of the user's classes that come from outside, and to containers that they hold."""

# ruff: noqa  # code as people write it
# mypy: ignore-errors

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from programs.everyday.table import rows

ROWS, calls, session = rows()

X = np.arange(4.0)


def twice(make):
    return make, make, make


class Thing:
    def __init__(self, x=X):
        self.a = 1
        self.items = []
        self.d = {}
        self.x = x.copy()
        self._v = 0

    @property
    def v(self):
        return self._v

    @v.setter
    def v(self, value):
        self._v = value * 2

    def bump(self):
        self.a += 1
        return self.a


@calls(lambda: (Thing(), X), lambda: (Thing(), X * 2), lambda: (Thing(X[:2]), X))
def an_object_by_setters_methods_and_setattr(thing, x):
    thing.v = x.sum()
    thing.bump()
    thing.bump()
    thing.items.append(thing.v)
    thing.d["k"] = thing.items
    thing.new = [1, 2]
    thing.x = thing.x[1:]
    thing.y = thing.x
    setattr(thing, "z", 3)
    return thing.a, thing.v, thing.z, getattr(thing, "z")


@calls(*twice(lambda: (Thing(), Thing(X * 2))))
def two_objects_exchange_arrays(p, q):
    p.x, q.x = q.x, p.x
    p.items = q.items
    p.x += 1


@session()
def one_object_twice(jit):
    @jit
    def f(p, q):
        p.a += 1
        q.a += 10
        return p.a

    p, q = Thing(), Thing()
    return f(p, p), f(p, q), f(q, q), p.a, q.a


@calls(*twice(lambda: (Thing(),)))
def an_object_changes_in_a_loop(p):
    for i in range(4):
        p.a += i
        p.items.append(p.x[i])
    return p


@dataclass
class Body:
    pos: np.ndarray
    vel: np.ndarray
    mass: float = 1.0
    trail: list = field(default_factory=list)

    def step(self, force, dt):
        self.vel += force / self.mass * dt
        self.pos += self.vel * dt
        self.trail.append(self.pos.copy())


@calls(lambda: ([Body(X[n : n + 2], X[:2] / 8) for n in range(2)], 700))
def bodies_that_keep_their_trails(bodies, n):
    for _ in range(n):
        for b in bodies:
            f = np.zeros(2)
            for o in bodies:
                if o is not b:
                    d = o.pos - b.pos
                    f += d / (np.sqrt(d @ d) + 0.1) ** 3
            b.step(f, 0.01)
    return np.array([b.pos for b in bodies])


@dataclass
class Motion:
    w: np.ndarray
    n: int


@calls(lambda: (X, 1200), lambda: (-X, 1200))
def what_branches_make_anew_changes_in_a_loop(x, n):
    d, best, state = {"a": x * 2}, {"v": 0.0, "i": 0}, Motion(x, 0)
    for i in range(n):
        if x[i % 4] > 1:
            d = {"a": d["a"] * 0.3}
            state = replace(state, w=state.w * 0.5)
        d["a"] = d["a"] + i
        new = {"v": x[i % 4] * i, "i": i}
        best = new if new["v"] > best["v"] else best
        state = replace(state, n=state.n + 1)
    best["n"] = n
    state.n += 5
    return d, best, state


@session()
def a_global_and_an_objects_list_in_one_loop(jit):
    thing, seen = Thing(), []

    @jit
    def f(x, n):
        for i in range(n):
            x = x * 0.5
            seen.append(x.sum())
            if x[1] > 1e-3:
                thing.items.append(i)
        return x

    return f(X, 1200), f(X, 1200), thing.items, seen


@session()
def thousands_of_steps_are_no_thousand_compilations(jit):
    thing, state = Thing(), {"t": 0, "loss": 1.0}

    @jit
    def step(thing, g):
        thing.a += 1
        thing._v = thing._v + g.sum() / thing.a
        state["t"] += 1
        return thing._v

    last = [step(thing, X * n) for n in range(20)][-1]
    assert len(getattr(step, "variants", ())) <= 3
    return last, thing.a, state


@dataclass
class State:
    x: object
    n: int = 0
    tags: list = field(default_factory=list)
    scale = 2.0

    def step(self):
        self.n += 1
        self.tags.append(self.n)
        self.x = self.x * self.scale
        return self


@calls(lambda: (State(X),), lambda: (State(X, 3),), lambda: (State(X[:2], 3, ["a"]),))
def a_dataclass_with_methods(s):
    return s.step().step()


@calls(lambda: ([State(X)],), lambda: ([State(X, 3)],), lambda: ([State(X[:2], 3), State(X)],))
def dataclasses_in_a_list(states):
    states.append(State(states[0].x * 2))
    states[0].n = 7
    return states[-1].x


@session()
def lists_in_attributes_and_closures_grow(jit):
    log = []

    class Fit:
        def __init__(self):
            self.losses, self.w, self.worse = [], X.copy(), []

        @jit
        def step(self, x):
            self.losses.append(((self.w - x) ** 2).sum())
            self.w = self.w * 0.9
            log.append(len(self.losses))
            return self.losses[-1]

        @jit
        def compare(self):
            if len(self.losses) > 1 and self.losses[-1] > self.losses[-2]:
                self.worse.append(True)
            return len(self.worse)

        @jit
        def mean(self, x):
            for v in x:
                self.losses.append(v)
            self.losses += [x.max()]
            return np.mean(self.losses), self.losses

    fit, seen = Fit(), []
    for n in range(8):
        seen += [fit.step(X * n), fit.compare()]
    assert len(getattr(Fit.step, "variants", ())) <= 2
    mean, losses = fit.mean(X)
    return seen, log, mean, losses is fit.losses, fit.worse
