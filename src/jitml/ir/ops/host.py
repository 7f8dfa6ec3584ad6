"""Host calls: functions that run in Python at this point of the program (`HostFunction`), and their ops.

host_call  (*operands) {function} -> *results       `function` says what is called, and what comes back
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from jitml.ir.graph import Node
from jitml.ir.op import Op
from jitml.ir.types import Aval
from jitml.records import dataclass, field

_serial = itertools.count()


@dataclass(frozen=True, slots=True)
class Routine:
    """An op that a function computes, for back ends that can do it without Python.

    Args:
        name: the op's.
        parts: how the function gets each of its operands: as a `real` array, as a complex one that is `packed` (a last axis has
            both parts), or with both parts `apart`. Complex results are packed.
    """

    name: str
    params: Mapping[str, Any]
    parts: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class HostFunction:
    """A function of arrays that runs in Python.

    Args:
        name: as users write it: `np.linalg.inv`.
        call: takes the operands as arrays and gives the results as arrays. Whatever it raises, and a result that is not of
            the dtype and shape foreseen, leaves the call to the plain function.
        results: what comes back.
        arguments: those of a call without keywords, `...` for each operand; None if nobody says.
        routine: what is computed, if that is an op whose operands and results are these.
    """

    name: str
    call: Callable[..., tuple[np.ndarray[Any, Any], ...]] = field(repr=False)
    results: tuple[Aval, ...]
    arguments: tuple[Any, ...] | None = field(default=None, repr=False, kw_only=True)
    draws: bool = False  # from the generator whose address is the first operand
    makes: bool = False  # a generator that lives until the program ends
    postpones: bool = False  # what others see, until the call has succeeded
    fills: bool = False  # takes `out=`, the arrays that are to hold its results
    routine: Routine | None = field(default=None, repr=False, kw_only=True)
    serial: int = field(default_factory=lambda: next(_serial))

    def __post_init__(self) -> None:
        HOST_FUNCTIONS[self.serial] = self

    def __repr__(self) -> str:
        return f"host({self.serial}, {self.name!r})"


def function_of(node: Node) -> HostFunction:
    """What a node computes as a function that runs in Python: for ops that are NumPy's own routines."""
    evaluate = partial(node.op.evaluate, **node.params)

    def call(*arrays: np.ndarray[Any, Any], **options: Any) -> tuple[np.ndarray[Any, Any], ...]:
        results = evaluate(*arrays, **options)
        return results if isinstance(results, tuple) else (results,)

    name, fills = f"np.{node.op.family}.{node.op.name}", node.op.family == "fft"
    routine = Routine(node.op.name, node.params, ("real",) * len(node.inputs))
    return HostFunction(name, call, tuple(v.aval for v in node.outputs), fills=fills, routine=routine)


def padded(x: np.ndarray[Any, Any], shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """An array at the start of memory for a larger one."""
    if x.shape == shape:
        return x
    memory = np.zeros(shape, x.dtype)
    memory[tuple(map(slice, x.shape))] = x
    return memory


def unpadded(x: np.ndarray[Any, Any], shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """The array of this shape at the start of memory for a larger one."""
    return x.reshape(shape) if x.size == math.prod(shape) else np.ascontiguousarray(x[tuple(map(slice, shape))])


# Those that live, by their number in the text form: how a parser finds them.
HOST_FUNCTIONS: WeakValueDictionary[int, HostFunction] = WeakValueDictionary()


def _evaluate(*operands: Any, function: HostFunction) -> tuple[Any, ...]:
    return function.call(*map(np.asarray, operands))


# An effect: it may raise, so that it must run even if nothing uses its results.
host_call = Op("host_call", "host", lambda *operands, function: function.results, _evaluate, has_effect=True)
draw = Op("draw", "host", lambda *operands, function: function.results, _evaluate, has_effect=True)
