"""Operators and methods of values on a tape: each is a function of NumPy's or Python's, recorded.

Installed here, when recording and writing are known.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

import numpy as np

from jitml.autograd.tape.flat import FlatItems
from jitml.autograd.tape.recording import AttributeOf, MethodOf, enter, enter_one, record
from jitml.autograd.tape.rules import NoRule, is_float, rule_for
from jitml.autograd.tape.tape import Taking
from jitml.autograd.tape.values import Taped, bare, kind_of, lose, of_slot, wrapped
from jitml.autograd.tape.writing import IN_PLACE, added_at, changed, into, put, require_writeable, set_item, stored

Function = Callable[..., Any]
_KNOWN = (np.ndarray, np.generic, int, float, complex)


def _array_ufunc(self: Taped, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
    if method == "at":
        return added_at(ufunc, *inputs)
    if not kwargs and method == "__call__":
        if len(inputs) == 1 and ufunc.nout == 1:
            return _of_one(ufunc, self)
        return record(ufunc, inputs, kwargs)
    outs = kwargs.pop("out", None)
    function = ufunc if method == "__call__" else getattr(ufunc, method)
    return record(function, inputs, kwargs) if outs is None else into(function, inputs, kwargs, outs)


def _array_function(self: Taped, function: Function, types: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    if function in IN_PLACE:
        return changed(function, args, kwargs)
    out = kwargs.pop("out", None)
    return record(function, args, kwargs) if out is None else into(function, args, kwargs, (out,))


def _of_one(function: Function, x: Taped) -> Any:
    """A function of one operand, element by element."""
    value = x.value
    result = function(value)
    if not x.is_active or not is_float(result):
        return wrapped(x.tape, result)
    rule = rule_for((function, *_kind_key(value)), function, (value,), (0,))
    if isinstance(rule, NoRule):
        return record(function, (x,), {})
    if not rule.is_checked:
        return enter(x.tape, rule, function, (x,), (0,), (None,), (result,))[0]
    return enter_one(x.tape, rule, function, (x,), result)


def _of_two(operation: Function, x: Any, y: Any) -> Any:
    """A binary operator; one of the two is on the tape."""
    a, b = (x.value, y) if type(x) is Taped else (x, y.value)
    if type(x) is Taped and type(y) is Taped:
        b, tape, wrt = y.value, x.tape, (0, 1) if x.is_active and y.is_active else (0,) if x.is_active else (1,)
        is_active = x.is_active or y.is_active
    elif isinstance(b if type(x) is Taped else a, _KNOWN):
        tape, wrt, is_active = (x.tape, (0,), x.is_active) if type(x) is Taped else (y.tape, (1,), y.is_active)
    elif type(b if type(x) is Taped else a) in (list, tuple):
        return record(operation, (x, y), {})
    else:
        return NotImplemented
    result = operation(a, b)
    if not is_active or not is_float(result):
        return wrapped(tape, result)
    function: Function = operation
    leaves: tuple[Any, ...] = (x, y)
    key: tuple[Any, ...] = (operation, wrt, *_kind_key(a), *_kind_key(b))
    if operation is operator.pow and type(y) in (int, float):  # its slope is another one for each
        function, leaves, key = _Power(y), (x,), (operation, wrt, *_kind_key(a), type(y), repr(y))
    rule = rule_for(key, function, (a, b)[: len(leaves)], wrt)
    if isinstance(rule, NoRule):
        return record(operation, (x, y), {})
    if not rule.is_checked:
        return enter(tape, rule, operation, leaves, wrt, (None,), (result,))[0]
    return enter_one(tape, rule, operation, leaves, result)


class _Power:
    """`**` with a number of Python's."""

    __slots__ = ("exponent",)

    def __init__(self, exponent: float) -> None:
        self.exponent = exponent

    def __call__(self, x: Any) -> Any:
        return x**self.exponent


def _kind_key(x: Any) -> tuple[Any, ...]:
    kind = type(x)
    return (x.dtype, x.shape) if kind is np.ndarray else (kind,)


# ------------------------------------------------------------------------------------------------ items


def _get_item(self: Taped, index: Any) -> Any:
    storage = self.storage
    if storage is None:
        return record(operator.getitem, (self, index), {})
    index = bare(index)
    value = self.value[index]
    if type(value) is np.ndarray and value.base is storage.buffer:
        return Taped(self.tape, value, storage)
    if storage.slot is None:
        return wrapped(self.tape, value)
    number = self.tape.new(kind_of(value))
    self.tape.entries.append(Taking(self.place(index), storage.slot, number))
    return of_slot(self.tape, value, number)


def _iterate(self: Taped) -> Iterator[Any]:
    iter(self.value)  # raises what NumPy raises
    return _items(self)


def _items(x: Taped) -> Iterator[Any]:
    for n in range(len(x.value)):
        yield _get_item(x, n)


def _flat(self: Taped) -> Any:
    """A view, which the flat array of an array by rows is; one by rows is written where it is."""
    return self.reshape(-1) if self.value.flags.c_contiguous else FlatItems(self)


def _copy(self: Taped, order: str = "C") -> Any:
    return record(_METHODS["copy"], (self,), {} if order in ("C", "K") else {"order": order})


def _to_list(self: Taped) -> Any:
    if self.storage is None:
        return _item(self)
    return [_to_list(x) if type(x) is Taped else x.item() if isinstance(x, np.generic) else x for x in _iterate(self)]


def _item(self: Taped, *index: Any) -> Any:
    return record(_METHODS["item"], (self, *index), {})


def _as_type(self: Taped, dtype: Any, order: Any = "K", casting: Any = "unsafe", subok: bool = True, copy: bool = True) -> Any:
    if np.dtype(dtype).kind not in "fc":
        return self.value.astype(dtype, order, casting)
    if not copy and np.dtype(dtype) == self.value.dtype:
        return self
    return record(_METHODS["astype"], (self, np.dtype(dtype)), {})


def _set_shape(self: Taped, shape: Any) -> None:
    require_writeable(self)
    self.value = self.value.reshape(shape) if self.value.base is not None else self.value.view().reshape(shape)


def _set_real(self: Taped, value: Any) -> None:
    put(self, value + _copy(self).imag * 1j if self.value.dtype.kind == "c" else value)


def _set_imag(self: Taped, value: Any) -> None:
    put(self, _copy(self).real + value * 1j)


def _no_bytes(self: Taped, *args: Any, **kwargs: Any) -> NoReturn:
    lose("bytes, digits or a ratio")


# ------------------------------------------------------------------------------------------------ what is installed

_PLAIN = ("dtype", "ndim", "size", "nbytes", "itemsize", "strides", "flags", "is_integer", "setflags")
_RECORDED = (
    "all", "any", "argmax", "argmin", "argpartition", "argsort", "choose", "clip", "compress", "conj", "conjugate", "cumprod",
    "cumsum", "diagonal", "dot", "flatten", "max", "mean", "min", "nonzero", "prod", "ravel", "repeat", "reshape", "round",
    "searchsorted", "squeeze", "std", "sum", "swapaxes", "take", "trace", "transpose", "var", "view",
)  # fmt: skip
_METHODS = {name: MethodOf(name) for name in (*_RECORDED, "item", "astype", "copy")}
_BINARY = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "truediv": operator.truediv,
    "floordiv": operator.floordiv, "mod": operator.mod, "pow": operator.pow, "matmul": operator.matmul,
    "and": operator.and_, "or": operator.or_, "xor": operator.xor,
}  # fmt: skip
_UNARY: dict[str, Function] = {"neg": operator.neg, "pos": operator.pos, "abs": operator.abs, "invert": operator.invert}


def _method(name: str) -> Function:
    method = _METHODS[name]

    def call(self: Taped, *args: Any, **kwargs: Any) -> Any:
        out = kwargs.pop("out", None)
        return record(method, (self, *args), kwargs) if out is None else into(method, (self, *args), kwargs, (out,))

    return call


def _plain(name: str) -> Any:
    return property(lambda self: getattr(self.value, name))


def _attribute(name: str) -> Any:
    attribute = AttributeOf(name)
    return lambda self: record(attribute, (self,), {})


def _forward(operation: Function) -> Function:
    return lambda self, other: _of_two(operation, self, other)


def _reflected(operation: Function) -> Function:
    return lambda self, other: _of_two(operation, other, self)


def _in_place(operation: Function) -> Function:
    def operate(self: Taped, other: Any) -> Any:
        if self.storage is None:
            return NotImplemented
        result = _of_two(operation, self, other)
        return result if result is NotImplemented else stored(operation, self, result)

    return operate


def _compared(operation: Function) -> Function:
    return lambda self, other: operation(self.value, bare(other))


def _unary(operation: Function) -> Function:
    return lambda self: _of_one(operation, self)


def _sorted_by(function: Function) -> Function:
    return lambda self, *args, **kwargs: put(self, function(self, *args, **kwargs))


def _install() -> None:
    own: dict[str, Any] = {
        "__array_ufunc__": _array_ufunc, "__array_function__": _array_function, "__getitem__": _get_item, "__setitem__": set_item,
        "__iter__": _iterate, "copy": _copy, "__deepcopy__": lambda self, memo: self.__copy__(),
        "__copy__": lambda self: self if self.storage is None else _copy(self), "tolist": _to_list, "item": _item,
        "astype": _as_type,
        "fill": put, "sort": _sorted_by(np.sort), "partition": _sorted_by(np.partition), "tobytes": _no_bytes, "dumps": _no_bytes,
        "hex": _no_bytes, "as_integer_ratio": _no_bytes,
        "put": lambda self, *args, **kwargs: changed(np.put, (self, *args), kwargs),
        "shape": property(lambda self: self.value.shape, _set_shape), "flat": property(_flat),
        "base": property(lambda self: None if self.storage is None or self.value is self.storage.buffer else self.value.base),
        "T": property(_attribute("T")), "mT": property(_attribute("mT")),
        "real": property(_attribute("real"), _set_real), "imag": property(_attribute("imag"), _set_imag),
        "__divmod__": lambda self, other: (self // other, self % other),
        "__rdivmod__": lambda self, other: (other // self, other % self),
    }  # fmt: skip
    own |= {name: _plain(name) for name in _PLAIN}
    own |= {name: _method(name) for name in _RECORDED}
    for name, operation in _BINARY.items():
        own |= {f"__{name}__": _forward(operation), f"__r{name}__": _reflected(operation), f"__i{name}__": _in_place(operation)}
    own |= {f"__{name}__": _unary(operation) for name, operation in _UNARY.items()}
    own |= {f"__{name}__": _compared(getattr(operator, name)) for name in ("lt", "le", "gt", "ge", "eq", "ne")}
    for name, method in own.items():
        setattr(Taped, name, method)


_install()
