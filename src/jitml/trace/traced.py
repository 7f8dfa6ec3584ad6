"""Traced functions, as data: what tracing hands to the dispatcher and to the layers below.

Nothing here traces: what a later process finds on disk needs no more than this.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import optree

from jitml.device.memory import ArrayDevice
from jitml.ir.dims import Sym
from jitml.ir.graph import Graph, Value
from jitml.records import dataclass
from jitml.trace.record.guards import Host, Slot

if TYPE_CHECKING:
    from jitml.trace.effects.write_back import Change
    from jitml.trace.speculation.dynamic_shapes import VariantKey
    from jitml.trace.speculation.limits import TraceProfile
    from jitml.trace.storage.index_maps import Step


@dataclass(frozen=True, slots=True)
class FromGraph:
    """A returned leaf that is the graph's output at `position`: an array, a NumPy scalar, or a Python number.

    `itself`: the very object, and not another array object on the same memory.
    """

    position: int
    kind: type  # np.ndarray, np.generic, or a number's Python type
    steps: tuple[Step, ...] = ()  # views that NumPy takes of it, where several results share memory
    writeable: bool = True
    itself: bool = True


@dataclass(frozen=True, slots=True)
class FromHost:
    """A returned leaf that the host program holds: a Python number, or a caller's array, seen through `steps`.

    `itself`: the very object, and not another array object on the same memory.
    """

    slot: Slot
    steps: tuple[Step, ...] = ()
    writeable: bool = True
    itself: bool = True


class Repeated:
    """A place of an object that is in several places of what is returned and kept; no dataclass, which would be a container."""

    __match_args__ = ("number",)
    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number


@dataclass(frozen=True, slots=True)
class FixedResult:
    """A returned leaf that is the same at every call."""

    value: Any


@dataclass(frozen=True, slots=True)
class Either:
    """A returned leaf that is one or another array or number, as the graph's output at `position` says."""

    position: int
    then: Result
    orelse: Result


Result = FromGraph | FromHost | FixedResult | Either | Repeated


@dataclass(frozen=True)
class Traced:
    """A function, specialised.

    graph: inputs are fed from the host slots `entries`, in order.
    aliases: output position -> input position, for outputs that end in the caller's array.
    strides: input position -> strides in elements, where not C-contiguous.
    copied: slots of caller's arrays that were copied into native layout and must be copied back: (array, copy).
    numbers: Sym or start of a window that the results depend on -> output position of its value, i64[].
    changes: what becomes of things from outside; if there are any, the result is one and a list of the new values of each.
    key: what tells it from others for arguments of the same structure.
    in_spec: structure of `(args, kwargs)`.
    out_specs: that of each object in several places of the result, and of the result, whose leaves, one after the other, are
        made by `results`.
    device: where its arrays are, if they are on one.
    profile: what it has cost, if there are limits.
    """

    graph: Graph
    host: Host
    entries: tuple[Slot, ...]
    aliases: Mapping[int, int]
    strides: Mapping[int, tuple[int, ...]]
    copied: tuple[tuple[Slot, Slot], ...]
    numbers: Mapping[Sym | Value, int]
    in_spec: optree.PyTreeSpec
    out_specs: tuple[optree.PyTreeSpec, ...]
    results: tuple[Result, ...]
    changes: tuple[Change, ...]
    key: VariantKey
    device: ArrayDevice | None
    profile: TraceProfile | None = None


__all__ = ["Either", "FixedResult", "FromGraph", "FromHost", "Repeated", "Result", "Traced"]
