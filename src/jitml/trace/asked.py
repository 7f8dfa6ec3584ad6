"""State of the process: what a function asks of NumPy's settings and the environment, the host program asks at each call.

Inside `np.errstate` of the function's own that is what it says there, else what is so at the call. NumPy's state while a function
is traced is the tracer's, and nobody sees it.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any

import numpy as np

from jitml.trace.context import Trace, refuse_environ
from jitml.trace.host import Const
from jitml.trace.outside import load, observe
from jitml.trace.registry import full_name
from jitml.trace.tracers import is_traced
from jitml.trace.understood import PLAIN

_OF_ENVIRON = ("get", "__getitem__", "__contains__")


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
    return None


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
    root = trace.root
    return {key: root.reactions.get(key) or _reaction(trace, key) for key in root.error_kinds}


def _reaction(trace: Trace, key: str) -> str:
    """What NumPy does at the call about errors of a kind."""
    slot = load(trace, _reaction_to, Const(None), key, f"np.geterr()[{key!r}]")
    trace.host.require(slot, trace.root.error_kinds[key])
    return trace.root.error_kinds[key]


def _reaction_to(_: None, key: str) -> str:
    found: Any = np.geterr()
    reaction: str = found[key]
    return reaction


def _found(trace: Trace, function: Callable[[], Any], name: str) -> Any:
    def ask(_: None, __: None) -> Any:
        return function()

    return observe(trace, function(), trace.host.compute(ask, (Const(None), Const(None)), f"{name}()"), f"{name}()")


def _of_environ(trace: Trace, name: str, *args: Any, **kwargs: Any) -> Any:
    given = (*args, *kwargs.values())
    if any(is_traced(x) or not isinstance(x, PLAIN) for x in given):
        refuse_environ()
    text = f"os.environ.{name}({', '.join(map(repr, given))})"
    value = getattr(os.environ, name)(*args, **kwargs)
    slot = load(trace, _look_up, Const(None), (name, args, (*kwargs.items(),)), text)
    return observe(trace, value, slot, text)


def _look_up(_: None, how: tuple[str, tuple[Any, ...], tuple[tuple[str, Any], ...]]) -> Any:
    name, args, kwargs = how
    return getattr(os.environ, name)(*args, **dict(kwargs))
