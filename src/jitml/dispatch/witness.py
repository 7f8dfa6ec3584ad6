"""Witnesses of transforms: who is told of each transform that runs outside of any trace."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from jitml.interrupts import unset

# Told what the transform is, the function, and the arguments that this is called with.
Witness = Callable[[Hashable, Callable[..., Any], tuple[Any, ...], Mapping[str, Any]], None]
_witness: ContextVar[Witness | None] = ContextVar("jitml_witness", default=None)


@contextmanager
def witnessed(witness: Witness | None) -> Iterator[None]:
    """Tell `witness` of the transforms that run inside the block; None: nobody."""
    token = _witness.set(witness)
    try:
        yield
    finally:
        unset(_witness, token)


def current_witness() -> Witness | None:
    return _witness.get()


__all__ = ["Witness", "current_witness", "witnessed"]
