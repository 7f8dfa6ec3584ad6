"""Sources of other values: files, queues, random numbers, clocks."""

# ruff: noqa  # code as people write it, odd code too
# mypy: ignore-errors

from __future__ import annotations

import collections
import io
import queue
import random
import time
from dataclasses import dataclass, field

import numpy as np
from tests.trace.effects.outside.rows import row


@row
def a_file():
    f = io.StringIO()

    def act(v):
        f.write("a")

    return act, f.getvalue


@row
def a_file_printed_to():
    f = io.StringIO()

    def act(v):
        print("a", file=f)

    return act, f.getvalue


@row
def a_file_read():
    f = io.StringIO("abc" * 100)

    def act(v):
        return len(f.read(1)) + v

    return act, f.tell


@row
def a_queue():
    q = queue.Queue()

    def act(v):
        q.put(v)

    return act, q.qsize


@row
def a_simple_queue():
    q = queue.SimpleQueue()

    def act(v):
        q.put(1)

    return act, q.qsize


@row
def random_random():
    random.seed(0)

    def act(v):
        return random.random() + v

    return act, random.getstate


@row
def random_instance():
    r = random.Random(0)

    def act(v):
        return r.random() + v

    return act, r.getstate


@row
def random_bound():
    r = random.Random(0)
    draw = r.random

    def act(v):
        return draw() + v

    return act, r.getstate


@row
def random_by_map():
    r = random.Random(0)

    def act(v):
        return sum(map(r.uniform, [0], [1])) + v

    return act, r.getstate


@row
def random_as_default():
    r = random.Random(0)

    def act(v):
        return collections.defaultdict(r.random)["a"] + v

    return act, r.getstate


@row
def random_as_key():
    r = random.Random(0)

    def act(v):
        return sorted([1, 2, 3], key=lambda _: r.random())[0] + v

    return act, r.getstate


@row
def clock():
    def act(v):
        return v * (time.perf_counter() > 0)

    return act, lambda: None


@row
def clock_as_default_factory():
    @dataclass
    class Stamp:
        at: float = field(default_factory=time.perf_counter)

    def act(v):
        return v * (Stamp().at > 0)

    return act, lambda: None


@row
def numpy_legacy_seed():
    np.random.seed(0)

    def act(v):
        np.random.seed(3)

    return act, lambda: np.random.get_state()[1][:3]


@row
def ctypes_like_buffer():
    b = io.BytesIO()

    def act(v):
        b.write(b"a")

    return act, b.getvalue
