"""Kept inputs: who has a program run can put back what it writes, so that the program need not keep a copy of its own."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import TypeVar

from jitml.interrupts import unset

T = TypeVar("T")
_are_kept: ContextVar[bool] = ContextVar("jitml_kept_inputs", default=False)

are_kept: Callable[[], bool] = _are_kept.get


def keeping(run: Callable[[], T]) -> T:
    """The result of a run whose caller puts back what has been written where it raises `FailedCheck`.

    For programs that call nothing: what they would call might fail a check by itself, and would find its arrays changed.
    """
    token = _are_kept.set(True)
    try:
        return run()
    finally:
        unset(_are_kept, token)
