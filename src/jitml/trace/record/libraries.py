"""The boundary to installed libraries: whose is a function or a class, and is it traced through, called, or left to Python?

What such code does inside is not looked at. Tracers that it lets through today it may ask for their numbers tomorrow, or keep; so
SciPy's functions get the arrays of each call, as host calls, and others are left to Python, unless they are known to compute by
what is dispatched to tracers.
"""

from __future__ import annotations

import enum
import sys
from functools import lru_cache
from types import BuiltinFunctionType, FunctionType
from typing import Any

from jitml.diagnostics.code_owners import is_converted, is_users
from jitml.trace.record.recording import home_of

# Of these libraries functions drive the user's own, or compute by what is dispatched to tracers.
_TRACED_THROUGH = frozenset({
    "_pytest", "attr", "attrs", "autograd", "beartype", "cloudpickle", "cytoolz", "decorator", "einops", "funcy", "hypothesis",
    "jaxtyping", "joblib", "llvmlite", "more_itertools", "numba", "opt_einsum", "optree", "pluggy", "pytest", "rich", "toolz",
    "tqdm", "typing_extensions", "wrapt",
})  # fmt: skip
# SciPy's functions that do so, by their names: they have derivatives.
_OF_NUMPY = frozenset({"fftshift", "gausspulse", "ifftshift", "kaiser_atten", "softplus", "sweep_poly"})
_NO_LIBRARIES = frozenset({"", "__main__", "builtins", "jitml", "numpy", *sys.stdlib_module_names})
# Of which it is known what they look at and change.
KNOWN_LIBRARIES = sys.stdlib_module_names | {"builtins", "numpy", "scipy", "jitml", "optree", "llvmlite"}
_ROUTINES = ("scipy.linalg.blas", "scipy.linalg.lapack")  # modules of functions that do not name their own


def is_library(function: FunctionType) -> bool:
    """Whether a function is never rewritten."""
    file = function.__code__.co_filename
    return not is_converted(file) and file != "<string>"  # exec'd code has no source, but its globals are guarded


def home_of_function(function: Any) -> str:
    """The module of a function, of a method or of a class."""
    home = getattr(function, "__module__", None)
    if not isinstance(home, str) and type(function).__name__ == "fortran":
        name = function.__name__.split()[-1]  # "function ddot"
        return next((module for module in _ROUTINES if getattr(sys.modules.get(module), name, None) is function), "")
    if not isinstance(home, str):
        owner = getattr(function, "__self__", None)
        return "" if owner is None else home_of(type(owner))
    return home


def is_scipys(x: Any) -> bool:
    """Whether a function, or a class, is SciPy's."""
    return home_of_function(x).startswith("scipy.")


def is_sparse(kind: type) -> bool:
    """Whether a class is one of SciPy's sparse matrices, or made of one: their operators want numbers."""
    return any(home_of(base).startswith("scipy.sparse.") for base in kind.__mro__)


def is_distribution(x: Any) -> bool:
    """Whether an object is one of `scipy.stats`, as `norm` is: functions by another name."""
    module = sys.modules.get("scipy.stats")
    return home_of(type(x)).startswith("scipy.stats.") and any(x is one for one in vars(module).values())


def is_of_numpy(function: Any) -> bool:
    """Whether a function of SciPy's is traced through."""
    return getattr(function, "__name__", "") in _OF_NUMPY


def is_traced_through(function: Any) -> bool:
    """Whether a function is of a library whose functions run while the user's is traced."""
    if isinstance(function, FunctionType):  # what `functools.wraps` has made says where that comes from which it wraps
        home = function.__globals__.get("__name__") if is_library(function) else ""
    else:
        home = function.__module__ if isinstance(function, BuiltinFunctionType) else ""
    return (home or "").partition(".")[0] in _TRACED_THROUGH - KNOWN_LIBRARIES


def is_called(function: Any) -> bool:
    """Whether a function or a class is of an installed library of which nothing is known: calls are left to Python."""
    home = home_of_function(function)
    if home.partition(".")[0] in _NO_LIBRARIES or is_scipys(function) or not _is_installed(home):
        return False
    if not isinstance(function, type):
        return True
    is_plain = not issubclass(function, BaseException | enum.Enum | type | tuple)
    return is_plain and not any(hasattr(function, name) for name in ("__enter__", "__next__"))


@lru_cache(maxsize=4096)
def _is_installed(home: str) -> bool:
    top = home.partition(".")[0]
    module = sys.modules.get(home) or sys.modules.get(top)
    file = getattr(module, "__file__", None)
    return top not in _TRACED_THROUGH and module is not None and file is not None and not is_users(file)


__all__ = ["home_of_function", "is_called", "is_distribution", "is_of_numpy", "is_scipys", "is_sparse"]
