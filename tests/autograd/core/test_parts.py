"""Cotangents of parts of an array: blocks that lie side by side become the array, without zeros around each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml

Array = np.ndarray[Any, Any]


def gates(x: Array) -> Any:
    return (x[:, :2] ** 2).sum() + np.sin(x[:, 4:6]).sum() + (x[:, 2:4] * x[:, 2:4]).sum()


def with_gaps(x: Array) -> Any:
    return (x[:, 1:3] ** 2).sum() + np.sin(x[:, 4:5]).sum()


def overlapping(x: Array) -> Any:
    return (x[:, :3] ** 2).sum() + np.sin(x[:, 2:]).sum()


def in_two_directions(x: Array) -> Any:
    return (x[:2] ** 2).sum() + np.sin(x[:, 2:]).sum()


def with_steps(x: Array) -> Any:
    return (x[:, ::2] ** 2).sum() + np.sin(x[:, 1::2]).sum()


def empty_part(x: Array) -> Any:
    return (x[:, :3] ** 2).sum() + np.sin(x[:, 3:3]).sum() + np.sin(x[:, 3:]).sum()


def of_rows(x: Array) -> Any:
    return sum((k + 1) * (row * row).sum() for k, row in enumerate(x))


def beside_the_whole(x: Array) -> Any:
    return (x[:, :3] ** 2).sum() + np.sin(x[:, 3:]).sum() + np.exp(x).sum()


@pytest.mark.parametrize(
    ("f", "op"),
    [
        (gates, "concat"),
        (with_gaps, "concat"),
        (overlapping, None),
        (in_two_directions, None),
        (with_steps, None),
        (empty_part, None),
        (of_rows, None),
        (beside_the_whole, None),
    ],
)
def test_blocks_side_by_side(f: Callable[..., Any], op: str | None) -> None:
    x = np.random.default_rng(0).standard_normal((4, 6))
    jitml.check_grads(f, (x,), order=2)
    names = {node.op.name for node in jitml.jit(jitml.grad(f)).lower(x).graph.nodes}
    if op is not None:
        assert op in names and "pad" not in names
