"""Whole programs, unmodified under jit: NumPy's answer, no call back into Python, one compilation for their shapes.

Their loops stay rolled: a graph does not grow with the number of steps.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import pytest

import jitml
from jitml.ir.graph import Graph, Node
from programs.comparing import difference, within
from programs.corpus import NAMES, Program, load


@pytest.mark.parametrize("name", NAMES)
def test_a_program_agrees_with_numpy_and_compiles_once(name: str) -> None:
    program = load(name)
    compiled = jitml.jit(program.function, host_calls="error")
    for seed in range(3):
        mine, eager = program.arguments("small", seed), program.arguments("small", seed)
        expected = program.function(*eager)
        got = compiled(*mine)
        assert difference(got, expected, within(1e-9)) is None
        assert difference(mine, eager, within(1e-9), "arguments") is None
    assert len(compiled.variants) == 1, [variant.reason for variant in compiled.variants]


# Parameters that count the steps of a simulation.
STEPS = ("steps", "sweeps", "limit")


def counter(program: Program) -> int | None:
    """Which argument says how many steps there are."""
    return next((k for k, name in enumerate(inspect.signature(program.function).parameters) if name in STEPS), None)


def nodes(graph: Graph) -> Iterator[Node]:
    for node in graph.nodes:
        yield node
        for body in node.bodies.values():
            yield from nodes(body)


@pytest.mark.parametrize("name", [n for n in NAMES if counter(load(n)) is not None])
def test_a_graph_does_not_grow_with_the_number_of_steps(name: str) -> None:
    program = load(name)
    counts = set()
    for steps in (10, 1000):
        args = list(program.arguments("small", 0))
        args[counter(program) or 0] = steps
        counts.add(sum(1 for _ in nodes(jitml.jit(program.function).lower(*args).traced)))
    assert len(counts) == 1


def test_memory_for_rows_and_columns_that_are_both_unknown_is_not_the_product_of_both() -> None:
    args = load("fft_stages").arguments("large", 0)
    lowered = jitml.jit(load("fft_stages").function).lower(*args)
    assert lowered.program.arena_size < 16 * sum(x.nbytes for x in args)


def test_what_all_programs_share_is_no_part_of_their_code() -> None:
    lowered = jitml.jit(load("bubble_sort").function).lower(*load("bubble_sort").arguments("small", 0))
    assert "call i64 @take_flags()" in lowered.llvm
    assert "@take_flags() {" not in lowered.llvm and "stmxcsr" not in lowered.llvm
