"""Runs an expression through NumPy and through a trace, and says where the two differ: value, dtype, shape, kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import optree

import jitml.numpy
from jitml.ir.interpret import interpret
from jitml.ir.types import aval_of
from jitml.ir.verify import verify
from jitml.trace.context import Leaf, Trace, activate
from jitml.trace.host import Const
from jitml.trace.numbers import TracedNumber
from jitml.trace.storage import Storage
from jitml.trace.tracers import TracedArray, TracedScalar, is_traced, read

assert jitml.numpy


def run_traced(function: Callable[..., Any], *args: Any) -> tuple[Any, list[Any]]:
    """The result of a function traced and interpreted, and its arguments afterwards.

    Arrays become traced arrays, NumPy scalars traced scalars, Python numbers traced numbers.
    """
    trace = Trace()
    tracers = [_tracer(trace, position, x) for position, x in enumerate(args)]
    with activate(trace):
        result = function(*tracers)
        leaves, tree = optree.tree_flatten(result, none_is_leaf=True)
        traced = [x for x in leaves if is_traced(x)]
        mutated = [t for t in tracers if type(t) is TracedArray]
        values = [read(x) for x in (*traced, *mutated)]
    graph = verify(trace.builder.build(values))
    arrays = interpret(graph, [_input(trace, origin, args) for origin in trace.origins])
    contents = iter(arrays)
    filled = [_concrete(x, next(contents)) if is_traced(x) else x for x in leaves]
    after = [np.asarray(next(contents)) if type(t) is TracedArray else x for t, x in zip(tracers, args)]
    return optree.tree_unflatten(tree, filled), after


def _tracer(trace: Trace, position: int, x: Any) -> Any:
    if type(x) in (bool, int, float):
        return TracedNumber(trace, trace.host.argument(position, f"a{position}"), x)
    if isinstance(x, (np.ndarray, np.generic)):
        value = trace.add_input(aval_of(x), Leaf(position), f"a{position}")
        if isinstance(x, np.generic):
            return TracedScalar(trace, value)
        layout = tuple(s // x.itemsize for s in x.strides)
        return TracedArray(Storage(trace, value, strides=layout), (), value.aval, layout, x.flags.writeable)
    return x


def _input(trace: Trace, origin: Any, args: tuple[Any, ...]) -> Any:
    if isinstance(origin, Leaf):
        return args[origin.position]
    if not hasattr(origin, "slot"):
        return origin.array
    slots: dict[int, Any] = {slot: args[position] for slot, position in trace.host.arguments.items()}
    for step in trace.host.steps:
        if hasattr(step, "function"):
            slots[step.slot] = step.function(*(o.value if isinstance(o, Const) else slots[o] for o in step.operands))
    dtype = next(d for (slot, d) in trace._numbers if slot == origin.slot)
    return np.asarray(slots[origin.slot], dtype)


def _concrete(tracer: Any, array: np.ndarray[Any, Any]) -> Any:
    if type(tracer) is TracedArray:
        return np.array(array)
    return array[()] if type(tracer) is TracedScalar else array.item()


def check(function: Callable[..., Any], *args: Any, ulps: float = 4, absolute: float = 0.0) -> None:
    """Assert that a trace gives what NumPy gives: results, and arguments afterwards.

    Args:
        ulps: allowed difference of inexact results in units of the last place; integers and bools must be equal.
        absolute: allowed difference where a result cancels towards zero.
    """
    eager = tuple(map(_copied, args))
    with np.errstate(all="ignore"):
        expected = function(*eager)
        got, after = run_traced(function, *args)
    compare(got, expected, ulps=ulps, absolute=absolute)
    for x, y in zip(after, eager):
        compare(x, y, ulps=ulps, absolute=absolute)


def _copied(x: Any) -> Any:
    """A copy with strides of the same signs and order, on which the answer to "is this a view?" depends."""
    if not isinstance(x, np.ndarray):
        return x
    flips = tuple(slice(None, None, -1 if s < 0 else 1) for s in x.strides)
    return x[(*flips, ...)].copy(order="K")[(*flips, ...)]


def compare(got: Any, expected: Any, *, ulps: float = 4, absolute: float = 0.0) -> None:
    if isinstance(expected, (tuple, list)):
        assert type(got) is type(expected) or isinstance(got, tuple), f"{type(got)} is not {type(expected)}"
        assert len(got) == len(expected)
        for g, e in zip(got, expected):
            compare(g, e, ulps=ulps, absolute=absolute)
        return
    if isinstance(expected, (np.ndarray, np.generic)):
        assert type(got) is type(expected), f"{type(got).__name__} {got!r}, NumPy gives {type(expected).__name__} {expected!r}"
        assert got.dtype == expected.dtype, f"{got.dtype}, NumPy gives {expected.dtype}"
        assert got.shape == expected.shape, f"{got.shape}, NumPy gives {expected.shape}"
        assert_close(np.asarray(got), np.asarray(expected), ulps, absolute)
        return
    if isinstance(expected, (bool, int, float)):
        assert_close(np.asarray(got), np.asarray(expected), ulps, absolute)
        return
    assert got == expected


def assert_close(got: np.ndarray[Any, Any], expected: np.ndarray[Any, Any], ulps: float, absolute: float) -> None:
    if expected.dtype.kind != "f":
        np.testing.assert_array_equal(got, expected)
        return
    with np.errstate(all="ignore"):
        spacing = np.spacing(np.maximum(np.abs(expected), np.finfo(expected.dtype).tiny))
        apart = np.abs(got.astype(np.float64) - expected.astype(np.float64))
        same = (got == expected) | (np.isnan(got) & np.isnan(expected))
        close = same | (apart <= ulps * spacing.astype(np.float64)) | (apart <= absolute)
    assert close.all(), f"{got} is not {expected}"
