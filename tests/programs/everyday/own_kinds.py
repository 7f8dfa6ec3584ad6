"""What is done to containers and objects whose classes do more than hold things, and by methods that are seldom called."""

# ruff: noqa  # code as people write it
# mypy: ignore-errors

from __future__ import annotations

import functools
import operator
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from dataclasses import dataclass

import numpy as np

from programs.everyday.table import rows

ROWS, calls, session = rows()

X = np.arange(4.0)


def thrice(make):
    return make, make, make


@dataclass
class Doubling:
    t: object

    def __setattr__(self, name, value):
        object.__setattr__(self, name, value * 2)


@calls(lambda: (Doubling(1), X), lambda: (Doubling(2), X), lambda: (Doubling(2), X[:2]))
def a_dataclass_that_changes_what_it_is_given(s, x):
    s.t = s.t + 1
    return x * s.t


@dataclass
class Counting:
    w: object
    t: int = 1

    def __post_init__(self):
        self.n = 3
        self.c = np.zeros(2)
        self.h = []

    @functools.cached_property
    def twice(self):
        return self.w * 2


@calls(
    *(lambda: (Counting(X), X), lambda: (Counting(X * 2), X), lambda: (Counting(X[:2]), X)),
    as_python="is kept by its first reading",
)
def attributes_that_are_no_fields(s, x):
    if not hasattr(s, "n"):
        return None
    s.n += 1
    s.c[0] += s.n
    s.h.append(x)
    s.new = x + s.n
    del s.t
    s.twice[0] = 7
    return s.n, s.twice.sum()


@dataclass(frozen=True)
class Frozen:
    w: object


@calls(lambda: (Frozen(X), X), lambda: (Frozen(X * 2), X), lambda: (Frozen(X[:2]), X))
def a_frozen_dataclass_from_below(s, x):
    object.__setattr__(s, "w", x + 1)
    return s.w


@dataclass(slots=True)
class Slots:
    w: object
    n: int = 3


@calls(lambda: (Slots(X), X), lambda: (Slots(X * 2), X), lambda: (Slots(X[:2], 5), X))
def a_dataclass_with_slots(s, x):
    s.n += 1
    s.w = x
    return x + s.n, s.n, s.w


class Model:
    def __init__(self):
        self.w = X.copy()
        self.history = [1.0]

    def update(self, g):
        self.w -= g

    @functools.cached_property
    def norm(self):
        return (self.w**2).sum()


@session()
def a_method_that_is_called_as_those_of_lists(jit):
    model = Model()

    @jit
    def step(g):
        model.update(g)
        return model.w * 2

    return step(X), step(X * 2), model.w


@session(as_python="is kept by its first reading")
def a_cached_property_stays(jit):
    model = Model()

    @jit
    def norm():
        return model.norm

    seen = [norm()]
    model.w[0] = 9
    seen.append(norm())
    del model.norm
    return [*seen, norm(), vars(model)]


@session(as_python="is kept by its first reading")
def a_cached_property_stays_as_a_branch_has_found_it(jit):
    @jit
    def f(x):
        model = Model()
        y = model.norm if x[0] > 1 else 0.0
        model.w = x
        return y, model.norm

    return f(X), f(X + 5), f(X - 5)


@session(as_python="is kept by its first reading")
def a_cached_property_stays_as_a_loop_has_found_it(jit):
    model = Model()

    @jit
    def f(x):
        total = 0.0
        for i in range(5000):
            model.w[0] += 1.0
            total += model.norm * x[i % 3]
        return total

    return f(X), f(X * 2), vars(model)


@session(as_python="is kept by its first reading")
def a_cached_property_that_a_branch_in_a_long_loop_would_keep(jit):
    model = Model()

    @jit
    def f(x):
        total = 0.0
        for i in range(5000):
            if x[i % 3] > 1e6:
                total += model.norm
        return total

    return f(X)


@session()
def an_attribute_gets_back_what_it_was(jit):
    model = Model()

    @jit
    def f(x):
        before = model.history
        model.history = []
        model.history.append(x.sum())
        last = model.history[-1]
        model.history = before
        return last

    before = model.history
    return f(X), f(X * 2), model.history, model.history is before


@session(refused="__dict__ is read")
def an_attribute_that_is_read_by_dict_as_well(jit):
    model = Model()

    @jit
    def f(x):
        model.w = x + 1
        return model.__dict__["w"]

    return f(X)


@session(refused="__dict__ is read")
def an_attribute_that_is_written_by_dict(jit):
    model = Model()

    @jit
    def f(x):
        model.__dict__["w"] = x + 1
        return model.w

    return f(X)


Pair = namedtuple("Pair", "xs x")


@calls(*thrice(lambda: (Pair([1.0], X), X)))
def a_list_in_a_named_tuple(p, x):
    p.xs.append(p.x + 1)
    q = Pair([], x)
    q.xs.append(p.xs[-1])
    return q


@session()
def a_list_in_a_named_tuple_from_outside(jit):
    pair = Pair([1.0], 2.0)

    @jit
    def f(x):
        pair.xs.append(x.sum())
        return len(pair.xs) * pair.x

    return f(X), f(X * 2), pair


class Twice(list):
    def append(self, v):
        list.append(self, v)
        list.append(self, v)


class Doubled(dict):
    def __setitem__(self, key, value):
        dict.__setitem__(self, key, value * 2)


class Tail(deque):
    def append(self, v):
        deque.append(self, v * 2)


class Sums(defaultdict):
    pass


@calls(*thrice(lambda: (Twice([X, 1.0]), Doubled(a=X), Tail([1.0, X], maxlen=2), Sums(float, {"b": 1.0}), X)))
def containers_with_methods_of_their_own(xs, d, tail, sums, x):
    xs.append(x)
    d["b"] = d["a"] + x
    tail.append(x)
    sums["a"] += x.sum()
    return len(xs), len(tail), sums


class Logged(list):
    def __init__(self, *args):
        list.__init__(self, *args)
        self.calls = 0

    def append(self, v):
        self.calls += 1
        list.append(self, v)


@calls(lambda: (Logged([1.0]), X), refused="changes an attribute of xs, a Logged")
def a_list_that_counts(xs, x):
    xs.append(x)


@calls(lambda: (X, [1.0, 2.0]), lambda: (X * 2, [1.0, 2.0]), lambda: (X[:3], [1.0, 3.0]))
def methods_by_their_class_or_special_name(x, xs):
    list.append(xs, x)
    operator.setitem(xs, 0, x)
    made, d, sums, ordered = [], {"a": 0.0}, [0.0], OrderedDict(a=1, b=2)
    for v in x:
        list.append(made, v)
        d.__setitem__("a", d["a"] + v)
        operator.setitem(sums, 0, operator.getitem(sums, 0) + v)
        ordered.move_to_end("a" if len(made) % 2 else "b")
    return len(made), d, sums, list(ordered), operator.getitem(xs, 1) + operator.getitem(x, 0)


@calls(lambda: (X,), lambda: (X * 2,), lambda: (X[:3],))
def deques_sets_and_counters_in_a_loop(x):
    q, some, c = deque([0.0, 1.0, 2.0]), {1, 2}, Counter(a=3)
    for v in x:
        q.rotate(1)
        q.extendleft([v])
        some.symmetric_difference_update({1, 7})
        c.subtract({"a": 1})
    return list(q), sorted(some), c["a"]


@calls(lambda: (X,), lambda: (X - 10,), lambda: (X[:3],))
def a_defaultdict_that_is_read_under_a_condition(x):
    d, y = defaultdict(float), 0.0
    if x.sum() > 3:
        y = d["a"]
    return len(d), x + y


@calls(lambda: (X,), lambda: (X - 10,), lambda: (X[:3],))
def an_error_state_around_functions(x):
    @np.errstate(divide="ignore")
    def over(y, n):
        return y / 0 if n == 0 else over(y, n - 1)

    return over(x + 1, 2), (x + 1) / 0


@session()
def a_list_that_grows_is_repeated(jit):
    seen = []

    @jit
    def f(x):
        seen.append(x.sum())
        return len(2 * seen)

    return f(X), f(X), f(X[:2])


@session()
def the_callers_containers_in_results_of_all_kinds(jit):
    @jit
    def f(xs, x):
        xs.append(x)
        return Pair(xs, x + 1), deque([xs]), Frozen(xs), {"a": (xs,)}

    xs = [1.0]
    p, q, s, d = f(xs, X)
    return [each is xs for each in (p.xs, q[0], s.w, d["a"][0])], p, q


@calls(*thrice(lambda: (X,)))
def an_iterator_of_before_goes_on_in_a_body(x):
    def used(go):
        it = iter([1.0, 2.0, 3.0])
        return x[:1] + (go(it) if x.sum() > 3 else 0), list(it)

    firsts = zip([1, 2, 3], [4, 5, 6])
    total = 0.0
    for i in range(3):
        for a, b in firsts:
            total += a * b
            break
        total = total * x[i]
    it, n = iter([1.0, 2.0, 3.0]), 0
    for v in x:
        n += v * (2.0 in it)
    pair, a = iter([1.0, 2.0]), 0.0
    if x.sum() > 3:
        a, b = pair
    rest, m = iter([1.0, 2.0, 3.0]), 0
    for v in x:
        m += v * len([*rest])
    made = [used(go) for go in (sum, list, next, lambda it: max(v for v in it))]
    return total, n, a, list(pair), m, made


class MadeUp:
    def __init__(self):
        self.values = {"w": X}

    def __getattr__(self, name):
        if name not in self.values:
            raise AttributeError(name)
        return self.values[name]


@session()
def attributes_that_are_made_up(jit):
    params = MadeUp()

    @jit
    def f(x):
        before = params.w
        params.values["w"] = before * x
        return params.w + getattr(params, "b", 1.0)

    first = f(X), f(X * 2)
    params.b = 5.0
    return first, f(X), params.values


class Section:
    def __init__(self):
        self.entered = 0
        self.left = []

    def __enter__(self):
        self.entered += 1
        return self

    def __exit__(self, kind, error, trace):
        self.left.append(kind)
        return kind is IndexError


@session(as_python="`with` enters a")
def a_context_manager_with_a_state(jit):
    section = Section()

    @jit
    def f(x, n):
        with section as s:
            y = x * s.entered
            y = y + [1.0, 2.0][n]
        return y

    return f(X, 0), f(X, 1), f(X, 2), section.entered, section.left


@session()
def two_views_of_one_memory_are_two_arguments(jit):
    @jit
    def f(x, y):
        x += 1
        return y

    a = X.copy()
    x, y = a[:3], a[:3]
    return f(x, y) is y, a


@session(as_python="an attribute that is no field")
def objects_in_several_places_are_one(jit):
    @jit
    def f(x, kept):
        y, made, filled = x.T + 1, Counting(x[0]), []
        for v in x[0]:
            filled.append(v * 2)
        v = y[1:]
        kept.append(made)
        kept.append(kept)
        return y, y, v, v, made, filled, filled, [filled, kept], x, x

    kept = [1.0]
    y, z, v, w, made, filled, again, (more, own), x, same = f(np.arange(6.0).reshape(2, 3), kept)
    pairs = (y, z), (v, w), (made, kept[1]), (filled, again), (filled, more), (own, kept), (kept[2], kept), (x, same)
    return [a is b for a, b in pairs], y, v, vars(made), filled, len(kept)
