"""How does a function see its globals, closures and callees as tracers?  By conversion of its source."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def convert(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function to call in its place while tracing."""
    return function
