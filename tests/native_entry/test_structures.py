"""Containers among arguments and results of calls that machine code answers: what is in them is what Python finds and makes."""

from __future__ import annotations

import gc
import sys
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pytest
from tests.native_entry.test_native_entry import entered, hits, same_results

import jitml
from jitml import engine
from jitml.codegen.llvm.runtime import c_api

pytestmark = pytest.mark.skipif(not c_api.native_calls(), reason="arrays of this interpreter cannot be read in place")
X, Y = np.array([1.0, -2.5, 3.0]), np.array([0.5, 4.0, -1.0])
M = np.arange(12.0).reshape(3, 4)


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "OFTEN", 3)


class Pair(NamedTuple):
    a: Any
    b: Any


Triple = namedtuple("Triple", "a b c", defaults=(2.0,))


class Loud(Pair):
    def __new__(cls, a: Any, b: Any) -> Any:
        return super().__new__(cls, a, b)


@dataclass
class Record:
    a: Any
    b: Any = 2.0


@dataclass(frozen=True)
class Slotted:
    __slots__ = ("a", "b")
    a: Any
    b: Any


@dataclass
class Inner:
    pair: Pair
    rest: dict[Any, Any] = field(default_factory=dict)


class Own:
    def __init__(self, a: Any, b: Any) -> None:
        self.a, self.b = a, b


jitml.register_pytree_node(Own, lambda x: ((x.a, x.b), type(x.a)), lambda _, parts: Own(*parts))


def attributes(p):
    return p.a * 2 + p.b


def items(p):
    return p[0] * 2 + p[1]


def named(p):
    return p["a"] * 2 + p["b"]


@pytest.mark.parametrize(
    ("function", "make"),
    [
        (attributes, lambda: Pair(X, Y)),
        (attributes, lambda: Triple(X, 3.0)),
        (attributes, lambda: Record(X, Y)),
        (attributes, lambda: Record(X)),
        (attributes, lambda: Slotted(X, Y)),
        (attributes, lambda: Own(X, Y)),
        (items, lambda: {0: X, 1: Y}),
        (items, lambda: {1: Y, 0: X}),
        (items, lambda: [X, Y]),
        (named, lambda: {"".join("a"): X, "b": Y}),
        (named, lambda: OrderedDict(b=Y, a=X)),
        (named, lambda: defaultdict(list, a=X, b=Y)),
        (lambda p: p.pair.b * p.rest["w"] + p.rest["v"][0], lambda: Inner(Pair(X, Y), {"w": 2.0, "v": (X,)})),
        (lambda p: sum(p.values()), lambda: {f"k{n}": X + n for n in range(20)}),
        (lambda p: p[-1] - p[0], lambda: deque([X, Y])),
        (lambda *p, **q: p[1] * q["z"] + len(p), lambda: (X, Y)),
    ],
)
def test_what_is_in_containers(function: Callable[..., Any], make: Callable[[], Any]) -> None:
    f = jitml.jit(function)
    given = (lambda: ((X, Y), {"z": Y})) if function.__code__.co_flags & 4 else (lambda: ((make(),), {}))
    for _ in range(10):
        args, kwargs = given()
        same_results(f(*args, **kwargs), function(*args, **kwargs))
    assert hits(f)


OTHERS: dict[str, list[Any]] = {
    "pair": [Loud(X, Y), Triple(X, Y), Record(X, Y), Pair(X[:2], Y[:2]), Pair(Y, 2.0), Pair(X, None), Pair(X, [Y])],
    "record": [Pair(X, Y), Record(X, 3), Record(Y, X[:1]), Record(X, Record(X)), Slotted(X, Y)],
}


@pytest.mark.loose
@pytest.mark.parametrize("kind", OTHERS)
def test_other_containers_are_answered_as_by_python(kind: str) -> None:
    usual = {"pair": Pair(X, Y), "record": Record(X, Y)}[kind]
    f = entered(attributes, usual)
    for other in OTHERS[kind]:
        for _ in range(3):
            try:
                wanted, raised = attributes(other), None
            except Exception as error:
                wanted, raised = None, str(error)
            if raised is None:
                same_results(f(other), wanted)
            else:
                with pytest.raises(TypeError, match="^" + raised.partition("(")[0][:20]):
                    f(other)
            same_results(f(usual), attributes(usual))


def test_keys_that_are_equal_are_not_always_the_same() -> None:
    f = entered(items, {0: X, 1: Y})
    for other in ({False: X, True: Y}, {0.0: X, 1.0: Y}, {np.int64(0): X, np.int64(1): Y}, {1: Y, 0: X}, {0: X, 1: Y, 2: X}):
        before = hits(f)
        same_results(f(other), items(other))
        assert hits(f) == before
    many = {10**6 + n: X for n in range(2)}
    g = entered(lambda p: p[10**6] + p[10**6 + 1], many)
    before = hits(g)
    same_results(g({int(str(key)): x for key, x in many.items()}), 2 * X)  # other objects
    assert hits(g) == before + 1


def test_the_order_of_an_ordered_dict_counts() -> None:
    f = entered(lambda p: next(iter(p)) + str(p["a"].sum()), OrderedDict(a=X, b=Y))
    moved = OrderedDict(a=X, b=Y)
    moved.move_to_end("a")
    assert f(moved) == "b1.5"
    assert f(OrderedDict(a=X, b=Y)) == "a1.5"


def test_fields_that_are_missing_are_missed() -> None:
    f = entered(attributes, Record(X, Y))
    lacking = Record(X, Y)
    del lacking.a
    for _ in range(4):
        with pytest.raises(Exception, match="a"):
            f(lacking)
    shown = Record(X, Y)
    del shown.b
    with pytest.raises(jitml.JitmlError, match="lacks a field: b"):  # the class has one
        f(shown)
    shown.__class__ = type("Other", (), {"a": 1.0, "b": 2.0})
    same_results(f(shown), attributes(shown))


def test_what_a_class_is_made_of_is_seen_in_each_call() -> None:
    class Base:
        def factor(self) -> float:
            return 2.0

    class Scaled(Base):
        def __init__(self) -> None:
            self.w = X

        @jitml.jit
        def apply(self, x: Any) -> Any:
            return self.w * x * self.factor()

    apply, one = Scaled.__dict__["apply"], Scaled()
    for _ in range(8):
        same_results(one.apply(Y), 2 * X * Y)
    before = hits(apply)
    one.apply(Y)
    assert hits(apply) == before + 1
    Scaled.unrelated = 3  # of no matter
    for _ in range(4):
        same_results(one.apply(Y), 2 * X * Y)
    Base.factor = lambda self: 3.0
    same_results(one.apply(Y), 3 * X * Y)
    Scaled.factor = lambda self: 4.0
    for _ in range(8):
        same_results(one.apply(Y), 4 * X * Y)
    one.factor = lambda: 5.0
    same_results(one.apply(Y), 5 * X * Y)
    del one.factor
    del Scaled.factor
    same_results(one.apply(Y), 3 * X * Y)
    Scaled.w = property(lambda self: Y)
    same_results(one.apply(Y), 3 * Y * Y)


def test_special_methods_that_a_class_gets_are_asked() -> None:
    class Base:
        pass

    class Switch(Base):
        pass

    f, one = jitml.jit(lambda s, x: x * 2 if s else x), Switch()
    for _ in range(8):
        same_results(f(one, X), 2 * X)
    assert hits(f)
    Base.__bool__ = lambda self: False
    same_results(f(one, X), X)
    Switch.__bool__ = lambda self: True
    for _ in range(8):
        same_results(f(one, X), 2 * X)
    del Switch.__bool__
    same_results(f(one, X), X)


def test_a_class_has_another_number_once_it_has_changed() -> None:
    assert c_api._has_versions()

    class A:
        part = 1

    class B(A):
        pass

    seen = [c_api.class_version(B)]
    for cls, name in ((B, "part"), (A, "part"), (A, "other"), (B, "__init__")):
        setattr(cls, name, lambda self: None)
        seen.append(c_api.class_version(B))
        assert c_api.class_version(B) == seen[-1]
    B.__bases__ = (type("C", (A,), {}),)
    seen.append(c_api.class_version(B))
    assert len(set(seen)) == len(seen)


RESULTS: dict[str, Callable[[Any], Any]] = {
    "none": lambda x: None,
    "empty": lambda x: ((), [], {}),
    "list": lambda x: [x + 1, x - 1],
    "nested": lambda x: (x + 1, [x.sum(), {"b": x - 1, "a": (float(x[0, 0]), None)}], "text", 3),
    "keys": lambda x: {1: x + 1, "two": x * 2, (3, 4): x.max()},
    "pair": lambda x: Pair(x + 1, [x - 1]),
    "loud": lambda x: Loud(x + 1, x - 1),
    "record": lambda x: Record(x + 1, {"y": x}),
    "ordered": lambda x: OrderedDict(b=x + 1, a=x),
    "argument": lambda x: [x, {"x": x}],
    "twice": lambda x: (lambda y: [y, (y, y)])(x + 1),
    "view twice": lambda x: (lambda y: (y, [y]))(x[1:]),
    "column": lambda x: x[:, 1],
    "transposed": lambda x: (x * 2).T,
    "argument transposed": lambda x: x.T,
    "every other": lambda x: x[::2, ::-1],
    "element": lambda x: x[1:2, 2:3],
    "nothing": lambda x: x[3:],
    "flat": lambda x: x.reshape(-1),
    "axes": lambda x: x[None, :, None, 0],
    "stretched": lambda x: np.broadcast_to(x[0], (2, 4)),
    "diagonal": lambda x: x.diagonal(),
    "itself and a view": lambda x: (lambda y: (y, y[1], y.T))(x + 1),
    "bits": lambda x: x.view(np.int64),
    "parts": lambda x: (x + 1j).real,
    "last": lambda x: x[-1],
}


def same_objects(ours: Any, theirs: Any, x: Any) -> None:
    """Results are alike, and so is what is one object, or shares memory."""
    same_all(ours, theirs)
    mine, others = list(_arrays(ours)), list(_arrays(theirs))
    for a, b in zip(mine, others):
        assert (a is x) == (b is x)
        assert np.shares_memory(a, x) == np.shares_memory(b, x)
        assert (a.base is x) == (b.base is x)
        assert a.flags.num == b.flags.num
        assert [a is other for other in mine] == [b is other for other in others]
        assert [a.base is other for other in mine] == [b.base is other for other in others]
        assert [np.shares_memory(a, other) for other in mine] == [np.shares_memory(b, other) for other in others]


def _arrays(tree: Any) -> Any:
    if isinstance(tree, np.ndarray):
        yield tree
    elif isinstance(tree, dict):
        yield from (a for part in tree.values() for a in _arrays(part))
    elif isinstance(tree, (tuple, list)):
        yield from (a for part in tree for a in _arrays(part))
    elif isinstance(tree, Record):
        yield from (a for part in (tree.a, tree.b) for a in _arrays(part))


@pytest.mark.parametrize("name", RESULTS)
def test_results_are_what_python_makes(name: str) -> None:
    function = RESULTS[name]
    f, python = jitml.jit(function), jitml.jit(function)
    python.engine._often = sys.maxsize  # its results are made there
    frozen = M.copy()
    frozen.flags.writeable = False
    layouts = (
        frozen,
        np.asfortranarray(M),
        M[:, ::-1],
        np.tile(M, 2)[:, ::2],
        M[:2],
        M.copy()[:, :],
        np.ones((3, 4), np.float32),
    )
    for x in (M.copy(), *(layouts if name != "bits" else ())):
        for _ in range(8):
            same_objects(f(x), python(x), x)
            same_values(f(x), function(x))
    assert hits(f)
    assert not hits(python)


def same_all(ours: Any, theirs: Any) -> None:
    if isinstance(theirs, Record):
        assert type(ours) is Record
        ours, theirs = [ours.a, ours.b], [theirs.a, theirs.b]
    same_results(ours, theirs)


def same_values(ours: Any, numpys: Any) -> None:
    assert type(ours) is type(numpys)
    for a, b in zip(_arrays(ours), _arrays(numpys), strict=True):
        np.testing.assert_array_equal(a, b, strict=True)


def test_a_view_holds_what_it_shows() -> None:
    f = entered(lambda x: (x + 1)[1:], X)
    got = f(X)
    gc.collect()
    np.testing.assert_array_equal(got, X[1:] + 1)
    mine = np.ones(3)
    g = entered(lambda x: x[1:], mine)
    g(mine)[0] = 5.0
    assert mine[1] == 5.0


def test_what_a_class_raises_is_raised() -> None:
    class Refused(Pair):
        refuses = False

        def __new__(cls, a: Any, b: Any) -> Any:
            if cls.refuses:
                raise ZeroDivisionError("no more of them")
            return super().__new__(cls, a, b)

    f = jitml.jit(lambda x: [x * 2, Refused(x + 1, x - 1)])
    for _ in range(8):
        f(X)
    Refused.refuses = True
    for _ in range(20):
        with pytest.raises(ZeroDivisionError):
            f(X)


def test_nothing_is_held() -> None:
    functions = [RESULTS[name] for name in ("nested", "keys", "pair", "column", "transposed", "twice", "argument", "none")]
    x, pair, keys = M.copy(), Pair(X, Y), {0: X, 10**6: Y}
    jitted = [entered(function, x) for function in functions]
    other = entered(attributes, pair)
    keyed = entered(lambda p: p[0] + p[10**6], keys)
    record = entered(attributes, Record(X, Y))
    held = (x, X, Y, pair, keys, Pair, Record, "text")

    def counts(calls: int) -> list[int]:
        for _ in range(calls):
            for f in jitted:
                f(x)
            other(pair)
            other(Loud(X, Y))
            keyed({0: X, int("1000000"): Y})
            record(Record(X, Y))
        gc.collect()
        return [*map(sys.getrefcount, held)]

    before, blocks = counts(50), sys.getallocatedblocks()
    after = counts(10_000)
    assert all(abs(n - m) < 100 for m, n in zip(before, after)), Counter(n - m for m, n in zip(before, after))
    assert sys.getallocatedblocks() - blocks < 3000


class Counted:
    def __init__(self) -> None:
        self.n, self.total, self.log, self.best = 0, np.zeros(3), [], {"x": None}

    def see(self, x, *, keep=True):
        self.n += 1
        self.total = self.total + x
        if keep:
            self.best["x"], self.last = x * 2, self.total
        return self.n, self.total

    def note(self, x):
        self.log.append(float(x.sum()))
        self.total = x + self.n


def state_of(x: Any) -> Any:
    return {name: repr(value) for name, value in sorted(vars(x).items())}


@pytest.mark.parametrize("calls", [lambda f, o, x: f(o, x), lambda f, o, x: f(o, x, keep=False)], ids=["all", "some"])
def test_objects_get_the_attributes_that_python_gives_them(calls: Callable[..., Any]) -> None:
    f = jitml.jit(Counted.see)
    ours, pythons = Counted(), Counted()
    for n in range(12):
        same_results(calls(f, ours, X + n), calls(Counted.see, pythons, X + n))
        assert state_of(ours) == state_of(pythons)
        assert (getattr(ours, "last", None) is ours.total) == (getattr(pythons, "last", None) is pythons.total)
    assert hits(f)
    other = Counted()
    calls(f, other, X)
    assert (other.n, ours.n) == (1, 12)
    before = hits(f)
    for _ in range(20):
        calls(f, other, X)
    assert hits(f) >= before + 15


def test_lists_of_objects_grow_as_in_python() -> None:
    f = jitml.jit(Counted.note)
    ours, pythons = Counted(), Counted()
    for n in range(12):
        f(ours, X + n)
        Counted.note(pythons, X + n)
        assert state_of(ours) == state_of(pythons)


def test_an_attribute_that_cannot_be_set_is_not_half_set() -> None:
    class Closed:
        __slots__ = ("a", "b")

        def __init__(self) -> None:
            self.a, self.b = X, Y

        def swap(self, x):
            self.a, self.b = self.b + x, self.a
            return self.a

    f, one, other = jitml.jit(Closed.swap), Closed(), Closed()
    for _ in range(12):
        same_results(f(one, X), Closed.swap(other, X))
        same_results((one.a, one.b), (other.a, other.b))
    assert hits(f)
    Closed.a = 3  # no slot any more, and read-only for instances
    for _ in range(3):
        with pytest.raises(AttributeError):
            f(one, X)
        same_results(one.b, other.b)


def test_old_attributes_are_let_go() -> None:
    f, one = jitml.jit(Counted.see), Counted()
    for _ in range(12):
        f(one, X)
    held = (X, one, one.log)
    counts = [*map(sys.getrefcount, held)]
    blocks = sys.getallocatedblocks()
    for _ in range(30_000):
        f(one, X)
    assert hits(f) > 29_000
    assert [*map(sys.getrefcount, held)] == counts
    assert sys.getallocatedblocks() - blocks < 3000
    assert one.n == 30_012
