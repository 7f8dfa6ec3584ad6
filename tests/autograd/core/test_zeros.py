"""Zeros that are known to be zeros are nowhere computed with: they are at most what a choice or a place without a slope gives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from jitml import vjp
from jitml.ir.graph import Graph
from jitml.ir.passes import run_passes
from jitml.trace.trace import trace
from support.effort import drawn
from support.function_table import ROWS, words

# What is chosen where there is no slope, what is put in places that hand none on, what sums begin with; and what is compared.
HOLDERS = words("select complex concat scatter update_slice dynamic_update_slice loop while_ eq ne lt le")
# They compute with a number that happens to be 0: a polynomial by Horner's rule begins with it.
WITH_THE_NUMBER = words("np.polyval np.quantile:averaged_inverted_cdf scipy.special.ndtr")
NAMES = [name for name, rows in ROWS.items() if "f" in rows[0][0] and name not in WITH_THE_NUMBER][:: drawn(2, 1)]
BATCHES = [NAMES[n : n + 16] for n in range(0, len(NAMES), 16)]  # to trace a program takes its time, whatever is in it


def graphs(graph: Graph) -> Iterator[Graph]:
    yield graph
    for node in graph.nodes:
        for body in node.bodies.values():
            yield from graphs(body)


def users_of_zeros(program: Any, *args: Any) -> Counter[str]:
    users: Counter[str] = Counter()
    for graph in graphs(run_passes(trace(program, args, {}).graph)):
        fulls = [node for node in graph.nodes if node.op.name == "full" and node.output.capacity > 1]
        zeros = {node.output for node in fulls if node.output.dtype.kind in "fc" and node.params["value"] == 0}
        users.update(node.op.name for node in graph.nodes for v in node.inputs if v in zeros)
    return users


def computed_with_zeros(names: Sequence[str]) -> set[str]:
    """What does so in the gradients of these functions, all in one program, and not in the functions themselves."""
    functions, points = zip(*(ROWS[name][0][1:] for name in names))

    def values(*points: Any) -> Any:
        return tuple(function(*args) for function, args in zip(functions, points))

    def gradients(cts: Any, *points: Any) -> Any:
        return tuple(vjp(function, *args)[1](ct) for function, args, ct in zip(functions, points, cts))

    cts = tuple(np.ones_like(value) for value in values(*points))
    return (users_of_zeros(gradients, cts, *points) - users_of_zeros(values, *points)).keys() - HOLDERS


@pytest.mark.parametrize("names", BATCHES, ids=lambda names: names[0])
def test_gradients_compute_with_no_zeros(names: list[str]) -> None:
    if computed_with_zeros(names):
        assert not {name: found for name in names if (found := computed_with_zeros([name]))}


@pytest.mark.parametrize("name", WITH_THE_NUMBER)
def test_what_computes_with_the_number_0(name: str) -> None:
    assert computed_with_zeros([name])
