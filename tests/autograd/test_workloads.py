"""The workloads of the derivative benchmark, at small sizes: jitml, by hand, finite differences and JAX agree."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import optree
import pytest

import jitml

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))
from autodiff import WORKLOADS
from autodiff.columns import ours

BENCH = str(Path(__file__).parents[2] / "bench")
AD = ours.Transforms()
# Differences of fourth order, of functions some of which end an iteration at 1e-11.
WITHIN = 1e-6


def same(result: Any, expected: Any, rtol: float = 1e-10) -> None:
    for a, b in zip(optree.tree_leaves(result), optree.tree_leaves(expected), strict=True):
        a, b = np.asarray(a), np.asarray(b)
        assert a.dtype == b.dtype == np.float64
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * np.abs(b).max())


@pytest.mark.parametrize("name", WORKLOADS)
def test_derivative(name: str) -> None:
    """Compiled, and run without `jit`."""
    workload = WORKLOADS[name]
    derivative = workload.task.of(AD, workload.function)
    compiled = jitml.jit(derivative)
    for seed in range(2):
        args = workload.make_inputs(workload.small, seed)
        expected = workload.by_hand(*args)
        assert workload.task.error(AD, workload.function, args, expected) < WITHIN
        same(compiled(*args), expected)
        same(derivative(*args), expected)


def test_forward_through_a_while() -> None:
    """The solver's slope along a direction, against differences and against reverse mode."""
    workload = WORKLOADS["jacobi"]
    source, conductivity, target = workload.make_inputs(workload.small)
    directions = np.random.default_rng(3).standard_normal((2, *source.shape))

    def loss(source, conductivity):
        return workload.function(source, conductivity, target)

    def slope(source, conductivity, a, b):
        return jitml.jvp(loss, (source, conductivity), (a, b))[1]

    pushed = jitml.jit(slope)(source, conductivity, *directions)
    a, b = 1e-5 * directions
    measured = (loss(source + a, conductivity + b) - loss(source - a, conductivity - b)) / 2e-5
    pulled = sum(np.vdot(g, v) for g, v in zip(jitml.grad(loss, argnums=(0, 1))(source, conductivity), directions))
    np.testing.assert_allclose([pushed, measured], pulled, rtol=WITHIN)


IN_TORCH = """
import sys
sys.path.insert(0, {bench!r})
import numpy as np
import optree
from autodiff import WORKLOADS
from autodiff.columns import with_torch
for name, workload in WORKLOADS.items():
    args = workload.make_inputs(workload.small)
    found = with_torch.functions(workload)[1](*with_torch.to_tensors(args))
    for a, b in zip(optree.tree_leaves(found), optree.tree_leaves(workload.by_hand(*args)), strict=True):
        a = np.asarray(a)
        assert a.dtype == np.float64
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9 * np.abs(b).max(), err_msg=name)
"""


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed")
def test_torch_column() -> None:
    """All of it is restated. In a process of its own: its threads are no others' business."""
    done = subprocess.run([sys.executable, "-c", IN_TORCH.format(bench=BENCH)], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


IN_JAX = """
import sys
sys.path.insert(0, {bench!r})
import numpy as np
from autodiff import WORKLOADS
from autodiff.columns import with_jax
for name in ("gaussian_mixture", "hand", "lstm", "leapfrog", "jacobi"):
    workload = WORKLOADS[name]
    args = workload.make_inputs(workload.small)
    found = with_jax.jitted(workload)[1](*with_jax.to_device(args))
    expected = workload.by_hand(*args)
    for a, b in zip(found, expected, strict=True):
        assert a.dtype == np.float64
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9 * np.abs(b).max(), err_msg=name)
"""


@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="JAX is not installed")
def test_jax_column() -> None:
    """Where JAX has the program in its own words, they mean the same. In a process of its own: others of these tests fork."""
    program = IN_JAX.format(bench=BENCH)
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
