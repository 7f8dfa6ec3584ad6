"""Where does one outcome of a program differ from another?  Kinds, dtypes, shapes and values, through any containers."""

from __future__ import annotations

from typing import Any

import numpy as np

from jitml.verification.rounding import ROUNDING, Close, within


def difference(got: Any, expected: Any, close: Close, where: str = "result") -> str | None:
    """The first difference, in words; None if there is none.

    Args:
        close: whether inexact arrays of one shape and dtype agree; all others must be equal bit for bit.
    """
    if type(got) is not type(expected):
        return f"{where}: {type(got).__name__} {got!r}, NumPy gives {type(expected).__name__} {expected!r}"
    if isinstance(expected, (tuple, list)):
        if len(got) != len(expected):
            return f"{where}: {len(got)} items, NumPy gives {len(expected)}"
        pairs = enumerate(zip(got, expected))
        return next((d for n, (g, e) in pairs if (d := difference(g, e, close, f"{where}[{n}]"))), None)
    if isinstance(expected, dict):
        if list(got) != list(expected):
            return f"{where}: the keys {list(got)}, NumPy gives {list(expected)}"
        return next((d for k, e in expected.items() if (d := difference(got[k], e, close, f"{where}[{k!r}]"))), None)
    if isinstance(expected, np.random.Generator):
        same = got.bit_generator.state == expected.bit_generator.state
        return None if same else f"{where}: the generator's state"
    if isinstance(expected, (np.ndarray, np.generic, float)):
        return _array_difference(np.asarray(got), np.asarray(expected), close, where)
    return None if got == expected else f"{where}: {got!r}, NumPy gives {expected!r}"


def _array_difference(got: np.ndarray[Any, Any], expected: np.ndarray[Any, Any], close: Close, where: str) -> str | None:
    if got.dtype != expected.dtype:
        return f"{where}: {got.dtype}, NumPy gives {expected.dtype}"
    if got.shape != expected.shape:
        return f"{where}: shape {got.shape}, NumPy gives {expected.shape}"
    same = close(got, expected) if expected.dtype.kind == "f" else np.array_equal(got, expected)
    return None if same else f"{where}: {got!r}, NumPy gives {expected!r}"


__all__ = ["ROUNDING", "Close", "difference", "within"]
