"""Objects with state of their own, alone, in containers and behind others."""

# ruff: noqa  # code as people write it, odd code too
# mypy: ignore-errors

from __future__ import annotations

import itertools
import operator
import weakref
from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
from tests.trace.effects.outside.rows import Plain, row


@row
def subclass_with_own_append():
    class Loud(list):
        count = 0

        def append(self, v):
            type(self).count += 1
            super().append(v)

    o = Loud()

    def act(v):
        o.append(v)

    return act, lambda: (list(o), Loud.count)


@row
def indexed_by_own_counter():
    class Buffer:
        def __init__(self):
            self.buf, self.i = np.zeros(8), 0

        def __len__(self):
            return self.i

        def push(self, v):
            self.buf[self.i] = v
            self.i += 1

    o = Buffer()

    def act(v):
        o.push(v)

    return act, lambda: (o.buf, o.i)


@row
def ring_buffer():
    class Buffer:
        def __init__(self):
            self.buf, self.i = np.zeros(4), 0

        def push(self, v):
            self.buf[self.i % 4] = v
            self.i = (self.i + 1) % 4

    o = Buffer()

    def act(v):
        o.push(v)

    return act, lambda: (o.buf, o.i)


@row
def listeners():
    log = []
    listeners = [lambda v: log.append(1)]

    def act(v):
        for tell in listeners:
            tell(v)

    return act, lambda: list(log)


@row
def deleted_object_tells():
    log = []

    class Temporary:
        def __del__(self):
            log.append(1)

    def act(v):
        t = Temporary()
        del t

    return act, lambda: len(log)


@row
def flip_flop():
    state = {"on": False}

    def act(v):
        state["on"] = not state["on"]
        return v if state["on"] else -v

    return act, lambda: dict(state)


@row
def moving_average():
    o = SimpleNamespace(mean=0.0, n=0)

    def act(v):
        o.n += 1
        o.mean += (v - o.mean) / o.n
        return o.mean

    return act, lambda: (float(o.mean), o.n)


@row
def undone():
    o = SimpleNamespace(training=True)

    def act(v):
        before = o.training
        o.training = False
        v = v * (2 if o.training else 3)
        o.training = before
        return v

    return act, lambda: o.training


@row
def list_undone():
    log = [1]

    def act(v):
        log.append(v)
        log.pop()
        return v

    return act, lambda: list(log)


@row
def object_in_a_list():
    os = [Plain(), Plain()]

    def act(v):
        for o in os:
            o.n += 1

    return act, lambda: [o.n for o in os]


@row
def object_in_a_set():
    o = Plain()
    os = {o}

    def act(v):
        for y in os:
            y.n += 1

    return act, lambda: o.n


@row
def object_behind_a_weakref():
    o = Plain()
    r = weakref.ref(o)

    def act(v):
        r().n += 1

    return act, lambda: o.n


@row
def object_of_a_library_call():
    o = Plain()

    def act(v):
        max([o], key=lambda y: 1).n += 1

    return act, lambda: o.n


@row
def list_of_a_library_call():
    log = [[1]]

    def act(v):
        max(log).append(2)

    return act, lambda: log


@row
def list_behind_itemgetter():
    log = {"a": [1]}

    def act(v):
        operator.itemgetter("a")(log).append(2)

    return act, lambda: log


@row
def list_behind_chain():
    log = [[1], [2]]

    def act(v):
        for y in itertools.chain(log):
            y.append(2)

    return act, lambda: log


@row
def linked_list():
    class Node:
        def __init__(self, value, rest):
            self.value, self.rest = value, rest

    head = Node(1.0, Node(2.0, None))

    def act(v):
        n = head
        while n is not None:
            n.value += v
            n = n.rest

    return act, lambda: (float(head.value), float(head.rest.value))


@row
def slots_object():
    class Point:
        __slots__ = ("x",)

    p = Point()
    p.x = 0.0

    def act(v):
        p.x += v

    return act, lambda: float(p.x)


@row
def dataclass_with_list():
    @dataclass
    class State:
        log: list = field(default_factory=list)
        n: int = 0

    s = State()

    def act(v):
        s.log.append(v)
        s.n += 1

    return act, lambda: (list(s.log), s.n)


@row
def frozen_dataclass():
    @dataclass(frozen=True)
    class State:
        n: int = 0

    s = State()

    def act(v):
        object.__setattr__(s, "n", 3)

    return act, lambda: s.n
