"""Functions that make an object and let code that is not converted change it: in straight lines, in loops, under conditions.

Here objects of libraries: queues, trees, digests, variables of a context.
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
import queue
import threading
import xml.etree.ElementTree as ET
import zlib
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
def object_in_the_body(x):
    s = 0.0
    for v in x:
        c = Frozen(v)
        c.bump(1.0)
        s = s + c.n
    return s


@program
def lock_under_condition(x):
    lock, again = threading.Lock(), threading.RLock()
    if x[0] > 0:
        lock.acquire()
        again.acquire()
    return lock.locked(), "count=1" in repr(again)


@program
def lock_in_loop(x):
    lock, n = threading.Lock(), 0
    for v in x:
        if v > 0 and lock.acquire(blocking=False):
            n += 1
    return n, lock.locked()
