"""The benchmark suite's programs, at small sizes, give NumPy's results through jitml; all mechanisms have their share."""

from __future__ import annotations

import copy
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import optree
import pytest

import jitml

sys.path.insert(0, str(Path(__file__).parent.parent / "bench"))
from workloads import WORKLOADS, Workload


def compiled(workload: Workload) -> Any:
    if workload.loss is not None:
        return jitml.jit(jitml.grad(workload.loss, argnums=workload.argnums))
    return jitml.jit(workload.function)


@pytest.mark.parametrize("name", WORKLOADS)
def test_workload(name: str) -> None:
    workload = WORKLOADS[name]
    function = compiled(workload)
    for seed in range(2):
        ours = workload.make_inputs(workload.small, seed)
        theirs = copy.deepcopy(ours)
        got, expected = function(*ours), workload.function(*theirs)
        for a, b in zip(optree.tree_leaves((got, ours)), optree.tree_leaves((expected, theirs)), strict=True):
            assert np.asarray(a).dtype == np.asarray(b).dtype
            np.testing.assert_allclose(a, b, rtol=workload.rtol, atol=workload.rtol)


def test_each_workload_is_listed_under_one_mechanism() -> None:
    rows = re.findall(
        r"^\| [\w, ]+ \| ((?:`\w+` ?)+) \|$", (Path(__file__).parent.parent / "bench" / "README.md").read_text(), re.MULTILINE
    )
    mechanisms = [re.findall(r"`(\w+)`", row) for row in rows]
    assert sorted(name for names in mechanisms for name in names) == sorted(WORKLOADS)
    assert len(mechanisms) == 7 and min(map(len, mechanisms)) >= 10
