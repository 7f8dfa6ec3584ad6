"""Random schedules: those that are accepted compute what the graph does, by the interpreter of kernels and as machine code."""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
import pytest

import jitml
from support.drawn_schedules import PROGRAMS, draw_schedule, graph_of
from support.fused import fuse_and_check


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_kernel_computes_the_same_under_any_schedule_that_fits(name: str) -> None:
    graph, refused = graph_of(name), Counter[str]()
    for seed in range(3):
        kernel, schedule = draw_schedule(graph, Random(seed), refused)
        fuse_and_check(graph, schedules={kernel: schedule}, rtol=1e-10)
    assert refused


@pytest.mark.parametrize("name", ["softmax", "columns", "pieces", "products"])
def test_so_does_its_machine_code(name: str) -> None:
    (function, shape), graph = PROGRAMS[name], graph_of(name)
    x = np.random.default_rng(0).normal(size=shape)
    for seed in range(2):
        kernel, schedule = draw_schedule(graph, Random(seed), Counter())
        compiled = jitml.jit(function, schedules={kernel: str(schedule)}, verify="never")
        np.testing.assert_allclose(compiled(x), function(x), rtol=1e-10)
