"""State of the process: NumPy's settings, the environment, the file system, which may be something else at each call."""

from __future__ import annotations

import os
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import numpy as np

_OF_NUMPY = {np.geterr, np.getbufsize, np.get_printoptions}
_OF_ENVIRON = ("get", "__getitem__", "__contains__")
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


def asks_process(function: Any) -> bool:
    """Whether a function of NumPy's or of Python's own library gives what may be something else at each call."""
    if type(function) is MethodType:
        owner, name = function.__self__, function.__name__
        is_asked = owner is os.environ and name in _OF_ENVIRON
        return is_asked or any(function.__func__ is method for method in _METHODS)
    if type(function) not in (FunctionType, BuiltinFunctionType):
        return False
    if function in _OF_NUMPY or function is os.getenv:
        return True
    module, name = function.__module__ or "", function.__name__
    is_of_class = name == "__subclasses__" and isinstance(getattr(function, "__self__", None), type)
    return is_of_class or module in _MODULES or (module, name) in _FUNCTIONS
