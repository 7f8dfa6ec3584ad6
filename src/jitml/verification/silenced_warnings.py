"""Silenced warnings: those of one context are dropped for a while, and what has been shown already stays so."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from jitml.interrupts import unset

_is_silent: ContextVar[bool] = ContextVar("jitml_silent", default=False)
_shown: Callable[[Any], None] = warnings._showwarnmsg  # type: ignore[attr-defined]  # private, and the one place for C and Python


@contextmanager
def silenced() -> Iterator[None]:
    """No warning is shown inside the block.

    `catch_warnings` would forget which ones have been shown once, and change the filters of all threads.
    """
    if warnings._showwarnmsg is not _show:  # type: ignore[attr-defined]
        warnings._showwarnmsg = _show  # type: ignore[attr-defined]  # for good: it asks who warns
    token = _is_silent.set(True)
    try:
        yield
    finally:
        unset(_is_silent, token)


def _show(message: Any) -> None:
    if not _is_silent.get():
        _shown(message)
