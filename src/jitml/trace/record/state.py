"""Recording state: what is known of a call while it is recorded, as far as all rooms share it?

Each class belongs to the call as a whole. What is one room's own stands there (`parts.py`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from types import FunctionType
from typing import Any, NoReturn, Protocol

import numpy as np

from jitml.errors import UserFrame
from jitml.ir.dims import Dim, Size, Sym
from jitml.ir.graph import Value
from jitml.records import dataclass, field
from jitml.trace.record.guards import Opened, Place, Slot

Array = np.ndarray[Any, Any]
Number = complex | np.number[Any] | np.bool_


@dataclass
class CallInputs:
    """What the host program hands to the graph.

    origins: the slots of the graph's inputs, in their order.
    arrays: those that are arrays from outside, as they are in this call.
    scalars: inputs that are numbers, or arrays made of numbers: their slots, and what they are in this call.
    numbers, made: of numbers, and of arrays that are made of them: which input it is, and where that array is made.
    opened: sizes of arguments that are left open; `first` are the places and sizes of those that are always equal.
    """

    origins: list[Slot] = field(default_factory=list)
    arrays: dict[Slot, Array] = field(default_factory=dict)
    scalars: dict[Value, tuple[Slot, Number | Array]] = field(default_factory=dict)
    numbers: dict[tuple[Slot, np.dtype[Any]], Value] = field(default_factory=dict)
    made: dict[tuple[Callable[..., Array], tuple[Slot, ...]], Slot] = field(default_factory=dict)
    opened: Opened = field(default_factory=dict)
    first: dict[Place, tuple[Slot, Dim]] = field(default_factory=dict)


@dataclass
class BoundSizes:
    """Which value each Sym stands for (the operand of its `bind`), as which Dim a value is a size, and limits that are sizes."""

    values: dict[Sym, Value] = field(default_factory=dict)
    names: dict[Value, Dim] = field(default_factory=dict)
    limits: dict[Sym, tuple[Size, Size]] = field(default_factory=dict)


@dataclass
class NamedOperation:
    """What of Python's or NumPy's is being computed.

    name: what NumPy calls the outermost operator or ufunc when it warns.
    is_operator: whether it is an operator of Python's.
    takes_lists: whether a function is given lists, which may have to be arrays.
    """

    name: str = ""
    is_operator: bool = False
    takes_lists: bool = False


@dataclass
class RecordedErrors:
    """What becomes of errors.

    state: floating-point errors, as bits, that `np.errstate` inside the function ignores, and those that it does not.
    is_transformed: whether what is recorded belongs to a transform, which ignores floating-point errors.
    """

    state: tuple[int, int] = (0, 0)
    is_transformed: bool = False


@dataclass
class OutsideObjects:
    """What comes from outside, or is made inside, by id where it is an object.

    places: slots of what is known to be from outside.
    objects: what is there that is no array, number or container: instances, functions.
    records: dataclasses among those that are no copies.
    lent: objects that are taken at run time.
    read: objects that code which is not converted reads, and what that takes for granted is checked of.
    own: objects that the function made itself.
    loaded: slots of what was loaded: by which function, from where, whether that is a constant, and which key.
    kept: what must not end before the trace, for its id is known.
    """

    places: dict[int, Slot] = field(default_factory=dict)
    objects: dict[Slot, object] = field(default_factory=dict)
    records: set[int] = field(default_factory=set)
    lent: dict[int, LentObject] = field(default_factory=dict)
    read: dict[Slot, object] = field(default_factory=dict)
    own: dict[int, object] = field(default_factory=dict)
    loaded: dict[tuple[Callable[..., object], int, bool, object], Slot] = field(default_factory=dict)
    kept: list[object] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class LentObject:
    """An object that is taken at run time: where the host program has it, and what the function sees of it."""

    slot: Slot
    seen: object


@dataclass
class OutsideChanges:
    """What the function has changed of objects from outside, which shows at the end.

    stored: what attributes have become, by id and name.
    stacks: where what is stored was stored.
    """

    stored: dict[tuple[int, str], object] = field(default_factory=dict)
    stacks: dict[tuple[int, str], tuple[UserFrame, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class TrackedContainer(ABC):
    """A copy of a container from outside, and what was in it: keys and items.

    Args:
        original: the caller's own.
        find: enters it in the host program.
    """

    copy: Any
    original: Any
    find: Callable[[], Slot]
    name: str
    before: tuple[tuple[Any, Any], ...]

    @abstractmethod
    def is_changed(self) -> bool:
        """Whether something else is in the copy."""


@dataclass
class TrackedCopies:
    """Copies of containers from outside, by id.

    by_original: the first of each, by the id of the original.
    taken: containers that transforms are given, and those that they show.
    withheld: attributes that copies have not, and what says why.
    """

    watched: dict[int, TrackedContainer] = field(default_factory=dict)
    by_original: dict[int, TrackedContainer] = field(default_factory=dict)
    taken: dict[int, tuple[object, object]] = field(default_factory=dict)
    withheld: dict[int, dict[str, Callable[[], NoReturn]]] = field(default_factory=dict)


@dataclass
class ConvertedFunctions:
    """Functions with hooks, by the function as it is written; and the code of those that could not be converted."""

    converted: dict[FunctionType, Callable[..., Any]] = field(default_factory=dict)


class JoinSite(Protocol):
    """A construct that is asked what it has left open."""

    def refuse(self, message: str, remedy: str) -> NoReturn: ...
