"""Functions that set attributes, items and global names in loops and branches, and what they are called with.

`WHOLE` are captured with a region, and `ANY` in whichever way.
"""

from __future__ import annotations

import copy
import dataclasses
from types import SimpleNamespace
from typing import Any

import numpy as np

X = np.random.default_rng(0).normal(size=(12, 3))
Y = X @ np.array([1.0, 2.0, 3.0])
COUNT = 0.0


class Model:
    total = 0

    def __init__(self, **attributes: Any) -> None:
        self.w = np.zeros(3)
        self.b: Any = 0
        self.t = 0
        self.log: list[Any] = []
        vars(self).update(attributes)

    def step(self, g: Any) -> None:
        self.t += 1
        self.w = self.w - 0.1 * g / (1 - 0.9**self.t)


class Slotted:
    __slots__ = ("t", "w")

    def __init__(self) -> None:
        self.w, self.t = np.zeros(3), 0


class Counted:
    def __init__(self) -> None:
        self._w, self.sets = np.zeros(3), 0

    @property
    def w(self) -> Any:
        return self._w

    @w.setter
    def w(self, value: Any) -> None:
        self._w = value
        self.sets += 1


@dataclasses.dataclass
class Record:
    w: Any
    t: int = 0


class Layer:
    def __init__(self, n: int, m: int) -> None:
        self.w = np.random.default_rng(n).normal(size=(n, m))
        self.b = np.zeros((1, m))

    def forward(self, x: Any) -> Any:
        self.x = x
        self.z = x @ self.w + self.b
        return np.tanh(self.z)

    def backward(self, d: Any) -> Any:
        d = d * (1 - np.tanh(self.z) ** 2)
        before = self.w
        self.w = self.w - 0.1 * self.x.T @ d
        self.b -= 0.1 * d.sum(axis=0, keepdims=True)
        return d @ before.T


class Adam:
    def __init__(self) -> None:
        self.m: dict[str, Any] = {}
        self.t = 0

    def update(self, params: Any, grads: Any) -> None:
        self.t += 1
        for key in params:
            if key not in self.m:
                self.m[key] = np.zeros_like(params[key])
            self.m[key] = 0.9 * self.m[key] + 0.1 * grads[key]
            params[key] -= 0.1 * self.m[key] / (1 - 0.9**self.t)


def descends(m: Any) -> Any:
    for _ in range(40):
        e = X @ m.w + m.b - Y
        m.w -= 0.1 * X.T @ e / len(Y)
        m.b -= 0.1 * np.sum(e) / len(Y)
    return m.w @ m.w


def rebinds(m: Any) -> Any:
    w = m.w
    for _ in range(40):
        m.w = m.w - 0.1 * X.T @ (X @ m.w - Y) / len(Y)
        m.w[0] += 0.5
    return w, w is m.w


def begins_with_none(m: Any) -> None:
    m.w, m.b = np.zeros(3), 0
    for _ in range(40):
        m.p = X @ m.w + m.b
        m.g = X.T @ (m.p - Y)
        m.w, m.b = m.w - 0.01 * m.g, m.b - 0.01 * m.p.mean()


def by_a_method(m: Any) -> None:
    for _ in range(40):
        m.step(X.T @ (X @ m.w - Y) / len(Y))


def two_names(m: Any, k: Any) -> Any:
    for i in range(40):
        m.w, k.t = k.w * 0.5 + i, m.t + 1
    return m is k


def nested(m: Any) -> None:
    for _ in range(6):
        m.v = np.zeros(3)
        for j in range(5):
            m.v = m.v * 0.5 + m.w + j
            m.t += 1
        m.w = m.w + 0.1 * m.v


def exchanges(m: Any) -> None:
    for i in range(7):
        m.w, m.v = m.v, m.w + i


def ends_early(m: Any) -> Any:
    for i in range(40):
        m.w = m.w + 1
        if m.w.sum() > 50:
            m.t = i
            break
        if m.w.sum() > 40:
            continue
        m.b += 1
    return m.w


def returns_early(m: Any) -> Any:
    for i in range(40):
        m.w = m.w + 0.5
        if m.w.sum() > 20:
            m.t = i
            return i
    return -1


def goes_on(m: Any) -> Any:
    w = m.w
    while m.w.sum() < m.b:
        m.w = m.w + 1
        m.t += 1
    return m.w is w


def keeps_the_best(m: Any) -> None:
    m.best = np.inf
    for i in range(40):
        m.w = m.w * 0.9 + np.sin(i)
        if (loss := (m.w**2).sum()) < m.best:
            m.best, m.found = loss, m.w.copy()


def chooses_memory(m: Any, x: Any) -> None:
    if x[0] > 0:
        m.w = np.cos(x)
    else:
        m.b = x.sum()


def chooses(m: Any, x: Any) -> Any:
    before = m.w
    if x[0] > 0:
        m.w = np.ones(3)
    m.w += 1
    return before, before is m.w


def shares_in_a_branch(m: Any, x: Any) -> Any:
    if x[0] > 0:
        m.found = m.w
    m.w -= 1


def sets_in_both(m: Any, x: Any) -> None:
    if x[0] > 0:
        m.new = x * 2
    else:
        m.new = x * 3


def sets_in_one(m: Any, x: Any) -> Any:
    if x[0] > 0:
        m.new = x * 2
    return hasattr(m, "new")


def deletes_in_one(m: Any, x: Any) -> None:
    if x[0] > 0:
        del m.w


def of_slots(m: Any) -> None:
    for i in range(40):
        m.w = m.w * 0.5 + i
        m.t += 1


def of_a_property(m: Any) -> None:
    for i in range(40):
        m.w = m.w * 0.5 + i


def of_a_record(m: Any, r: Any) -> None:
    for i in range(40):
        r.w = r.w * 0.5 + i
        m.r.t += r.t
        r.t += 1


def by_setattr(m: Any) -> None:
    for _ in range(40):
        setattr(m, "w", getattr(m, "w") + 1)  # noqa: B009, B010
        m.k = getattr(m, "k", 0) + 1


def layers(layers: Any) -> Any:
    for _ in range(40):
        x = X
        for layer in layers:
            x = layer.forward(x)
        d = (x - Y[:, None]) / len(Y)
        for layer in reversed(layers):
            d = layer.backward(d)
    return x


def layers_made_inside(n: int) -> Any:
    made = [Layer(3, 4), Layer(4, 1)]
    x = layers(made)
    return x, made[0].w, SimpleNamespace(b=made[1].b)


def with_an_optimiser(o: Any, params: Any) -> None:
    for _ in range(40):
        e = X @ params["w"] + params["b"] - Y
        o.update(params, {"w": X.T @ e / len(Y), "b": np.array([e.mean()])})


def items_in_branches(d: Any) -> None:
    x = 1.0
    for i in range(40):
        x = np.sin(x + i)
        if x > 0:
            d["up"] = x
        else:
            d["down"] += x


def raises(m: Any) -> None:
    for i in range(40):
        m.w = m.w + 1
        m.t = i
        if m.w[0] > 10:
            raise ValueError("too far")


def raises_an_index_error(m: Any) -> None:
    for i in range(40):
        m.w = m.w + 1
        m.t = i
        m.b = m.b + X[i, 0]


def handles(m: Any) -> None:
    for i in range(10):
        try:
            m.w = m.w + 1
            if m.w[0] > 4:
                raise ValueError
            m.b = i
        except ValueError:
            m.t += 1


def a_global_name(n: Any) -> Any:
    global COUNT
    for i in range(40):
        COUNT = COUNT + np.sin(i)
    return COUNT


def of_a_class(n: Any) -> Any:
    Model.total = 0
    for i in range(40):
        Model.total += i
    return Model.total


def a_default_of_the_class(m: Any) -> None:
    for i in range(40):
        m.total += i


def inside(m: Any) -> Any:
    own = Model(w=m.w)
    for i in range(40):
        own.w = own.w * 0.9 + i
        own.t += 1
    m.own = own
    return own.t


def lists_in_attributes(m: Any) -> Any:
    kept: Any = None
    for i in range(40):
        m.log = [i * 0.5, 2.0]
        kept = m.log
    kept[0] = 5.0
    return kept is m.log


def one_list_in_two(m: Any) -> None:
    m.log = m.other = [0.0]
    for i in range(40):
        m.log = [m.log[0] + i]
        m.other = m.log


def an_array_in_two(m: Any) -> Any:
    for _ in range(40):
        m.v = m.w
        m.w[0] += 1
        m.w = m.w * 1.0
    return m.v is m.w


def views(m: Any) -> None:
    m.v = m.w[:2]
    for _ in range(40):
        m.v += 1
        m.w *= 0.5


def copies(m: Any) -> Any:
    best = None
    for i in range(10):
        m.w = m.w + 1
        if i == 5:
            best = copy.deepcopy(m)
    return best


def chain(m: Any) -> None:
    while m is not None:
        m.w = m.w + 1
        m = m.next


def linked() -> Any:
    return (Model(next=Model(w=np.ones(3), next=Model(next=None))),)


def fills_a_list(m: Any) -> Any:
    m.log = [1.0]
    for i in range(40):
        m.b = m.b * 0.9 + i
        m.log.append(m.b)
        if len(m.log) > 3 and abs(m.log[-1] - m.log[-2]) < 0.5:
            break
    return np.mean(m.log), m.log[-1], len(m.log)


def fills_lists_now_and_then(m: Any) -> None:
    m.log = []
    m.other = []
    m.b = np.float64(0.5)
    for i in range(20):
        for j in range(3):
            m.b = np.sin(m.b + i)
            m.log.append((i + j, m.b))
        if m.b > 0:
            m.other.append(i)


def changes_lists_that_it_has_filled(m: Any) -> None:
    fills_lists_now_and_then(m)
    m.other.pop()


def fills_a_list_and_raises(m: Any) -> None:
    m.log = []
    for i in range(40):
        m.log.append(X[i, 0])


def fills_a_list_of_its_own(n: int) -> Any:
    own = Model()
    own.log = []
    for i in range(n):
        own.b = own.b * 0.5 + i
        own.log.append(own.b)
    return own, own.log, max(own.log)


def fills_a_list_with_a_name(m: Any) -> Any:
    m.log = named = []
    for i in range(40):
        m.log.append(np.sin(i))
    return named


def fills_a_list_that_is_held(m: Any) -> Any:
    m.log = []
    held = copy.copy(m)
    for i in range(40):
        m.log.append(np.sin(i))
    return held


def model(**attributes: Any) -> Any:
    return lambda: (Model(**copy.deepcopy(attributes)),)


def both() -> Any:
    m = Model()
    return m, m


WHOLE: list[tuple[Any, Any]] = [
    (descends, model()),
    (rebinds, model()),
    (begins_with_none, model(w=None, b=None, p=None)),
    (by_a_method, model()),
    (two_names, both),
    (nested, model(v=None)),
    (exchanges, model(v=np.ones(3))),
    (ends_early, model()),
    (returns_early, model()),
    (goes_on, model(b=10.5)),
    (keeps_the_best, model(found=np.zeros(3))),
    (chooses_memory, lambda: (Model(b=0.5), X[0])),
    (chooses_memory, lambda: (Model(b=0.5), X[1])),
    (sets_in_both, lambda: (Model(), X[0])),
    (of_slots, lambda: (Slotted(),)),
    (of_a_property, lambda: (Counted(),)),
    (of_a_record, lambda: (Model(r=Record(np.zeros(3), 1)), Record(np.ones(3)))),
    (by_setattr, model()),
    (layers, lambda: ([Layer(3, 4), Layer(4, 1)],)),
    (with_an_optimiser, lambda: (Adam(), {"w": np.zeros(3), "b": np.zeros(1)})),
    (items_in_branches, lambda: ({"up": 0.0, "down": 0.0},)),
    (raises_an_index_error, model()),
    (a_default_of_the_class, model()),
    (an_array_in_two, model()),
    (views, model()),
    (fills_a_list, model(b=0.0)),
    (fills_lists_now_and_then, model()),
    (fills_a_list_and_raises, model()),
]
ANY: list[tuple[Any, Any]] = [
    (fills_a_list_of_its_own, lambda: (40,)),
    (inside, model()),
    (layers_made_inside, lambda: (40,)),
    (changes_lists_that_it_has_filled, model()),
    (goes_on, model(b=-1.5)),
    (chooses, lambda: (Model(), X[0])),
    (chooses, lambda: (Model(), X[1])),
    (shares_in_a_branch, lambda: (Model(found=np.ones(3)), X[0])),
    (shares_in_a_branch, lambda: (Model(found=np.ones(3)), X[1])),
    (raises, model()),
    (handles, model()),
    (sets_in_one, lambda: (Model(), X[0])),
    (sets_in_one, lambda: (Model(), X[1])),
    (a_global_name, lambda: (40,)),
    (of_a_class, lambda: (40,)),
    (deletes_in_one, lambda: (Model(), X[0])),
    (deletes_in_one, lambda: (Model(), X[1])),
    (lists_in_attributes, model()),
    (one_list_in_two, model()),
    (copies, model()),
    (chain, linked),
    (fills_a_list_with_a_name, model()),
    (fills_a_list_that_is_held, model()),
]
