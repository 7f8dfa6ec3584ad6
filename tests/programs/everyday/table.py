"""What the files of this folder are made of: functions with the arguments of their calls, and sessions around jitted ones."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Jitted = Callable[[Any], Any]  # `jitml.jit`, or what leaves a function as it is


@dataclass(frozen=True)
class Row:
    """A program: `run(jit)` makes its functions, calls them, and gives all that can be seen afterwards.

    refused: what a refusal must say; None if all calls are to be compiled.
    as_python: the same of one that is none without `strict`: then sections and plain Python agree.
    host: whether compiled code may call NumPy.
    """

    name: str
    run: Callable[[Jitted], Any]
    refused: str | None = None
    as_python: str | None = None
    host: bool = False


def rows() -> tuple[list[Row], Callable[..., Any], Callable[..., Any]]:
    """A table, and the decorators that fill it: of a function with `calls`, and of a session."""
    table: list[Row] = []

    def calls(*arguments: Callable[[], tuple[Any, ...]] | tuple[Any, ...], **expected: Any) -> Callable[[Any], Any]:
        def add(function: Any) -> Any:
            def run(jit: Jitted) -> Any:
                jitted = jit(function)
                seen: list[Any] = []
                for given in arguments:
                    args = copy.deepcopy(given() if callable(given) else given)
                    seen.append((jitted(*args), args))
                return seen

            table.append(Row(function.__name__, run, **expected))
            return function

        return add

    def session(**expected: Any) -> Callable[[Any], Any]:
        def add(run: Any) -> Any:
            table.append(Row(run.__name__, run, **expected))
            return run

        return add

    return table, calls, session
