"""Views and handles of what changes between calls: what they show is what is there at each call."""

from __future__ import annotations

import collections
import contextvars
import decimal
import functools
import inspect
import io
import sys
import traceback
import types
import weakref
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.errors import LifetimeError, UnsupportedError

X = np.ones(2)
TABLE: dict[str, Any] = {"a": 1.0}
PROXY, VALUES, KEYS, ITEMS = types.MappingProxyType(TABLE), TABLE.values(), TABLE.keys(), TABLE.items()
GET, OF_PROXY = TABLE.get, PROXY.get
NUMBERS = [1.0]
FIRST, COUNT = NUMBERS.__getitem__, NUMBERS.count
SET = {1.0}
HAS = SET.__contains__
ARRAY = np.array([1.0, 2.0])
SUM = ARRAY.sum
VARIABLE: contextvars.ContextVar[Any] = contextvars.ContextVar("VARIABLE", default=1.0)
CURRENT = VARIABLE.get
FACTOR = 2.0
THIRD = Decimal(1)


class Point:
    def __init__(self) -> None:
        self.v = 1.0

    def times(self, x: Any) -> Any:
        return x * self.v


class Config:
    def __init__(self) -> None:
        self.table, self.get = PROXY, GET

    @functools.singledispatchmethod
    def kind(self, _: Any) -> float:
        return 1.0


KEPT = [Point()]
POINT = weakref.ref(KEPT[0])
CONFIG = Config()


@functools.singledispatch
def kind(_: Any) -> float:
    return 1.0


@functools.lru_cache
def cached(n: int) -> float:
    return n * FACTOR


def in_a_loop(x: Any) -> Any:
    for _ in range(3):
        x = x * VARIABLE.get()
    return x


def counting(x: Any) -> Any:
    VARIABLE.set(VARIABLE.get() + 1)
    return x * VARIABLE.get()


def set_back(x: Any) -> Any:
    token = VARIABLE.set(VARIABLE.get() + 1)
    y = x * VARIABLE.get()
    VARIABLE.reset(token)
    return y * VARIABLE.get()


def counting_in_a_loop(x: Any) -> Any:
    for v in x:
        VARIABLE.set(VARIABLE.get() + float(v))
    return x * VARIABLE.get()


def counting_by_numpys_numbers(x: Any) -> Any:
    for v in x:
        VARIABLE.set(VARIABLE.get() + v)
    return x * VARIABLE.get()


def forget() -> None:
    globals()["FACTOR"] = 7.0
    cached.cache_clear()


def put(value: float = 7.0) -> None:
    TABLE["a"] = value


def add() -> None:
    TABLE["b"] = 7.0


def keep(value: Any) -> Callable[[], None]:
    return lambda: VARIABLE.set(value) and None


def precise(digits: int) -> Callable[[], None]:
    return lambda: setattr(decimal.getcontext(), "prec", digits)


PROGRAMS: dict[str, tuple[Callable[..., Any], Callable[[], Any]]] = {
    "a proxy": (lambda x: x * PROXY["a"], put),
    "a proxy's values": (lambda x: x * sum(PROXY.values()) + len(PROXY), put),
    "a proxy in an attribute": (lambda x: x * CONFIG.table["a"], put),
    "by keywords": (lambda x: x * dict(**PROXY)["a"], put),
    "values": (lambda x: x * sum(VALUES), put),
    "keys": (lambda x: x * len([key for key in KEYS if key != "z"]), add),
    "items": (lambda x: x * sum([value for _, value in ITEMS]), put),
    "how many": (lambda x: x * len(VALUES), add),
    "in": (lambda x: x * ("b" in KEYS), add),
    "a method of a dict": (lambda x: x * GET("a"), put),
    "of a proxy": (lambda x: x * OF_PROXY("a"), put),
    "in an attribute": (lambda x: x * CONFIG.get("a"), put),
    "as a default": (lambda x, g=TABLE.get: x * g("a"), put),
    "in a partial": ((lambda g: lambda x: x * g())(functools.partial(TABLE.get, "a")), put),
    "mapped": (lambda x: x * sum(list(map(GET, ["a"]))), put),
    "a method of a list": (lambda x: x * FIRST(0), lambda: NUMBERS.__setitem__(0, 7.0)),
    "how often": (lambda x: x * COUNT(1.0), lambda: NUMBERS.append(1.0)),
    "a method of a set": (lambda x: x * HAS(2.0), lambda: SET.add(2.0)),
    "a method of an array": (lambda x: x * SUM(), lambda: ARRAY.__setitem__(0, 7.0)),
    "a variable": (lambda x: x * VARIABLE.get(), keep(7.0)),
    "its method": (lambda x: x * CURRENT(), keep(7.0)),
    "in a loop": (in_a_loop, keep(7.0)),
    "of another type": (lambda x: x * (2 if VARIABLE.get() is None else 3), keep(None)),
    "a text": (lambda x: x * (2 if VARIABLE.get() == "b" else 3), keep("b")),
    "what is weakly held": (lambda x: POINT().times(x), lambda: setattr(KEPT[0], "v", 7.0)),  # type: ignore[union-attr]
    "what is gone": (lambda x: x * (0 if POINT() is None else 1), KEPT.clear),
    "registered": (lambda x: x * kind(2.5), lambda: kind.register(float, lambda _: 7.0)),
    "registered for arrays": (lambda x: x * kind(x), lambda: kind.register(np.ndarray, lambda _: 7.0)),
    "asked for it": (lambda x: x * kind.dispatch(str)(""), lambda: kind.register(str, lambda _: 7.0)),
    "registered as a method": (
        lambda x: x * CONFIG.kind(2.5),
        lambda: vars(Config)["kind"].register(float, lambda _, v: 7.0 + v),
    ),
    "a cache": (lambda x: x * cached(3), forget),
    "a cache, of an argument": (lambda x, n=3: x * cached(n), forget),
    "a decimal number": (lambda x: x * float(THIRD / 3), precise(5)),
    "one made inside": (lambda x: x * float(Decimal(1) / 3), precise(5)),
    "arguments of the program": (lambda x: x * len(sys.argv), lambda: sys.argv.append("")),
}


@pytest.fixture(autouse=True)
def as_before() -> Any:
    yield
    TABLE.clear()
    TABLE["a"] = 1.0
    NUMBERS[:], ARRAY[0] = [1.0], 1.0
    SET.discard(2.0)
    decimal.getcontext().prec = 28
    globals()["FACTOR"] = 2.0
    cached.cache_clear()
    VARIABLE.set(1.0)
    while "" in sys.argv[1:]:
        sys.argv.pop()


# Objects that are asked at each call are breaks.
ASKED = {"a variable", "its method", "in a loop", "of another type", "a text", "what is weakly held", "what is gone"}
ASKED |= {"a proxy", "a proxy's values", "a proxy in an attribute", "by keywords", "of a proxy"}
ASKED |= {"values", "keys", "items", "how many", "in"}  # of dicts, by what shows them
ASKED |= {
    name
    for name in PROGRAMS
    if name.startswith(("registered", "asked for it", "a cache", "a method of a set", "a decimal", "one made inside"))
}
LOOSE = pytest.mark.loose, pytest.mark.filterwarnings("ignore::jitml.errors.UncompiledWarning")


@pytest.mark.parametrize("name", [pytest.param(name, marks=LOOSE if name in ASKED else ()) for name in PROGRAMS])
def test_what_it_shows_is_what_is_there(name: str) -> None:
    function, change = PROGRAMS[name]
    compiled = jitml.jit(function)
    for _ in range(2):
        np.testing.assert_array_equal(compiled(X), function(X))
    change()
    np.testing.assert_array_equal(compiled(X), function(X))


@pytest.mark.loose
@pytest.mark.filterwarnings("ignore::jitml.errors.UncompiledWarning")
@pytest.mark.parametrize("function", [counting, set_back, counting_in_a_loop, counting_by_numpys_numbers])
def test_a_variable_is_set_once_in_each_call(function: Callable[..., Any]) -> None:
    def three_calls(f: Callable[..., Any]) -> list[Any]:
        return [(f(X).tolist(), VARIABLE.get()) for _ in range(3)]

    for context in (contextvars.Context(), contextvars.copy_context()):
        expected = context.copy().run(three_calls, function)
        for options in ({"verify": "never"}, {}):
            assert context.copy().run(three_calls, jitml.jit(**options)(function)) == expected


@pytest.mark.loose
def test_an_argument_that_shows_a_dict() -> None:
    table = {"a": 1.0}
    compiled = jitml.jit(lambda p, v, g, x: x * p["a"] + sum(v) + g("a"))
    for value in (1.0, 7.0):
        table["a"] = value
        np.testing.assert_array_equal(
            compiled(types.MappingProxyType(table), table.values(), table.get, X), X * value + 2 * value
        )


REFUSED: dict[str, Callable[[Any], Any]] = {
    "np.seterr": lambda x: x * (np.seterr(divide="warn")["divide"] == "warn"),
    "decimal.getcontext": lambda x: x * decimal.getcontext().prec,
    "sys.getrecursionlimit": lambda x: x * sys.getrecursionlimit(),
    "inspect.stack": lambda x: x * inspect.stack()[0].lineno,
    "inspect.currentframe": lambda x: x * inspect.currentframe().f_lineno,
    "traceback.extract_stack": lambda x: (x, traceback.extract_stack()[-1].name),
    "traceback.format_stack": lambda x: (x, traceback.format_stack()),
}


@pytest.mark.parametrize("name", REFUSED)
def test_state_of_the_process_is_refused(name: str) -> None:
    with pytest.raises(UnsupportedError, match=rf"{name}\(\) would run only once"):
        jitml.jit(REFUSED[name])(X)


def set_and_read(x: Any) -> Any:
    VARIABLE.set(5.0)
    VARIABLE.set(VARIABLE.get() + 1)
    before = VARIABLE.get()
    for _ in range(x.size):
        x = x * 2
        VARIABLE.set(VARIABLE.get() * 3)
    return before, VARIABLE.get(), x


@pytest.mark.loose
@pytest.mark.filterwarnings("ignore::jitml.errors.UncompiledWarning")
def test_a_context_variable_is_set_and_read_in_order() -> None:
    compiled = jitml.jit(set_and_read, verify="never")
    for _ in range(2):
        mine, theirs = contextvars.copy_context(), contextvars.copy_context()
        assert repr(mine.run(compiled, np.ones(3))) == repr(theirs.run(set_and_read, np.ones(3)))
        assert mine[VARIABLE] == theirs[VARIABLE]


HELD: contextvars.ContextVar[Any] = contextvars.ContextVar("HELD")
CHAINED = collections.ChainMap({}, {"a": np.zeros(3)})


def grow_what_is_held(x: Any) -> Any:
    HELD.get().append(x[0])
    return x


def write_what_is_held(x: Any) -> Any:
    HELD.get()[0][:] += x
    return x


def read_what_is_held(x: Any) -> Any:
    return HELD.get()[0] * x, [*HELD.get(), 1.0][1]


def store_in_the_first_of_a_chain(x: Any) -> Any:
    CHAINED["a"] += x
    return x


@pytest.mark.loose
@pytest.mark.parametrize("f", [grow_what_is_held, write_what_is_held, read_what_is_held, store_in_the_first_of_a_chain])
@pytest.mark.filterwarnings("ignore::jitml.errors.UncompiledWarning")  # where it is written, Python does it
def test_what_a_variable_holds_is_changed_or_refused(f: Callable[[Any], Any]) -> None:
    found: list[Any] = []
    for function in (f, jitml.jit(f, verify="never")):
        HELD.set([np.zeros(3)])
        try:
            found.append(repr(([function(np.ones(3) * k) for k in (1.0, 2.0)], HELD.get())))
        except UnsupportedError as error:
            assert "is changed in it" in error.message
            assert HELD.get()[0].sum() == 0 and len(HELD.get()) == 1 and not CHAINED.maps[0]
            continue
        finally:
            CHAINED.maps[0].clear()
    assert len(found) == 1 or found[0] == found[1]
    assert len(found) == 2 or f is store_in_the_first_of_a_chain


def by_two_names(x: Any, point: Any, view: Any) -> Any:
    point.v += 1.0
    return x * view().v


def one_of_two_names(x: Any, point: Any, view: Any) -> Any:
    return x, view() is point


@pytest.mark.parametrize("f", [by_two_names, one_of_two_names])
@pytest.mark.parametrize("of_class", [weakref.ref, lambda point: VARIABLE.set(point) and VARIABLE.get])
@pytest.mark.loose
def test_an_object_that_has_another_name_is_not_seen_by_both(f: Callable[..., Any], of_class: Callable[..., Any]) -> None:
    compiled = jitml.jit(f)
    for _ in range(2):
        mine, numpys = Point(), Point()
        got = compiled(np.arange(3.0), mine, of_class(mine))
        np.testing.assert_equal(got, f(np.arange(3.0), numpys, of_class(numpys)))
        assert mine.v == numpys.v
    with pytest.raises(UnsupportedError, match=r"view, a weakref\.ReferenceType, is asked for its __call__"):
        jitml.jit(f, strict=True)(np.arange(3.0), mine, weakref.ref(mine))


def refers(x: Any) -> Any:
    point = Point()
    view = weakref.ref(point)
    point = None  # type: ignore[assignment]
    return x, view() is None


def keeps_weakly(x: Any) -> Any:
    known = weakref.WeakSet[Point]()
    for _ in range(3):
        known.add(Point())
    return x, len(known)


def calls_at_the_end(x: Any) -> Any:
    ended: list[int] = []
    for n in range(3):
        weakref.finalize(Point(), ended.append, n)
    return x, ended


@pytest.mark.parametrize("f", [refers, keeps_weakly, calls_at_the_end])
@pytest.mark.loose
def test_what_is_made_inside_ends_when_it_is_let_go(f: Callable[[Any], Any]) -> None:
    compiled = jitml.jit(f)
    for _ in range(3):
        np.testing.assert_equal(compiled(np.arange(3.0)), f(np.arange(3.0)))
    with pytest.raises(UnsupportedError, match="would still see objects of the jitted function that are let go in it"):
        jitml.jit(f, strict=True)(np.arange(3.0))


def let_go_in_branch(x: Any) -> Any:
    point, y = Point(), np.exp(x) * 2
    view = weakref.ref(point)
    if y[0] > 2:
        point = None  # type: ignore[assignment]
    return y, view() is None


def bound_anew_in_loop(x: Any) -> Any:
    print("begins", file=io.StringIO())  # another break, before
    point = Point()
    known = weakref.WeakValueDictionary(first=point)
    for v in x:
        if v > 2:
            point = Point()
    return x * point.v, "first" in known


class Ending:
    ended = 0

    def __del__(self) -> None:
        Ending.ended += 1


def ends_in_branch(x: Any) -> Any:
    before, ending = Ending.ended, Ending()
    if x[0] > 0:
        ending = None  # type: ignore[assignment]
    return x * 2, Ending.ended - before, ending is None


@pytest.mark.parametrize("f", [let_go_in_branch, bound_anew_in_loop, ends_in_branch])
@pytest.mark.loose
@pytest.mark.filterwarnings("ignore::jitml.errors.UncompiledWarning")
def test_no_section_keeps_what_is_let_go(f: Callable[[Any], Any]) -> None:
    compiled = jitml.jit(f, verify="never")
    for x in (np.ones(3), -np.ones(3), np.arange(4.0), np.ones(3)):
        np.testing.assert_equal(compiled(x), f(x))
    with pytest.raises(LifetimeError if f is not bound_anew_in_loop else UnsupportedError):
        jitml.jit(f, strict=True)(np.ones(3))
