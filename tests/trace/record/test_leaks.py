"""What comes out of a jitted function holds numbers and arrays, in bounds of slices and in keys, too."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import operator
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

import jitml
from jitml.errors import UnsupportedError
from jitml.trace.record.references import Items

KEPT: dict[Any, Any] = {}


class Place(NamedTuple):
    row: Any
    column: Any


@dataclasses.dataclass(frozen=True)
class Key:
    row: Any


class Holder:
    roi: Any = None


HOLDER = Holder()


def bounding_box(x: Any) -> Any:
    rows = np.flatnonzero(x > 1.5)
    return slice(rows[0], rows[-1] + 1), slice(None, int(x[0]), 2)


def kept_slices(x: Any) -> Any:
    HOLDER.roi = np.s_[int(x[0]) : int(x[1]), ...]
    KEPT["roi"] = slice(0, len(x))
    return HOLDER.roi[0].stop


def one_of_two(x: Any) -> Any:
    s = slice(int(x[0]), int(x[1])) if x.sum() > 11 else slice(int(x[2]), int(x[3]))
    return s, x[s].sum()


def of_the_last_iteration(x: Any) -> Any:
    s = slice(0, 1)
    for i in range(4):
        s = slice(i, int(x[i]))
    return s


def many(x: Any) -> Any:
    return [slice(i, int(v)) for i, v in enumerate(x)], range(int(x[0]), int(x[3]))


def perhaps_none(x: Any) -> Any:
    s = None
    for i in range(4):
        if x[i] > 2.5:
            s = slice(0, i)
    return s


def tuples_as_keys(x: Any) -> Any:
    found: dict[Any, Any] = {}
    for v in x:
        key = (int(v) % 2, "a")
        found[key] = found.get(key, 0) + 1
    return found


def keys_of_all_kinds(x: Any) -> Any:
    nested = {((int(x[1]),), "q"): 3, frozenset([int(x[2]), -1]): {(int(x[3]),): x}}
    return {(x[0], len(x)): 1}, {Place(int(x[0]), 2): nested}, {Key(int(x[0])): 4}


def other_dicts(x: Any) -> Any:
    groups = collections.defaultdict(list)
    for v in x:
        groups[int(v) % 2,].append(v)
    return groups, collections.OrderedDict([((int(x[0]), 1), x[1])])


def kept_keys(x: Any) -> Any:
    KEPT[x.shape] = np.arange(x.size) * 1.0
    KEPT[int(x[0]), int(x[1])] = [x[2]]
    return x * KEPT[x.shape]


def a_cache_by_shape(x: Any) -> Any:
    if x.shape not in KEPT:
        KEPT[x.shape] = np.arange(x.size) * 1.0
    return x * KEPT[x.shape]


def keys_in_a_list(x: Any) -> Any:
    return list({(int(v), 1): v for v in x}), [k for k in {(int(v),): v for v in x} if k[0] < 4]


PROGRAMS = [
    bounding_box, kept_slices, one_of_two, of_the_last_iteration, many, perhaps_none,
    tuples_as_keys, keys_of_all_kinds, other_dicts, kept_keys, a_cache_by_shape, keys_in_a_list,
]  # fmt: skip
GIVEN = [np.array([1.0, 3.0, 2.0, 5.0]), np.array([2.0, 4.0, 3.0, 6.0]), np.array([2.0, 4.0, 3.0, 6.0, 1.0])]


@pytest.mark.loose("many")
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_what_comes_out_is_what_numpy_gives(f: Callable[[Any], Any]) -> None:
    compiled = jitml.jit(f)
    for x in GIVEN:
        outcomes = []
        for g in (f, compiled):
            KEPT.clear()
            HOLDER.roi = None
            outcomes.append(repr((g(x), KEPT, HOLDER.roi)))
        assert outcomes[1] == outcomes[0]


def test_a_slice_that_is_an_argument_may_change() -> None:
    def f(x: Any, part: Any) -> Any:
        return x[part], part

    compiled = jitml.jit(f)
    for part in (slice(0, 2), slice(1, 3), slice(None, 3), slice(0, -1, 2)):
        got, given = compiled(GIVEN[0], part)
        assert np.array_equal(got, GIVEN[0][part])
        assert given == part


class Interval:
    def __init__(self, low: Any, rest: Any) -> None:
        self.low, self.rest = low, rest


jitml.register_pytree_node(Interval, lambda i: ((i.low,), i.rest), lambda rest, children: Interval(children[0], rest))


class Text(str):
    value: Any


def a_text_with_attributes(x: Any) -> Any:
    made = Text("a")
    made.value = x.sum()
    return [made]


def the_rest_of_a_container(x: Any) -> Any:
    return Interval(x, x.sum())


@pytest.mark.parametrize("f", [a_text_with_attributes, the_rest_of_a_container], ids=lambda f: f.__name__)
def test_what_cannot_be_taken_apart_may_hold_nothing_computed(f: Callable[[Any], Any]) -> None:
    with pytest.raises(UnsupportedError, match="only the compiled program computes"):
        jitml.jit(f)(GIVEN[0])


def test_what_holds_nothing_computed_is_returned_as_it_is() -> None:
    def f(x: Any) -> Any:
        return Interval(x, 3), Text("b"), Holder, x.dtype

    made, text, kind, dtype = jitml.jit(f)(GIVEN[0])
    assert made.rest == 3
    assert type(text) is Text
    assert kind is Holder
    assert dtype == np.float64


class Entering:
    last: Any = None

    def __init__(self, v: Any) -> None:
        self.v = v

    def __enter__(self) -> Entering:
        TOLD.append(self.v)
        Entering.last = self.v
        return self

    def __exit__(self, *error: object) -> None:
        TOLD.append(-self.v)


TOLD: list[Any] = [1.0]


def by_a_stack(o: Any, x: Any) -> Any:
    contextlib.ExitStack().enter_context(Entering(x[0]))
    return x * 2


class Shown:
    puts = 0

    @property
    def v(self) -> Any:
        return vars(self)["v"]

    @v.setter
    def v(self, value: Any) -> None:
        Shown.puts += 1
        vars(self)["v"] = value


SHOWN, LAST = Shown(), None


class Deeper:
    def __init__(self, v: Any) -> None:
        self.v = v

    def __enter__(self) -> None:
        global LAST
        TOLD[0] = LAST = SHOWN.v = self.v
        TOLD.extend([("entered", self.v), lambda: self.v])

    def __exit__(self, *error: object) -> None:
        TOLD.append(2.0)


def in_other_things(o: Any, x: Any) -> Any:
    contextlib.ExitStack().enter_context(Deeper(x[0]))
    return x * 2


class Keeping:
    """Made inside, and so free to keep what it is given; but not in what its class holds."""

    told = TOLD

    def __init__(self, v: Any) -> None:
        self.v = v

    def __getitem__(self, n: int) -> int:
        self.told.append((self.v, "kept"))
        self.told[0] = self.v
        return n


def by_what_is_made_inside(o: Any, x: Any) -> Any:
    return x * operator.itemgetter(2)(Keeping(x[0])) + len(TOLD)


@pytest.mark.parametrize("f", [by_a_stack, in_other_things, by_what_is_made_inside])
def test_what_is_refused_leaves_no_stand_ins(f: Callable[..., Any]) -> None:
    o = SimpleNamespace(log=[2.0], table={"b": 3.0})
    with pytest.raises(UnsupportedError, match=r"is (changed|called) by code that (runs only once|is not converted)"):
        jitml.jit(f, verify="never")(o, np.ones(2))
    assert repr((TOLD, Entering.last, o)) == "([1.0], None, namespace(log=[2.0], table={'b': 3.0}))"
    assert LAST is None and not vars(SHOWN)


def test_only_stand_ins_are_taken_out() -> None:
    old, new, theirs = [1.0], object(), object()
    held: list[Any] = [old, theirs]
    table = {"a": old, "b": new}
    items, entries = Items(held), Items(table)
    before, was = items.look(), entries.look()
    held[:] = [new, old, (new,), theirs]
    table |= {"a": new, "c": theirs, "d": new}
    is_left = {id(new), id(held[2])}.__contains__
    items.remove_left(before, lambda x: is_left(id(x)))
    entries.remove_left(was, lambda x: is_left(id(x)))
    assert held == [old, theirs]
    assert table == {"a": old, "b": new, "c": theirs}


def counted_with_early_end(x: Any, flag: Any) -> Any:
    counts: dict[Any, int] = {}
    for v in np.ravel(x)[:4]:
        key = (int(v > 0), 1)
        counts[key] = counts.get(key, 0) + 1
    if abs(x[0, 2]) < 0.25 or x.size == flag:
        return counts, v
    return [counts, counts], x


def test_structures_with_traced_keys_are_not_kept() -> None:
    compiled = jitml.jit(counted_with_early_end, verify="never")
    for seed, shape, flag in ((0, (3, 4), False), (10, (3, 4), True), (20, (2, 3), False), (3, (2, 3), 6)):
        x = np.random.default_rng(seed).integers(-16, 17, shape) / 4
        assert repr(compiled(x, flag)) == repr(counted_with_early_end(x, flag))
