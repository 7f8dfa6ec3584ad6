"""Objects among results: what the function has made and returns, or keeps outside, is made anew at the end of each call.

Two that share a part share it again. A `Made` stands for one until then. Functions, bound methods and what else the function
makes are refused as results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import optree

from jitml.records import dataclass
from jitml.trace.record.object_state import slots_of
from jitml.trace.record.pytree import NAMESPACE, is_record
from jitml.trace.record.recording import Trace, is_users_class
from jitml.trace.values.boxing import is_traced
from jitml.trace.values.reachable import namespace_of

Settle = Callable[[Any], Any]
_DATA = (bool, int, float, complex, str, bytes, type(None), np.ndarray, np.generic)


class Made:
    """An instance that is built of its attributes at the end of a call."""

    __slots__ = ("build", "parts")

    def __init__(self, build: Build, parts: Sequence[Any]) -> None:
        self.build = build
        self.parts = tuple(parts)


@dataclass(frozen=True)
class Build:
    """How an instance is made of its attributes."""

    kind: Any
    names: tuple[str, ...]

    def __call__(self, parts: Sequence[Any]) -> Any:
        made: Any = (SimpleNamespace if issubclass(self.kind, SimpleNamespace) else object).__new__(self.kind)
        for name, value in zip(self.names, parts):
            object.__setattr__(made, name, value)
        return made


def made_of(trace: Trace, x: Any, settle: Settle) -> Any:
    """A `Made` of what the function has made itself; all else as it is.

    Args:
        settle: what a part becomes.
    """
    if is_traced(x) or isinstance(x, _DATA) or any(x is known for known in trace.outside.objects.values()):
        return x
    if is_made_instance(trace, x):
        if (withheld := trace.copies.withheld.get(id(x))) is not None:
            for refuse in withheld.values():
                refuse()
        named = dict(attributes_of(x))
        return Made(Build(type(x), tuple(named)), [settle(value) for value in named.values()])
    return x


def is_made_instance(trace: Trace, x: Any) -> bool:
    """Whether this is an object of the function's own that is nothing but its attributes."""
    kind: Any = type(x)
    if id(x) not in trace.outside.own or id(x) in trace.outside.places or isinstance(x, (type, BaseException)) or is_record(x):
        return False
    return (is_users_class(kind) or kind is SimpleNamespace) and _is_built_on_object(kind)


def parts_of_made(trace: Trace, x: Any) -> list[Any]:
    """What such an object holds; nothing of others."""
    return [value for _, value in attributes_of(x)] if is_made_instance(trace, x) else []


def attributes_of(x: Any) -> Iterator[tuple[str, Any]]:
    """What stands in an object's namespace and slots."""
    yield from list(namespace_of(x).items())
    kind: Any = type(x)
    for name, member in slots_of(kind).items():
        try:
            yield name, member.__get__(x)
        except AttributeError:
            continue


def _is_built_on_object(kind: Any) -> bool:
    return all(cls in (object, SimpleNamespace) or bool(cls.__flags__ & (1 << 9)) for cls in kind.__mro__)


def _parts_and_build(made: Made) -> tuple[tuple[Any, ...], Build]:
    return made.parts, made.build


def _built(build: Build, parts: Any) -> Any:
    return build(parts)


_register: Any = optree.register_pytree_node  # whose stubs ask for a collection
_register(Made, _parts_and_build, _built, namespace=NAMESPACE)

__all__ = ["Made", "attributes_of", "is_made_instance", "made_of", "parts_of_made"]
