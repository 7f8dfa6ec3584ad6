"""Do special methods of users' classes see arrays that are rebound, changed in place, or changed in the same call?"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from tests.trace.hooks.special_methods import UNSEEN, USES, Record, Vector

import jitml


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


@pytest.mark.loose("eq_of_records-changed_in_place", "eq_of_records-rebound", "for_next-changed_in_place", "for_next-rebound")
@pytest.mark.parametrize("change", [rebound, changed_in_place], ids=lambda f: f.__name__)
@pytest.mark.parametrize("name", ALL_USES)
def test_what_special_methods_read(name: str, change: Callable[[Any, int], None]) -> None:
    compiled, found = compare(*USES[name], change)
    for got, want in found:
        assert got == want
    if change is changed_in_place:
        assert len(compiled.variants) <= 2, "an array that changes is no reason to compile again, but for a way taken"


@pytest.mark.loose("eq_of_records", "for_next")
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


@pytest.mark.loose
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


@pytest.mark.loose
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
