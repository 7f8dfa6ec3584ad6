"""Operations on numbers that the compiler could know, or whose results nobody needs, raise the errors that NumPy's raise.

Each layer would rather compute with such numbers once, or not at all: folding in the graph, LLVM in what it unrolls, forwards
from a store to a load, or moves under a choice. Each operation meets each way of becoming known, under warnings and exceptions.
"""

from __future__ import annotations

import linecache
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

# Expression: the numbers that it is wrong with, by kind of dtype. "max" and "tiny" are the dtype's own.
OPERATIONS: dict[str, dict[str, tuple[Any, Any]]] = {
    "a / b": {"f": (1, 0), "i": (1, 0), "c": (1, 0)},
    "b / b": {"f": (0, 0), "i": (0, 0), "c": (0, 0)},
    "a // b": {"f": (1, 0), "i": (1, 0)},
    "a % b": {"f": (1, 0), "i": (1, 0)},
    "np.fmod(a, b)": {"f": (1, 0), "i": (1, 0)},
    "divmod(a, b)": {"f": (0, 0), "i": (5, 0)},
    "a ** b": {"f": (0, -1), "c": (0, -1)},
    "b ** a": {"f": (0.5, -2)},
    "a * a": {"f": ("max", 1), "c": ("max", 1)},
    "a + a": {"f": ("max", 1), "c": ("max", 1)},
    "a - b": {"f": (np.inf, np.inf)},
    "np.sqrt(b)": {"f": (1, -1)},
    "np.log(b)": {"f": (1, 0), "c": (1, 0)},
    "np.log1p(b)": {"f": (1, -2)},
    "np.exp(a)": {"f": ("max", 1)},
    "np.sinh(a)": {"f": ("max", 1)},
    "np.arcsin(b)": {"f": (1, 2)},
    "np.arctanh(b)": {"f": (1, 1)},
    "np.cos(a)": {"f": (np.inf, 1)},
    "np.hypot(a, a)": {"f": ("max", 1)},
    "np.reciprocal(b)": {"f": (1, 0), "i": (1, 0)},
    "np.float16(a)": {"f": ("max", 1)},
    "np.int8(a)": {"f": (np.nan, 1)},
}
# How the numbers become known, or the result unneeded. `A`, `B` are the numbers, `x`, `y` arrays of them, `t` their type.
WAYS = {
    "numbers": "a, b = t(A), t(B)\nreturn {}",
    "one number": "a, b = t(A), y[0]\nreturn {}",
    "full arrays": "a, b = np.full(3, A, x.dtype), np.full(3, B, x.dtype)\nreturn {}",
    "stored numbers": "x[0] = A\ny[0] = B\na, b = x[0], y[0]\nreturn {}",
    "stored arrays": "x[:] = A\ny[:] = B\na, b = x, y\nreturn {}",
    "stored in a loop": "for i in range(3):\n    x[i] = A\n    y[i] = B\n    a, b = x[i], y[i]\n    z[i] = {}\nreturn z",
    "carried": "a, b = t(A), t(B)\nfor i in range(3):\n    z[i] = {}\n    a, b = x[i], y[i]\nreturn z",
    "carried unchanged": "a, b = t(A), t(B)\nfor i in range(3):\n    z[i] = {}\n    a, b = a * 1, +b\nreturn z",
    "chosen by a branch": "a, b = t(1), t(1)\nif w[0] > 0:\n    a, b = t(A), t(B)\nreturn {}",
    "chosen by where": "a, b = np.where(w > 0, t(A), t(1)), np.where(w > 0, t(B), t(1))\nreturn {}",
    "compared": "a, b = x[0], y[0]\nif a == t(A) and b == t(B):\n    return {}\nreturn 1",
    "literals of a loop": "r = []\nfor a, b in ((t(1), t(1)), (t(A), t(B))):\n    r.append({})\nreturn r",
    "short loop": "z[0] = B\nfor i in range(2):\n    a, b = t(A), z[0]\n    z[1] = {}\n    z[0] = z[1]\nreturn z",
    "dead": "a, b = x, y\n{}\nreturn 1",
    "dead numbers": "a, b = t(A), t(B)\n{}\nreturn 1",
    "dead in a loop": "for a in x:\n    b = y[0]\n    {}\nreturn 1",
    "dead in a branch": "if w[0] > 0:\n    a, b = x, y\n    {}\nreturn 1",
    "overwritten": "a, b = x, y\nr = np.array({})\nr[...] = 1\nreturn r",
    "overwritten elements": "for i in range(3):\n    a, b = x[i], y[i]\n    z[i] = {}\n    z[i] = 1\nreturn z",
    "overwritten list": "a, b = x, y\nfor i in range(3):\n    r = []\n    for j in range(2):\n        r.append({})\nreturn 1",
    "read in part": "a, b = x, y\nreturn np.array({})[..., 0]",
    "for an empty array": "a, b = x[0], y[0]\nr = {}\nfor i in range(2):\n    z[:0] *= r.real\nreturn z",
    "for a loop that does not run": "a, b = x, y\nr = {}\nc = np.zeros(2, int)\nfor i in range(c[1]):\n    z += r.real\nreturn z",
    "for a part, in a loop once": "a, b = x, y\nr = {}\nc = np.ones(2, int)\nfor i in range(c[1]):\n    z[1] = r[2]\nreturn z",
    "for a branch not taken": "a, b = x, y\nr = {}\nc = np.zeros(2)\nif c[0] > 0:\n    z += r.real\nreturn z",
}


def written(expression: str, way: str, values: tuple[Any, Any]) -> Callable[..., Any]:
    text = "def f(x, y, z, w):\n" + "".join(f"    {line}\n" for line in WAYS[way].format(expression).split("\n"))
    name = f"<known {next(_files)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    namespace: dict[str, Any] = {"np": np, "t": type(values[0]), "A": values[0], "B": values[1]}
    exec(compile(text, name, "exec"), namespace)
    function: Callable[..., Any] = namespace["f"]
    return function


def outcome(function: Callable[..., Any], values: tuple[Any, Any], mode: str) -> Any:
    """What a call warns of and raises, and what it leaves in its arguments."""
    x, y = (np.full(3, value) for value in values)
    z = np.zeros(3, x.dtype if x.dtype.kind == "c" else np.float64)
    raised = ""
    with warnings.catch_warnings(record=True) as caught, np.errstate(divide=mode, over=mode, invalid=mode, under="ignore"):  # type: ignore[call-overload]
        warnings.simplefilter("always")
        try:
            function(x, y, z, np.ones(2))
        except (ArithmeticError, ValueError, TypeError, IndexError, AttributeError) as error:
            raised = repr(error)
    said = [(w.category.__name__, str(w.message), w.lineno) for w in caught if w.category is not UncompiledWarning]
    return said, raised, repr((x, y, z))


DTYPES = ["f8", "i8", "c16", "f4", "u1", "f2"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("way", WAYS)
def test_errors_are_numpys(way: str, dtype: str) -> None:
    """Each operation in each way, in one of its dtypes."""
    kind = np.dtype(dtype)
    for n, (expression, wrong) in enumerate(OPERATIONS.items()):
        dtypes = [other for other in DTYPES if np.dtype(other).kind.replace("u", "i") in wrong]
        if dtype not in dtypes or not is_turn(n, [*WAYS].index(way), dtypes.index(dtype), len(dtypes)):
            continue
        numbers = wrong[kind.kind.replace("u", "i")]
        values = tuple(kind.type(np.finfo(kind).max if number == "max" else number) for number in numbers)
        eager, compiled = (written(expression, way, values) for _ in range(2))
        compiled = jitml.jit(compiled)
        for mode in ("warn", "raise", "warn"):
            want = outcome(eager, values, mode)
            try:
                got = outcome(compiled, values, mode)
            except jitml.UnsupportedError:
                break
            assert got == want, f"{expression}, {mode}"
