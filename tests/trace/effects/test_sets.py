"""Sets, frozensets and the dicts of `collections`: as results, as arguments, in containers, changed by the function."""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml

ROWS: list[tuple[Callable[[], Any], Callable[[Any, Any], Any]]] = []


def row(make: Callable[[], Any]) -> Callable[[Any], Any]:
    return lambda function: ROWS.append((make, function))


@row(dict)
def new_ones(o: Any, x: Any) -> Any:
    s = {int(x), 2}
    return s, [s, set()], frozenset([1, "a", (2, frozenset([3]))]), {"k": s | {9}}, {float(x), x}, x * len(s)


@row(lambda: {7, 1})
def an_argument(s: Any, x: Any) -> Any:
    s.add(int(x))
    s.discard(7)
    return s, len(s), int(x) in s


@row(lambda: {"seen": {7}, "tags": {"a", "b"}})
def in_a_dict(d: Any, x: Any) -> Any:
    if int(x) in d["seen"]:
        return x
    d["seen"].add(int(x))
    d["tags"] |= {"c"}
    return d["seen"], sorted(d["tags"])


@row(lambda: [{5}, set()])
def in_a_list(sets: Any, x: Any) -> Any:
    for s in sets:
        if s:
            s.pop()
    sets[0].add(x)
    sets.append({int(x)})
    return x


class Held:
    def __init__(self) -> None:
        self.s = self.t = {1, 7}
        self.r: frozenset[Any] = frozenset("a")


@row(Held)
def of_an_object(o: Any, x: Any) -> Any:
    o.s.update({int(x), 3})
    o.s.remove(1)
    o.u = {int(x)}
    o.r = o.r | {int(x)}
    return o.s is o.t, sorted(o.t), [v * x for v in o.t]


@row(lambda: {3})
def under_a_condition(s: Any, x: Any) -> Any:
    if x > 2.0:
        s.add(int(x))
    else:
        s.clear()
    return x


@row(lambda: {1, 2})
def in_a_loop(s: Any, x: Any) -> Any:
    total = x * 0
    for v in (1, 2, 3):
        if v in s:
            s.remove(v)
        else:
            s.add(v)
        total = total + v * x
    return total


@row(lambda: {1})
def an_equal_one_of_another_type(s: Any, x: Any) -> Any:
    s.discard(1)
    s.add(float(x) * 0 + 1.0)
    return x


@row(lambda: {np.float64(2.0), "a", None, (1, 2.0)})
def compared(s: Any, x: Any) -> Any:
    return s == {2.0, "a", None, (1, 2.0)}, s > {None}, s - {"a"}, s.copy(), s.isdisjoint([x])


@pytest.mark.loose
@pytest.mark.parametrize(("make", "function"), ROWS, ids=[f.__name__ for _, f in ROWS])
def test_sets_are_pythons(make: Callable[[], Any], function: Callable[..., Any]) -> None:
    f = jitml.jit(function)
    for v in (1.5, 2.5, 3.5, 7.0, 2.5):
        expected, found = make(), make()
        want, got = function(expected, np.float64(v)), f(found, np.float64(v))
        assert same(got, want) and same(found, expected)


def same(a: Any, b: Any) -> bool:
    """Equal, with all types; order is a set's own."""
    if type(a) is not type(b):
        return False
    if isinstance(a, (set, frozenset)):
        return len(a) == len(b) and sorted(map(typed, a)) == sorted(map(typed, b))
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    return same(vars(a), vars(b)) if isinstance(a, Held) else bool(a == b)


def typed(x: Any) -> str:
    return f"{type(x).__name__} {sorted(map(typed, x)) if isinstance(x, frozenset) else x}"


@pytest.mark.loose
def test_one_set_is_one_set() -> None:
    f = jitml.jit(lambda s, t, x: ((s.add(int(x)), s, {1: (r := {2}), 2: r}, len(t)), s is t))
    s = {5}
    (_, first, made, n), is_one = f(s, s, np.float64(3.0))
    assert first is s and s == {3, 5} and made[1] is made[2] and n == 2 and is_one
    (_, first, _, n), is_one = f(s, {5}, np.float64(4.0))
    assert first is s and s == {3, 4, 5} and n == 1 and not is_one


@pytest.mark.loose
def test_order_and_types_of_members_are_todays() -> None:
    def f(s: Any, x: Any) -> Any:
        out = x
        for v in s:
            out = out * 2 + v
        return out, [type(v).__name__ for v in s]

    g, x = jitml.jit(f), np.float64(0.5)
    backwards = {8, 0}
    assert list(backwards) == list({0, 8})[::-1]
    for s in ({0, 8}, backwards, {0, 8.0}, {False, 8}, {0, 8}):
        assert g(s, x) == f(s, x)


SEEN = {"x"}


def test_who_changes_a_set_or_returns_a_counter_is_refused_with_strict() -> None:
    with pytest.raises(jitml.UnsupportedError, match=r"s, a builtins\.set, is asked for its add"):
        jitml.jit(lambda s, x: (s.add(int(x)), x)[1], strict=True)({1}, np.float64(2.0))
    with pytest.raises(jitml.UnsupportedError, match="is changed in it"):
        jitml.jit(grown, strict=True)({1}, np.float64(2.0))
    with pytest.raises(jitml.UnsupportedError, match="Counter, which cannot be compiled"):
        jitml.jit(lambda x: Counter(a=x), strict=True)(np.float64(2.0))


def grown(s: Any, x: Any) -> Any:
    s |= {int(x)}
    return x


@pytest.mark.loose
def test_a_global_set_collects() -> None:
    def f(x: Any) -> Any:
        if int(x) not in SEEN:
            SEEN.add(int(x))  # type: ignore[arg-type]
            return x * 2
        return x

    g = jitml.jit(f)
    assert [float(g(np.float64(v))) for v in (1, 1, 2, 3, 2)] == [2.0, 1.0, 4.0, 6.0, 2.0]
    assert {"x", 1, 2, 3} == SEEN


def counted(x: Any) -> Any:
    c = Counter("aab")
    for v in (x, x + 1, x):
        c[int(v)] += v
    c["n"] += int(x)
    return c, [c, Counter()], c + Counter("a"), c["nothing"], c.most_common(1)[0][1]


def by_default(x: Any) -> Any:
    d: Any = defaultdict(list)
    d["a"].append(x)
    d["b"]
    return d, defaultdict(int)


def in_order(x: Any) -> Any:
    d = OrderedDict(z=x, a=2, b=x * 2)
    d.move_to_end("z")
    d.move_to_end("b", last=False)
    return d, OrderedDict(), deque([x, 1], maxlen=2)


@pytest.mark.loose
@pytest.mark.parametrize("function", [counted, by_default, in_order])
@pytest.mark.filterwarnings("error::jitml.errors.WrongResultWarning")
def test_dicts_of_collections_keep_their_classes(function: Callable[..., Any]) -> None:
    f = jitml.jit(function)
    for v in (1.0, 2.0, 3.5, 1.0):
        assert repr(f(np.float64(v))) == repr(function(np.float64(v)))
    first, others, *_ = jitml.jit(counted)(np.float64(1.0))
    assert others[0] is first and others[1] is not first
