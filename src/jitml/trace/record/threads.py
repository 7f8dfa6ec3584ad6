"""Threads: does other code run beside this one, and may it be the user's?"""

from __future__ import annotations

import sys
import threading
from types import FrameType

from jitml.diagnostics.code_owners import is_machinery, is_users

_WAITS = threading.Thread.join.__code__.co_filename  # a user's file may be called so, too


def is_alone() -> bool:
    """Whether no other thread can run code of Python's but our own."""
    mine = threading.get_ident()
    return all(
        thread == mine or is_machinery(_first(frame).f_code.co_filename) for thread, frame in sys._current_frames().items()
    )


def _first(frame: FrameType) -> FrameType:
    while frame.f_back is not None:
        frame = frame.f_back
    return frame


def others_run(*, soon: bool = False) -> bool:
    """Whether another thread may be in the middle of the user's code, and share what this one has.

    Args:
        soon: so is one that waits, but not for ever.
    """
    mine = threading.get_ident()  # no frame, which would hold itself, and all that its callers hold, until garbage is collected
    return any(_is_in_users_code(frame, soon) for thread, frame in sys._current_frames().items() if thread != mine)


def _is_in_users_code(frame: FrameType, soon: bool) -> bool:
    """A thread that waits for another one is in nobody's."""
    if frame.f_code.co_filename == _WAITS and not (soon and _goes_on(frame)):
        return False
    step: FrameType | None = frame
    while step is not None:
        if is_users(step.f_code.co_filename):
            return True
        step = step.f_back
    return False


def _goes_on(frame: FrameType) -> bool:
    """Whether a thread that is in `threading` goes on by itself: it does not wait, or for some time only."""
    limits: list[float | None] = []
    step: FrameType | None = frame
    while step is not None and step.f_code.co_filename == _WAITS:
        limits += [step.f_locals["timeout"]] if "timeout" in step.f_locals else []
        step = step.f_back
    return not limits or any(limit not in (None, -1) for limit in limits)
