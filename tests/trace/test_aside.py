"""What runs while a function is traced, and is no part of it, computes for itself: signals' handlers, imported modules."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import jitml
from sections.forced_breaks import trials

X = np.arange(4.0)
FOUND: list[Any] = []
MODULE = """
import numpy as np
import jitml

@jitml.jit
def sums(n):
    return np.cumsum(n)

TABLE = sums(np.arange(5.0))
SLOPE = jitml.grad(lambda x: np.sum(x**2))(np.arange(3.0))
"""


def long(x: Any) -> Any:
    for v in [1.0] * 300:
        x = x * v - np.cos(x)
    return x


sums, slope = jitml.jit(lambda x: np.cumsum(x) + 1), jitml.grad(lambda x: np.sum(np.cumsum(x)))


def computed() -> None:
    FOUND.extend([sums(X), slope(X)])


@pytest.fixture(autouse=True)
def nothing_found() -> None:
    computed()
    FOUND.clear()


def test_what_a_module_computes_that_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "imported_while_tracing.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)

    def f(x: Any) -> Any:
        from imported_while_tracing import SLOPE, TABLE  # type: ignore[import-not-found]

        return x * TABLE[2] + SLOPE[1]

    np.testing.assert_array_equal(jitml.jit(f, verify="never")(X), X * 3 + 2)
    module = sys.modules.pop("imported_while_tracing")
    assert type(module.TABLE) is np.ndarray and type(module.SLOPE) is np.ndarray
    np.testing.assert_array_equal(module.TABLE, np.cumsum(np.arange(5.0)))


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers")
@pytest.mark.parametrize("is_jitted", [False, pytest.param(True, marks=pytest.mark.loose)])
def test_what_a_handler_computes(is_jitted: bool) -> None:
    def handler(number: int, frame: FrameType | None) -> None:
        computed()
        if len(FOUND) < 20:
            signal.setitimer(signal.ITIMER_REAL, 0.005)

    with trials():
        rented = jitml.jit(handler)
    before = signal.signal(signal.SIGALRM, rented if is_jitted else handler)
    signal.setitimer(signal.ITIMER_REAL, 0.005)
    try:
        np.testing.assert_allclose(jitml.jit(long, verify="never")(X), long(X))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert FOUND and {type(x) for x in FOUND} == {np.ndarray}
