"""Runs an expression through NumPy and through a trace, and says where the two differ: value, dtype, shape, kind."""

from __future__ import annotations

import linecache
import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.dispatch.entry import bind, interpreted
from jitml.ir.analysis.verify import verify
from jitml.trace.record.pytree import flatten
from jitml.trace.trace import trace

target: str | None = "interpreted"  # or "compiled": how a traced function is run


def run_traced(function: Callable[..., Any], *args: Any) -> Any:
    """The result of a function traced and run; arguments that it writes are written."""
    assert target is not None, "tests/numpy/conftest.py has not seen that this test runs a traced function"
    if target == "compiled":
        return jitml.jit(function)(*args)
    traced = trace(function, args, {})
    verify(traced.graph)
    return bind(traced, interpreted(traced))(flatten((args, {}))[0])


def function_of(parameters: str, expression: str) -> Callable[..., Any]:
    """A function of an expression's text, with a source that can be found, as a user's function has one."""
    source = f"def f({parameters}):\n    return {expression}\n"
    name = f"<expression {len(linecache.cache)}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    names: dict[str, Any] = {"np": np}
    exec(compile(source, name, "exec"), names)
    return names["f"]  # type: ignore[no-any-return]  # defined by the source


def skip_without(expression: str) -> None:
    """Skip a test of functions that the installed NumPy does not have yet."""
    lacking = [name for name in re.findall(r"\bnp\.(\w+)", expression) if not hasattr(np, name)]
    if lacking:
        pytest.skip(f"this NumPy has no {', '.join(lacking)}")


def check(function: Callable[..., Any], *args: Any, ulps: float = 4, absolute: float = 0.0) -> None:
    """Assert that a trace gives what NumPy gives: results, and arguments afterwards.

    Args:
        ulps: allowed difference of inexact results in units of the last place; integers and bools must be equal.
        absolute: allowed difference where a result cancels towards zero.
    """
    eager, mine = tuple(map(_copied, args)), tuple(map(_copied, args))
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = function(*eager)
        got = run_traced(function, *mine)
    compare(got, expected, ulps=ulps, absolute=absolute)
    for x, y in zip(mine, eager):
        compare(x, y, ulps=ulps, absolute=absolute)


def agree(function: Callable[..., Any], *args: Any, ulps: float = 4) -> None:
    """The same for calls that some versions of NumPy refuse: under these the trace raises the same exception."""
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            function(*map(_copied, args))
    except (TypeError, OverflowError) as refusal:
        with pytest.raises(type(refusal)):
            run_traced(function, *map(_copied, args))
    else:
        check(function, *args, ulps=ulps)


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
    if isinstance(expected, (bool, int, float, complex)):
        assert_close(np.asarray(got), np.asarray(expected), ulps, absolute)
        return
    assert got == expected


def assert_close(got: np.ndarray[Any, Any], expected: np.ndarray[Any, Any], ulps: float, absolute: float) -> None:
    if expected.dtype.kind == "c":
        # An error of one part is small beside the number.
        size = np.spacing(np.abs(expected)[np.isfinite(expected)]).max(initial=0.0)
        for g, e in ((got.real, expected.real), (got.imag, expected.imag)):
            assert_close(g, e, ulps, max(absolute, ulps * float(size)))
        return
    if expected.dtype.kind != "f":
        np.testing.assert_array_equal(got, expected)
        return
    with np.errstate(all="ignore"):
        spacing = np.spacing(np.maximum(np.abs(expected), np.finfo(expected.dtype).tiny))
        apart = np.abs(got.astype(np.float64) - expected.astype(np.float64))
        same = (got == expected) | (np.isnan(got) & np.isnan(expected))
        close = same | (apart <= ulps * spacing.astype(np.float64)) | (apart <= absolute)
    assert close.all(), f"{got} is not {expected}"
