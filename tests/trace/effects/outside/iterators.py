"""Iterators that are somewhere."""

# ruff: noqa  # code as people write it, odd code too
# mypy: ignore-errors

from __future__ import annotations

import collections
import copy
import itertools
import operator

from tests.trace.effects.outside.rows import ROWS, row


def _iterator_row(label, wrap, change):
    def made():
        source = iter(list(range(1000)))
        it = wrap(source)

        def act(v):
            return change(it, v)

        return act, lambda: operator.length_hint(source)

    made.__name__ = label
    ROWS.append(made)


def _generated(source):
    yield from source


for label, wrap in [
    ("list_iterator", lambda source: source),
    ("cycle", itertools.cycle),
    ("generator", _generated),
    ("map_iterator", lambda source: map(abs, source)),
    ("zip_iterator", lambda source: zip(source)),
    ("enumerate_iterator", enumerate),
    ("chain_iterator", itertools.chain),
]:
    _iterator_row(label + "_islice", wrap, lambda it, v: len(list(itertools.islice(it, 2))) + v)
    _iterator_row(label + "_default", wrap, lambda it, v: (next(it, None) is None) + v)
for label, change in [
    ("next", lambda it, v: next(it) + v),
    ("dunder_next", lambda it, v: it.__next__() + v),
    ("in_islice", lambda it, v: (3 in itertools.islice(it, 5)) + v),
    ("map_of_two", lambda it, v: len(list(map(lambda a, b: b, it, (1, 2)))) + v),
    ("next_in_a_callback", lambda it, v: sum(map(lambda _: it.__next__(), [1])) + v),
    ("next_as_a_callback", lambda it, v: len(list(map(next, [it]))) + v),
]:
    _iterator_row("list_iterator_" + label, lambda source: source, change)
    _iterator_row("generator_" + label, _generated, change)


@row
def count_next():
    it = itertools.count()

    def act(v):
        return next(it) + v

    return act, lambda: it


@row
def generator_sent():
    def make():
        got = 0.0
        while True:
            got += yield got

    g = make()
    next(g)

    def act(v):
        return g.send(1.0) + v

    return act, lambda: g.gi_frame.f_locals["got"]


@row
def generator_closed():
    g = _generated(iter(range(9)))

    def act(v):
        g.close()

    return act, lambda: g.gi_frame is None


@row
def tee():
    a, b = itertools.tee(iter(range(1000)))

    def act(v):
        return next(a) + v

    return act, lambda: next(copy.copy(a))


@row
def holder_of_an_iterator():
    class Batches:
        def __init__(self):
            self.it = iter(range(1000))

        def draw(self):
            return next(self.it)

    o = Batches()

    def act(v):
        return o.draw() + v

    return act, lambda: operator.length_hint(o.it)


@row
def object_with_next():
    class Batches:
        def __init__(self):
            self.i = 0

        def __iter__(self):
            return self

        def __next__(self):
            self.i += 1
            return self.i

    o = Batches()

    def act(v):
        return next(o) + v

    return act, lambda: o.i


@row
def default_by_count():
    counter = itertools.count()

    def act(v):
        d = collections.defaultdict(counter.__next__)
        return d["a"] + d["b"] + v

    return act, lambda: counter


@row
def iter_of_a_callable():
    log = [3, 2, 1]

    def act(v):
        return sum(iter(log.pop, 1)) + v if len(log) == 3 else v

    return act, lambda: list(log)
