"""Wrappers of Python's around functions: which of them is a function of the user's seen through, and which are left to Python?

A dispatcher chooses among functions that may be registered later, a cache answers with what it has kept, `warnings.deprecated`
warns at each call. None of them is followed.
"""

from __future__ import annotations

import functools
from types import FunctionType, MethodType
from typing import Any

from jitml.trace.record.libraries import is_library, is_traced_through
from jitml.trace.record.recording import unsupported
from jitml.trace.record.user_code import is_converted_inside
from jitml.trace.values.registry import full_name, has_meaning, uncached

_DISPATCHER: Any = functools.singledispatch(lambda x: x)
_DISPATCHERS = (_DISPATCHER.__code__, _DISPATCHER.dispatch.__code__)


def require_no_wrapper(function: Any) -> None:
    """Refuse a dispatcher of `functools`, a cached function of the user's, and one that warns of being deprecated."""
    plain, why = function.__func__ if type(function) is MethodType else function, ""
    if type(plain) is FunctionType and is_library(plain):
        if plain.__code__ in _DISPATCHERS:
            why = "chooses among functions that may change"
        elif isinstance(getattr(plain, "__deprecated__", None), str):
            why = "warns at each call of being deprecated"
    elif _is_cache(plain):
        why = "answers with what it has kept, which may be dropped"
    if why:
        unsupported(f"{full_name(function)} {why}", "Call the function behind it, or call it outside of the jitted function.")


def _is_cache(function: Any) -> bool:
    """Whether it is a function of the user's behind a cache. One that is made inside keeps what is made inside."""
    inner = uncached(function)
    is_users = inner is not function and type(inner) is FunctionType and not is_library(inner) and not has_meaning(inner)
    return is_users and not is_converted_inside(inner)


def is_foreign(function: Any) -> bool:
    """Whether a function may look at what others change: at what a library has been told."""
    return not isinstance(function, type) and is_traced_through(uncached(function))
