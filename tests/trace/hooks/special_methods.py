"""Classes with special methods that read an array, and what calls these methods."""

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
