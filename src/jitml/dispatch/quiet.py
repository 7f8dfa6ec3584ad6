"""Silenced warnings: those of one thread are dropped for a while, and what has been shown already stays so."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_silent: set[int] = set()  # threads
_lock = threading.RLock()
_shown: list[Callable[[Any], None]] = []  # what shows warnings, while there is a silent thread


@contextmanager
def silenced() -> Iterator[None]:
    """No warning of this thread is shown inside the block.

    Python and C show them all through `warnings._showwarnmsg`, which asks who calls. `catch_warnings` would forget which
    ones have been shown once, and change the filters of all threads.
    """
    thread = threading.get_ident()
    if thread in _silent:
        yield
        return
    try:
        with _lock:
            _silent.add(thread)
            if not _shown:
                _shown.append(warnings._showwarnmsg)  # type: ignore[attr-defined]  # private, and the one place for both
                warnings._showwarnmsg = _show  # type: ignore[attr-defined]
        yield
    finally:
        with _lock:
            _silent.discard(thread)
            if not _silent and _shown:
                shown = _shown.pop()
                if warnings._showwarnmsg is _show:  # type: ignore[attr-defined]
                    warnings._showwarnmsg = shown  # type: ignore[attr-defined]


def _show(message: Any) -> None:
    if threading.get_ident() not in _silent:
        (_shown[0] if _shown else warnings._showwarnmsg)(message)  # type: ignore[attr-defined]
