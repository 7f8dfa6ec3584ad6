"""In which order do the axes of a new array lie in memory?  Of functions that keep their operands' order, `@keeps_order`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from jitml.ir.dims import Dim
from jitml.trace.storage import kept_strides, surely_contiguous
from jitml.trace.tracers import TracedArray

F = TypeVar("F", bound=Callable[..., Any])


def keeps_order(function: F) -> F:
    """Let a function's result lie in memory as NumPy lays it out: like its operands with as many axes."""

    @functools.wraps(function)
    def laid_out(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        if type(result) is TracedArray and not result.steps and not any(result is a for a in (*args, kwargs.get("out"))):
            _lay_out(result, [a for a in _arrays(args) if a.ndim == result.ndim])
        return result

    return laid_out  # type: ignore[return-value]  # of the same signature


def _arrays(args: tuple[Any, ...]) -> Iterator[TracedArray]:
    for a in args:
        for part in a if isinstance(a, (list, tuple)) else (a,):
            if type(part) is TracedArray:
                yield part


def _lay_out(result: TracedArray, operands: list[TracedArray]) -> None:
    if all(surely_contiguous(a.sizes, a.layout) for a in operands):
        return
    if result.storage.is_external or any(isinstance(n, Dim) for a in (result, *operands) for n in a.sizes):
        return
    # An axis that the function makes longer or shorter counts as the operand's own.
    layouts = [(tuple(1 if n == 1 else m for n, m in zip(a.sizes, result.sizes)), a.layout) for a in operands]
    result.layout = result.storage.strides = kept_strides(layouts, result.sizes)
