"""Containers among the arguments and results of transforms are the function's own: it may change them, and nobody sees it."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pytest

from jitml import (
    DerivativeError,
    UnsupportedError,
    checkpoint,
    checkpoint_name,
    grad,
    jacfwd,
    jacrev,
    jit,
    jvp,
    stop_gradient,
    value_and_grad,
    vjp,
    vmap,
)
from jitml.trace.record.pytree import flatten


@dataclass
class State:
    x: Any
    v: Any
    steps: Any
    energies: list[Any]


def state() -> State:
    return State(0.2, 1.0, 0.5, [0.25])


@pytest.fixture(params=[lambda f: f, jit], ids=["eager", "jitted"])
def finish(request: pytest.FixtureRequest) -> Any:
    return request.param


def simulated(s: State) -> Any:
    for _ in range(5):
        s.v = s.v - 0.1 * s.x**3
        s.x += 0.1 * s.v
        s.steps += 1
        if s.x > 0.5:
            s.v = s.v * 0.9
        s.energies.append(s.x**2)
        s.energies[0] = s.energies[0] * s.x
    return sum(s.energies) * s.steps


def turned(q: deque[Any]) -> Any:
    q.append(q[0] * q[1])
    q.popleft()
    q[0] = q[0] ** 2
    return q[0] * q[-1]


def filled(d: dict[str, Any]) -> Any:
    for key in ("a", "b"):
        d[key] += d["a"] ** 2
    d["c"] = d["a"] * d["b"]
    return sum(v * n for n, v in enumerate(d.values(), 1))


PROGRAMS: list[Any] = [
    (simulated, state()),
    (turned, deque([2.0, 3.0])),
    (turned, deque([2.0, 3.0], maxlen=3)),
    (filled, {"a": 1.0, "b": 2.0}),
    (filled, OrderedDict(a=1.0, b=2.0)),
    (filled, defaultdict(float, a=1.0, b=2.0)),
]


@pytest.mark.parametrize(("program", "argument"), PROGRAMS, ids=lambda x: type(x).__name__)
@pytest.mark.parametrize("transform", [grad, jacfwd, jacrev, lambda f: grad(checkpoint(f))])
def test_arguments_may_be_changed(program: Any, argument: Any, transform: Any, finish: Any) -> None:
    before = deepcopy(argument)
    slopes, _ = flatten(finish(transform(program))(argument))
    assert argument == before
    np.testing.assert_allclose(slopes, differences(program, argument), rtol=1e-6)


def test_arguments_may_be_changed_that_are_no_variables(finish: Any) -> None:
    s = state()
    assert finish(grad(lambda x, s: simulated(s) * x))(1.0, s) == simulated(state())
    assert s == state()


def test_rows_of_objects_may_be_changed(finish: Any) -> None:
    def row(s: State) -> Any:
        s.x = s.x * s.v
        s.energies.append(s.x.sum())
        return s.energies[-1] * s.energies[0]

    rows = State(np.arange(6.0).reshape(2, 3), np.ones((2, 3)), 0, [np.array([1.0, 2.0])])
    axes = (State(0, 0, None, [0]),)
    np.testing.assert_allclose(finish(vmap(row, in_axes=axes))(rows), [3.0, 24.0])


@dataclass
class Pair:
    x: Any
    y: Any


def product(p: Pair) -> Any:
    return (p.x * p.x).sum() * p.y


RESULTS: list[Any] = [
    grad(product),
    lambda p: value_and_grad(product)(p)[1],
    lambda p: value_and_grad(lambda p: (product(p), Pair(p.x, p.y)), has_aux=True)(p)[0][1],
    lambda p: vjp(product, p)[1](1.0)[0],
    lambda p: vjp(lambda p: Pair(p.x, p.y), p)[0],
    lambda p: jvp(lambda p: Pair(p.y, p.x), (p,), (p,))[1],
    jacrev(lambda p: p.x * p.y),
    lambda p: vmap(lambda x: Pair(x, x * 2))(p.x),
    stop_gradient,
    lambda p: checkpoint_name(p, "p"),
]


@pytest.mark.parametrize("make", RESULTS)
def test_results_may_be_changed(make: Any, finish: Any) -> None:
    def program(p: Pair) -> Any:
        q = make(p)
        q.y = q.y * 2
        return np.sum(q.y * p.y)

    p = Pair(np.array([1.0, 2.0]), 3.0)
    assert np.shape(finish(grad(program))(p).x) == (2,)


def test_dicts_among_results_may_be_changed(finish: Any) -> None:
    def program(x: Any) -> Any:
        slopes = grad(lambda d: d["a"] ** 3)(OrderedDict(a=x))
        slopes["b"] = slopes["a"] * 2
        return slopes["b"]

    assert finish(program)(2.0) == 24
    assert finish(grad(program))(2.0) == 24


def changed_dict(a: Any, b: Any) -> Any:
    a["x"] = a["x"] * 3
    return a["x"] * b["x"]


def changed_object(a: Any, b: Any) -> Any:
    a.x = a.x * 3
    return a.x * b.x


def changed_list(a: Any, b: Any) -> Any:
    a.append(a[0])
    return len(b) * a[0]


DICT = {"x": 2.0}
OBJECT = Pair(2.0, 1.0)
LIST = [2.0]
CHANGES: list[Any] = [(changed_dict, DICT, 12), (changed_object, OBJECT, 12), (changed_list, LIST, 2)]


@pytest.mark.parametrize(("program", "one", "value"), CHANGES)
def test_one_container_by_two_names(program: Any, one: Any, value: Any, finish: Any) -> None:
    """Python would show what is changed by the other name; the function gets copies, which are apart."""
    total = finish(value_and_grad(program))
    for _ in range(2):
        assert total(deepcopy(one), deepcopy(one))[0] == value
        with pytest.raises((DerivativeError, UnsupportedError), match="a is changed, and b is the same"):
            total(one, one)
    with pytest.raises((DerivativeError, UnsupportedError), match=r"is changed, and .* is the same"):
        finish(grad(lambda both: program(both["a"], both["b"])))({"a": one, "b": one})
    with pytest.raises(
        (DerivativeError, UnsupportedError), match="an argument is changed that the function also uses by another name"
    ):
        finish(grad(lambda a: program(a, one)))(one)

    def twice(x: Any) -> Any:
        made = {"x": x} if one is DICT else Pair(x, x) if one is OBJECT else [x]
        return value_and_grad(program)(made, made)[0]

    with pytest.raises((DerivativeError, UnsupportedError), match="an argument is changed that is passed twice"):
        finish(grad(twice))(2.0)


@dataclass
class Layer:
    w: Any

    def __post_init__(self) -> None:
        self.name, self.width, self.order = "layer", len(self.w), np.arange(len(self.w))[::-1]
        self.scale = np.sqrt((self.w**2).sum())

    @cached_property
    def doubled(self) -> Any:
        return self.w * 2


def by_constants(layer: Layer) -> Any:
    return (layer.w[layer.order] ** 2)[0] * layer.width * layer.doubled[0] * (layer.name == "layer")


def by_a_float(layer: Layer) -> Any:
    return layer.scale * layer.w.sum()


@pytest.mark.parametrize("is_read_before", [False, True])
def test_attributes_that_are_no_fields(is_read_before: bool, finish: Any) -> None:
    layer = Layer(np.array([3.0, 4.0]))
    if is_read_before:
        assert layer.doubled[0] == 6
    np.testing.assert_allclose(finish(grad(by_constants))(layer).w, [64.0, 96.0])
    np.testing.assert_allclose(finish(grad(lambda x, layer: by_a_float(layer) * x))(1.0, layer), 35)
    np.testing.assert_allclose(
        finish(vmap(lambda x, layer: by_a_float(layer) * x, in_axes=(0, None)))(np.ones(2), layer), [35, 35]
    )
    with pytest.raises(DerivativeError, match="grad: scale is no field of the dataclass Layer"):
        finish(grad(by_a_float))(layer)
    with pytest.raises(DerivativeError, match="grad: scale is no field of the dataclass Layer"):
        finish(grad(lambda layer: grad(lambda x, layer: by_a_float(layer) * x)(1.0, layer)))(layer)
    with pytest.raises(DerivativeError, match="vmap: order is no field of the dataclass Layer"):
        finish(vmap(by_constants))(layer)


def test_attributes_that_change_between_calls() -> None:
    layer = Layer(np.array([3.0, 4.0]))
    slope = jit(lambda x: grad(lambda x, layer: by_a_float(layer) * x)(x, layer))
    assert slope(1.0) == 35
    layer.scale = 10.0
    assert slope(1.0) == 70


def differences(f: Any, argument: Any) -> list[float]:
    leaves, spec = flatten(argument)
    step = 1e-6

    def at(n: int, moved: float) -> Any:
        return f(spec.unflatten([leaf + moved * (k == n) for k, leaf in enumerate(leaves)]))

    return [(at(n, step) - at(n, -step)) / (2 * step) for n in range(len(leaves))]


@pytest.mark.parametrize(("program", "one", "value"), CHANGES)
@pytest.mark.loose
def test_a_container_that_a_jitted_function_passes_and_its_callee_reads(program: Any, one: Any, value: Any) -> None:
    """It had been loaded before the transform was called, and loading it again was nothing new."""
    held = deepcopy(one)
    with pytest.raises(DerivativeError, match="an argument is changed that the function also uses by another name"):
        jit(lambda x: value_and_grad(lambda a: program(a, held))(held)[0] * x)(1.0)
    assert held == one
    assert jit(lambda x: value_and_grad(lambda a: program(a, held))(deepcopy(held))[0] * x)(1.0) == value
