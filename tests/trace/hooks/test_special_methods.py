"""Do special methods of users' classes see arrays that are rebound, changed in place, or changed in the same call?"""

from __future__ import annotations

import collections
import copy
import dataclasses
import functools
import heapq
import itertools
import operator
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import jitml

Array = np.ndarray[Any, Any]


class Vector:
    """All its special methods look at what is in `w`."""

    def __init__(self, w: Any) -> None:
        self.w = w

    def __add__(self, other: Any) -> Any:
        return NotImplemented if isinstance(other, str) else self.w + other

    def __radd__(self, other: Any) -> Any:
        return self.w * 3 + other

    def __sub__(self, other: Any) -> Any:
        return Vector(self.w - (other.w if isinstance(other, Vector) else other))

    def __rsub__(self, other: Any) -> Any:
        return other - self.w

    def __mul__(self, other: Any) -> Any:
        return self.w * other

    __rmul__ = __mul__

    def __matmul__(self, other: Any) -> Any:
        return self.w @ (other.w if isinstance(other, Vector) else other)

    def __pow__(self, other: Any) -> Any:
        return self.w**other

    def __divmod__(self, other: Any) -> Any:
        return self.w // other, self.w % other

    def __iadd__(self, other: Any) -> Any:
        self.w += other
        return self

    def __neg__(self) -> Any:
        return -self.w

    def __pos__(self) -> Any:
        return self.w + 10

    def __invert__(self) -> Any:
        return self.w[::-1]

    def __abs__(self) -> Any:
        return abs(self.w).sum()

    def __len__(self) -> int:
        return int(self.w[0])

    def __bool__(self) -> bool:
        return bool(self.w[0] > 2)

    def __float__(self) -> float:
        return float(self.w[0])

    def __int__(self) -> int:
        return int(self.w[1])

    def __index__(self) -> int:
        return int(self.w[0]) % 2

    def __complex__(self) -> complex:
        return complex(float(self.w[0]), 1.0)

    def __round__(self, digits: int = 0) -> Any:
        return np.round(self.w[0], digits)

    def __contains__(self, item: Any) -> Any:
        return (self.w == item).any()

    def __iter__(self) -> Iterator[Any]:
        return iter(self.w)

    def __reversed__(self) -> Iterator[Any]:
        return iter(self.w[::-1])

    def __getitem__(self, index: Any) -> Any:
        return self.w[index] * 2

    def __eq__(self, other: object) -> Any:
        return self.w[0] == (other.w[0] if isinstance(other, Vector) else other)

    def __lt__(self, other: Any) -> Any:
        return self.w[0] < (other.w[0] if isinstance(other, Vector) else other)

    def __le__(self, other: Any) -> Any:
        return self.w[0] <= other

    __hash__ = object.__hash__


class Heir(Vector):
    """A subclass is asked first."""

    def __radd__(self, other: Any) -> Any:
        return self.w * 7

    def __gt__(self, other: Any) -> Any:
        return bool(self.w[0] > 1.5)


class Stream:
    """A generator goes through it, or `__next__`."""

    def __init__(self, w: Any) -> None:
        self.w = w

    def __iter__(self) -> Iterator[Any]:
        yield self.w[0] * 2
        yield from self.w[1:]


class Steps:
    def __init__(self, w: Any) -> None:
        self.w = w

    def __iter__(self) -> Any:
        return Countdown(self.w)


class Countdown:
    def __init__(self, w: Any) -> None:
        self.w, self.left = w, 3

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> Any:
        self.left -= 1
        if self.left < 0:
            raise StopIteration
        return self.w[0] * self.left


class Sequence:
    """No `__iter__`: Python asks for the items."""

    def __init__(self, w: Any) -> None:
        self.w = w

    def __getitem__(self, index: int) -> Any:
        if index > 1:
            raise IndexError(index)
        return self.w[index]


class Point:
    def __init__(self, w: Any) -> None:
        self.w = w

    def __add__(self, other: Any) -> Point:
        return Point(self.w + other.w)

    def __radd__(self, other: Any) -> Point:
        return Point(self.w + other)


class Sized:
    """Its truth is its length."""

    def __init__(self, w: Any) -> None:
        self.w = w

    def __len__(self) -> int:
        return int(self.w[0] > 2)


@functools.total_ordering
class Ordered:
    def __init__(self, w: Any) -> None:
        self.w = w

    def __eq__(self, other: object) -> Any:
        return bool(self.w[0] == other)

    def __lt__(self, other: Any) -> Any:
        return bool(self.w[0] < other)

    __hash__ = object.__hash__


class Key(Vector):
    """A dict looks for it by what is in `w`."""

    def __hash__(self) -> int:
        return hash(float(self.w[0]))

    def __repr__(self) -> str:
        return "key"


OTHER, THREE = Vector(np.array([2.0])), Key(np.array([3.0]))


class Converted:
    """NumPy asks for its array."""

    def __init__(self, w: Any) -> None:
        self.w = w

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.w


class Namespace(collections.UserDict[str, Any]):
    """Its items are in `data`, where a library's `__getitem__` finds them."""

    def __init__(self, w: Any) -> None:
        super().__init__(w=w)

    @property
    def w(self) -> Any:
        return self.data["w"]

    @w.setter
    def w(self, value: Any) -> None:
        self.data["w"] = value


class Copied:
    """It says itself how it is copied."""

    def __init__(self, w: Any) -> None:
        self.w = w

    def __copy__(self) -> Copied:
        return Copied(self.w * 3)

    def __deepcopy__(self, memo: Any) -> Copied:
        return Copied(copy.deepcopy(self.w, memo) * 2)


class Left:
    """Arrays leave operators to it."""

    __array_ufunc__ = None

    def __init__(self, w: Any) -> None:
        self.w = w

    def __rmul__(self, other: Any) -> Any:
        return self.w * other


@dataclasses.dataclass
class Record:
    w: Any
    more: Any = ()


class Slotted:
    __slots__ = ("w",)

    def __init__(self, w: Any) -> None:
        self.w = w


def in_a_for(v: Any, x: Any) -> Any:
    total = x
    for part in v:
        total = total * 2 + part
    return total


def unpacked(v: Any, x: Any) -> Any:
    first, second = v
    return first * x - second


def branched(v: Any, x: Any) -> Any:
    if v:
        return x
    return -x


def in_a_while(v: Any, x: Any) -> Any:
    n = 0
    while v and n < 3:
        x, n = x * 2, n + 1
    return x


def in_place(v: Any, x: Any) -> Any:
    mine = Vector(v.w * 2)
    mine += x
    return mine.w


def matched(v: Any, x: Any) -> Any:
    match v:
        case Record(w=w, more=()):
            return w * x
        case _:
            return x


def taken_to_the_end(v: Any, x: Any) -> Any:
    rows = iter(v.w)
    for _ in rows:
        break
    return [a * x for a in rows], [a * x for a in rows]


def compared_in_a_chain(v: Any, x: Any) -> Any:
    return x if 4.0 > v <= 2.0 else -x


USES: dict[str, tuple[type, Callable[[Any, Any], Any]]] = {
    "add": (Vector, lambda v, x: (v + 1.0) * x),
    "add_nested": (Vector, lambda v, x: (v - v - 1.0) + x),
    "radd": (Vector, lambda v, x: (1.0 + v) * x),
    "radd_traced": (Vector, lambda v, x: x + v),
    "radd_of_an_heir": (Heir, lambda v, x: (Vector(v.w) + v) * x),
    "sub": (Vector, lambda v, x: (2.0 - v) * x),
    "mul": (Vector, lambda v, x: 2 * v * x),
    "matmul": (Vector, lambda v, x: (v @ v) * x),
    "pow": (Vector, lambda v, x: (v**2) * x + pow(v, 3)),
    "divmod": (Vector, lambda v, x: divmod(v, 2)[1] * x),
    "not_implemented": (Vector, lambda v, x: v + "a"),
    "no_such_operator": (Vector, lambda v, x: v / x),
    "iadd": (Vector, in_place),
    "neg": (Vector, lambda v, x: -v * x),
    "pos": (Vector, lambda v, x: +v * x),
    "invert": (Vector, lambda v, x: ~v * x),
    "abs": (Vector, lambda v, x: abs(v) * x),
    "operator": (Vector, lambda v, x: operator.add(v, x) - operator.neg(v)),
    "reduce": (Vector, lambda v, x: functools.reduce(operator.add, [v, x])),
    "sum_of_vectors": (Point, lambda v, x: sum([v, v]).w * x),
    "len": (Vector, lambda v, x: len(v) * x),
    "if": (Vector, branched),
    "while": (Vector, in_a_while),
    "ternary": (Vector, lambda v, x: x if v else -x),
    "not": (Vector, lambda v, x: x if not v else -x),
    "and": (Vector, lambda v, x: x if v and x > 0 else -x),
    "bool": (Vector, lambda v, x: bool(v) * x),
    "truth_by_len": (Sized, branched),
    "float": (Vector, lambda v, x: float(v) * x),
    "int": (Vector, lambda v, x: int(v) * x),
    "complex": (Vector, lambda v, x: complex(v) * x),
    "index": (Vector, lambda v, x: [5.0, 7.0][v] * x),
    "round": (Vector, lambda v, x: round(v) * x),
    "in": (Vector, lambda v, x: x if 5.0 in v else -x),
    "not_in": (Vector, lambda v, x: x if 5.0 not in v else -x),
    "in_by_iter": (Stream, lambda v, x: x if 6.0 in v else -x),
    "in_a_list": (Vector, lambda v, x: x if v in [1.0, 6.0] else -x),
    "for": (Vector, in_a_for),
    "for_generator": (Stream, in_a_for),
    "for_next": (Steps, in_a_for),
    "for_items": (Sequence, in_a_for),
    "comprehension": (Vector, lambda v, x: [a * x for a in v]),
    "generator_expression": (Vector, lambda v, x: sum(a for a in v) * x),
    "dict_comprehension": (Vector, lambda v, x: {k: a * x for k, a in enumerate(v)}),
    "star": (Vector, lambda v, x: [*v][1] * x),
    "star_generator": (Stream, lambda v, x: [*v][1] * x),
    "unpacking": (Vector, unpacked),
    "max": (Vector, lambda v, x: max(v) * x),
    "zip": (Vector, lambda v, x: [a * b * x for a, b in zip(v, (2, 3))]),
    "list": (Vector, lambda v, x: list(v)[1] * x),
    "iter": (Vector, lambda v, x: next(iter(v)) * x),
    "reversed": (Vector, lambda v, x: [a * x for a in reversed(v)]),
    "map": (Vector, lambda v, x: list(map(functools.partial(operator.mul, x), v))),
    "eq": (Vector, lambda v, x: x if v == 1.0 else -x),
    "reflected_eq": (Vector, lambda v, x: x if 1.0 == v else -x),  # noqa: SIM300
    "ne": (Vector, lambda v, x: x if v != 1.0 else -x),
    "lt": (Vector, lambda v, x: x if v < 2.0 else -x),
    "gt_by_lt": (Vector, lambda v, x: x if 2.0 > v else -x),  # noqa: SIM300
    "gt_of_an_heir": (Heir, lambda v, x: x if Vector(v.w) < v else -x),
    "no_order": (Record, lambda v, x: v < x),
    "chain": (Vector, compared_in_a_chain),
    "array_leaves_it": (Left, lambda v, x: np.arange(2.0) * v * x),
    "number_leaves_it": (Left, lambda v, x: np.float64(2.0) * v * x),
    "in_a_list_of_vectors": (Vector, lambda v, x: x if v in [Vector(np.array([3.0, 3.0]))] else -x),
    "eq_of_records": (Record, lambda v, x: x if v == Record(v.w) else -x),
    "no_truth": (Record, lambda v, x: (v or x).w * x),
    "iter_goes_on": (Record, taken_to_the_end),
    "copy_of_its_own": (Copied, lambda v, x: copy.copy(v).w * x),
    "deepcopy_of_its_own": (Copied, lambda v, x: copy.deepcopy([v])[0].w * x),
    "asdict": (Record, lambda v, x: dataclasses.asdict(v)["w"] * x),
    "astuple": (Record, lambda v, x: dataclasses.astuple(v)[0] * x),
    "replace": (Record, lambda v, x: dataclasses.replace(v, more=3).w * x),
    "copy": (Record, lambda v, x: copy.copy(v).w * x),
    "deepcopy": (Record, lambda v, x: copy.deepcopy(v).w * x),
    "deepcopy_of_slots": (Slotted, lambda v, x: copy.deepcopy(v).w * x),
    "deepcopy_of_containers": (Record, lambda v, x: copy.deepcopy({"a": [v, (v, 1)]})["a"][1][0].w * x),
}


def stored(v: Any, x: Any) -> Any:
    found = {THREE: 2.0}
    found[v] = 4.0
    return len(found) * x


# What only code that is not converted does: left to Python.
UNSEEN: dict[str, tuple[type, Callable[[Any, Any], Any]]] = {
    "pickle": (Record, lambda v, x: pickle.loads(pickle.dumps(v)).w * x),
    "sorted": (Vector, lambda v, x: x if sorted([v, Vector(np.array([2.0]))])[0] is v else -x),
    "sorted_iterator": (Vector, lambda v, x: x if sorted(iter([v, OTHER]))[0] is v else -x),
    "sorted_set": (Vector, lambda v, x: x if sorted({v, OTHER})[0] is v else -x),
    "min_of_a_generator": (Vector, lambda v, x: x if min(u for u in [v, OTHER] if u is not x) is v else -x),
    "min_of_values": (Vector, lambda v, x: x if min({1: v, 2: OTHER}.values()) is v else -x),
    "max_of_a_chain": (Vector, lambda v, x: x if max(itertools.chain([v], [OTHER])) is v else -x),
    "smallest": (Vector, lambda v, x: x if heapq.nsmallest(1, iter([v, OTHER]))[0] is v else -x),
    "set": (Key, lambda v, x: len({v, THREE}) * x),
    "set_comprehension": (Key, lambda v, x: len({u for u in (v, THREE) if u is not x}) * x),
    "dict": (Key, lambda v, x: {v: 1.0, THREE: 2.0}[THREE] * len({v: 1.0, THREE: 2.0}) * x),
    "dict_get": (Key, lambda v, x: {THREE: 2.0}.get(v, 1.0) * x),
    "dict_item": (Key, lambda v, x: {THREE: 2.0}[v] * x),
    "dict_store": (Key, stored),
    "counter": (Key, lambda v, x: len(collections.Counter([v, THREE])) * x),
    "array": (Converted, lambda v, x: np.asarray(v) * x),
    "user_dict": (Namespace, lambda v, x: v["w"] * x + v.get("w")),
    "match": (Record, matched),
    "equal_lists": (Vector, lambda v, x: x if [v] == [Vector(np.array([3.0, 3.0]))] else -x),
    "total_ordering": (Ordered, lambda v, x: x if v >= 2.0 else -x),
    "index_in_a_list": (Vector, lambda v, x: [v, 1.0].index(3.0) * x if v else x),
}


def rebound(v: Any, step: int) -> None:
    v.w = np.array([[1.0, 5.0], [3.0, 5.0], [1.0, 6.0], [3.0, 6.0]][step])


def changed_in_place(v: Any, step: int) -> None:
    v.w[:] = [[1.0, 5.0], [3.0, 5.0], [1.0, 6.0], [3.0, 6.0]][step]


def outcome(function: Callable[..., Any], *args: Any) -> Any:
    try:
        return repr(function(*args))
    except jitml.errors.JitmlError as error:
        return error
    except Exception as error:
        return repr(error)


def compare(kind: type, use: Callable[[Any, Any], Any], change: Callable[[Any, int], None], *, writes: bool = False) -> Any:
    """What plain and compiled functions do, call by call; gives the compiled one and its outcomes."""
    mine, theirs = (kind(np.array([1.0, 5.0])) for _ in range(2))
    place = {"v": mine}

    def function(x: Any) -> Any:
        v = place["v"]
        if writes:
            v.w[0] = v.w[0] * x
        return use(v, x)

    compiled, found = jitml.jit(function), []
    for step in range(4):
        change(mine, step)
        change(theirs, step)
        got = outcome(compiled, 1.5)
        place["v"] = theirs
        want = outcome(function, 1.5)
        place["v"] = mine
        found.append((got, want))
    return compiled, found


COPIES = ("asdict", "astuple", "copy", "deepcopy", "deepcopy_of_slots", "deepcopy_of_containers")  # which Python makes
ALL_USES = [pytest.param(name, marks=[pytest.mark.loose] * (name in (*COPIES, "for_items"))) for name in USES]


@pytest.mark.parametrize("change", [rebound, changed_in_place], ids=lambda f: f.__name__)
@pytest.mark.parametrize("name", ALL_USES)
def test_what_special_methods_read(name: str, change: Callable[[Any, int], None]) -> None:
    compiled, found = compare(*USES[name], change)
    for got, want in found:
        assert got == want
    if change is changed_in_place:
        assert len(compiled.variants) <= 2, "an array that changes is no reason to compile again, but for a way taken"


@pytest.mark.parametrize("name", ALL_USES)
def test_what_special_methods_read_after_a_write(name: str) -> None:
    for got, want in compare(*USES[name], changed_in_place, writes=True)[1]:
        assert got == want


@pytest.mark.loose
@pytest.mark.parametrize("change", [rebound, changed_in_place], ids=lambda f: f.__name__)
@pytest.mark.parametrize("name", UNSEEN)
def test_what_is_read_out_of_sight(name: str, change: Callable[[Any, int], None]) -> None:
    for got, want in compare(*UNSEEN[name], change)[1]:
        assert got == want


@pytest.mark.loose
@pytest.mark.parametrize("name", UNSEEN)
def test_what_is_read_out_of_sight_after_a_write(name: str) -> None:
    for got, want in compare(*UNSEEN[name], changed_in_place, writes=True)[1]:
        assert got == want


def test_arrays_that_are_not_read_may_change_and_be_large() -> None:
    class Data:
        def __init__(self) -> None:
            self.data = np.zeros(1 << 18)

        def __len__(self) -> int:
            return len(self.data)

        def __eq__(self, other: object) -> bool:
            return self is other

        __hash__ = object.__hash__

    data = Data()

    def step(x: Any) -> Any:
        data.data[0] += x
        return data.data[0] * len(data) if data == data else x

    compiled = jitml.jit(step)
    got = [float(compiled(1.0)) for _ in range(4)]
    assert got == [(n + 1.0) * (1 << 18) for n in range(4)]
    assert len(compiled.variants) == 1


@pytest.mark.loose
def test_a_write_in_a_loop_that_reads_out_of_sight() -> None:
    mine, theirs = Vector(np.array([1.0, 5.0])), Vector(np.array([1.0, 5.0]))

    def step(v: Any, x: Any) -> Any:
        total = x
        for i in range(5):
            total = total + pickle.loads(pickle.dumps(v)).w[0]
            v.w[0] = total + i
        return total

    compiled = jitml.jit(step)
    for _ in range(3):
        assert compiled(mine, 1.0) == step(theirs, 1.0)
        assert mine.w.tolist() == theirs.w.tolist()


def test_whether_an_attribute_is_there() -> None:
    v = Vector(np.ones(2))

    def step(x: Any) -> Any:
        v.w += x
        return v.w * (2 if hasattr(v, "cache") else 1) * getattr(v, "scale", 1.0)

    compiled = jitml.jit(step)
    np.testing.assert_array_equal(compiled(1.0), np.full(2, 2.0))
    np.testing.assert_array_equal(compiled(1.0), np.full(2, 3.0))
    assert len(compiled.variants) == 1
    v.cache, v.scale = 1, 10.0  # type: ignore[attr-defined]
    np.testing.assert_array_equal(compiled(1.0), np.full(2, 80.0))


def test_whether_an_attribute_is_made_up() -> None:
    class Made:
        def __init__(self) -> None:
            self.w = np.array([1.0])

        def __getattr__(self, name: str) -> Any:
            if name == "large" and self.w[0] > 2:
                return self.w
            raise AttributeError(name)

        @property
        def half(self) -> Any:
            return self.w / 2

    made = Made()

    def f(x: Any) -> Any:
        return x * hasattr(made, "large") + hasattr(made, "half") + hasattr(made, "none") + getattr(made, "none", 5)

    compiled = jitml.jit(f)
    for value in (1.0, 3.0, 1.0):
        made.w[0] = value
        assert compiled(2.0) == f(2.0)


def test_operators_change_what_is_outside() -> None:
    mine, theirs = Vector(np.ones(2)), Vector(np.ones(2))

    def step(v: Any, x: Any) -> Any:
        v += x
        return v.w * 2

    compiled = jitml.jit(step)
    for _ in range(3):
        np.testing.assert_array_equal(compiled(mine, 2.0), step(theirs, 2.0))
        np.testing.assert_array_equal(mine.w, theirs.w)
    assert len(compiled.variants) == 1


def test_objects_that_are_keys_tell_others_apart() -> None:
    class Name:
        pass

    names = [Name() for _ in range(4)]
    table, some = {names[0]: 1.0, (names[1], "b"): 2.0}, {names[2]}

    def f(x: Any, name: Any, given: Any) -> Any:
        return x + table.get(name, 3.0) + 10 * given.get((name, "b"), 4.0) + 100 * (name in some) + 1000 * (name in table)

    compiled = jitml.jit(f)
    for name in [*names, *names]:
        assert compiled(1.0, name, table) == f(1.0, name, table)


def test_methods_of_containers_leave_what_is_in_objects_alone() -> None:
    class Layer:
        def __init__(self) -> None:
            self.w = np.zeros(1 << 18)

    layers = {"a": Layer(), "b": Layer()}

    def step(x: Any) -> Any:
        total = x
        for layer in layers.values():
            layer.w += x
            total += layer.w[0]
        return total * (len(layers.copy()) + len(list(layers.items()).copy()))

    compiled = jitml.jit(step)
    assert [float(compiled(1.0)) for _ in range(3)] == [12.0, 20.0, 28.0]
    assert len(compiled.variants) == 1


@pytest.mark.loose
def test_what_is_read_out_of_sight_by_name() -> None:
    sign, scales = np.array([1.0]), {"all": 1.0}

    def scaled(item: Any) -> Any:
        return item.w * sign[0] * scales["all"] * item.factor

    class Item:
        factor = 1.0

        def __init__(self, w: float) -> None:
            self.w = w

        def __lt__(self, other: Item) -> bool:
            return bool(scaled(self) < scaled(other))

    items = [Item(3.0), Item(2.0)]

    def f(x: Any) -> Any:
        return sorted(items)[0].w * x

    compiled = jitml.jit(f)
    assert compiled(1.0) == f(1.0) == 2.0
    sign[0] = -1.0
    assert compiled(1.0) == f(1.0) == 3.0
    scales["all"] = -1.0
    assert compiled(1.0) == f(1.0) == 2.0
    Item.factor = -1.0
    assert compiled(1.0) == f(1.0) == 3.0


def test_numbers_of_numpy_do_not_leave_operators_to_sequences() -> None:
    class Pair:
        def __init__(self, a: Any, b: Any) -> None:
            self.items = a, b

        def __rmul__(self, other: Any) -> Any:
            return "its own"

        def __len__(self) -> int:
            return 2

        def __getitem__(self, index: int) -> Any:
            return self.items[index]

    class Prior(Pair):
        __array_priority__ = 0.0

    x = np.array([2.0, 3.0])
    assert type(x[0] * Pair(x[0], x[1])) is np.ndarray  # NumPy makes an array of it
    with pytest.raises(jitml.TraceError, match="cannot become a concrete NumPy array"):
        jitml.jit(lambda x: x[0] * Pair(x[0], x[1]))(x)
    assert jitml.jit(lambda x: x[0] * Prior(x[0], x[1]))(x) == x[0] * Prior(x[0], x[1]) == "its own"


class Stateful(Record):
    def __getstate__(self) -> dict[str, Any]:
        return {"w": self.w}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.w = state["w"]


class Mapping(dict[str, Any]):
    """A container that has attributes."""

    def __init__(self, w: Any) -> None:
        super().__init__(w=w)
        self.w = w


@pytest.mark.loose
@pytest.mark.parametrize("make", [copy.copy, copy.deepcopy], ids=lambda f: f.__name__)
@pytest.mark.parametrize("kind", [Record, Stateful, Mapping])
def test_a_copy_may_be_changed_in_each_call(kind: type, make: Callable[[Any], Any]) -> None:
    v = kind(np.array([1.0, 5.0]))

    def f(x: Any) -> Any:
        made = make([v] if make is copy.deepcopy else v)
        made = made[0] if make is copy.deepcopy else made
        made.w = made.w * x
        made.w[0] += 1
        return made.w

    compiled = jitml.jit(f)
    for _ in range(3):
        np.testing.assert_array_equal(compiled(2.0), f(2.0))
    np.testing.assert_array_equal(v.w, [1.0, 5.0])


@pytest.mark.loose
def test_a_deep_copy_of_a_method() -> None:
    v = Vector(np.array([1.0, 5.0]))

    def f(x: Any) -> Any:
        return copy.deepcopy(v.__matmul__)(x)

    compiled, x = jitml.jit(f), np.ones(2)
    assert compiled(x) == f(x) == 6.0
    v.w[0] = 2.0
    assert compiled(x) == f(x) == 7.0


class Counting:
    def __init__(self) -> None:
        self.w, self.ends = np.array([1.0, 5.0, 7.0]), 0

    def __iter__(self) -> Iterator[Any]:
        try:
            yield from self.w
        finally:
            self.ends += 1


def test_a_generator_ends_where_its_loop_is_left() -> None:
    def f(counting: Counting, x: Any) -> Any:
        for n, item in enumerate(counting):
            x = x + item
            if n == 1:
                break
        for item in counting:
            x = x * item
            if counting.ends == 1:
                break
        return x, counting.ends

    mine, theirs, compiled = Counting(), Counting(), jitml.jit(f)
    for _ in range(3):
        assert compiled(mine, 1.0) == f(theirs, 1.0)
        assert mine.ends == theirs.ends
