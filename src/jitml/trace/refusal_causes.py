"""Causes of refusals: in a word, why can a function not be compiled?  By the room that refuses.

Errors of some types always have one cause (`JitmlError.cause`), and where a room refuses for several, it says which.
"""

from __future__ import annotations

import functools
import os
import sys
from types import FrameType

import jitml
from jitml.diagnostics.code_owners import is_users
from jitml.errors import Cause

_ROOT = os.path.dirname(os.path.abspath(jitml.__file__)) + os.sep
# Files and folders; what is not listed is decided by whoever has called it. The longest that fits counts.
_ROOMS = {
    "autograd": Cause.DERIVATIVE,
    "device": Cause.DEVICE,
    "numpy": Cause.LIBRARY,
    "trace/carried": Cause.CONTROL,
    "trace/effects": Cause.EFFECT,
    "trace/effects/inheritance": Cause.OBJECT,
    "trace/environment/arguments": Cause.OBJECT,
    "trace/environment/class_guards": Cause.OBJECT,
    "trace/environment/functools_wrappers": Cause.LIBRARY,
    "trace/environment/equality_guards": Cause.OBJECT,
    "trace/environment/guarded_loads": Cause.OBJECT,
    "trace/environment/pickling": Cause.LIBRARY,
    "trace/environment/process_state": Cause.EFFECT,
    "trace/environment/snapshot": Cause.EFFECT,
    "trace/environment/sourceless": Cause.SYNTAX,
    "trace/environment/unseen_reads": Cause.LIBRARY,
    "trace/hooks": Cause.OBJECT,
    "trace/hooks/convert": Cause.SYNTAX,
    "trace/hooks/impure": Cause.EFFECT,
    "trace/hooks/profiling": Cause.EFFECT,
    "trace/hooks/unconverted_calls": Cause.LIBRARY,
    "trace/host_calls": Cause.LIBRARY,
    "trace/host_calls/postponed_effects": Cause.EFFECT,
    "trace/host_calls/generators": Cause.RANDOM,
    "trace/lists": Cause.CONTROL,
    "trace/lists/sequences": Cause.ITERATOR,
    "trace/record/concrete_evaluation": Cause.LIBRARY,
    "trace/record/device_arrays": Cause.DEVICE,
    "trace/record/escape_analysis": Cause.OBJECT,
    "trace/record/fp_errors": Cause.EFFECT,
    "trace/record/loaded_modules": Cause.EFFECT,
    "trace/record/object_state": Cause.OBJECT,
    "trace/record/pytree": Cause.OBJECT,
    "trace/record/threads": Cause.EFFECT,
    "trace/regions": Cause.CONTROL,
    "trace/result_trees": Cause.OBJECT,
    "trace/results": Cause.OBJECT,
    "trace/speculation/host_results": Cause.NUMBER,
    "trace/speculation/paths": Cause.CONTROL,
    "trace/storage": Cause.ALIAS,
    "trace/subgraph": Cause.DERIVATIVE,
    "trace/symbolic": Cause.NUMBER,
    "trace/trace": Cause.CONTROL,
    "trace/values": Cause.OBJECT,
    "trace/values/boxing": Cause.DTYPE,
    "trace/values/array_writes": Cause.DTYPE,
    "trace/values/tracer_operators": Cause.DTYPE,
    "trace/values/aliases": Cause.ALIAS,
    "trace/values/container_identity": Cause.ALIAS,
    "trace/values/kinds": Cause.CONTROL,
    "trace/values/numbers": Cause.NUMBER,
    "trace/values/python_arithmetic": Cause.NUMBER,
    "trace/values/text": Cause.NUMBER,
    "trace/values/tracers": Cause.NUMBER,
    "trace/values/type_unions": Cause.NUMBER,
}


def cause_of_room() -> Cause | None:
    """Of the innermost room of ours that is in the table, as far as the user's code."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not is_users(file := frame.f_code.co_filename):
        if (found := _cause_of(file)) is not None:
            return found
        frame = frame.f_back
    return None


@functools.lru_cache(maxsize=1024)
def _cause_of(file: str) -> Cause | None:
    room = file.removeprefix(_ROOT).removesuffix(".py").replace(os.sep, "/")
    parts = room.split("/")
    names = ("/".join(parts[:n]) for n in range(len(parts), 0, -1))
    return next((_ROOMS[name] for name in names if name in _ROOMS), None) if file.startswith(_ROOT) else None


__all__ = ["cause_of_room"]
