"""Drivers: functions that are called once, for what they print or draw, and that have nothing to compute with but what they make.

A `main()`, mostly. To compile one before it has run for long is a guess.
"""

from __future__ import annotations

import dis
import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import CodeType
from typing import Any

import numpy as np

_NUMERIC = (np.ndarray, np.generic, int, float, complex)
_DEPTH = 3  # of objects in objects that are looked into
_MOST = 16  # items and attributes of each


def is_driver(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether a call has no numbers, and loops.

    >>> is_driver(lambda: [print(n) for n in range(3)], (), {}), is_driver(lambda x: x, (1,), {})
    (True, False)
    """
    return has_loop(function) and not _has_numbers((*args, *kwargs.values()), _DEPTH)


def _has_numbers(items: Iterable[Any], depth: int) -> bool:
    return any(isinstance(x, _NUMERIC) or (depth > 0 and _has_numbers(_inside(x), depth - 1)) for x in items)


def _inside(x: Any) -> list[Any]:
    if isinstance(x, (list, tuple)):
        return [*x[:_MOST]]
    if isinstance(x, dict):
        return [*x.values()][:_MOST]
    return [*getattr(x, "__dict__", {}).values()][:_MOST]


def has_loop(function: Callable[..., Any]) -> bool:
    """Whether there is a loop or a comprehension in a function."""
    code = getattr(function, "__code__", None)
    return code is not None and _loops(code)


@functools.lru_cache(maxsize=1024)
def _loops(code: CodeType) -> bool:
    if any("JUMP_BACKWARD" in x.opname for x in dis.get_instructions(code)):
        return True
    return any(isinstance(x, CodeType) and _loops(x) for x in code.co_consts)


__all__ = ["has_loop", "is_driver"]
