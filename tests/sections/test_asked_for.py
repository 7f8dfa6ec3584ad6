"""Which calls of a plain statement are looked at: not those of what is known to be no function of the user's."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.sections.callees import is_asked_for
from sections import functions


def helper(x: float) -> float:
    return x + 1


jitted = jitml.jit(helper)


def caller(local: Callable[..., Any], model: Any) -> Any:
    return local(helper(jitted(math.sin(np.sqrt(2.0))))) + model.step(functions.stop(), float)


@pytest.mark.parametrize(
    ("called", "is_asked"),
    [
        *((name, True) for name in ("helper", "local", "model.step", "functions.stop", "not_bound_yet", "np.no_such_name")),
        *((name, False) for name in ("jitted", "math.sin", "np.sqrt", "np.linalg.norm", "pytest.raises")),
    ],
)
def test_what_is_asked_for(called: str, is_asked: bool) -> None:
    assert is_asked_for(ast.parse(called, mode="eval").body, caller) is is_asked
