"""What a function makes and lets code that is not converted change is as in Python, in loops and branches too, at every call."""

from __future__ import annotations

import queue
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.trace.inside_programs import PROGRAMS

import jitml

Array = np.ndarray[Any, Any]


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_as_in_python(f: Callable[[Array], Any]) -> None:
    compiled = jitml.jit(f)
    for x in [np.array([-1.0, 2.0, 3.0, 4.0]), np.array([1.0, 2.0, 3.0, 4.0]), np.array([-1.0, 2.0, 3.0, 5.0])]:
        np.testing.assert_array_equal(np.asarray(compiled(x)), np.asarray(f(x)))


@pytest.mark.parametrize("change", [lambda q, x: q.put(x.sum()), lambda q, x: q.get(), lambda q, x: q.get_nowait()])
def test_a_queue_from_outside_stays_as_it_is(change: Callable[..., Any]) -> None:
    q: queue.Queue[Any] = queue.Queue()
    q.put(1)

    def f(x: Array, q: Any) -> Any:
        change(q, x)
        return x * q.qsize()

    with pytest.raises(jitml.UnsupportedError, match="from outside the jitted function and is changed in it"):
        jitml.jit(f)(np.ones(2), q)
    assert list(q.queue) == [1]
