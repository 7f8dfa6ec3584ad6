"""What do Python's containers hold?  Their contents by the library's own methods, compared and put back."""

from __future__ import annotations

from array import array
from typing import Any


def kind_of_container(x: Any) -> Any:
    """The library's class of a container, whose methods do not see what those of a class made of it would do."""
    return next(cls for cls in type(x).__mro__ if cls.__module__ in ("builtins", "collections"))


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
    if isinstance(x, bytearray):
        x[:] = values[0]
        return
    kind = kind_of_container(x)
    kind.clear(x)
    if isinstance(x, dict):
        for key, value in zip(values[: len(values) // 2], values[len(values) // 2 :]):
            kind.__setitem__(x, key, value)
    else:
        kind.update(x, values) if isinstance(x, set) else kind.extend(x, values)
