"""Copies: `copy.copy` and `copy.deepcopy` of arrays, numbers and containers of them, and `dataclasses.replace`.

So arrays are traced, as everywhere, and read at each call. Objects with attributes that do not say themselves how they are
copied are refused.
"""

from __future__ import annotations

import copy
import dataclasses
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from types import FunctionType, MethodType, ModuleType
from typing import Any, NoReturn

import numpy as np

from jitml.trace.environment.value_classification import Way, way_of
from jitml.trace.hooks.unconverted_calls import OutsideCalls, own
from jitml.trace.host_calls.array_ownership import own_arrays
from jitml.trace.record.container_contents import contents, refill
from jitml.trace.record.escape_analysis import is_stand_in
from jitml.trace.record.guards import IMMUTABLE
from jitml.trace.record.object_state import CONTAINERS
from jitml.trace.record.recording import unsupported
from jitml.trace.values.boxing import is_traced, lift

_ATOMS = (
    type(None), type(...), bool, int, float, complex, str, bytes, range, np.generic, type, FunctionType, ModuleType, *IMMUTABLE,
)  # fmt: skip


def copied(hooks: OutsideCalls, x: Any, /) -> Any:
    """`copy.copy(x)`"""
    if (special := hooks.special(x, "__copy__")) is not None:
        return special()
    if is_traced(x) or isinstance(x, _ATOMS):
        return copy.copy(x)
    if type(x) is np.ndarray:
        return copy.copy(lift(x))
    if isinstance(x, CONTAINERS):
        return own(hooks.trace, copy.copy(x))
    return _copied_outside(hooks, copy.copy, x)


def deeply_copied(hooks: OutsideCalls, x: Any, memo: Any = None) -> Any:
    """`copy.deepcopy(x)`"""
    memo = {} if memo is None else memo
    if type(x) is np.ndarray:
        x = lift(x)
    if id(x) in memo:
        return memo[id(x)]
    if isinstance(x, _ATOMS):
        return x
    if (special := hooks.special(x, "__deepcopy__")) is not None:
        made = special(memo)
    elif is_traced(x):
        made = copy.deepcopy(x)
    elif type(x) in (list, dict, tuple, set, deque, OrderedDict, defaultdict) or hasattr(x, "_make"):
        return _deep_container(hooks, x, memo)
    else:
        made = _copied_outside(hooks, copy.deepcopy, x)
    memo[id(x)] = made
    memo.setdefault(id(memo), []).append(x)  # alive as long as its id is known, as Python does it
    return made


def _copied_outside(hooks: OutsideCalls, function: Callable[..., Any], x: Any) -> Any:
    """What Python makes of a value that has no attributes: new in each call, and so are arrays in it."""
    if type(x) is MethodType or (not is_stand_in(x) and way_of(x) is Way.ATTRIBUTES):
        _refuse("copied", x)
    made = hooks.call_outside(function, x)
    if made is not x:
        own(hooks.trace, made)
        own_arrays([made], is_new=True)
    return made


def _deep_container(hooks: OutsideCalls, x: Any, memo: Any) -> Any:
    if isinstance(x, tuple):
        items = [deeply_copied(hooks, item, memo) for item in x]
        if id(x) in memo:  # it holds itself
            return memo[id(x)]
        is_same = all(after is before for after, before in zip(items, x))
        made = x if is_same else x._make(items) if hasattr(x, "_make") else tuple(items)
    else:
        kind: Any = type(x)
        given = {"maxlen": x.maxlen} if kind is deque else {}
        made = memo[id(x)] = kind(x.default_factory) if kind is defaultdict else kind(**given)
        refill(made, tuple(deeply_copied(hooks, part, memo) for part in contents(x)))
    memo[id(x)] = made
    memo.setdefault(id(memo), []).append(x)
    return made


def replaced(hooks: OutsideCalls, obj: Any, /, **changes: Any) -> Any:
    """`dataclasses.replace(obj, **changes)`"""
    if _is_dataclass(obj):
        missing = _parameters(obj).keys() - changes.keys()
        changes |= {name: hooks.attr(obj, name) for name in missing if hasattr(obj, name)}
        if changes.keys() == _parameters(obj).keys():
            return hooks.conv(type(obj))(**changes)  # which may run the user's code
    return own(hooks.trace, dataclasses.replace(obj, **changes))


def _parameters(x: Any) -> dict[str, Any]:
    """The fields that the `__init__` takes which a dataclass has been given; `InitVar`s are no others' fields."""
    own = {f.name for f in dataclasses.fields(x)}
    fields = x.__dataclass_fields__.items()
    return {name: f for name, f in fields if f.init and (name in own or "INITVAR" in str(f._field_type))}


def _is_dataclass(x: Any) -> bool:
    return hasattr(type(x), "__dataclass_fields__") and not isinstance(x, type)


def _taken_apart(hooks: OutsideCalls, obj: Any, /, **_: Any) -> NoReturn:
    """`dataclasses.asdict(obj)`, `dataclasses.astuple(obj)`"""
    _refuse("taken apart", obj)


def _refuse(what: str, x: Any) -> NoReturn:
    unsupported(f"a {type(x).__qualname__} is {what}", "Copy the arrays that it holds.")


FUNCTIONS_THAT_COPY: dict[Any, Callable[..., Any]] = {
    copy.copy: copied, copy.deepcopy: deeply_copied, dataclasses.replace: replaced, dataclasses.asdict: _taken_apart,
    dataclasses.astuple: _taken_apart,
}  # fmt: skip
