"""Identities: how is an object of one process found again in another?  By value, by name, or by what it is made of.

A function of the user's is known by its code, its name and the number of its cells; what it reads from outside is guarded. What
Python, NumPy and `math` give by a name is known by its kind and names. All else is of one process alone.
"""

from __future__ import annotations

import builtins
import marshal
import sys
from importlib import import_module
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType, NoneType
from typing import Any, cast

import numpy as np

from jitml.disk_cache import DiskCache
from jitml.ir.op import OPS, Op

LIBRARIES = frozenset({"numpy", "math", "cmath"})  # of which programs take for granted what is in them
_CONSTANTS = frozenset({bool, int, float, complex, str, bytes, type(None), type(...)})
_SAME = 2  # version of the format in which equal code objects are the same bytes, whoever else holds their parts
_IS_HEAP_TYPE = 1 << 9
Identity = tuple[Any, ...]


class NotKept(Exception):
    """There is something that no other process finds again."""


def not_kept(x: Any) -> NotKept:
    kind: Any = type(x)
    return NotKept(f"{kind.__module__}.{kind.__qualname__}")


def of_code(code: CodeType) -> str:
    """All that is in a code object, its file and lines included, which messages name.

    Raises:
        NotKept: a constant in it has no bytes.
    """
    try:
        return DiskCache.key("code", [marshal.dumps(code, _SAME)])
    except ValueError:
        raise NotKept(f"the code of {code.co_name}") from None


def of_function(function: FunctionType) -> Identity:
    """A function of the user's.

    Raises:
        NotKept: as `of_code`; or its builtins are not Python's.
    """
    if cast(Any, function).__builtins__ is not vars(builtins):
        raise NotKept(f"the builtins of {function.__qualname__}")
    return function.__module__, function.__qualname__, of_code(function.__code__), len(function.__closure__ or ())


def of_library(x: Any) -> Identity:
    """What a module of `LIBRARIES`, or Python itself, gives by a name.

    Raises:
        NotKept: nobody could tell it from what somebody else has put there.
    """
    kind: Any = type(x)
    if is_plain(x):
        return "value", kind.__name__, repr(x)
    if kind is np.ufunc:
        return "ufunc", x.__name__, x.nin, x.nout, *x.types
    if isinstance(x, ModuleType) and is_librarys(x.__name__) and sys.modules.get(x.__name__) is x:
        return "module", x.__name__
    if isinstance(x, type) and (not x.__flags__ & _IS_HEAP_TYPE or is_librarys(x.__module__)):
        return "type", x.__module__, x.__qualname__
    if kind is BuiltinFunctionType and isinstance(x.__self__, NoneType | ModuleType):
        return "builtin", x.__module__, x.__qualname__
    if kind is FunctionType:
        return "function", x.__module__, x.__qualname__, of_code(x.__code__), x.__closure__ is None
    if kind.__name__ == "_ArrayFunctionDispatcher" and is_librarys(kind.__module__):
        return "dispatched", *of_library(x._implementation)
    raise not_kept(x)


def is_librarys(home: Any) -> bool:
    """Whether a module is one of `LIBRARIES`, or in one; NumPy's generators have a state that programs of a process share."""
    return isinstance(home, str) and home.partition(".")[0] in LIBRARIES and not home.startswith("numpy.random")


def is_plain(x: Any) -> bool:
    """Whether a value is told by its type and its text."""
    kind: Any = type(x)
    if kind is tuple:
        return all(map(is_plain, x))
    if isinstance(x, np.dtype):
        return x.isbuiltin == 1 and not x.hasobject
    return kind in _CONSTANTS or (isinstance(x, np.number | np.bool_) and kind.__module__ == "numpy")


def op_named(name: str) -> Op:
    """The op of that name."""
    return OPS[name]


def found(home: str, name: str) -> Any:
    """What a module has by a name; None for nothing."""
    return getattr(sys.modules.get(home) or import_module(home), name, None)


__all__ = [
    "Identity",
    "NotKept",
    "found",
    "is_librarys",
    "is_plain",
    "not_kept",
    "of_code",
    "of_function",
    "of_library",
    "op_named",
]
