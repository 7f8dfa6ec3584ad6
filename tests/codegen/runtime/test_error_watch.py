"""What a program writes is kept before its first run, unless who has it run keeps it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitml
from jitml.codegen.run.fp_errors import Errors, ErrorWatch
from jitml.ir.analysis.fp_errors import CATEGORIES
from jitml.ir.execute.kept_inputs import keeping

LARGE = 1 << 16  # elements


@pytest.mark.parametrize("is_kept", [False, True])
def test_arrays_are_put_back_by_who_keeps_them(is_kept: bool) -> None:
    x = np.ones(LARGE)
    watch = ErrorWatch([0], Errors(possible=CATEGORIES["divide"]))
    saved = keeping(lambda: watch.save(x)) if is_kept else watch.save(x)
    x[...] = 7.0
    assert not watch.judge([x], CATEGORIES["divide"], saved)
    assert x[0] == (7.0 if is_kept else 1.0)


@pytest.mark.parametrize("verify", ["never", "first", "always"])
def test_an_error_in_a_first_call_leaves_nothing_half_done(verify: Any) -> None:
    @jitml.jit(verify=verify)
    def divided(x: Any, y: Any) -> Any:
        x *= 2.0
        x /= y
        return x.sum()

    y = np.ones(LARGE)
    y[5] = 0.0
    for _ in range(2):
        x = np.ones(LARGE)
        with pytest.warns(RuntimeWarning, match="divide by zero"):
            assert divided(x, y) == np.inf
        np.testing.assert_array_equal(x, 2.0 / np.where(y, y, 1.0) + np.where(y, 0.0, np.inf))
