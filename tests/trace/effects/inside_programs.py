"""Functions that make an object and let code that is not converted change it: in straight lines, in loops, under conditions.

Each takes a vector of four numbers, the first of which is negative, or not.
"""

# ruff: noqa  # code as people write it, odd code too
# mypy: ignore-errors

from __future__ import annotations

import array
import contextvars
import dataclasses
import functools
import hashlib
import heapq
import io
import itertools
import queue
import xml.etree.ElementTree as ET
import zlib
from collections import Counter, OrderedDict, UserDict, UserList, ChainMap, defaultdict, deque, namedtuple
from decimal import Context, Decimal
from fractions import Fraction
from types import SimpleNamespace

import numpy as np

PROGRAMS = []


def program(f):
    PROGRAMS.append(f)
    return f


@dataclasses.dataclass(frozen=True)
class Frozen:
    n: float = 0
    log: list = dataclasses.field(default_factory=list)

    def bump(self, v=1):
        object.__setattr__(self, "n", self.n + v)

    def bump_super(self, v=1):
        super().__setattr__("n", self.n + v)


@program
def frozen_in_loop(x):
    c = Frozen()
    for v in x:
        c.bump()
    return c.n


@program
def frozen_by_super(x):
    c = Frozen()
    for i in range(3):
        c.bump_super(i)
    return c.n


@program
def frozen_under_condition(x):
    c = Frozen()
    if x[0] > 0:
        c.bump()
    return c.n


@program
def frozen_takes_traced(x):
    c = Frozen(0.0)
    for v in x:
        c.bump(v)
    return c.n


@program
def frozen_in_while(x):
    c, i = Frozen(), 0
    while i < 3:
        c.bump(2)
        i += 1
    return c.n


@program
def frozen_in_while_by_data(x):
    c, s = Frozen(), x.sum()
    while s > 1:
        c.bump(2)
        s = s - 1
    return c.n


@program
def frozen_in_list(x):
    cs = [Frozen(), Frozen()]
    for i in range(4):
        cs[i % 2].bump(i)
    return cs[0].n + 10 * cs[1].n


@program
def frozen_in_nested_loop(x):
    c = Frozen()
    for i in range(2):
        for j in range(3):
            c.bump(i * j)
    return c.n


@program
def setattr_by_dict(x):
    c = SimpleNamespace(n=0)
    for v in x:
        c.__dict__["n"] = c.__dict__["n"] + 1
        c.__dict__.update(m=c.n)
    return c.n + c.m


@program
def delattr_in_branch(x):
    c = SimpleNamespace(n=3)
    if x[0] > 0:
        object.__delattr__(c, "n")
    return getattr(c, "n", -1)


@program
def queue_in_loop(x):
    q = queue.Queue()
    for i in range(3):
        q.put(i)
    return q.qsize()


@program
def queue_under_condition(x):
    q = queue.LifoQueue()
    if x[0] > 0:
        q.put(1)
    return q.qsize()


@program
def queue_of_values(x):
    q, out = queue.Queue(), []
    for v in x:
        q.put(v)
    while not q.empty():
        out.append(q.get())
    return np.array(out)


@program
def priority_queue(x):
    q = queue.PriorityQueue()
    for i in (3, 1, 2):
        q.put((i, i * 10))
    s = 0
    for i in range(3):
        s = s * 100 + q.get()[1]
    return s


@program
def simple_queue(x):
    q = queue.SimpleQueue()
    for i in range(5):
        q.put(i)
        if i > 2:
            q.get()
    return q.qsize()


@program
def breadth_first(x):
    q = queue.Queue()
    q.put(0)
    seen = np.zeros(x.size, int)
    n = 0
    while not q.empty():
        i = q.get_nowait()
        seen[i] = n
        n += 1
        if i + 1 < x.size:
            q.put(i + 1)
    return seen


@program
def breadth_first_by_object(x):
    class Walk:
        def __init__(self):
            self.q = queue.Queue()
            self.order = []

        def run(self, n):
            self.q.put(0)
            while self.q.qsize() > 0:
                i = self.q.get()
                self.order.append(i)
                for k in (2 * i + 1, 2 * i + 2):
                    if k < n:
                        self.q.put(k)
            return self.order

    return np.array(Walk().run(7))


@program
def queue_in_the_body(x):
    s = 0.0
    for i in range(4):
        q = queue.Queue()
        q.put(x[i])
        q.put(x[i] * 2)
        s = s + q.get() - q.get()
    return s


@program
def queue_handed_to_helper(x):
    def push(q, v):
        q.put(v)

    q = queue.Queue()
    for i in range(4):
        push(q, i)
    return q.qsize()


@program
def queue_by_bound_method(x):
    q = queue.Queue()
    put = q.put
    for i in range(4):
        put(i)
    return q.qsize()


@program
def queue_by_partial(x):
    q = queue.Queue()
    put = functools.partial(q.put, block=False)
    for i in range(4):
        put(i)
    return q.qsize()


@program
def array_extends(x):
    a = array.array("d")
    for v in x:
        a.extend([1.0])
    return len(a)


@program
def array_adds(x):
    a = array.array("d")
    for v in x:
        a += array.array("d", [1.0, 2.0])
    return len(a)


@program
def array_fromlist_in_branch(x):
    a = array.array("i", [1])
    if x[0] > 0:
        a.fromlist([1, 2])
    return len(a)


@program
def array_item(x):
    a = array.array("i", [1, 2])
    for i in range(3):
        a[0] += i
    return a[0]


@program
def array_frombytes(x):
    a = array.array("b")
    for i in range(3):
        a.frombytes(b"ab")
    return len(a)


@program
def array_byteswap(x):
    a = array.array("h", [1])
    for i in range(3):
        a.byteswap()
    return a[0]


@program
def context_variable(x):
    c = contextvars.ContextVar("c", default=0)
    for v in x:
        c.set(c.get() + 1)
    return c.get()


@program
def context_variable_in_branch(x):
    c = contextvars.ContextVar("c", default=0)
    if x[0] > 0:
        c.set(7)
    return c.get()


@program
def context_variable_reset(x):
    c = contextvars.ContextVar("c", default=0)
    t = c.set(5)
    if x[0] > 0:
        c.reset(t)
    return c.get()


@program
def tree_under_condition(x):
    e = ET.Element("a")
    if x[0] > 0:
        ET.SubElement(e, "b")
    return len(e)


@program
def tree_in_loop(x):
    e = ET.Element("a")
    for i in range(4):
        e.set("n", str(i))
        ET.SubElement(e, "b").text = "t"
    return len(e) * 10 + int(e.get("n"))


@program
def tree_child_found(x):
    e = ET.Element("a")
    ET.SubElement(e, "b")
    for i in range(3):
        e.find("b").append(ET.Element("c"))
    return len(e[0])


@program
def sobol(x):
    import scipy.stats.qmc

    s, o = scipy.stats.qmc.Sobol(1, scramble=False), np.zeros(3)
    for i in range(3):
        o[i] = s.random(1)[0, 0]
    return o


@program
def halton(x):
    from scipy.stats import qmc

    s = qmc.Halton(2, scramble=False)
    t = 0.0
    for v in x:
        t = t + v * s.random()[0, 1]
    return t


@program
def sobol_forwards_in_branch(x):
    from scipy.stats import qmc

    s = qmc.Sobol(1, scramble=False)
    if x[0] > 0:
        s.fast_forward(2)
    return s.random(1)[0, 0]


@program
def digest(x):
    h = hashlib.sha256()
    for i in range(3):
        h.update(b"ab")
    return h.digest()[0]


@program
def digest_under_condition(x):
    h = hashlib.md5(b"x")
    if x[0] > 0:
        h.update(b"y")
    return h.digest()[0]


@program
def compressor(x):
    c, n = zlib.compressobj(), 0
    for i in range(3):
        n += len(c.compress(b"abc" * 1000))
    return n + len(c.flush())


@program
def adler(x):
    c = 1
    for i in range(3):
        c = zlib.adler32(b"abc", c)
    return c


@program
def decimal_context(x):
    c = Context(prec=3)
    for i in range(3):
        c.divide(Decimal(1), Decimal(3))
    return sum(c.flags.values())


@program
def decimal_flags_in_branch(x):
    c = Context(prec=3)
    if x[0] > 0:
        c.divide(Decimal(1), Decimal(3))
    return sum(c.flags.values())


@program
def fractions(x):
    f = Fraction(0)
    for i in range(1, 4):
        f += Fraction(1, i)
    return float(f)


@program
def counter(x):
    c = Counter()
    for i in range(4):
        c.update([i % 2])
        c["n"] += 1
    c.subtract({"n": 1})
    return c[0] * 100 + c[1] * 10 + c["n"]


@program
def counter_in_branch(x):
    c = Counter("aab")
    if x[0] > 0:
        c.update("b")
    return c["b"]


@program
def counter_most_common(x):
    c = Counter()
    for i in (1, 2, 2, 3, 3, 3):
        c[i] += 1
    return c.most_common(1)[0][0]


@program
def ordered(x):
    d = OrderedDict(a=1, b=2, c=3)
    if x[0] > 0:
        d.move_to_end("a")
    for i in range(2):
        d.popitem(last=False)
    return list(d.values())[0]


@program
def defaults(x):
    d = defaultdict(list)
    for i in range(4):
        d[i % 2].append(i)
    return len(d) * 10 + len(d[0])


@program
def users_list_of_library(x):
    u = UserList()
    for i in range(4):
        u.append(i)
    return len(u)


@program
def users_dict_of_library(x):
    u = UserDict()
    for i in range(4):
        u[i] = i
    u.update({9: 1})
    return len(u)


@program
def users_list_in_branch(x):
    u = UserList([1])
    if x[0] > 0:
        u.extend([2, 3])
    return len(u)


@program
def chain_of_maps(x):
    a = {}
    m = ChainMap(a, {"k": 1})
    for i in range(3):
        m["k"] = m["k"] + 1
    return a["k"]


@program
def heap(x):
    h = []
    for i in (3, 1, 2):
        heapq.heappush(h, i)
    s = 0
    for i in range(3):
        s = s * 10 + heapq.heappop(h)
    return s


@program
def heap_in_branch(x):
    h = [5, 7]
    if x[0] > 0:
        heapq.heapreplace(h, 9)
    return h[0]


@program
def heap_in_while(x):
    h, out = [(0, 0)], []
    while h:
        d, i = heapq.heappop(h)
        out.append(i)
        if i < 3:
            heapq.heappush(h, (d + 1, i + 1))
    return len(out)


@program
def counting(x):
    c = itertools.count()
    n = 0
    for v in x:
        n = next(c)
    return n


@program
def counting_of_attribute(x):
    o = SimpleNamespace(c=itertools.count())
    n = 0
    for v in x:
        n = next(o.c)
    return n


@program
def iterator_of_attribute(x):
    o = SimpleNamespace(c=iter([1, 2, 3, 4, 5]))
    n = 0
    for i in range(2):
        for k in o.c:
            n += k
            break
    return n


@program
def iterator_in_list(x):
    c = [iter([1, 2, 3, 4, 5])]
    n = 0
    for i in range(2):
        n += sum(itertools.islice(c[0], 2))
    return n


@program
def iterator_of_closure(x):
    c = iter([1, 2, 3, 4])

    def take():
        return next(c)

    n = 0
    for i in range(3):
        n = take()
    return n


@program
def iterator_zipped(x):
    c = SimpleNamespace(it=iter(range(10)))
    n = 0
    for i in range(3):
        n += len(list(zip([1, 2], c.it)))
    return n * 100 + next(c.it)


@program
def generator_of_attribute(x):
    o = SimpleNamespace(g=(k * k for k in range(9)))
    n = 0
    for i in range(3):
        n = next(o.g)
    return n


@program
def generator_sent_under_condition(x):
    o = SimpleNamespace(g=iter(range(9)))
    if x[0] > 0:
        list(itertools.islice(o.g, 3))
    return next(o.g)


@program
def cached_inner(x):
    calls = []

    @functools.lru_cache
    def f(k):
        calls.append(k)
        return k * 2

    s = 0
    for i in range(4):
        s += f(i % 2)
    return s * 10 + len(calls)


@program
def cached_inner_of_arrays(x):
    @functools.lru_cache
    def f(k, step):
        return x[0] if k < 2 else f(k - step, step) + f(k - 2, step)

    return f(8, 1)


@program
def cached_inner_of_branches(x):
    known = {1, 2} if len(x) > 2 else {2, int(x.sum())}

    def checked(k):
        if k not in known:
            raise ValueError("no")
        return k

    @functools.cache
    def f(k):
        if k > 5:
            return 0
        try:
            k = checked(k)
        except ValueError:
            return f(k + 1)
        return min(
            x[0] + f(k + 1),
            x[1] + f(k + 3),
        )

    return f(0)


@program
def buffer(x):
    b = bytearray()
    for i in range(3):
        b.extend(b"ab")
    if x[0] > 0:
        b.append(1)
    return len(b)


@program
def memory(x):
    b = bytearray(4)
    m = memoryview(b)
    for i in range(3):
        m[i] = i + 1
    return sum(b)


@program
def exception_notes(x):
    e = ValueError("x")
    for i in range(3):
        e.add_note("n")
    return len(e.__notes__)


@program
def deque_rotates(x):
    d = deque([1, 2, 3])
    if x[0] > 0:
        d.rotate(1)
    return d[0]


@program
def set_updates(x):
    s = set()
    for i in range(4):
        s.update([i % 3])
    return len(s)


@program
def object_in_the_body(x):
    s = 0.0
    for v in x:
        c = Frozen(v)
        c.bump(1.0)
        s = s + c.n
    return s


@program
def copied_then_changed(x):
    import copy

    a = [1.0]
    b = copy.copy(a)
    for i in range(3):
        b.append(2.0)
    return len(a) * 10 + len(b)


@program
def templates(x):
    import string

    t = string.Template("$a")
    n = 0
    for i in range(3):
        n += len(t.substitute(a="xy"))
    return n


@program
def ordering(x):
    import graphlib

    g = graphlib.TopologicalSorter()
    for i in range(3):
        g.add(i + 1, i)
    return np.array(list(g.static_order()))


@program
def stack_of_contexts(x):
    import contextlib

    out = []
    with contextlib.ExitStack() as stack:
        for i in range(3):
            stack.callback(out.append, i)
    return len(out)


@program
def parser_of_arguments(x):
    import argparse

    p = argparse.ArgumentParser()
    for name in ("--a", "--b"):
        p.add_argument(name, type=int, default=3)
    if x[0] > 0:
        p.set_defaults(a=9)
    return p.parse_args([]).a


@program
def random_numbers_of_its_own(x):
    import random

    r, s = random.Random(3), 0.0
    for i in range(3):
        s += r.random() + r.uniform(0, x[i])
    if x[0] > 0:
        r.random()
    xs = [1, 2, 3, 4]
    r.shuffle(xs)
    return s + xs[0] * r.randint(0, 9)


@program
def partly_applied(x):
    def put(log, v):
        log.append(v)

    log = []
    note = functools.partial(put, log)
    for v in x:
        note(v)
    return np.array(log)


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
