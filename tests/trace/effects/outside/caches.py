"""Caches and memos."""

# ruff: noqa  # code as people write it, odd code too
# mypy: ignore-errors

from __future__ import annotations

import functools
import weakref

import numpy as np
from tests.trace.effects.outside.rows import Plain, row


@row
def lru_cache_without_arguments():
    log = []

    @functools.lru_cache
    def table():
        log.append(1)
        return np.arange(3.0)

    def act(v):
        return v + table()[1]

    return act, lambda: list(log)


@row
def lru_cache_of_a_number():
    log = []

    @functools.lru_cache
    def table(n):
        log.append(n)
        return n * 2.0

    def act(v):
        return v + table(3)

    return act, lambda: list(log)


@row
def lru_cache_of_a_traced_number():
    log = []

    @functools.lru_cache
    def double(v):
        log.append(1)
        return v * 2

    def act(v):
        return double(v)

    return act, lambda: len(log)


@row
def lru_cache_over_an_array():
    w = np.ones(3)

    @functools.lru_cache
    def total():
        return w.sum()

    def act(v):
        return v * total()

    return act, lambda: total.cache_info().currsize


@row
def lru_cache_method():
    class Model:
        def __init__(self):
            self.n = 0

        @functools.lru_cache
        def size(self):
            self.n += 1
            return 3

    o = Model()

    def act(v):
        return v * o.size()

    return act, lambda: o.n


@row
def memo_of_constants():
    memo = {}

    def act(v):
        if "a" not in memo:
            memo["a"] = 2.0
        return v * memo["a"]

    return act, lambda: dict(memo)


@row
def memo_of_traced():
    memo = {}

    def act(v):
        if "a" not in memo:
            memo["a"] = v
        return v * memo["a"]

    return act, lambda: dict(memo)


@row
def memo_by_traced_key():
    memo = {}

    def act(v):
        key = float(v)
        if key not in memo:
            memo[key] = v * 2
        return memo[key]

    return act, lambda: dict(memo)


@row
def memo_by_try():
    memo = {}

    def act(v):
        try:
            return memo["a"] * v
        except KeyError:
            memo["a"] = 2.0
            return v

    return act, lambda: dict(memo)


@row
def memo_in_a_helper_class():
    class Memo:
        def __init__(self, f):
            self.f, self.kept = f, {}

        def __call__(self, key, v):
            if key not in self.kept:
                self.kept[key] = self.f(v)
            return self.kept[key]

    memo = Memo(lambda v: v * 2)

    def act(v):
        return memo("a", v)

    return act, lambda: dict(memo.kept)


@row
def weak_memo():
    memo = weakref.WeakKeyDictionary()
    o = Plain()

    def act(v):
        memo[o] = v

    return act, lambda: list(memo.values())
