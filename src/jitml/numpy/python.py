"""Python's own functions, where they meet sizes of the running program: `len`, `min`, `max`."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

from jitml.trace.numbers import TracedNumber, combine
from jitml.trace.registry import implements
from jitml.trace.tracers import TracedArray


@implements(builtins.len)
def length(x: Any, /) -> Any:
    return x.shape[0] if type(x) is TracedArray and x.ndim else len(x)


def _choice(function: Callable[..., Any]) -> Callable[..., Any]:
    def choose(*args: Any, **options: Any) -> Any:
        given = list(args[0]) if len(args) == 1 and isinstance(args[0], (list, tuple)) else args
        if not options and len(given) > 1 and all(type(n) in (TracedNumber, bool, int, float) for n in given):
            if any(type(n) is TracedNumber and n.slot is None for n in given):
                return combine(function, *given)
        return function(*args, **options)

    return choose


implements(builtins.min)(_choice(min))
implements(builtins.max)(_choice(max))
