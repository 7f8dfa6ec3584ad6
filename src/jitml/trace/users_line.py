"""Where does a warning come from that a compiled program gives?  From the user's line: filters and registries go by it."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping, Sequence
from types import CodeType
from typing import Any

from jitml.trace.context import is_converted, user_source

Call = Callable[[Callable[..., Any], Sequence[Any], Mapping[str, Any]], Any]


def namespace() -> dict[str, Any]:
    """The globals of the user's function that runs now."""
    frame = sys._getframe(1)
    while frame.f_back is not None and not is_converted(frame.f_code.co_filename):
        frame = frame.f_back
    return frame.f_globals


def caller() -> Call:
    """A function that calls another one as the user's line does: what that warns of with `stacklevel=2` comes from there."""
    place = user_source()
    if place is None:
        return lambda function, args, kwargs: function(*args, **kwargs)
    call: Call = eval(_calling(place.file, place.line), namespace())  # of our own text, in the user's module
    return call


@functools.lru_cache(maxsize=1024)
def _calling(file: str, line: int) -> CodeType:
    return compile("\n" * (line - 1) + "lambda function, args, kwargs: function(*args, **kwargs)", file, "eval")


__all__ = ["Call", "caller", "namespace"]
