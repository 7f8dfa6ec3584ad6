"""Which warnings does NumPy give for which operation, dtype and value?  Compiled code gives the same, each as often."""

from __future__ import annotations

import linecache
import re
import warnings
from collections.abc import Callable
from itertools import count
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.errors import UncompiledWarning
from support.effort import is_turn

Array = np.ndarray[Any, Any]
_files = count()

BINARY = [
    *("x / y", "x // y", "x % y", "divmod(x, y)", "60000.0 % y", "x ** y", "x * y", "x - y"),
    *("np.hypot(x, y)", "np.maximum(x, y)", "np.isclose(x, y)"),
]
UNARY = [
    *("-x", "1 / x", "x ** -1", "x ** 2", "x ** -2", "2 ** x", "np.reciprocal(x)", "np.sqrt(x)", "np.exp(x)", "np.log(x)"),
    *("np.tan(x)", "np.arcsin(x)", "np.cosh(x)", "np.sum(x)", "np.prod(x)", "np.cumprod(x)", "np.mean(x)", "np.std(x)"),
    *("np.median(x)", "np.linalg.norm(x)", "np.cov(x)", "np.round(x, -2)", "x % 0.5"),
    *("x.astype(np.int8)", "x.astype(np.float16)"),
]
FORMS = {"array": "{}", "scalar": "{}[1]", "no axes": "{}[1, ...]"}
CONTEXTS = {
    "used": "return {}",
    "dead": "{}\n    return x",
    "in a loop": "for _ in range(3):\n        r = {}\n    return r",
    "in a branch": "r = x\n    if w[0] > 0:\n        r = {} * 1\n    else:\n        r = x * 1\n    return 1",
    "ignored": "with np.errstate(all='ignore'):\n        return {}",
}
DTYPES = ["f2", "f8", "c16", "i1"]
VALUES = (1.0, 0.0, -1.0, np.inf, np.nan, "max", "tiny")


def written(expression: str, form: str, context: str) -> Callable[..., Any]:
    shown = {name: FORMS[form].format(name) for name in "xy"}
    expression = re.sub(r"\b[xy]\b", lambda found: shown[found[0]], expression)
    text = f"def f(x, y, w):\n    {CONTEXTS[context].format(expression)}\n"
    name = f"<warnings {next(_files)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    namespace: dict[str, Any] = {"np": np}
    exec(compile(text, name, "exec"), namespace)
    function: Callable[..., Any] = namespace["f"]
    return function


def of(value: float | str, dtype: str) -> Array | None:
    """Five times a value, if the dtype has it."""
    kind = np.dtype(dtype)
    if kind.kind in "iu":
        if value not in (1.0, 0.0, -1.0, "max"):
            return None
        return np.full(5, np.iinfo(kind).max if value == "max" else int(value), kind)
    number = value if isinstance(value, float) else getattr(np.finfo(kind), value)
    return np.full(5, number, kind)


def said(function: Callable[..., Any], x: Array, y: Array) -> list[tuple[str, str]] | None:
    """The warnings of a call; None if it raised."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            function(x.copy(), y.copy(), np.ones(1))
        except (ValueError, TypeError, ZeroDivisionError, OverflowError):
            return None
    return [(w.category.__name__, str(w.message)) for w in caught if w.category is not UncompiledWarning]


def check(expression: str, dtype: str, form: str, context: str) -> None:
    eager, compiled = (written(expression, form, context) for _ in range(2))
    compiled = jitml.jit(compiled)
    xs = [x for value in VALUES if (x := of(value, dtype)) is not None]
    for x in (xs[0], *xs):  # the first call traces, the second runs what it has made
        for y in xs if " y" in expression else xs[:1]:
            try:
                got = said(compiled, x, y)
            except jitml.UnsupportedError:
                return
            assert got == said(eager, x, y), f"{expression} of {dtype} {form}, {context}: {x[1]}, {y[1]}"


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_each_operation(dtype: str, form: str) -> None:
    for n, expression in enumerate((*BINARY, *UNARY)):
        if is_turn(n, DTYPES.index(dtype), [*FORMS].index(form), len(FORMS)):
            check(expression, dtype, form, "used")


@pytest.mark.parametrize("context", CONTEXTS)
def test_wherever_it_stands(context: str) -> None:
    for expression, dtype in (("x / y", "c16"), ("x % y", "f2"), ("np.log(x)", "f8"), ("x.astype(np.float64)", "c16")):
        for form in ("array", "scalar"):
            check(expression, dtype, form, context)
