"""Classes that are made of dict and list and say themselves how they are read: as Python reads them, at each call."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import jitml


class Doubling(dict):  # type: ignore[type-arg]
    def __getitem__(self, key: Any) -> Any:
        return super().__getitem__(key) * 2


class Counting(dict):  # type: ignore[type-arg]
    def __len__(self) -> int:
        return 7

    def __iter__(self) -> Any:
        return iter(["b", "a"])


class Named(dict):  # type: ignore[type-arg]
    __getattr__ = dict.__getitem__
    __setattr__ = dict.__setitem__  # type: ignore[assignment]


class Attributes(dict):  # type: ignore[type-arg]
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.__dict__ = self


class Tens(list):  # type: ignore[type-arg]
    def __getitem__(self, n: Any) -> Any:
        return super().__getitem__(n) * 10

    def __iter__(self) -> Any:
        return iter([5, 6])


KINDS: dict[str, Callable[[int], Any]] = {
    "doubling": lambda k: Doubling(a=k, b=2),
    "counting": lambda k: Counting(a=k, b=2),
    "named": lambda k: Named(a=k, b=2),
    "attributes": lambda k: Attributes(a=k, b=2),
    "tens": lambda k: Tens([k, 2]),
}


def changed(d: Any, x: Any) -> Any:
    d[0 if isinstance(d, list) else "a"] = x.sum()
    return x


USES: dict[str, Callable[[Any, Any], Any]] = {
    "item": lambda d, x: x * d[0 if isinstance(d, list) else "a"],
    "attribute": lambda d, x: x * (d.a if isinstance(d, (Named, Attributes)) else 1),
    "length": lambda d, x: x * len(d),
    "keys": lambda d, x: x * len([*d]),
    "loop": lambda d, x: [(k, x) for k in d],
    "values": lambda d, x: x * sum(d.values() if isinstance(d, dict) else d),
    "contains": lambda d, x: x * ("a" in d),
    "changed": changed,
    "made": lambda d, x: x * (type(d)([3]) if isinstance(d, list) else type(d)({0: 3}))[0],
}
BOX = SimpleNamespace(held=None)


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("kind", [pytest.param(kind, marks=[pytest.mark.loose] * (kind == "doubling")) for kind in KINDS])
@pytest.mark.parametrize("is_argument", [True, False])
def test_it_is_read_as_python_reads_it(is_argument: bool, kind: str, use: str) -> None:
    function, make = USES[use], KINDS[kind]

    def of_a_box(x: Any) -> Any:
        return function(BOX.held, x)

    compiled = jitml.jit(function if is_argument else of_a_box, verify="never")
    for k in (1, 4, 1):
        mine, theirs = make(k), make(k)
        BOX.held = mine
        found = compiled(mine, np.arange(3.0)) if is_argument else compiled(np.arange(3.0))
        assert repr(found) == repr(function(theirs, np.arange(3.0)))
        assert list.__repr__(mine) == list.__repr__(theirs) if isinstance(mine, list) else dict.__eq__(mine, theirs)
