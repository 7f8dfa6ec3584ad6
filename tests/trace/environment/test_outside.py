"""Does a compiled function see what has changed outside it since it was compiled?  Each way in which Python can change it."""

from __future__ import annotations

import dataclasses
import functools
import operator
import os
import types
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml

Array = np.ndarray[Any, Any]
X = np.arange(3.0)


class Base:
    def method(self, x: Array) -> Array:
        return x + 1

    @property
    def rate(self) -> float:
        return 2.0


class Derived(Base):
    def method(self, x: Array) -> Array:
        return super().method(x)


class Other(Derived):
    def method(self, x: Array) -> Array:
        return x - 1


class Bag:
    """Its special methods look at its state where the conversion of source does not."""

    def __init__(self) -> None:
        self.values = {"a": 1.0}

    def __getitem__(self, key: str) -> float:
        return self.values[key]

    def __call__(self, x: Array) -> Array:
        return x + self.values["a"]

    def __len__(self) -> int:
        return int(self.values["a"])

    def __iter__(self) -> Any:
        return iter(list(self.values.values()))

    def __contains__(self, key: str) -> bool:
        return key in self.values

    def __bool__(self) -> bool:
        return self.values["a"] > 5

    def __add__(self, x: Array) -> Array:
        return x + self.values["a"]


class Stack:
    """Layers in a row; `len` and iteration look at `layers` alone."""

    def __init__(self, *layers: Bag) -> None:
        self.layers = list(layers)
        self.rate = 1.0

    def __len__(self) -> int:
        return len(self.layers)

    def __iter__(self) -> Any:
        return iter(self.layers)

    def __call__(self, x: Array) -> Array:
        for layer in self:
            x = layer(x) * self.rate
        return x / len(self)


@dataclasses.dataclass
class Config:
    rate: float = 1.0


def helper(x: Array) -> Array:
    return x + 1


def replacement(x: Array) -> Array:
    return x * 7


def check(function: Callable[[Array], Array], change: Callable[[], object]) -> None:
    compiled = jitml.jit(function)
    before = function(X)
    np.testing.assert_array_equal(compiled(X), before)
    change()
    after = function(X)
    assert not np.array_equal(before, after), "the change must matter"
    np.testing.assert_array_equal(compiled(X), after)


def test_code_of_a_helper_is_exchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    check(lambda x: +helper(x), lambda: monkeypatch.setattr(helper, "__code__", replacement.__code__))


def test_a_method_behind_super_is_patched(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Derived()
    check(lambda x: +model.method(x), lambda: monkeypatch.setattr(Base, "method", lambda self, x: x + 70))


def test_a_property_is_patched(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Derived()
    check(lambda x: x + model.rate, lambda: monkeypatch.setattr(Base, "rate", property(lambda self: 33.0)))


def test_an_object_gets_another_class() -> None:
    model = Derived()
    check(lambda x: +model.method(x), lambda: setattr(model, "__class__", Other))


@pytest.mark.parametrize(
    "use",
    [
        lambda x, bag: x + bag["a"],
        lambda x, bag: bag(x),
        lambda x, bag: x + len(bag),
        lambda x, bag: x + sum(v for v in bag),
        lambda x, bag: x + (7 if bag else 1),
        lambda x, bag: x + (7 if "b" in bag else 1),
        lambda x, bag: bag + x,
    ],
)
def test_state_behind_special_methods_changes(use: Callable[[Array, Bag], Array]) -> None:
    captured = Bag()
    check(lambda x: use(x, captured), lambda: captured.values.update(a=7.0, b=1.0))
    given = Bag()
    compiled = jitml.jit(use)
    compiled(X, given)
    given.values.update(a=7.0, b=1.0)
    np.testing.assert_array_equal(compiled(X, given), use(X, given))


def test_what_special_methods_do_not_read_may_change() -> None:
    stack = Stack(Bag())
    compiled = jitml.jit(lambda x: stack(x) + len(stack))
    for rate in (1.0, 2.0, 3.0):
        stack.rate = rate
        stack.history = [rate]  # type: ignore[attr-defined]  # as training loops do
        np.testing.assert_array_equal(compiled(X), stack(X) + len(stack))
    assert len(compiled.variants) == 1
    stack.layers.append(Bag())
    np.testing.assert_array_equal(compiled(X), stack(X) + len(stack))
    assert len(compiled.variants) == 2


@pytest.mark.parametrize("make", [defaultdict, OrderedDict, type("Mine", (dict,), {})])
@pytest.mark.parametrize("use", [lambda d: d["a"], lambda d: d.get("a"), lambda d: sum(d.values())])
def test_an_item_of_a_kind_of_dict_changes(make: Any, use: Callable[[Any], float]) -> None:
    table = make()
    table["a"] = 1.0
    check(lambda x: x + use(table), lambda: table.update(a=8.0))


def test_a_key_that_has_gone_is_not_put_back_by_looking_for_it() -> None:
    table = defaultdict(float, a=1.0)
    compiled = jitml.jit(lambda x: x + sum(table.values()))
    for key in "ab":
        table.clear()
        table[key] = 2.0
        np.testing.assert_array_equal(compiled(X), X + 2)
        assert list(table) == [key]


def test_a_key_that_has_gone_from_an_argument_is_not_put_back() -> None:
    def changed(d: dict[str, float], x: Any) -> Any:
        d["z"] = 3.0
        return x + sum(d.values())

    compiled = jitml.jit(changed)
    for key in "ab":
        given = defaultdict(float, {key: 2.0})
        np.testing.assert_array_equal(compiled(given, X), X + 5)
        assert list(given) == [key, "z"]


def test_an_item_of_a_deque_changes() -> None:
    recent = deque([1.0])
    check(lambda x: x + recent[0] + sum(recent), lambda: recent.append(recent.pop() + 5))


def test_arrays_in_a_kind_of_dict_are_read_anew() -> None:
    table = OrderedDict(w=np.ones(3))
    check(lambda x: x * table["w"], lambda: table.update(w=np.full(3, 9.0)))


def test_keywords_of_a_partial_change() -> None:
    scale = functools.partial(lambda x, k: x * k, k=2.0)
    check(lambda x: +scale(x), lambda: scale.keywords.update(k=9.0))


READ_RATE = operator.attrgetter("rate")


@pytest.mark.parametrize(
    "read",
    [
        pytest.param(lambda c: +READ_RATE(c), marks=pytest.mark.loose),
        pytest.param(lambda c: dataclasses.asdict(c)["rate"], marks=pytest.mark.loose),
        lambda c: dataclasses.replace(c).rate,
        lambda c: 1.0 if hasattr(c, "extra") else 0.0,
        lambda c: getattr(c, "extra", 0.0),
    ],
)
def test_an_attribute_that_library_code_reads_changes(read: Callable[[Config], float]) -> None:
    config = Config()

    def change() -> None:
        config.rate = 4.0
        config.extra = 3.0  # type: ignore[attr-defined]  # what the last two cases ask for

    check(lambda x: x + read(config), change)


@pytest.mark.loose
@pytest.mark.parametrize(
    "read", [lambda: os.environ["JITML_TEST"], lambda: os.getenv("JITML_TEST"), lambda: os.environ.get("JITML_TEST")]
)
def test_the_environment_is_read_at_each_call(read: Callable[[], str], monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = jitml.jit(lambda x: x + float(read()), verify="never")
    for text in ("1", "2", "1"):
        monkeypatch.setenv("JITML_TEST", text)
        np.testing.assert_array_equal(compiled(X), X + float(read()))
    monkeypatch.delenv("JITML_TEST")
    with pytest.raises((KeyError, TypeError)):
        compiled(X)


class Affine:
    def __init__(self, w: np.ndarray[Any, Any], shift: int) -> None:
        self.w, self.shift = w, shift

    def apply(self, x: Any) -> Any:
        return x * self.w + self.shift


def test_instances_of_one_class_share_a_variant() -> None:
    step = jitml.jit(lambda m, x: m.apply(x))
    x = np.arange(3.0)
    for factor in (1.0, 2.0, 5.0):
        np.testing.assert_array_equal(step(Affine(np.full(3, factor), 7), x), x * factor + 7)
    assert len(list(step.variants)) == 1
    np.testing.assert_array_equal(step(Affine(np.ones(3), 8), x), x + 8)  # an int that was read is guarded
    assert len(list(step.variants)) == 2


def test_a_method_replaced_in_the_instance_is_seen() -> None:
    step = jitml.jit(lambda m, x: m.apply(x))
    model, x = Affine(np.ones(3), 1), np.arange(3.0)
    np.testing.assert_array_equal(step(model, x), x + 1)
    model.apply = lambda x: x * 0  # type: ignore[method-assign]  # what the test is about
    np.testing.assert_array_equal(step(model, x), x * 0)


def test_one_instance_passed_twice_is_not_two() -> None:
    def same(a: Affine, b: Affine, x: Any) -> Any:
        return x + 1 if a is b else x - 1

    step, x = jitml.jit(same), np.arange(3.0)
    one, two = Affine(np.ones(3), 1), Affine(np.ones(3), 1)
    np.testing.assert_array_equal(step(one, two, x), x - 1)
    np.testing.assert_array_equal(step(one, one, x), x + 1)


class Chosen:
    """Its functions are written in C, or belong to another object."""

    def __init__(self, number: Any, array: Any, own: Any) -> None:
        self.number, self.array, self.own = number, array, own


class Scale:
    def __init__(self, by: float) -> None:
        self.by = by

    def scaled(self, x: Any) -> Any:
        return x * self.by


def test_functions_in_attributes() -> None:
    def f(chosen: Chosen, x: Any) -> Any:
        return chosen.number(x[0], x[1]) + chosen.array(x, x) + chosen.own(x)

    compiled, x = jitml.jit(f), np.array([1.0, 2.0])
    one = Chosen(max, np.dot, Scale(2.0).scaled)
    for chosen in (one, Chosen(min, np.dot, one.own), Chosen(min, np.inner, one.own), Chosen(min, np.inner, Scale(3.0).scaled)):
        np.testing.assert_array_equal(compiled(chosen, x), f(chosen, x))
    assert len(compiled.variants) == 3  # methods of objects of one class share one


def test_a_module_without_a_file() -> None:
    module = types.ModuleType("settings")
    module.rate = 0.5  # type: ignore[attr-defined]

    def f(x: Any) -> Any:
        return x * module.rate

    compiled = jitml.jit(f)
    for module.rate in (0.5, 2.0):  # type: ignore[attr-defined]
        np.testing.assert_array_equal(compiled(X), f(X))


@pytest.mark.loose
def test_an_attribute_that_is_missed_is_made_once() -> None:
    class Cached:
        pass

    def f(cached: Any, x: Any) -> Any:
        try:
            found = cached.found
        except AttributeError:
            found = cached.found = x * 2
        return found + x

    mine, theirs, compiled = Cached(), Cached(), jitml.jit(f)
    for n in range(3):
        np.testing.assert_array_equal(compiled(mine, X + n), f(theirs, X + n))
    for cached in (mine, theirs):
        del cached.found  # type: ignore[attr-defined]
    np.testing.assert_array_equal(compiled(mine, X + 5), f(theirs, X + 5))


@pytest.mark.loose
def test_an_item_that_is_missed_is_appended_once() -> None:
    mine, theirs = [1.0], [1.0]

    def f(items: list[float], x: Any) -> Any:
        try:
            return items[2] * x
        except IndexError:
            items.append(2.0)
            return x

    compiled = jitml.jit(lambda x: f(mine, x))
    for _ in range(4):
        np.testing.assert_array_equal(compiled(X), f(theirs, X))
        assert mine == theirs
