"""The same of classes, their objects, and functions with what they remember (`inside_programs.py`).

Each takes a vector of four numbers, the first of which is negative, or not.
"""

# ruff: noqa  # code as people write it, odd code too
# mypy: ignore-errors

from __future__ import annotations

import dataclasses
import functools
from collections import defaultdict, namedtuple
from types import SimpleNamespace

import numpy as np

PROGRAMS = []


def program(f):
    PROGRAMS.append(f)
    return f


@program
def callable_object(x):
    class Net:
        def __init__(self):
            self.seen = [0]

        def __call__(self, v):
            self.seen[0] += 1
            return v * self.seen[0]

    net, s = Net(), 0.0
    for v in x:
        s = s + net(v)
    return s + net.seen[0]


# Classes and functions that are made inside


@program
def list_of_class(x):
    class Tape:
        nodes = []

    Tape.nodes.append(x.sum())
    return x * len(Tape.nodes)


@program
def dict_of_class(x):
    class H:
        count = {"n": 0}

        def go(self):
            H.count["n"] += 1

    H().go()
    return x * H.count["n"]


@program
def class_by_type(x):
    H = type("H", (), {"l": []})
    H.l.append(1)
    return x * len(H.l)


@program
def class_by_make_dataclass(x):
    H = dataclasses.make_dataclass("H", ["a"], namespace={"seen": []})
    H.seen.append(1)
    return x * len(H.seen)


@program
def class_by_namedtuple(x):
    P = namedtuple("P", "a b")
    P.seen = getattr(P, "seen", 0) + 1
    return P(x, 2).a * P.seen


@program
def class_attribute_counts(x):
    class C:
        n = 0

        def __init__(self):
            C.n += 1

    for i in range(3):
        C()
    return C.n


@program
def class_attribute_under_condition(x):
    class C:
        n = 0

    if x[0] > 0:
        C.n = 5
    return C.n


@program
def class_of_classmethod(x):
    class C:
        items = {}

        @classmethod
        def put(cls, k, v):
            cls.items[k] = v
            return len(cls.items)

    n = 0
    for i in range(3):
        n = C.put(i, x[i])
    return n + C.items[1]


@program
def dataclass_inside(x):
    @dataclasses.dataclass
    class D:
        a: float
        seen = []

        def add(self):
            self.seen.append(self.a)
            return len(self.seen)

    d = D(x[1])
    d.add()
    return d.add() + D.seen[0]


@program
def dataclass_with_slots(x):
    @dataclasses.dataclass(slots=True)
    class D:
        a: float
        b: list = dataclasses.field(default_factory=list)

    d = D(x[1])
    d.b.append(x[0])
    return d.a + len(d.b)


@program
def subclass_inside(x):
    class A:
        reg = []

        def __init_subclass__(cls):
            A.reg.append(cls.__name__)

    class B(A):
        pass

    return x * len(A.reg)


@program
def class_with_metaclass(x):
    class M(type):
        seen = []

        def __new__(mcls, name, bases, space):
            mcls.seen.append(name)
            return super().__new__(mcls, name, bases, space)

    class A(metaclass=M):
        pass

    return x * len(M.seen)


@program
def array_of_class(x):
    class W:
        w = np.zeros(4)

    W.w += x
    W.w[0] = 7
    return W.w.copy()


@program
def class_returned_by_helper(x):
    def make():
        class C:
            seen = set()

        return C

    A, B = make(), make()
    A.seen.add(1)
    return x * len(A.seen) + len(B.seen)


@program
def class_inside_class(x):
    class Outer:
        class Inner:
            seen = []

    Outer.Inner.seen.append(1)
    return x * len(Outer.Inner.seen)


@program
def class_in_loop(x):
    s = 0
    for i in range(3):

        class C:
            seen = []

        C.seen.append(i)
        s += len(C.seen)
    return s


@program
def default_of_inner_function(x):
    def g(v, seen=[]):
        seen.append(v)
        return len(seen)

    g(1)
    return x * g(2)


@program
def default_in_loop(x):
    def g(v, seen=[]):
        seen.append(v)
        return len(seen)

    n = 0
    for i in range(3):
        n = g(i)
    return n


@program
def default_under_condition(x):
    def g(v, *, seen={}):
        seen[v] = 1
        return len(seen)

    if x[0] > 0:
        g(1)
    return g(2)


@program
def attribute_of_inner_function(x):
    def g():
        g.count += 1
        return g.count

    g.count = 0
    for i in range(3):
        g()
    return x * g.count


@program
def attribute_under_condition(x):
    def g():
        pass

    g.seen = []
    if x[0] > 0:
        g.seen.append(1)
    return len(g.seen)


@program
def closure_counts(x):
    n = 0

    def g():
        nonlocal n
        n += 1

    for i in range(3):
        g()
    return n


@program
def lambda_with_default(x):
    g = lambda v, seen=[]: seen.append(v) or len(seen)
    g(1)
    return x * g(1)


@program
def cached_property_inside(x):
    class C:
        @functools.cached_property
        def y(self):
            return [1]

    c = C()
    for i in range(3):
        c.y.append(i)
    return len(c.y)


@program
def enum_inside(x):
    import enum

    class E(enum.Enum):
        A = 1
        B = 2

    E.A.seen = [1]
    E.A.seen.append(2)
    return x * len(E.A.seen)


@program
def dispatch_inside(x):
    @functools.singledispatch
    def g(v):
        return 1

    if x[0] > 0:
        g.register(int, lambda v: 2)
    return g(3)


class Before:
    v = 1.0

    def go(self):
        return 10.0


class After:
    v = 2.0

    def go(self):
        return 20.0


@program
def class_of_object_under_condition(x):
    o = Before()
    if x[0] > 0:
        o.__class__ = After
    return o.go() * x


@program
def class_of_object_in_loop(x):
    o = Before()
    for v in x:
        if v > 3:
            setattr(o, "__class__", After)
        else:
            object.__setattr__(o, "__class__", Before)
    return o.go(), o.v


@program
def factory_under_condition(x):
    d = defaultdict(float)
    if x[0] > 0:
        d.default_factory = lambda: 5.0
    return d["a"] * x


@program
def partial_under_condition(x):
    p = functools.partial(pow, 2)
    if x[0] > 0:
        p.__setstate__((pow, (3,), {}, {}))
    return p(2) * x


@program
def namespace_filled_in_loop(x):
    o = SimpleNamespace(n=0)
    for v in x:
        if v > 2:
            SimpleNamespace.__init__(o, n=o.n + 1)
    return o.n
