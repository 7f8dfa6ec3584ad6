"""Writing on a tape: what does it mean that an array is changed that is differentiated, or by what is?

It has another value from then on: an entry says which part was replaced, and by what. NumPy does the same in its memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from jitml.autograd.tape.memory import OwnMemory
from jitml.autograd.tape.recording import name_of, record
from jitml.autograd.tape.rules import applied
from jitml.autograd.tape.tape import Replacement
from jitml.autograd.tape.values import Taped, bare, has_taped, kind_of, refuse, refuse_foreign

Function = Callable[..., Any]


def set_item(target: Taped, index: Any, value: Any) -> None:
    """`target[index] = value`."""
    storage = target.storage
    if storage is None:
        raise TypeError(f"'{type(target.value).__name__}' object does not support item assignment")
    if type(value) in (list, tuple) and has_taped(value):
        value = record(np.array, (value,), {})
    index = bare(index)
    raw, number = (value.value, value.slot) if type(value) is Taped else (value, None)
    require_writeable(target)
    storage.before_write()
    target.value[index] = raw
    if storage.slot is not None or number is not None:
        _written(target, Replacement(target.place(index), storage.slot, number, target.tape.new(kind_of(storage.buffer))))


def require_writeable(target: Taped) -> OwnMemory:
    """The memory of an array, which must be free to be written."""
    assert target.storage is not None
    if target.storage.frozen:
        refuse(f"an array is written of which {target.storage.frozen} has been taken", "Write into a copy of it.")
    return target.storage


def _written(target: Taped, entry: Replacement) -> None:
    assert target.storage is not None
    if target.storage.exposed and entry.value is not None:
        refuse("an array is written with what is differentiated that NumPy has as plain numbers", "Write into a copy of it.")
    target.tape.entries.append(entry)
    target.storage.slot = entry.output


def into(function: Function, args: Sequence[Any], kwargs: dict[str, Any], outs: Any) -> Any:
    """A function that puts its results into arrays."""
    outs = outs if type(outs) is tuple else (outs,)
    if len(outs) == 1 and outs[0] is None:
        return record(function, args, kwargs)
    where = kwargs.pop("where", True) if isinstance(function, np.ufunc) else True
    if where is not True and len(outs) == 1:
        if type(outs[0]) is not Taped and any(type(x) is Taped and x.is_active for x in args):
            refuse_foreign()
        put(outs[0], record(_where(function), (outs[0], where, *args), kwargs))
        return outs[0]
    results = record(function, args, kwargs)
    for out, result in zip(outs, results if type(results) is tuple else (results,)):
        if out is None:
            continue
        if not np.can_cast(bare(result).dtype if hasattr(result, "dtype") else type(result), out.dtype, "same_kind"):
            function(*map(bare, args), **{name: bare(x) for name, x in kwargs.items()}, out=bare(out).copy())  # raises
        if type(out) is not Taped and type(result) is Taped and result.is_active:
            refuse_foreign()
        put(out, result if where is True else np.where(bare(where), result, out))
    return outs[0] if len(outs) == 1 else outs


def put(target: Any, value: Any) -> None:
    """Replace all of an array."""
    if type(target) is Taped:
        set_item(target, ..., value)
    else:
        target[...] = value


def stored(operation: Function, target: Taped, result: Any) -> Taped:
    if not np.can_cast(result.dtype, target.value.dtype, "same_kind") or result.shape != target.value.shape:
        operation(target.value.copy(), bare(result))  # whose shapes may not fit
        np.add(target.value, bare(result), out=target.value.copy())  # raises what NumPy raises
    put(target, result)
    return target


class _Where:
    """A ufunc of some elements, as a function of what its result was before: where it is not computed, no slope is infinite."""

    __slots__ = ("__name__", "function")

    def __init__(self, function: Function) -> None:
        self.function, self.__name__ = function, name_of(function)

    def __call__(self, before: Any, where: Any, *args: Any, **kwargs: Any) -> Any:
        result = before.copy()
        applied(self.function, args, {**kwargs, "out": result, "where": where})
        return result


_where = cache(_Where)


class _Functional:
    """A function that changes its first argument, as one that returns what becomes of it."""

    __slots__ = ("__name__", "function")

    def __init__(self, function: Function) -> None:
        self.function, self.__name__ = function, name_of(function)

    def __call__(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        changed = x.copy()
        applied(self.function, (changed, *args), kwargs)
        return changed


IN_PLACE: dict[Function, _Functional] = {
    f: _Functional(f) for f in (np.copyto, np.put, np.place, np.putmask, np.fill_diagonal, np.put_along_axis)
}


def changed(function: Function, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
    target, *others = args
    if type(target) is not Taped:
        if any(type(x) is Taped and x.is_active for x in others):
            refuse_foreign()
        function(target, *map(bare, others), **{name: bare(x) for name, x in kwargs.items()})
        return
    put(target, record(IN_PLACE[function], args, kwargs))


def added_at(ufunc: np.ufunc, target: Any, index: Any, values: Any = None) -> None:
    """`np.add.at`, `np.subtract.at`; others where nothing is differentiated."""
    if not any(type(x) is Taped and x.is_active for x in (target, values)):
        if type(target) is Taped:
            require_writeable(target).before_write()
        ufunc.at(bare(target), bare(index), *(() if values is None else (bare(values),)))
        return
    if ufunc not in (np.add, np.subtract):
        refuse(f"np.{ufunc.__name__}.at has no derivative", "Write it with np.add.at, or with a loop.")
    if type(target) is not Taped:
        refuse_foreign()
    index, storage = bare(index), require_writeable(target)
    number = values.slot if type(values) is Taped else None
    storage.before_write()
    ufunc.at(target.value, index, bare(values))
    sign = 1 if ufunc is np.add else -1
    _written(target, Replacement(target.place(index), storage.slot, number, target.tape.new(kind_of(storage.buffer)), sign))
