"""Reproducers: the call that was answered wrongly, as files that show it anew."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def remember(function: Callable[..., Any], name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """Keep what a wrong answer was given to; the words that say how to have it written."""
    return "please report it."
