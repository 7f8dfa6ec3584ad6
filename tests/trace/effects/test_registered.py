"""Containers of the users' own kinds, and records in containers: what is changed in them, and what transforms see of them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import jitml


class Layer:
    def __init__(self, w: Any) -> None:
        self.w = w
        self.steps = 0

    def down(self, g: Any) -> None:
        self.w = self.w - g
        self.steps += 1


class Pair:
    __slots__ = ("a", "b", "tag")

    def __init__(self, a: Any, b: Any, tag: str = "t") -> None:
        self.a, self.b, self.tag = a, b, tag


class Stacked:
    def __init__(self, layers: list[Layer]) -> None:
        self.layers = layers


@dataclass
class Record:
    w: Any


jitml.register_pytree_node(Layer, lambda x: ((x.w,), None), lambda _, parts: Layer(*parts))
jitml.register_pytree_node(Pair, lambda x: ((x.a, x.b), x.tag), lambda tag, parts: Pair(*parts, tag))
jitml.register_pytree_node(Stacked, lambda x: (tuple(x.layers), None), lambda _, parts: Stacked(list(parts)))


def contents(x: Any) -> Any:
    """All that is in something, and which class it is of."""
    if isinstance(x, (list, tuple)):
        return [contents(item) for item in x]
    if isinstance(x, dict):
        return {key: contents(item) for key, item in x.items()}
    names = (*getattr(x, "__dict__", ()), *getattr(x, "__slots__", ()))
    if isinstance(x, (Layer, Pair, Stacked, Record)):
        return type(x).__name__, {name: contents(getattr(x, name)) for name in names}
    return repr(x)


def layer() -> Layer:
    return Layer(np.arange(2.0))


def loss(x: Any) -> Any:
    return (x.w**2).sum()


def bound(x: Layer) -> Any:
    x.w = x.w + 1.0
    return x


def bound_and_summed(x: Layer) -> Any:
    x.w = x.w + 1.0
    return x.w.sum()


def by_a_method(x: Layer) -> Any:
    x.down(np.ones(2))
    x.mean = x.w * 2  # type: ignore[attr-defined]
    return x.steps


def in_a_dict(d: dict[str, Layer]) -> Any:
    d["x"].w = d["x"].w * 2
    return d


def in_a_list(layers: list[Layer]) -> Any:
    for x in layers:
        x.w = x.w + 1
    return layers[0].w


def of_slots(x: Pair) -> Any:
    x.a, x.b = x.b, x.a + 1
    x.tag = "new"
    return x


def nested(x: Stacked) -> Any:
    for inner in x.layers:
        inner.w = inner.w + 1
        inner.steps += 2
    x.layers.append(Layer(x.layers[0].w * 3))
    return x


def in_a_loop(x: Layer) -> Any:
    for _ in range(5):
        x.w = x.w * 1.5
        x.steps += 1
    return x.w


def in_a_branch(x: Layer) -> Any:
    if x.w.sum() > 0:
        x.w = x.w * 2
    else:
        x.w = x.w - 5
    return x.w


def between_gradients(x: Layer) -> Any:
    x.w = x.w - 0.1 * jitml.grad(loss)(x).w
    return jitml.grad(loss)(x).w


def of_two(x: Layer, y: Layer) -> Any:
    x.w = y.w
    y.w = y.w + 1
    return x


def in_place(x: Layer) -> Any:
    x.w += 1
    return x


CHANGES: dict[Callable[..., Any], Callable[[], tuple[Any, ...]]] = {
    bound: lambda: (layer(),),
    bound_and_summed: lambda: (layer(),),
    by_a_method: lambda: (layer(),),
    in_a_dict: lambda: ({"x": layer()},),
    in_a_list: lambda: ([layer(), Layer(np.zeros(3))],),
    of_slots: lambda: (Pair(np.ones(2), np.zeros(2)),),
    nested: lambda: (Stacked([layer(), layer()]),),
    in_a_loop: lambda: (layer(),),
    in_a_branch: lambda: (layer(),),
    between_gradients: lambda: (layer(),),
    of_two: lambda: (layer(), Layer(np.zeros(2))),
    in_place: lambda: (layer(),),
}


@pytest.mark.parametrize("f", CHANGES, ids=lambda f: f.__name__)
def test_what_is_changed_in_an_argument_is_the_callers(f: Callable[..., Any]) -> None:
    compiled, own, ours = jitml.jit(f), CHANGES[f](), CHANGES[f]()
    for _ in range(3):
        results = []
        for run, args in ((f, own), (compiled, ours)):
            try:
                result = run(*args)
                results.append((contents(result), [contents(x) for x in args], result is args[0]))
            except AttributeError as error:
                results.append((str(error), [contents(x) for x in args], False))
        assert results[0] == results[1]


def test_numbers_that_change_in_it_are_no_reason_to_compile_again() -> None:
    compiled, x = jitml.jit(in_a_loop), layer()
    for _ in range(4):
        compiled(x)
    assert x.steps == 20
    assert "1 variant>" in repr(compiled)


class Trainer:
    """Puts new objects in the place of its own."""

    def __init__(self, kind: Any) -> None:
        self.model, self.others, self.mean = kind(np.ones(3)), [kind(np.ones(2))], {"of": 0.0}

    def step(self, x: Any) -> Any:
        slope = jitml.grad(loss)(self.model).w
        self.model = type(self.model)(self.model.w - 0.1 * x * slope)
        self.mean = {"of": self.mean["of"] + self.model.w.sum()}
        self.others[0].w = self.others[0].w - jitml.grad(lambda others: loss(others[0]))(self.others)[0].w
        return self.model


@pytest.mark.parametrize("kind", [Layer, Record])
def test_objects_that_a_function_exchanges_are_no_reason_to_compile_again(kind: Any) -> None:
    own, ours, step = Trainer(kind), Trainer(kind), jitml.jit(Trainer.step)
    for _ in range(5):
        own.step(2.0)
        assert step(ours, 2.0) is ours.model
    assert "2 variants" in repr(step), "np.float64 has taken the place of a float"
    for mine, its in ((own.model, ours.model), (own.others[0], ours.others[0])):
        np.testing.assert_allclose(its.w, mine.w, rtol=1e-14)
    np.testing.assert_allclose(ours.mean["of"], own.mean["of"])


def test_objects_that_are_exchanged_are_as_different_as_they_were() -> None:
    @dataclass
    class Both:
        a: Record
        b: Record

    def step(x: Any) -> Any:
        is_one = both.a is both.b
        both.a = Record(both.a.w + 1.0)
        return is_one, both.b.w.sum()

    compiled = jitml.jit(step)
    start = Record(np.zeros(2))
    both = Both(start, start)
    found = [compiled(0.0) for _ in range(3)]
    both.b = both.a
    found.append(compiled(0.0))
    assert found == [(True, 0.0), (False, 0.0), (False, 0.0), (True, 6.0)]


def taken_apart(x: float) -> dict[str, Any]:
    """What transforms and control flow make of a container from outside."""
    y, pull = jitml.vjp(lambda d: (d["n"].w ** 2).sum() + d["m"][0].w.sum(), HELD)
    return {
        "grad": jitml.grad(lambda d: (d["n"].w ** 2).sum())(HELD)["n"].w * x,
        "in a list": jitml.grad(lambda m: (m[0].w ** 2).sum())(HELD["m"])[0].w * x,
        "vjp": pull(1.0)[0]["n"].w * y,
        "jvp": jitml.jvp(lambda d: (d["m"][0].w ** 2).sum(), (HELD,), (HELD,))[1],
        "vmap": jitml.vmap(lambda d, v: d["n"].w.sum() * v, in_axes=(None, 0))(HELD, np.arange(3.0) * x),
        "checkpoint": jitml.checkpoint(lambda d: d["n"].w * 2)(HELD) * x,
        "scan": jitml.scan(lambda c, _: (Record(c.w * 2), c.w.sum()), HELD["n"], None, length=3)[1],
        "cond": jitml.cond(x > 0, lambda n: n.w * x, lambda n: n.w, HELD["n"]),
        "while": jitml.while_loop(lambda c: c.w.sum() < 50, lambda c: Record(c.w * 2), HELD["n"]).w,
    }


HELD: dict[str, Any] = {}


def test_transforms_see_what_is_in_a_container_now() -> None:
    """They take it apart themselves, past what watches the function."""
    compiled = jitml.jit(taken_apart)

    def filled(n: Any, m: Any) -> None:
        HELD.clear()
        HELD.update(n=Record(np.array(n)), m=[Layer(np.array(m))])

    def bind() -> None:
        HELD["n"].w, HELD["m"][0].w = np.array([1.0, 5.0]), np.array([2.0, 5.0])

    def write() -> None:
        HELD["n"].w[0] = HELD["m"][0].w[0] = 3.0

    for change in (lambda: filled([1.0, 1.0], [1.0, 2.0]), bind, write, lambda: filled([7.0, 8.0], [9.0, 1.0])):
        change()
        expected, found = taken_apart(1.5), compiled(1.5)
        for name, value in expected.items():
            np.testing.assert_allclose(found[name], value, err_msg=name)


def test_a_container_that_a_transform_gets_is_what_the_function_has_made_of_it() -> None:
    def steps(x: float) -> Any:
        for _ in range(3):
            HELD["n"].w = HELD["n"].w - 0.1 * x * jitml.grad(lambda d: loss(d["n"]))(HELD)["n"].w
        return HELD["n"].w

    HELD.update(n=Record(np.ones(2)))
    own = copy.deepcopy(HELD["n"])
    expected = steps(1.0)
    HELD["n"] = own
    np.testing.assert_allclose(jitml.jit(steps)(1.0), expected, rtol=1e-14)
    np.testing.assert_allclose(own.w, expected, rtol=1e-14)
