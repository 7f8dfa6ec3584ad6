"""State of the process: what a function asks of NumPy's settings, the environment, loggers and the like is asked at each call.

Inside `np.errstate` of the function's own that is what it says there, else what is so at the call. NumPy's state while a function
is traced is the tracer's, and nobody sees it.
"""

from __future__ import annotations

import functools
import logging
import os
from collections.abc import Callable
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import numpy as np

from jitml.trace.environment.loads import load, observe, place_of
from jitml.trace.environment.understood import PLAIN
from jitml.trace.record.guards import HostConst
from jitml.trace.record.recording import Trace, home_of, refuse_environ, unsupported
from jitml.trace.values.boxing import is_traced
from jitml.trace.values.registry import full_name

_OF_ENVIRON = ("get", "__getitem__", "__contains__")
_OF_LOGGERS = ("isEnabledFor", "getEffectiveLevel", "hasHandlers")
# Of Python's own library, what looks at the process, the file system or the clock: modules, and functions of others.
_MODULES = {"gc", "sys", "resource", "tracemalloc", "_tracemalloc", "linecache", "mimetypes", "timeit"}
_FUNCTIONS = {
    *((module, name) for module in ("posixpath", "ntpath") for name in (
        "abspath", "realpath", "relpath", "expanduser", "expandvars", "islink", "lexists", "ismount",
    )),
    *(("_thread", name) for name in ("get_ident", "get_native_id")),
    *(("_weakref", name) for name in ("getweakrefcount", "getweakrefs")),
    ("_csv", "field_size_limit"), ("_socket", "getdefaulttimeout"),
}  # fmt: skip
_METHODS = (Path.cwd.__func__, Path.home.__func__)  # type: ignore[attr-defined]  # methods of the class


def asked(trace: Trace, function: Any) -> Callable[..., Any] | None:
    """What is called in the place of a function that asks for state of the process; None of all others."""
    if function is np.geterr:
        return functools.partial(_error_state, trace)
    if function is np.getbufsize or function is np.get_printoptions:
        return functools.partial(_found, trace, function, full_name(function))
    if type(function) is FunctionType and function is os.getenv:
        return functools.partial(_of_environ, trace, "get")
    if type(function) is MethodType and function.__self__ is os.environ and function.__name__ in _OF_ENVIRON:
        return functools.partial(_of_environ, trace, function.__name__)
    if type(function) is MethodType and function.__name__ in _OF_LOGGERS and _is_logger(function.__self__):
        return functools.partial(_of_logger, trace, function)
    if type(function) is BuiltinFunctionType and function.__name__ == "__subclasses__" and isinstance(function.__self__, type):
        return functools.partial(_subclasses, trace, function.__self__)
    return None


def _subclasses(trace: Trace, cls: type) -> list[type]:
    """`cls.__subclasses__()`"""
    found = _subclasses_of(cls)
    trace.host.require(trace.host.compute(_subclasses_of, (HostConst(cls),), f"{cls.__name__}.__subclasses__()"), found)
    return [*found]


def _subclasses_of(cls: type) -> tuple[type, ...]:
    return tuple(cls.__subclasses__())


def looks_at_process(function: Any) -> bool:
    """Whether a function of Python's own library gives what may be something else at each call."""
    if type(function) is MethodType:
        return any(function.__func__ is method for method in _METHODS)
    if type(function) not in (FunctionType, BuiltinFunctionType):
        return False
    module = function.__module__ or ""
    return module in _MODULES or (module, function.__name__) in _FUNCTIONS


def _is_logger(x: Any) -> bool:
    return isinstance(x, (logging.Logger, logging.LoggerAdapter)) and home_of(type(x)) == "logging"


def in_environ(trace: Trace, key: Any) -> bool:
    """`key in os.environ`"""
    return bool(_of_environ(trace, "__contains__", key))


def from_environ(trace: Trace, key: Any) -> Any:
    """`os.environ[key]`"""
    if not in_environ(trace, key):
        raise KeyError(key)
    return _of_environ(trace, "get", key)


def _error_state(trace: Trace) -> dict[str, str]:
    """`np.geterr()`"""
    errors = trace.errors
    return {key: errors.reactions.get(key) or _reaction(trace, key) for key in errors.kinds}


def _reaction(trace: Trace, key: str) -> str:
    """What NumPy does at the call about errors of a kind."""
    slot = load(trace, _reaction_to, HostConst(None), key, f"np.geterr()[{key!r}]")
    trace.host.require(slot, trace.errors.kinds[key])
    return trace.errors.kinds[key]


def _reaction_to(_: None, key: str) -> str:
    found: Any = np.geterr()
    reaction: str = found[key]
    return reaction


def _found(trace: Trace, function: Callable[[], Any], name: str) -> Any:
    def ask(_: None, __: None) -> Any:
        return function()

    return observe(trace, function(), trace.host.compute(ask, (HostConst(None), HostConst(None)), f"{name}()"), f"{name}()")


def _of_logger(trace: Trace, function: MethodType, *args: Any, **kwargs: Any) -> Any:
    """What a logger says of its level and handlers, which others may set in it or above it."""
    given = (*args, *kwargs.values())
    if any(is_traced(x) or not isinstance(x, PLAIN) for x in given):
        unsupported(f"{full_name(function)} is called with what is made in the jitted function")
    place, text = place_of(trace, function.__self__), f"{full_name(function)}({', '.join(map(repr, given))})"
    logger = HostConst(function.__self__) if place is None else place
    slot = load(trace, _ask, logger, (function.__name__, args, (*kwargs.items(),)), text)
    return observe(trace, function(*args, **kwargs), slot, text)


def _ask(owner: Any, how: tuple[str, tuple[Any, ...], tuple[tuple[str, Any], ...]]) -> Any:
    name, args, kwargs = how
    return getattr(owner, name)(*args, **dict(kwargs))


def _of_environ(trace: Trace, name: str, *args: Any, **kwargs: Any) -> Any:
    given = (*args, *kwargs.values())
    if any(is_traced(x) or not isinstance(x, PLAIN) for x in given):
        refuse_environ()
    text = f"os.environ.{name}({', '.join(map(repr, given))})"
    value = getattr(os.environ, name)(*args, **kwargs)
    return observe(trace, value, load(trace, _ask, HostConst(os.environ), (name, args, (*kwargs.items(),)), text), text)
