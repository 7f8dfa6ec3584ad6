"""The same of containers, iterators and functions (`inside_programs.py`).

Each takes a vector of four numbers, the first of which is negative, or not.
"""

# ruff: noqa  # code as people write it, odd code too
# mypy: ignore-errors

from __future__ import annotations

import functools
import heapq
import itertools
from collections import Counter, OrderedDict, UserDict, UserList, ChainMap, defaultdict, deque
from types import SimpleNamespace

import numpy as np

PROGRAMS = []


def program(f):
    PROGRAMS.append(f)
    return f


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
