"""Loops whose derivatives several tests take."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def settled(x: Array) -> Any:
    while np.abs(x).sum() > 0.5:
        x = 0.9 * x + 0.001 * np.sin(x)
    return (x * x).sum()
