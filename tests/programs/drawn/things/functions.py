"""Callables that are handed around: jitted functions, partials, lambdas, closures, bound methods, dispatchers."""

from __future__ import annotations

from programs.drawn.scope import INEXACT
from programs.drawn.things.thing import Thing

CLOSURES = """
def shifted(v, k=1):
    return v * 2 + k


def made_adder(k):
    def add(v):
        return v + k

    return add


def made_counter(k):
    count = [k]

    def step(v=1):
        count[0] += v
        return count[0]

    return step


def made_teller(k):
    n = k

    def tell(v):
        nonlocal n
        n = n + 1
        return v * n

    return tell
"""
_JITTED = """
from jitml import jit


def made_jitted(k):
    @jit
    def inner(v):
        return v * k

    return inner


JITTED = {2: jit(lambda v: v * 2), 3: jit(lambda v: v - 9), 5: jit(lambda v: v * v), 1: jit(lambda v: v + 1)}
"""
_SCALER = """
class Scaler:
    def __init__(self, k):
        self.k = k

    def go(self, v):
        return v * self.k
"""
_SIZES = """
class Small:
    size = 1

    def __init__(self, v):
        self.v = v


class Large(Small):
    size = 10

    def __init__(self, v):
        self.v = v * 100
"""
_DISPATCH = """
import functools


@functools.singledispatch
def kind_of(v):
    return 1


DISPATCH = [1]
"""
MEMOISED = """
import functools

CACHED = [1]


@functools.lru_cache
def cached_square(v):
    return v * v + CACHED[0]
"""
CALLED = ("$o($x)", "$o($n)", "$o($x[:1])", "$x + $o($n)", "sum(map($o, [1, 2]))", "[$o(v) for v in (1, 2)][-1]")
_STORED = ("$v = $o\n$v = $v($n)", "$v = [$o, abs]\n$v = $v[0]($n)", "$v = {'f': $o}\n$v = $v['f']($x)")

FUNCTIONS = (
    Thing("lambda", ("(lambda v: v + $k)", "(lambda v, w=$k: v * w)"), CALLED, _STORED),
    Thing("lambdas", ("[lambda v: v + $k, lambda v: v * $k]",), ("$o[0]($x)", "$o[$i]($n)", "$o[-1]($x)"), ()),
    Thing("closure", ("made_adder($k)",), CALLED, _STORED, (), CLOSURES),
    Thing("counter", ("made_counter($k)",), ("$o()", "$o($e)"), ("$o()", "$o(2)"), (), CLOSURES),
    Thing(
        "partial",
        ("functools.partial(np.multiply, $k)", "functools.partial(shifted, k=$k)", "functools.partial(np.add, $k)"),
        (*CALLED, "$o.func is shifted", "len($o.args)"),
        _STORED,
        (),
        "import functools\n" + CLOSURES,
    ),
    Thing("jitted", ("made_jitted($k)", "JITTED[$k]"), ("$o($x)", "$o($n)", "$x - $o($x)"), _STORED[:2], (), _JITTED),
    Thing("vectorized", ("np.vectorize(lambda v: v * $k)", "np.vectorize(made_adder($k))"), ("$o($x)",), (), (), CLOSURES),
    Thing(
        "method",
        ("Scaler($k).go",),
        CALLED,
        _STORED,
        (),
        _SCALER,
    ),
    Thing("getter", ("operator.itemgetter($k % 3)",), ("$o([4, 5, 6])", "$o($x)"), (), (), "import operator\n"),
    Thing(
        "ufunc",
        ("(np.add if $k % 2 else np.subtract)", "(np.maximum, np.minimum)[$k % 2]"),
        ("$o($x, $n)", "$o.reduce($x)"),
        (),
        level=INEXACT,
    ),
    Thing(
        "dtype",
        ("(np.float32 if $k % 2 else np.float64)", "(int, float)[$k % 2]"),
        ("$x.astype($o)", "np.zeros(3, $o)", "$o(2)"),
        (),
    ),
    Thing(
        "class",
        ("(Small if $k % 2 else Large)",),
        ("$o(2).v", "$o.size", "$o($n).v"),
        (),
        (),
        _SIZES,
    ),
    Thing(
        "dispatcher",
        ("DISPATCH",),
        ("kind_of(2.5)", "kind_of($e)", "kind_of($x)"),
        (),
        (
            "kind_of.register(float, lambda v: $k)",
            "kind_of.register(np.ndarray, lambda v: v.size + $k)",
            "kind_of.register(int, lambda v: v * $k)",
        ),
        _DISPATCH,
    ),
)
