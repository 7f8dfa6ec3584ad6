"""Watchers: does a debugger, or what measures coverage, wait for each line that runs?

A section runs no lines. So while somebody watches, none answers.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

_traced: Callable[[], object] = sys.gettrace


def _is_traced() -> bool:
    return _traced() is not None


def _is_monitored() -> bool:
    """Since Python 3.12 there are tools of other kinds, too."""
    monitoring = sys.monitoring  # type: ignore[attr-defined,unused-ignore]  # since 3.12
    if _traced() is not None or monitoring.get_tool(monitoring.DEBUGGER_ID) or monitoring.get_tool(monitoring.COVERAGE_ID):
        return True
    profiler = monitoring.PROFILER_ID
    return bool(monitoring.get_tool(profiler) and monitoring.get_events(profiler) & monitoring.events.LINE)


def _asked() -> Iterator[tuple[Callable[..., Any], tuple[Any, ...]]]:
    yield _traced, ()
    if hasattr(sys, "monitoring"):
        monitoring = sys.monitoring
        for tool in (monitoring.DEBUGGER_ID, monitoring.COVERAGE_ID, monitoring.PROFILER_ID):
            yield monitoring.get_tool, (tool,)


is_watched: Callable[[], bool] = _is_monitored if hasattr(sys, "monitoring") else _is_traced
# What machine code asks. Each says None as long as nobody watches, or else somebody may do so.
UNWATCHED = tuple(_asked())

__all__ = ["UNWATCHED", "is_watched"]
