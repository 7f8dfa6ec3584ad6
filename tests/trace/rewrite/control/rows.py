"""The list of programs, and how one gets there."""

from __future__ import annotations

from typing import Any

Xs = list[int]
PROGRAMS: list[Any] = []


def program(function: Any) -> Any:
    PROGRAMS.append(function)
    return function
