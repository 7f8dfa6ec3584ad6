"""In which order are the keys of dicts?  As in Python: of arguments, of keywords, of results, after `move_to_end` too."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.trace.record.pytree import flatten


def _moved(d: OrderedDict[str, float]) -> OrderedDict[str, float]:
    d.move_to_end("a")
    return d


# Calls of one function, one after the other.
DICTS: list[Callable[[], Any]] = [
    lambda: {"a": 1.0, "b": 2.0},
    lambda: {"b": 2.0, "a": 1.0},
    lambda: OrderedDict(a=1.0, b=2.0),
    lambda: _moved(OrderedDict(a=1.0, b=2.0)),
    lambda: OrderedDict(b=2.0, a=1.0),
    lambda: defaultdict(float, b=2.0, a=1.0),
    lambda: defaultdict(float, a=1.0, b=2.0),
]


def folded(d):
    total = 0.0
    for value in d.values():
        total = total * 10 + value
    return list(d), total, d


def copied(d):
    return {key: 2 * value for key, value in d.items()}


def moved(d):
    d["c"] = d["a"] * 3
    d["a"] = d.pop("a")
    return [key + "!" for key in d], d


def made(d):
    e = OrderedDict((key, d[key] * 2) for key in "ab")
    e.move_to_end("a")
    return e, [e, 1]


def chosen(d):
    if d["a"] > 5:
        e = {"x": d["a"], "y": d["b"]}
    else:
        e = {"y": d["a"], "x": d["b"]}
    return e


def carried(d):
    e = OrderedDict(a=d["a"], b=d["b"])
    e.move_to_end("a")
    for i in range(3):
        e = OrderedDict((key, value + i) for key, value in e.items())
    return e


@pytest.mark.parametrize("function", [folded, copied, moved, made, chosen, carried], ids=lambda f: f.__name__)
def test_of_a_dict(function: Callable[..., Any]) -> None:
    compiled = jitml.jit(function)
    for make in DICTS:
        mine, theirs = make(), make()
        got, want = compiled(mine), function(theirs)
        assert repr(got) == repr(want)
        assert repr(mine) == repr(theirs)


def test_of_keywords() -> None:
    def f(**given: Any) -> Any:
        return list(given), sum(n * value for n, value in enumerate(given.values())), given

    compiled = jitml.jit(f)
    assert repr(compiled(a=1.0, b=2.0)) == repr(f(a=1.0, b=2.0))
    assert repr(compiled(b=2.0, a=1.0)) == repr(f(b=2.0, a=1.0))


def test_of_a_gradient() -> None:
    def loss(d: dict[str, Any]) -> Any:
        first, second = d.values()
        return (first**2 + 3 * second).sum()

    for compiled in (jitml.grad(loss), jitml.jit(jitml.grad(loss))):
        for keys in ("ab", "ba"):
            found = compiled({key: np.full(2, 4.0) for key in keys})
            assert {key: x.tolist() for key, x in found.items()} == {keys[0]: [8.0, 8.0], keys[1]: [3.0, 3.0]}
            assert list(found) == list(keys)


def test_structures_that_know_other_things_are_not_compared_with_all_seen_before() -> None:
    compared = []

    class Known:
        def __eq__(self, other: object) -> bool:
            compared.append(other)
            return self is other

        __hash__ = object.__hash__

    class Box:
        def __init__(self, value: float, known: Known) -> None:
            self.value, self.known = value, known

    jitml.register_pytree_node(Box, lambda box: ((box.value,), box.known), lambda known, values: Box(*values, known))
    boxes = [Box(1.0, Known()) for _ in range(100)]
    for box in boxes:
        assert flatten(box)[0] == [1.0]
    assert len(compared) <= len(boxes)
