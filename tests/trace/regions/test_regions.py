"""Loops, whiles and branches in a traced graph do what they do in Python: values, dtypes, what is written, what is rolled."""

from __future__ import annotations

import copy
import re
from typing import Any

import numpy as np
import pytest
from tests.trace.effects import queue_programs
from tests.trace.lists import list_programs
from tests.trace.regions import ending_programs, nest_programs, region_programs, resizing_programs, while_programs

import jitml
from jitml.dispatch.entry import bind, interpreted
from jitml.ir.analysis.verify import verify
from jitml.ir.graph import Graph
from jitml.trace.record.pytree import flatten
from jitml.trace.trace import trace
from jitml.trace.traced import Traced
from support.effort import drawn

_LETTERS = {"loop": "l", "while_": "w", "cond": "c"}
_SEEDS = drawn(2, 4)
_TABLES = (
    *(region_programs, ending_programs, nest_programs),
    *(while_programs, list_programs, queue_programs, resizing_programs),
)
PROGRAMS = [row for table in _TABLES for row in table.PROGRAMS]


def agree(got: Any, expected: Any) -> None:
    mine, eager = flatten(got)[0], flatten(expected)[0]
    assert len(mine) == len(eager)
    for a, b in zip(mine, eager):
        assert type(a) is type(b), (a, b)
        if isinstance(a, np.random.Generator):
            assert a.bit_generator.state == b.bit_generator.state
            continue
        assert getattr(a, "dtype", None) == getattr(b, "dtype", None)
        np.testing.assert_allclose(a, b, rtol=1e-9) if not isinstance(b, str) else None
        assert np.shape(a) == np.shape(b)


def run(traced: Traced, args: tuple[Any, ...]) -> Any:
    return bind(traced, interpreted(traced))(flatten((args, {}))[0])


def regions(graph: Graph) -> str:
    return "".join(_LETTERS[node.op.name] for node in graph.nodes if node.bodies)


@pytest.mark.parametrize("function, arguments, wanted", PROGRAMS, ids=[f.__name__ for f, _, _ in PROGRAMS])
def test_a_graph_computes_what_python_does(function: Any, arguments: Any, wanted: str | None) -> None:
    args = arguments(np.random.default_rng(0))
    traced = trace(function, args, {})
    verify(traced.graph)
    if wanted is not None:
        assert set(regions(traced.graph)) == set(wanted)
    for seed in range(_SEEDS):
        mine = arguments(np.random.default_rng(seed))
        eager = copy.deepcopy(mine)
        expected = function(*eager)
        agree((run(traced, mine), mine), (expected, eager))


@pytest.mark.parametrize("function, arguments, wanted", PROGRAMS, ids=[f.__name__ for f, _, _ in PROGRAMS])
def test_compiled_code_computes_what_python_does(function: Any, arguments: Any, wanted: str | None) -> None:
    compiled = jitml.jit(function)
    for seed in range(_SEEDS):
        mine = arguments(np.random.default_rng(seed))
        eager = copy.deepcopy(mine)
        expected = function(*eager)
        agree((compiled(*mine), mine), (expected, eager))
    assert len(compiled.variants) == 1


def begun_again(x: Any) -> Any:
    total = 0.0
    for v in x:
        stack = [(v, 1)]
        while stack:
            w, n = stack.pop()
            total += w * n
            if w > 0.125:
                stack.append((w * 0.5, 2))
                stack.append((w * 0.25, 3))
    return total


def appended_in_a_while(x: Any) -> Any:
    ys, v = [], x[0]
    while v < 100.0:
        v = v * 1.5
        ys.append(v)
    return ys


def appended_in_a_nest(x: Any) -> Any:
    ys = []
    for i in range(len(x)):
        v = x[i]
        while v < 10.0:
            v = v * 1.5
            ys.append((i, v))
    return ys


def taken_in_order(x: Any) -> Any:
    waiting, total = [x[0]], 0.0
    while waiting:
        v = waiting.pop(0)
        total += v
        if v < 10.0:
            waiting.append(v * 1.5)
    return total


@pytest.mark.parametrize(
    "function", [begun_again, appended_in_a_while, appended_in_a_nest, taken_in_order], ids=lambda f: f.__name__
)
def test_memory_of_lists_is_neither_filled_nor_copied(function: Any) -> None:
    """It is set aside for 65536 items, of which few are ever there; how many, no number that could get too large counts."""
    compiled, x = jitml.jit(function), np.linspace(0.25, 0.75, 5)
    agree((compiled(x), x), (function(x), x))
    lowered = compiled.lower(x)
    assert "[65536]" in str(lowered.graph)
    assert not re.search(r"for \w+ in \w+:65536|copy", str(lowered.kernels))
    assert "OverflowError" not in str(lowered.graph)


def test_taking_from_an_empty_list_raises_as_in_python() -> None:
    def f(x: Any) -> Any:
        stack, taken = [1.0], 0
        for v in x:
            if v > 0.5:
                stack.append(v)
            else:
                stack.pop()
                taken += 1
        return taken, stack

    compiled = jitml.jit(f)
    assert compiled(np.array([0.25, 0.75])) == f(np.array([0.25, 0.75]))
    with pytest.raises(IndexError, match="pop from empty list"):
        compiled(np.array([0.25, 0.375]))
    assert compiled(np.array([0.75, 0.25])) == f(np.array([0.75, 0.25]))
    assert len(compiled.variants) == 1
