"""Which results are arguments, parts of them, or parts of each other?  As in NumPy: out of branches, of loops, through views."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.trace.regions.sharing.table import ROWS

import jitml
from jitml.ir.graph import Graph
from jitml.trace.record.recording import Trace, activate
from jitml.trace.regions.join_aliases import Output
from jitml.trace.rewrite.driver_protocol import UNDEF
from jitml.trace.values.boxing import lift
from jitml.trace.values.kinds import kind_of
from programs.comparing import difference

Array = np.ndarray[Any, Any]


def arguments(call: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(call)
    return rng.integers(-4, 5, (3, 4)) + 0.0, rng.integers(-4, 5, (3, 4)) + 0.0, (1, 3, 2)[call % 3]


def arrays(x: Any) -> list[Any]:
    if isinstance(x, dict):
        x = list(x.values())
    if isinstance(x, (tuple, list)):
        return [a for item in x for a in arrays(item)]
    return [x] if isinstance(x, np.ndarray) else []


def sharing(result: Any, given: tuple[Any, ...]) -> Any:
    found = [*arrays(result), *arrays(given)]
    return (
        [[bool(np.shares_memory(a, b)) for b in found] for a in found],
        [[a is b for b in found] for a in found],
        [a.flags.writeable for a in found],
    )


@pytest.mark.filterwarnings("error::jitml.errors.UncompiledWarning")
@pytest.mark.parametrize("function", ROWS, ids=lambda f: f.__name__)
def test_sharing(function: Callable[..., Any]) -> None:
    compiled = jitml.jit(function)
    for call in range(8):
        eager, jitted = arguments(call), arguments(call)
        try:
            want = function(*eager)
        except Exception as error:
            with pytest.raises(type(error)):
                compiled(*jitted)
            continue
        got = compiled(*jitted)
        assert not difference((arrays(got), jitted), (arrays(want), eager), np.array_equal)
        assert sharing(got, jitted) == sharing(want, eager)


def test_a_result_of_a_branch_takes_no_array_of_another_shape() -> None:
    """What one branch returns was one result with a name that is another array there, and both were of one shape (60000:443)."""
    with activate(Trace()):
        x, y, z = lift(np.zeros(3)), lift(np.zeros(4)), lift(np.ones(4))
        assert not Output(kind_of(y), (UNDEF, y)).takes(x, y)
        assert Output(kind_of(y), (UNDEF, y)).takes(z, y)


@pytest.mark.parametrize("n", [2, 3])
def test_a_smaller_view_out_of_two_loops_is_a_view(n: int) -> None:
    """That the inner loop's array may be a part of the outer one's was forgotten for being that array, perhaps (150000:2728)."""

    def program(x: Array, n: int) -> Array:
        for j in range(n):
            k = 0
            while k < 2:
                k += 1
                x = x[j:]
        return x

    compiled = jitml.jit(program)
    for size in (9, 8, 7, 6):
        x = np.arange(float(size))
        got = compiled(x, n)
        np.testing.assert_array_equal(got, program(x, n))
        assert np.shares_memory(got, x) == np.shares_memory(program(x, n), x)


def test_what_a_row_of_branches_may_keep_costs_the_same_for_each() -> None:
    """Each of two names may be what the other one may be: the cases of both were added up, more than twice as many each time."""

    def program(x: Array, t: Array, n: int) -> Any:
        y, z = x + 1.0, x * 2.0
        for k in [*range(n)]:
            if t[k] > 0:
                z = y
            if t[k] > 1:
                y = z
        return y.sum(), z.sum()

    def nodes(graph: Graph) -> int:
        return sum(1 + sum(map(nodes, node.bodies.values())) for node in graph.nodes)

    compiled = jitml.jit(program, static_argnums=2)
    x, t = np.arange(3.0), np.array([2, 0, 1, 2, 0, 1, 2, 1])
    for n in (4, 6, 8):
        assert compiled(x, t, n) == program(x, t, n)
    few, more, most = (nodes(variant.traced.graph) for variant in compiled.variants)
    assert most - more == more - few
