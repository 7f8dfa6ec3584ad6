"""Objects that a function makes, and returns or keeps outside, are made anew at the end of each call."""

from __future__ import annotations

import functools
import operator
import queue
import types
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.spatial
import scipy.stats

import jitml
from jitml.errors import WrongResultWarning

X = np.array([1.0, 2.0, 3.0])


class Node:
    __slots__ = ("k", "next")

    def __init__(self, k: Any, next: Any = None) -> None:
        self.k, self.next = k, next

    def last(self) -> Any:
        node = self
        while node.next is not None:
            node = node.next
        return node


class Special:
    step: Any

    def __init__(self, k: Any) -> None:
        self.k = k

    def __call__(self, x: Any) -> Any:
        return x * self.k


class Derived(Special):
    def __init__(self, k: Any) -> None:
        super().__init__(k)
        self.parts = {"a": [k]}


def told(x: Any, seen: dict[int, int] | None = None) -> str:
    """All that an object holds, and what is one object, as text."""
    seen = {} if seen is None else seen
    if not isinstance(x, (int, float, str, type(None), tuple)):
        if id(x) in seen:
            return f"<{seen[id(x)]}>"
        seen[id(x)] = len(seen)
    parts = [told(part, seen) for part in _parts(x)]
    name = getattr(x, "__qualname__", "") or (repr(x) if not parts and "0x" not in repr(x) else type(x).__qualname__)
    return f"{name}({', '.join(parts)})"


def _parts(x: Any) -> list[Any]:
    match x:
        case list() | tuple():
            return list(x)
        case dict():
            return [*x, *x.values()]
        case types.MethodType():
            return [x.__self__]
        case types.FunctionType():
            return [*(cell.cell_contents for cell in x.__closure__ or ()), x.__defaults__, vars(x)]
        case functools.partial():
            return [x.func, x.args, x.keywords]
        case types.MappingProxyType():
            return [dict(x)]
        case scipy.spatial.KDTree():
            return [repr(x.query([1.0, 3.0]))]
        case queue.Queue():
            return [list(x.queue), x.maxsize, x.unfinished_tasks]
        case Node():
            return [getattr(x, name) for name in Node.__slots__ if hasattr(x, name)]
        case Special() | types.SimpleNamespace():
            return [vars(x)]
    return []


def of_itself(o: Any, x: Any) -> Any:
    o.step = o.__call__
    return o.step(x)


def chain(o: Any, x: Any) -> Any:
    for i in range(2):
        o.last().next = Node(x[i])
    return o.last().k


def shared(o: Any, x: Any) -> Any:
    node = Node(x.sum(), Node(x))
    o.next = node
    return node, node.next, [node], x


def with_the_given(o: Any, x: Any) -> Any:
    o.next = Node(1, o)
    return o.next


def of_the_last_turn(o: Any, x: Any) -> Any:
    for v in x:
        node = Node(v)
    return node


def of_a_while_loop(o: Any, x: Any) -> Any:
    i = 0
    while x[i] < x[2]:
        node = Node(x[i])
        i += 1
    return node


def branched(o: Any, x: Any) -> Any:
    if x.sum() > 10:
        o.next = Node(x[0])
    else:
        o.next = None
    return o.next


def in_a_list(o: Any, x: Any) -> Any:
    nodes = [Node(v) for v in x]
    o.next = nodes[1]
    return nodes


def changed_later(o: Any, x: Any) -> Any:
    node = Node(x)
    o.next = node
    node.k[0] = 9.0
    node.next = Derived(x[1])
    node.next.parts["a"].append(x)
    return node, types.SimpleNamespace(a=node, b=node.next.parts)


def inner(o: Any, x: Any) -> Any:
    y = x * 2

    def f(v: Any, w: Any = y) -> Any:
        return v + y + w

    y[0] = 7.0
    return f, y, f(1)


def sharing_a_cell(o: Any, x: Any) -> Any:
    n = x[0]

    def increased(v: Any) -> Any:
        nonlocal n
        n = n + v
        return n

    def current() -> Any:
        return n

    increased(5)
    return increased, current


def recursive(o: Any, x: Any) -> Any:
    def factorial(n: int) -> int:
        return 1 if n <= 1 else n * factorial(n - 1)

    return factorial, factorial(4)


def writing(o: Any, x: Any) -> Any:
    def f(a: Any) -> Any:
        x[...] = x * a
        return x

    return [f, f(2) is x, x]


def kept_functions(o: Any, x: Any) -> Any:
    o.step = lambda v: v + x
    o.again = o.step
    return o.step(1), {"f": o.step}


def methods(o: Any, x: Any) -> Any:
    made, items = Special(x[0]), [x[0]]
    return made.__call__, made, [Special(2).__call__], items.append, items


def partials(o: Any, x: Any) -> Any:
    return functools.partial(of_itself, x=x), functools.partial(np.multiply, x[0]), operator.itemgetter(1), np.add, len


def views(o: Any, x: Any) -> Any:
    table = {"a": x, "b": 1}
    return table.values(), table.keys(), types.MappingProxyType(table), table


def queues(o: Any, x: Any) -> Any:
    waiting: Any = queue.Queue()
    waiting.put(x[0])
    waiting.put(3)
    by_size: Any = queue.PriorityQueue(5)
    by_size.put(2)
    by_size.put(1)
    return waiting, by_size


def of_a_library(o: Any, x: Any) -> Any:
    tree = scipy.spatial.KDTree([[0.0, 1.0], [2.0, 0.0]])
    return tree, [tree], scipy.stats.norm(2, 1), tree.n


SPECIAL = [of_itself, kept_functions]
INSTANCES = [
    chain, shared, with_the_given, of_the_last_turn, of_a_while_loop, branched, in_a_list, changed_later,
]  # fmt: skip
OTHERS = [  # which no program makes anew
    *SPECIAL, inner, sharing_a_cell, recursive, writing, methods, partials, queues, views, of_a_library,
]  # fmt: skip
FUNCTIONS = [*INSTANCES, *(pytest.param(function, marks=pytest.mark.loose) for function in OTHERS)]


@pytest.mark.loose(
    "branched", "chain", "changed_later", "in_a_list", "of_a_while_loop", "of_the_last_turn", "shared", "with_the_given"
)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_three_calls_and_two_objects_by_turns(function: Callable[[Any, Any], Any]) -> None:
    compiled = jitml.jit(function, verify="never")
    kind: Any = Special if function in SPECIAL else Node
    mine, theirs = ([kind(2), kind(5)] for _ in range(2))
    for n in range(4):
        x, y = X + n, X + n
        got, expected = compiled(mine[n % 2], x), function(theirs[n % 2], y)
        assert told([got, x, mine]) == told([expected, y, theirs])


@pytest.mark.parametrize("function", OTHERS)
def test_what_is_no_instance_is_refused(function: Callable[[Any, Any], Any]) -> None:
    o = Special(2) if function in SPECIAL else Node(2)
    with pytest.raises(jitml.UnsupportedError, match=r"which cannot be compiled|is from outside|nonlocal name"):
        jitml.jit(function, verify="never")(o, X.copy())


@pytest.mark.loose
def test_a_returned_function_is_the_users_and_goes_on() -> None:
    compiled = jitml.jit(sharing_a_cell, verify="never")
    for _ in range(2):
        increased, current = compiled(None, X)
        assert increased(2.0) == 8.0 == current()
        assert increased.__qualname__ == "sharing_a_cell.<locals>.increased" and increased.__module__ == __name__


def test_what_is_from_outside_is_returned_itself() -> None:
    holder: Any = types.SimpleNamespace()
    special = Special(2)
    special.step = special.__call__

    def found(x: Any) -> Any:
        first = {"p": holder.p, "v": holder.v, "g": holder.g, "s": special.step}
        return first, holder.p(x), holder.g("a"), holder.p, special.step(x)

    compiled = jitml.jit(found, verify="never")
    for n in range(3):
        table = {"a": n}
        holder.p, holder.v, holder.g = functools.partial(np.multiply, n), table.values(), table.get
        first, *_, again, _ = compiled(X)
        assert first["p"] is again is holder.p and first["v"] is holder.v and first["g"] is holder.g
        assert first["s"] is special.step


@pytest.mark.loose
def test_each_call_gives_another_object() -> None:
    compiled = jitml.jit(lambda x: (Node(x), lambda: x), verify="never")
    (one, f), (other, g) = compiled(X), compiled(X)
    assert one is not other and f is not g and one.k is X is f()


@pytest.mark.loose
def test_nothing_is_kept_if_it_raises() -> None:
    def raises(o: Any, x: Any) -> Any:
        o.next = Node(x[0])
        if x[1] > 2:
            raise ValueError(float(x[1]))
        return o.next

    def seen(function: Callable[[Any, Any], Any], o: Any, x: Any) -> str:
        try:
            return told([function(o, x), o])
        except ValueError as error:
            return repr(error)

    compiled, mine, theirs = jitml.jit(raises, verify="never"), Node(2), Node(2)
    for n in range(3):
        assert seen(compiled, mine, X + n) == seen(raises, theirs, X + n)


def test_the_method_of_another_object_is_not_that_of_this_one() -> None:
    compiled = jitml.jit(lambda o, x: o.step(x), verify="never")
    for n in range(4):
        o, other = Special(2), Special(9)
        o.step = (o if n % 2 else other).__call__
        np.testing.assert_array_equal(compiled(o, X), o.step(X))


@pytest.mark.loose
@pytest.mark.parametrize("verify", ["first", "always"])
@pytest.mark.parametrize("function", [*INSTANCES, *OTHERS])
def test_checked_answers_look_into_functions_and_methods(function: Callable[[Any, Any], Any], verify: Any) -> None:
    compiled = jitml.jit(function, verify=verify)
    o = Special(2) if function in SPECIAL else Node(2)
    with warnings.catch_warnings():
        warnings.simplefilter("error", WrongResultWarning)
        compiled(o, X.copy())
        compiled(o, X.copy())


def holding_itself(x: Any) -> Any:
    node = Node(x)
    node.next = node
    return node


def in_its_own_list(x: Any) -> Any:
    items: list[Any] = [x]
    items.append(Node(items))
    return items


def as_a_key(x: Any) -> Any:
    return {Node(1): x}


@pytest.mark.parametrize(
    ("function", "message"),
    [(holding_itself, "Node, which cannot"), (in_its_own_list, "Node, which cannot"), (as_a_key, "is a key, or in a set")],
)
def test_refused(function: Callable[[Any], Any], message: str) -> None:
    with pytest.raises(jitml.UnsupportedError, match=message):
        jitml.jit(function)(X)


def _counts_in_a_loop(x: Any) -> Any:
    k = 0
    while k < 3:
        k += 1
        v = [0]

        def add(a: Any) -> Any:
            v[0] += a  # noqa: B023
            return v[0]  # noqa: B023

        add(k)
    return add


def _binds_in_a_loop(x: Any) -> Any:
    k = 0
    while x[0] < 30:
        x = x * 2
        k += 1
        v = k * x
        shifted = lambda a: v + a  # noqa: B023, E731
    return [shifted, k]


@pytest.mark.loose
@pytest.mark.parametrize("function", [_counts_in_a_loop, _binds_in_a_loop])
@pytest.mark.parametrize("start", [1.0, 2.0, 40.0])
def test_what_a_function_closes_over_may_be_bound_in_a_loop_alone(function: Any, start: float) -> None:
    def outcome(f: Any) -> Any:
        try:
            found = f(np.full(2, start))
        except UnboundLocalError as error:
            return str(error)
        made = found[0] if isinstance(found, list) else found
        return repr([cell.cell_contents for cell in made.__closure__]), repr(made(2))

    assert outcome(jitml.jit(function, verify="never")) == outcome(function)
