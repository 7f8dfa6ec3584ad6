"""Operators and methods of tracers: what do `x + y`, `x += y`, `x.sum()` call?  Functions that `registry.py` knows."""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np

from jitml.trace.record.recording import unsupported
from jitml.trace.values.array_writes import assign_cast
from jitml.trace.values.boxing import fresh
from jitml.trace.values.numbers import TracedNumber
from jitml.trace.values.registry import call, operate
from jitml.trace.values.tracers import TracedArray, TracedScalar, Tracer

BINARY = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.true_divide, "floordiv": np.floor_divide,
    "mod": np.remainder, "lshift": np.left_shift, "rshift": np.right_shift, "and": np.bitwise_and, "or": np.bitwise_or,
    "xor": np.bitwise_xor, "matmul": np.matmul,
}  # fmt: skip
COMPARE = {"lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal, "ne": np.not_equal}
UNARY = {"neg": np.negative, "pos": np.positive, "abs": np.absolute, "invert": np.invert}
TEXTS_ARE_PYTHONS = type(np.float64(0) == "") is bool  # what scalars say of them, as up to NumPy 2.2 at least
OWN_OPERATORS = ("add", "sub", "mul", "mod", "neg", "abs")  # of NumPy scalars: they say of overflows what those of arrays do not
# Methods whose meaning is that of a function, with the array first.
METHODS = (
    "all", "any", "argmax", "argmin", "argsort", "choose",
    "cumprod", "cumsum", "diagonal", "max", "mean", "min", "nonzero", "prod", "put", "ravel", "repeat", "round",
    "searchsorted", "squeeze", "std", "sum", "swapaxes", "take", "trace", "var",
)  # fmt: skip
NOT_OF_SCALARS = ("argpartition", "dot")
# Methods without such a function, of arrays and scalars, and of arrays only.
OWN_METHODS = ("astype", "clip", "compress", "flatten", "view")
ARRAY_METHODS = ("copy", "fill", "partition", "resize", "setflags", "sort")


_OF_TWO = {f"__{name}__" for name in (*BINARY, *COMPARE, "divmod", "pow")} | {
    f"__r{name}__" for name in (*BINARY, "divmod", "pow")
}


def called_by_name(x: Any, name: str) -> Any:
    """`x.__add__`: of a Python number it says NotImplemented where `x + y` would ask y, as of an int beside a float."""
    method = getattr(x, name)
    return functools.partial(_of_two, x, method, name) if type(x) is TracedNumber and name in _OF_TWO else method


def _of_two(number: TracedNumber, method: Any, name: str, *others: Any) -> Any:
    if any((y.kind if type(y) is TracedNumber else type(y)) is not number.kind for y in others):
        unsupported(f"{name} of a Python {number.kind.__name__} is called by its name", "Write the operator.")
    return method(*others)


def _operator(function: Any, name: str = "", *, is_reflected: bool = False) -> Any:
    """The method of an operator; with a name, it asks what Python's numbers would do, where that is what the operands are."""
    python = getattr(operator, f"__{name}__", None)

    def method(*operands: Any) -> Any:
        if is_reflected:
            operands = operands[::-1]
        return call(function, *operands) if python is None else operate(function, python, *operands)

    return method


def _in_place(function: Any, name: str) -> Any:
    return lambda self, other: assign_cast(self, call(function, self, other), name)


def _beside_sequences(multiply: Any) -> Any:
    """NumPy's scalars leave it to lists and texts to be repeated, for which they ask `__index__`."""
    return lambda self, other: NotImplemented if isinstance(other, (list, tuple, str, bytes)) else multiply(self, other)


def _beside_texts(compare: Any, unlike: bool) -> Any:
    """No number is a text, operators say, where functions have no loop for the two."""

    def method(self: Tracer, other: Any) -> Any:
        if not isinstance(other, (str, bytes)):
            return compare(self, other)
        is_plain = type(self) is TracedScalar and TEXTS_ARE_PYTHONS
        return unlike if is_plain else call(np.full, self.shape, unlike)[()]

    return method


def _method(home: Any, name: str) -> Any:
    function = getattr(home, name)
    return lambda self, *args, **kwargs: call(function, self, *args, **kwargs)


def install_operators() -> None:
    """Put the operators and methods on the classes, as `trace.py` does once."""
    _install_operators()
    _install_methods()


def _install_operators() -> None:
    for name, function in BINARY.items():
        setattr(Tracer, f"__{name}__", _operator(function))
        setattr(Tracer, f"__r{name}__", _operator(function, is_reflected=True))
        setattr(TracedArray, f"__i{name}__", _in_place(function, function.__name__))
        if name != "matmul":
            own = _own(name, function)
            setattr(TracedScalar, f"__{name}__", _operator(own, name))
            setattr(TracedScalar, f"__r{name}__", _operator(own, name, is_reflected=True))
    for kind, name, method in (
        (TracedArray, "__ipow__", _in_place(operator.pow, "power")),
        (TracedScalar, "__pow__", _operator(operator.pow, "pow")),
        (TracedScalar, "__rpow__", _operator(np.power, "pow", is_reflected=True)),
        (TracedScalar, "__mul__", _beside_sequences(vars(TracedScalar)["__mul__"])),
        (TracedScalar, "__rmul__", _beside_sequences(vars(TracedScalar)["__rmul__"])),
    ):
        setattr(kind, name, method)
    for name, function in COMPARE.items():
        for traced, compare in ((Tracer, _operator(function)), (TracedScalar, _operator(function, name))):
            is_order = name not in ("eq", "ne")
            setattr(traced, f"__{name}__", compare if is_order else _beside_texts(compare, name == "ne"))
    for name, function in UNARY.items():
        setattr(Tracer, f"__{name}__", _operator(function))
        setattr(TracedScalar, f"__{name}__", _operator(_own(name, function), name))


def _own(name: str, function: Any) -> Any:
    return vars(np.generic)[f"__{name}__"] if name in OWN_OPERATORS else function


def _fill_copy(self: TracedScalar, value: Any) -> Any:
    """A NumPy scalar fills a copy of itself, and hands one out by elements."""
    return call(np.ndarray.fill, fresh(self.contents()), value)


def _elements_of_copy(self: TracedScalar) -> Any:
    return call(np.ndarray.flat, fresh(self.contents()))


def _install_methods() -> None:
    for kind, home, names in (
        (Tracer, np, METHODS),
        (TracedArray, np, NOT_OF_SCALARS),
        (Tracer, np.ndarray, OWN_METHODS),
        (TracedArray, np.ndarray, ARRAY_METHODS),
    ):
        for name in names:
            setattr(kind, name, _method(home, name))
    for name in ("real", "imag"):
        setattr(Tracer, name, property(_method(np.ndarray, name)))
    for name in ("flags", "flat", "imag", "real", "shape"):
        getter = vars(Tracer)["shape"].fget if name == "shape" else _method(np.ndarray, name)
        setter = getattr(np.ndarray, name).__set__
        setattr(TracedArray, name, property(getter, functools.partial(call, setter)))
    for name, own in (("fill", _fill_copy), ("flat", property(_elements_of_copy))):
        setattr(TracedScalar, name, own)
