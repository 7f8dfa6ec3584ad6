"""Functions without source: they are not traced, but for those that make namedtuples, which may run as they are."""

from __future__ import annotations

from types import FunctionType
from typing import NoReturn

from jitml.errors import SourceNotFound
from jitml.trace.record.recording import refuse


def is_namedtuples(function: FunctionType) -> bool:
    """Whether a function makes a namedtuple, of what it is given."""
    return function.__code__.co_filename == "<string>" and function.__globals__.get("_tuple_new") is tuple.__new__


def refuse_unread(function: FunctionType, reason: str) -> NoReturn:
    """Raises: SourceNotFound."""
    message = f"the source of {function.__qualname__} was not found, so that it cannot be traced: {reason}"
    remedy = "Define it in a file, or in a cell of a notebook; for text that is executed, put its lines into linecache.cache."
    refuse(SourceNotFound(message, remedy=remedy))
