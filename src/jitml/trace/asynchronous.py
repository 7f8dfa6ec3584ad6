"""Code that runs while a function is traced, and is no part of it: a signal's handler, a finalizer, a module that is imported.

What it computes by jitted functions and transforms is for itself: arrays, and not stand-ins, which would be dead afterwards.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

from jitml.interrupts import codes_of_handlers
from jitml.trace.trace import ATTEMPT


def is_aside(called: Any = None) -> bool:
    """Whether such code has called this, by a frame between here and where the innermost function begins to be traced.

    Args:
        called: what has been called, which may be a handler itself.
    """
    handlers = codes_of_handlers()
    if getattr(called, "__code__", None) in handlers:
        return True
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code is not ATTEMPT:
        if frame.f_code.co_name in ("<module>", "__del__") or frame.f_code in handlers:
            return True
        frame = frame.f_back
    return False


__all__ = ["is_aside"]
