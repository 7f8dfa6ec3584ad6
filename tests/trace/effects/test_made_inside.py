"""What a function makes and lets code that is not converted change is as in Python, in loops and branches too, at every call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.trace.effects.inside_programs import PROGRAMS

import jitml

Array = np.ndarray[Any, Any]


OF_SCIPY = {"sobol", "halton", "sobol_forwards_in_branch"}  # whose objects are breaks


@pytest.mark.parametrize(
    "f", [pytest.param(f, id=f.__name__, marks=pytest.mark.loose if f.__name__ in OF_SCIPY else ()) for f in PROGRAMS]
)
def test_as_in_python(f: Callable[[Array], Any]) -> None:
    compiled = jitml.jit(f)
    for x in [np.array([-1.0, 2.0, 3.0, 4.0]), np.array([1.0, 2.0, 3.0, 4.0]), np.array([-1.0, 2.0, 3.0, 5.0])]:
        np.testing.assert_array_equal(np.asarray(compiled(x)), np.asarray(f(x)))
