"""Zeros that are known to be zeros are nowhere computed with: they are at most what a choice or a place without a slope gives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from jitml import jit, vjp
from jitml.ir.graph import Graph
from jitml.ir.passes import run_passes
from support.function_table import ROWS, words

# What is chosen where there is no slope, what is put in places that hand none on, what sums begin with; and what is compared.
HOLDERS = words("select complex concat scatter update_slice dynamic_update_slice loop while_ eq ne lt le")
# They compute with a number that happens to be 0: a polynomial by Horner's rule begins with it.
WITH_THE_NUMBER = words("np.polyval np.quantile:averaged_inverted_cdf scipy.special.ndtr")
NAMES = [name for name, rows in ROWS.items() if "f" in rows[0][0]]


def graphs(graph: Graph) -> Iterator[Graph]:
    yield graph
    for node in graph.nodes:
        for body in node.bodies.values():
            yield from graphs(body)


def users_of_zeros(program: Any, *args: Any) -> Counter[str]:
    users: Counter[str] = Counter()
    for graph in graphs(run_passes(jit(program).lower(*args).traced)):
        fulls = [node for node in graph.nodes if node.op.name == "full" and node.output.capacity > 1]
        zeros = {node.output for node in fulls if node.output.dtype.kind in "fc" and node.params["value"] == 0}
        users.update(node.op.name for node in graph.nodes for v in node.inputs if v in zeros)
    return users


@pytest.mark.parametrize("name", NAMES)
def test_gradients_compute_with_no_zeros(name: str) -> None:
    _, function, args = ROWS[name][0]
    ct = np.ones_like(function(*args))
    users = users_of_zeros(lambda ct, *args: vjp(function, *args)[1](ct), ct, *args)
    found = (users - users_of_zeros(function, *args)).keys() - HOLDERS
    assert bool(found) == (name in WITH_THE_NUMBER), found
