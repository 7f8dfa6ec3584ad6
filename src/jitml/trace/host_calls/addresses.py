"""Object addresses: how does a program hand on an object?

By its address: of one that a host call has made, or that the host program was given.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, cast

import optree

from jitml.ir.graph import Value
from jitml.ir.ops.host import MADE, generator_at
from jitml.records import dataclass
from jitml.trace.record.guards import Slot
from jitml.trace.record.pytree import NAMESPACE
from jitml.trace.values.numbers import TracedNumber


class ObjectAddress(int):
    """Where an object lies; each class of objects has one of its own, so that another one is another result."""

    kind: ClassVar[type]


@functools.lru_cache(maxsize=1024)
def address_of_a(kind: Any) -> type[ObjectAddress]:
    return type("Address", (ObjectAddress,), {"kind": kind})


@dataclass(frozen=True)
class Pointer:
    """An address in a trace."""

    kind: type
    value: Value


@dataclass(frozen=True)
class Constant:
    """A part of a result that is no number: another one is another result."""

    value: Any


def _no_parts(x: Any) -> tuple[tuple[Any, ...], Any]:
    return (), x


def _itself(x: Any, _: Any) -> Any:
    return x


optree.register_pytree_node(cast(Any, Constant), _no_parts, _itself, namespace=NAMESPACE)


@dataclass(frozen=True)
class Located:
    """An object among arguments: the program has its address, and what is called the object itself."""

    address: Any

    def parts(self) -> tuple[tuple[Any], None]:
        return (self.address,), None

    @staticmethod
    def build(_: None, parts: Any) -> Any:
        return MADE.at(parts[0]) if type(parts[0]) is int else Located(*parts)


_register: Any = optree.register_pytree_node
_register(Located, Located.parts, Located.build, namespace=NAMESPACE)


@dataclass(frozen=True)
class LentAddress(Located):
    """The same of an object from outside, which lives as long as the call."""

    @staticmethod
    def build(_: None, parts: Any) -> Any:
        return generator_at(parts[0]) if type(parts[0]) is int else LentAddress(*parts)


_register(LentAddress, LentAddress.parts, LentAddress.build, namespace=NAMESPACE)


def is_located(x: Any) -> bool:
    return type(x) in (Located, LentAddress)


@dataclass
class OuterObject:
    """An object from outside, of which the program has another one in each call.

    original: what it is in the call that is traced; its attributes are loaded from there.
    slot: where the host program has it, `address` its address there.
    items: what it gives to who goes through it, each found by the host program, and `length` how much; `attribute` finds one.
    is_copied: whether the example on which methods are tried out is a copy, which they may change.
    """

    original: Any
    slot: Slot
    address: TracedNumber
    items: Callable[[], Iterator[Any]]
    length: Callable[[], int]
    attribute: Callable[[str], Slot]
    is_copied: bool = False
