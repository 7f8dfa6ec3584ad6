"""Quick code and full code, asked for by a test."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from jitml.config import CONFIG


@contextmanager
def tier(name: str) -> Iterator[None]:
    """Inside, code is made as JITML_TIER=name asks."""
    before = CONFIG.tier
    object.__setattr__(CONFIG, "tier", name)
    try:
        yield
    finally:
        object.__setattr__(CONFIG, "tier", before)


class Gate:
    """A job of the background behind which others wait until it is opened."""

    outlasts = True

    def __init__(self) -> None:
        self.opened, self.entered = threading.Event(), threading.Event()

    def run(self) -> None:
        self.entered.set()
        self.opened.wait(60)

    def give_up(self, why: str) -> None:
        self.opened.set()


def same_bits(x: Any, y: Any) -> bool:
    """Whether two arrays have the same bits; of a NaN that it is one."""
    a, b = np.ascontiguousarray(x), np.ascontiguousarray(y)
    if (a.dtype, a.shape) != (b.dtype, b.shape):
        return False
    if a.dtype.kind == "c":
        return same_bits(a.real, b.real) and same_bits(a.imag, b.imag)
    if a.dtype.kind != "f":
        return a.tobytes() == b.tobytes()
    is_nan = np.isnan(a)
    return bool((is_nan == np.isnan(b)).all()) and a[~is_nan].tobytes() == b[~is_nan].tobytes()
