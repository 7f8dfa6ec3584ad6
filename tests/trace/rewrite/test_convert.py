"""Source conversion: helpers, closures, globals and attributes are seen, and nothing goes stale."""

from __future__ import annotations

import functools
import pickle
import traceback
import warnings
from collections.abc import Callable
from dataclasses import InitVar, dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import pytest

import jitml
from jitml.errors import UncompiledWarning

Array = np.ndarray[Any, Any]

WEIGHTS = np.arange(3.0)
RATE = 2.0
TABLE = {"bias": np.ones(3), "names": ["a", "b"], "deep": [(np.zeros(3), 1)]}


def helper(x: Array, w: Array = WEIGHTS) -> Array:
    y = np.zeros(3)
    y[1:] = x[1:] * w[1:]
    return y


def uses_globals(x: Array) -> Array:
    return helper(x) * RATE + TABLE["bias"] + TABLE["deep"][0][0] * TABLE["deep"][0][1]


@pytest.fixture
def restore() -> Any:
    saved = WEIGHTS.copy(), RATE
    yield
    globals()["RATE"] = saved[1]
    WEIGHTS[:] = saved[0]
    TABLE["bias"] = np.ones(3)


def test_globals_are_read_at_every_call(restore: Any) -> None:
    f = jitml.jit(uses_globals)
    x = np.arange(3.0)
    for change in (
        lambda: None,
        lambda: WEIGHTS.__setitem__(slice(None), 5.0),
        lambda: globals().update(RATE=3.0),
        lambda: TABLE.update(bias=np.full(3, 9.0)),
        lambda: TABLE["bias"].__iadd__(1),
        lambda: TABLE["deep"].__setitem__(0, (np.ones(3), 4)),
    ):
        change()
        np.testing.assert_array_equal(f(x), uses_globals(x))


def test_contents_of_a_global_array_do_not_recompile(restore: Any) -> None:
    f = jitml.jit(uses_globals)
    f(np.ones(3))
    WEIGHTS[:] = 4
    f(np.ones(3))
    assert len(f.variants) == 1


def test_a_global_array_can_be_written(restore: Any) -> None:
    def f(x: Array) -> None:
        WEIGHTS[0] += x.sum()

    before = WEIGHTS[0]
    jitml.jit(f)(np.ones(3))
    assert WEIGHTS[0] == before + 3


def test_closures_are_read_at_every_call() -> None:
    w, k = np.ones(2), 3

    def f(x: Array) -> Array:
        return x * w * k

    compiled = jitml.jit(f)
    x = np.arange(2.0)
    np.testing.assert_array_equal(compiled(x), x * 3)
    w = np.full(2, 2.0)
    np.testing.assert_array_equal(compiled(x), x * 6)
    k = 5
    np.testing.assert_array_equal(compiled(x), x * 10)


class Triple(NamedTuple):
    a: Array
    b: Array


TRIPLE = Triple(np.ones(2), np.arange(2.0))


def squares(pair: Any) -> Any:
    return pair[0] * pair[1] * TABLE["bias"][0]


def test_functions_given_to_builtins_are_converted_too(restore: Any) -> None:
    def f(x: Array) -> Any:
        total = functools.reduce(lambda a, b: a + b, map(squares, zip(x, TRIPLE)))
        first = sorted([3, 1, 2], key=lambda n: -n)[0]
        return total * first, getattr(TRIPLE, "a") * 2, getattr(x, "absent", None), type(x) is np.ndarray  # noqa: B009

    compiled = jitml.jit(f)
    x = np.ones((2, 2))
    for change in (lambda: None, lambda: TABLE["bias"].__iadd__(1), lambda: TRIPLE.b.__iadd__(3)):
        change()
        assert repr(compiled(x)) == repr(f(x))


class Model:
    scale = 2.0

    def __init__(self) -> None:
        self.w = np.ones(3)
        self.rate = 0.5
        self.__hidden = 4.0

    @property
    def doubled(self) -> Array:
        return self.w * 2

    @staticmethod
    def square(x: Array) -> Array:
        return x * x

    def __call__(self, x: Array) -> Array:
        return self.square(x) + self.doubled * self.__hidden * type(self).scale

    @jitml.jit
    def step(self, x: Array) -> Any:
        self.w -= self.rate * self(x)
        return self.w.sum()


def test_methods_properties_and_private_names() -> None:
    model, plain = Model(), Model()
    for rate in (0.5, 0.25):
        model.rate = plain.rate = rate
        got, want = model.step(np.arange(3.0)), Model.step.function(plain, np.arange(3.0))
        assert got == want
        np.testing.assert_array_equal(model.w, plain.w)
    assert len(Model.step.variants) == 1  # a hyper-parameter is traced, not compiled in


def test_the_right_one_of_several_lambdas(restore: Any) -> None:
    nest = lambda x: (lambda y: y + WEIGHTS)(x) * RATE  # noqa: E731
    fs = [lambda x: x + WEIGHTS, lambda x: x * WEIGHTS, nest]
    x = np.ones(3)
    for f in fs:
        compiled = jitml.jit(f)
        np.testing.assert_array_equal(compiled(x), f(x))
        WEIGHTS[:] += 1  # seen only if the source was found
        np.testing.assert_array_equal(compiled(x), f(x))
        assert len(compiled.variants) == 1


def test_partials_lambdas_and_nested_functions() -> None:
    add, times = (lambda x, y: x + y), (lambda x, y: x * y)  # two on a line

    def f(x: Array) -> Array:
        def inner(v: Array) -> Array:
            return add(v, WEIGHTS)

        return functools.partial(times, inner(x))(2.0)

    np.testing.assert_array_equal(jitml.jit(f)(np.ones(3)), f(np.ones(3)))


class Layer:
    def __init__(self, n: int) -> None:
        self.w = np.full((n, n), 0.5)
        self.activation: Any = np.tanh

    def __call__(self, x: Array) -> Array:
        return self.activation(x @ self.w)


class Net:
    def __init__(self) -> None:
        self.layers = [Layer(3), Layer(3)]

    def forward(self, x: Array) -> Array:
        for layer in self.layers:
            x = layer(x)
        return x


@pytest.mark.parametrize("how", ["bound method", "closure", "argument", "partial"])
def test_objects_are_read_at_every_call(how: str) -> None:
    net = Net()
    with_argument = jitml.jit(Net.forward)
    f = {
        "bound method": jitml.jit(net.forward),
        "closure": jitml.jit(lambda x: net.forward(x) + 0.0),
        "argument": lambda x: with_argument(net, x),
        "partial": jitml.jit(functools.partial(Net.forward, net)),
    }[how]
    x = np.arange(6.0).reshape(2, 3)
    for change in (
        lambda: None,
        lambda: net.layers[0].w.fill(0.1),
        lambda: net.layers.append(Layer(3)),
        lambda: setattr(net.layers[1], "w", np.eye(3)),
        lambda: setattr(net.layers[2], "activation", np.sin),
    ):
        change()
        np.testing.assert_allclose(f(x), net.forward(x), rtol=1e-14)


def test_objects_made_inside_may_be_changed() -> None:
    def f(x: Array) -> Array:
        layer = Layer(3)
        layer.w = x.T @ x
        layer.w += 1
        return layer(x)

    x = np.arange(6.0).reshape(2, 3) / 10
    np.testing.assert_allclose(jitml.jit(f)(x), f(x), rtol=1e-14)


class Base:
    def f(self, x: Array) -> Array:
        return x + 1


class Derived(Base):
    def f(self, x: Array) -> Array:
        return super().f(x) * 2


def test_super_works() -> None:
    np.testing.assert_array_equal(jitml.jit(Derived().f)(np.ones(2)), [4, 4])


class Pair(NamedTuple):
    a: Array
    b: Any


@dataclass
class State:
    x: Array
    n: int


def test_containers_in_and_out() -> None:
    def f(p: Pair, s: State) -> Any:
        q = State(s.x * s.n, s.n + 1)
        return Pair(p.a + p.b["k"], q), [None, "text", s.n]

    p, s = Pair(np.ones(2), {"k": 2.0}), State(np.ones(3), 2)
    assert repr(jitml.jit(f)(p, s)) == repr(f(p, s))


@pytest.mark.loose
def test_python_statements_run_as_they_are() -> None:
    def f(x: Array, n: int) -> Any:
        total, items = np.zeros(2), []
        for i, row in enumerate(x):
            if i == 1:
                continue
            try:
                total += row * [1, 2, 3][i]
            except IndexError:
                break
            finally:
                items.append(i)
        else:
            items.append("else")
        while (n := n - 1) > 0:
            total *= 2
        match items:
            case [first, *_]:
                items.append(first)
        with np.errstate(all="ignore"):
            y = {k: v / 0 for k, v in zip("ab", x)}
        assert len(items) > 1
        return total, items, y, (lambda *a, **k: (a, k))(*items, z=x.shape)

    x = np.arange(8.0).reshape(4, 2)
    assert repr(jitml.jit(f)(x, 3)) == repr(f(x, 3))


def failing(x: Array) -> Any:
    y = helper(x)
    return y + {}["missing"]


def test_tracebacks_are_those_of_the_plain_function() -> None:
    def frames(f: Any) -> list[tuple[str, int | None, str, int | None]]:
        with pytest.raises(KeyError) as caught:
            f(np.ones(3))
        found = traceback.extract_tb(caught.value.__traceback__)
        return [(s.name, s.lineno, s.line or "", s.colno) for s in found if s.filename == __file__][1:]

    assert frames(jitml.jit(failing))[:2] == frames(failing)[:2]


def test_no_source_still_guards_its_globals() -> None:
    scope: dict[str, Any] = {"np": np, "W": np.ones(2), "k": 2}
    exec("def f(x):\n    return np.sin(x) * W + k", scope)
    f = jitml.jit(scope["f"])
    x = np.ones(2)
    for change in ({}, {"k": 3}, {"W": np.full(2, 5.0)}):
        scope.update(change)
        np.testing.assert_allclose(f(x), np.sin(x) * scope["W"] + scope["k"])


WITHOUT_SOURCE: dict[str, tuple[str, Callable[[dict[str, Any]], object]]] = {
    "an item of an array": ("def f(x): return x * W[0]", lambda space: space["W"].__setitem__(0, 5.0)),
    "an array": ("def f(x): return x * W", lambda space: space.update(W=np.array([7.0, 8.0]))),
    "a number": ("def f(x): return x * n", lambda space: space.update(n=space["n"] + 1)),
    "a list": ("def f(x): return x * l[0]", lambda space: space["l"].__setitem__(0, 5.0)),
    "in a function inside": ("def f(x): return (lambda y: y * W[0])(x)", lambda space: space["W"].__setitem__(0, 5.0)),
    "in a function beside": (
        "def f(x): return g(x) * 2\ndef g(x): return x * W[1]",
        lambda space: space["W"].__setitem__(1, 5.0),
    ),
    "in itself": (
        "def f(x, n=2): return x if n == 0 else f(x * W[0], n - 1)",
        lambda space: space["W"].__setitem__(0, 5.0),
    ),
    "in a closure": (
        "def made(V):\n    def f(x): return x * V[0]\n    return f\nf = made(W)",
        lambda space: space["W"].__setitem__(0, 5.0),
    ),
    "in a default": ("def f(x, w=W, *, k=W): return x * w[0] + k[1]", lambda space: space["W"].__setitem__(1, 5.0)),
}


@pytest.mark.parametrize("name", WITHOUT_SOURCE)
def test_what_a_function_without_source_loads_is_never_stale(name: str) -> None:
    source, change = WITHOUT_SOURCE[name]
    space: dict[str, Any] = {"np": np, "W": np.array([2.0, 3.0]), "n": 3, "l": [1.0, 2.0]}
    exec(source, space)
    compiled = jitml.jit(space["f"])
    x = np.array([1.0, 2.0])
    warnings.simplefilter("ignore", UncompiledWarning)  # some are no formulas
    for _ in range(3):
        np.testing.assert_array_equal(compiled(x), space["f"](x))
        change(space)


INSIDE = "def f(x):\n    def g():\n        global n\n        n = n + 1\n    g()\n    return x * n"


@pytest.mark.parametrize("source", ["def f(x):\n    global n\n    n += 1\n    return x * n", INSIDE])
def test_a_function_without_source_that_binds_a_global_runs_as_python(source: str) -> None:
    space: dict[str, Any] = {"n": 1}
    exec(source, space)
    compiled = jitml.jit(space["f"])
    with pytest.warns(UncompiledWarning, match="f runs as plain Python from now on: the source of f was not found"):
        np.testing.assert_array_equal(compiled(np.ones(2)), [2, 2])
    np.testing.assert_array_equal(compiled(np.ones(2)), [3, 3])


@jitml.jit
def compiled_helper(x: Array) -> Array:
    return helper(x)


def test_pickling_goes_by_name() -> None:
    assert pickle.loads(pickle.dumps(compiled_helper)) is compiled_helper
    other = pickle.loads(pickle.dumps(jitml.jit(uses_globals, threads=1)))
    np.testing.assert_array_equal(other(np.ones(3)), uses_globals(np.ones(3)))
    assert other.options.threads == 1


def test_a_jitted_function_inside_another() -> None:
    f = jitml.jit(lambda x: compiled_helper(x) + 1)
    np.testing.assert_array_equal(f(np.ones(3)), helper(np.ones(3)) + 1)


def test_what_a_converted_function_defines_has_its_own_name() -> None:
    def f(x: Any) -> Any:
        def inner() -> Any:
            return lambda: x

        return x, [inner.__qualname__, inner().__qualname__]

    assert jitml.jit(f)(np.ones(2))[1] == f(np.ones(2))[1]


@dataclass
class Drawn:
    """Its `__init__` is written by the standard library, and calls what is written here."""

    x: Any
    shift: Any = field(default_factory=lambda: 2 * np.random.rand())
    items: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.total = 0.0
        for _ in range(3):
            self.total = self.total + self.x.sum()
        self.items.append(np.random.rand())


@dataclass(frozen=True, slots=True)
class Frozen:
    x: Any
    w: InitVar[float] = 2.0
    y: Any = field(default=0.0, kw_only=True)
    self: Any = field(init=False, default=0.0)

    def __post_init__(self, w: float) -> None:
        object.__setattr__(self, "self", np.random.rand() * w)


class FromDrawn(Drawn):
    def __init__(self, x: Any) -> None:
        super().__init__(x * 2)


RECORDS: dict[str, Callable[[Array], tuple[Any, Any]]] = {
    "a factory": lambda x: (Drawn(x).shift, Drawn(x).total),
    "after its initialisation": lambda x: (Drawn(x).items[0], Drawn(x, 3.0).total),
    "frozen": lambda x: (Frozen(x, 3.0, y=5.0).self, Frozen(x).x[0] + Frozen(x, y=5.0).y),
    "a base": lambda x: (FromDrawn(x).shift, FromDrawn(x).total),
    "replaced": lambda x: (replace(Drawn(x), shift=1.0).items[-1], replace(Drawn(x), x=x * 2).total),
}


@pytest.mark.parametrize("name", RECORDS)
def test_what_dataclasses_write_is_converted(name: str) -> None:
    plain = RECORDS[name]
    compiled = jitml.jit(plain)
    x = np.array([1.0, 2.0])
    (drawn, total), (again, _) = compiled(x), compiled(x)
    assert drawn != again and total == plain(x)[1]
