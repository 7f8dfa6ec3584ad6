"""Jitted functions that other processes are given: of a module, methods, and what transforms make."""

from __future__ import annotations

from typing import Any

import numpy as np

import jitml


@jitml.jit
def energy(x: Any, k: float = 2.0) -> Any:
    s = 0.0
    for i in range(len(x)):
        s += np.sin(x[i]) * k
    return s


class Model:
    def __init__(self, w: float) -> None:
        self.w = w

    @jitml.jit
    def score(self, x: Any) -> Any:
        return np.exp(-((x * self.w) ** 2)).sum()

    @staticmethod
    @jitml.jit
    def spread(x: Any) -> Any:
        return (x**2).mean()

    @classmethod
    @jitml.jit
    def named(cls, x: Any) -> Any:
        return x.sum() * len(cls.__name__)


slope = jitml.jit(jitml.grad(energy))


def relative(y: Any, p: Any) -> Any:
    return np.abs(y - p).sum() / np.abs(y).sum()


FUNCTIONS = {"energy": energy, "score": Model(1.5).score, "spread": Model.spread, "named": Model.named, "slope": slope}
