"""Container contents: what do Python's containers hold?  Their contents by the library's own methods, compared and put back."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from operator import getitem
from typing import Any

_NOTHING = object()


def kind_of_container(x: Any) -> Any:
    """The library's class of a container, whose methods do not see what those of a class made of it would do."""
    return next(cls for cls in type(x).__mro__ if cls.__module__ in ("builtins", "collections"))


def to_load(x: Any) -> Callable[[Any, Any], Any]:
    """What loads an item of a container as the library's class does, whatever its own class says."""
    if hasattr(type(x), "__missing__"):
        return held_at
    kind = kind_of_container(x)
    return getitem if type(x).__getitem__ is kind.__getitem__ else kind.__getitem__


def held_at(x: dict[Any, Any], key: Any) -> Any:
    """The value of a key that a dict has: a guard must not put in a missing one, as looking it up in a defaultdict does."""
    value = dict.get(x, key, _NOTHING)
    if value is _NOTHING:
        raise KeyError(key)
    return value


def to_list(x: Any) -> Callable[[Any], tuple[Any, ...]]:
    """What lists the keys of a dict so."""
    kind = kind_of_container(x)
    return tuple if type(x).__iter__ is kind.__iter__ else lambda x: tuple(kind.__iter__(x))


def to_count(x: Any) -> Callable[[Any], int]:
    """What says so how long a container is."""
    kind = kind_of_container(x)
    return len if type(x).__len__ is kind.__len__ else kind.__len__


def contents(x: Any) -> tuple[Any, ...]:
    """What is in a container."""
    if isinstance(x, (bytearray, array)):
        return (bytes(x),)
    kind = kind_of_container(x)
    return (*kind.keys(x), *kind.values(x)) if isinstance(x, dict) else tuple(kind.__iter__(x))


def differ(before: tuple[Any, ...], after: tuple[Any, ...]) -> bool:
    """Whether something else is there than before."""
    if len(before) != len(after):
        return True
    return any(a is not b and not (type(a) is bytes and a == b) for a, b in zip(before, after))


def refill(x: Any, values: tuple[Any, ...]) -> None:
    """Put these contents into a container that nobody else can see."""
    if isinstance(x, (bytearray, array)):
        x[:] = values[0] if isinstance(x, bytearray) else array(x.typecode, values[0])
        return
    kind = kind_of_container(x)
    if isinstance(x, list):
        kind.__setitem__(x, slice(None), values)
        return
    kind.clear(x)
    if isinstance(x, dict):
        for key, value in zip(values[: len(values) // 2], values[len(values) // 2 :]):
            kind.__setitem__(x, key, value)
    else:
        kind.update(x, values) if isinstance(x, set) else kind.extend(x, values)
