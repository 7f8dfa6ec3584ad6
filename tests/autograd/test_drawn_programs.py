"""Derivatives of drawn programs with loops, branches, whiles and mutation: reverse = forward = finite differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitml
from support import differentiable
from support.effort import drawn

# 129 concatenates parts of unknown length, 157 has a while in a loop that breaks, 50148 moves a part of unknown length while
# another is cleared; the others are what was drawn.
EAGER = (129, 157, 50148, *range(drawn(6, 12)))
JITTED = (129, 157, 50148, 20, 21, 22)


def along(function: Any, args: tuple[Any, ...], direction: list[Any], h: float) -> float:
    ahead, behind = (function(*(a + sign * h * d for a, d in zip(args, direction))) for sign in (1, -1))
    return float(ahead - behind) / (2 * h)


@pytest.mark.parametrize(("seed", "finish"), [*((n, lambda f: f) for n in EAGER), *((n, jitml.jit) for n in JITTED)])
def test_a_drawn_program(seed: int, finish: Any) -> None:
    program, text = differentiable.drawn(seed)
    args = differentiable.arguments(seed)
    direction = [np.cos(np.arange(a.size) + seed).reshape(a.shape) for a in args]
    differences = [along(program, args, direction, h) for h in (1e-5, 1e-6)]
    slopes = finish(jitml.grad(program, (0, 1, 2)))(*args)
    value, slope = jitml.jvp(program, args, tuple(direction))
    reverse = sum((s * d).sum() for s, d in zip(slopes, direction))
    np.testing.assert_allclose(value, program(*(a.copy() for a in args)), rtol=1e-9, err_msg=text)
    np.testing.assert_allclose(reverse, slope, rtol=1e-8, atol=1e-10, err_msg=text)
    if abs(differences[0] - differences[1]) < 1e-4 * (1 + abs(slope)):  # else a condition changed in between
        np.testing.assert_allclose(slope, differences[0], rtol=1e-3, atol=1e-3, err_msg=text)
