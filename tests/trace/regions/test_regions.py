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
# What changes lists otherwise than by appending to them, or puts lists into lists.
LEFT_TO_PYTHON = {
    "a_list_of_a_loop_is_emptied_in_one_inside", "a_number_is_taken_where_a_float_may_follow", "changed_as_lists_are",
    "filled_in_one_branch", "items_are_assigned_after_the_loop", "items_are_assigned_in_loops",
    "items_are_taken_back_under_a_condition", "items_are_taken_out", "items_from_either_end_of_mixed_lists",
    "items_of_other_kinds_are_assigned", "items_of_two_numbers_are_taken", "taken_where_the_first_pass_does_not_see_it",
    "the_first_item_is_taken", "the_greatest_of_the_last_three", "the_last_item_is_taken_while_there_is_one",
    "the_next_greater_item", "under_two_names_of_one_branch",
}  # fmt: skip
_ALL = [row for table in _TABLES for row in table.PROGRAMS]
PROGRAMS = [row for row in _ALL if row[0].__name__ not in LEFT_TO_PYTHON]


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


@pytest.mark.loose
@pytest.mark.parametrize("name", sorted(LEFT_TO_PYTHON))
def test_what_is_left_to_python_is_right(name: str) -> None:
    ((function, arguments, _),) = (row for row in _ALL if row[0].__name__ == name)
    compiled = jitml.jit(function)
    for seed in range(_SEEDS):
        mine = arguments(np.random.default_rng(seed))
        eager = copy.deepcopy(mine)
        expected = function(*eager)
        agree((compiled(*mine), mine), (expected, eager))


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


@pytest.mark.loose
@pytest.mark.parametrize("function", [begun_again, taken_in_order], ids=lambda f: f.__name__)
def test_stacks_and_queues_in_loops_are_pythons(function: Any) -> None:
    compiled, x = jitml.jit(function), np.linspace(0.25, 0.75, 5)
    for _ in range(3):
        agree((compiled(x), x), (function(x), x))


@pytest.mark.parametrize("function", [appended_in_a_while, appended_in_a_nest], ids=lambda f: f.__name__)
def test_memory_of_lists_is_neither_filled_nor_copied(function: Any) -> None:
    """It is set aside for 65536 items, of which few are ever there; how many, no number that could get too large counts."""
    compiled, x = jitml.jit(function), np.linspace(0.25, 0.75, 5)
    agree((compiled(x), x), (function(x), x))
    lowered = compiled.lower(x)
    assert "[65536]" in str(lowered.graph)
    assert not re.search(r"for \w+ in \w+:65536|copy", str(lowered.kernels))
    assert "OverflowError" not in str(lowered.graph)


@pytest.mark.loose
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
