"""Operations on device arrays: each function of NumPy's is compiled by itself, for the arrays that it is given.

What compiles is handed over by those who know how (`compile_by`). A function is compiled once for each kind of arguments, as
under `jit`. What cannot be compiled runs on the host, on copies, which are counted.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable
from contextvars import ContextVar
from typing import Any

import numpy as np

from jitml.diagnostics.tracebacks import entry
from jitml.errors import UnsupportedError

Function = Callable[..., Any]

_SHOWN = {np.array_repr, np.array_str, np.array2string, np.savetxt}  # which look at each element


class _Operations:
    """The compiled functions, each made when it is first called.

    compile: what makes them.
    on_host: what runs one on copies of its arguments.
    """

    def __init__(self) -> None:
        self.compile: Callable[[Function], Function] | None = None
        self.on_host: Function | None = None
        self.namespace: Callable[[], Any] = lambda: np
        self.known: dict[Hashable, Function] = {}

    def compiled(self, function: Function) -> Function:
        if self.compile is None:
            raise UnsupportedError("operations on device arrays need `import jitml`")
        return self.known.setdefault(function, self.compile(function))


_OPERATIONS = _Operations()
_running: ContextVar[tuple[Function, ...]] = ContextVar("jitml_running", default=())


def compile_by(compile: Callable[[Function], Function], on_host: Function, namespace: Callable[[], Any]) -> None:
    """Have operations compiled, and run on the host; the module whose functions they are."""
    _OPERATIONS.compile, _OPERATIONS.on_host, _OPERATIONS.namespace = compile, on_host, namespace


def apply(function: Function, *args: Any, **kwargs: Any) -> Any:
    """What a function of NumPy's answers for device arrays among its arguments: device arrays."""
    running = _running.get()
    if function in running or function in _SHOWN:  # it was not compiled, and runs as plain Python
        assert _OPERATIONS.on_host is not None
        return _OPERATIONS.on_host(function, *args, **kwargs)
    compiled = _OPERATIONS.known.get(function) or _OPERATIONS.compiled(function)
    token = _running.set((*running, function))
    try:
        return compiled(*args, **kwargs)
    finally:
        _running.reset(token)


def forget_operations() -> None:
    """Let all that has been compiled go, with the memory that programs keep for their next call."""
    _OPERATIONS.known.clear()


def compiled_alone(function: Function) -> Function:
    """A function compiled for whoever keeps it."""
    assert _OPERATIONS.compile is not None
    return _OPERATIONS.compile(function)


def namespace() -> Any:
    """The module of functions that compute with device arrays."""
    return _OPERATIONS.namespace()


BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lshift", "rshift", "and_", "or_", "xor", "matmul")
COMPARE = ("lt", "le", "gt", "ge", "eq", "ne")
UNARY = ("neg", "pos", "abs", "invert")
# Methods whose meaning is that of a function, with the array first; and those of arrays only.
METHODS = (
    "all", "any", "argmax", "argmin", "argsort", "argpartition", "choose", "cumprod", "cumsum", "diagonal", "dot", "max", "mean",
    "min", "nonzero", "prod", "put", "repeat", "round", "searchsorted", "std", "sum", "take", "trace", "var",
)  # fmt: skip
ARRAY_METHODS = ("astype", "clip", "compress", "fill", "flatten", "partition", "sort")


def install(kind: type) -> None:
    """Give a class the operators and methods of NumPy's arrays."""
    for name in BINARY:
        bare = name.removesuffix("_")
        setattr(kind, f"__{bare}__", _operator(getattr(operator, name)))
        setattr(kind, f"__r{bare}__", _operator(getattr(operator, name), is_reflected=True))
        setattr(kind, f"__i{bare}__", _operator(getattr(operator, f"i{bare}")))
    for name in COMPARE + UNARY:
        setattr(kind, f"__{name}__", _operator(getattr(operator, name)))
    for name in METHODS:
        setattr(kind, name, _method(getattr(np, name), name))
    for name in ARRAY_METHODS:
        setattr(kind, name, _method(_asked_of_array(name), name))


def _operator(function: Function, *, is_reflected: bool = False) -> Function:
    if is_reflected:
        return entry(lambda self, other: apply(function, other, self))
    return entry(lambda self, *others: apply(function, self, *others))


def _asked_of_array(name: str) -> Function:
    """A method as a function, of device arrays as well as of NumPy's."""

    def ask(x: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(x, name)(*args, **kwargs)

    ask.__qualname__ = f"ndarray.{name}"
    return ask


def _method(function: Function, name: str) -> Function:
    @entry
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return apply(function, self, *args, **kwargs)

    method.__name__, method.__doc__ = name, f"As of NumPy's arrays: see `numpy.ndarray.{name}`."
    return method
