"""Functions without source: which of them may be traced as they are?  Those that libraries have generated.

Everything in them runs once, while they are traced; they are not converted anyway.
"""

from __future__ import annotations

from types import FunctionType
from typing import NoReturn

from jitml.diagnostics.code_owners import is_users
from jitml.errors import SourceNotFound
from jitml.trace.record.recording import refuse
from jitml.trace.rewrite.source_texts import is_generated


def is_trusted(function: FunctionType) -> bool:
    """Whether a library has made a function, or the standard library one that only looks at fields of a record."""
    if function.__code__.co_exceptiontable:  # it may handle exceptions
        return False
    if not is_users(str(function.__globals__.get("__file__") or "")):
        return True
    is_namedtuples = function.__code__.co_filename == "<string>" and function.__globals__.get("_tuple_new") is tuple.__new__
    return is_namedtuples or (is_generated(function.__code__) and function.__name__ != "__init__")


def refuse_unread(function: FunctionType, reason: str) -> NoReturn:
    """Raises: SourceNotFound."""
    message = f"the source of {function.__qualname__} was not found, so that it cannot be traced: {reason}"
    remedy = "Define it in a file, or in a cell of a notebook; for text that is executed, put its lines into linecache.cache."
    refuse(SourceNotFound(message, remedy=remedy))
