"""Table of supported functions: what can a jitted function call?

Writes `docs/supported.md` from the registry: `python -m jitml.numpy.supported`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from jitml.numpy.numerics import special
from jitml.numpy.topics import TOPICS
from jitml.trace.values.registry import FUNCTIONS, REGISTRY, full_name

_HEAD = """# NumPy functions in jitted code

Written by `make docs` from the registry; not by hand. The functions of this list are compiled. `jitml.numpy` has them under
the same names. Array methods follow their functions: `x.sum()` is `np.sum(x)`.

All other functions of NumPy and SciPy work, too, but for those that are refused (at the end). The compiled program
calls the function itself at that point. That is a *host call*; `jit(host_calls="error")` forbids it. A function of this
list is a host call, too, if its arguments are of a kind that is not compiled. On Python numbers, shapes and dtypes
alone any function works: it runs once, while the jitted function is traced.
"""
_OPERATORS: dict[Any, str] = {operator.contains: "in", operator.is_: "is", operator.is_not: "is not"}
_REFUSED = (
    "array2string", "array_repr", "array_str", "busday_count", "busday_offset", "common_type", "datetime_as_string",
    "einsum_path", "is_busday", "isnat", "min_scalar_type", "save", "savetxt", "savez", "savez_compressed",
)  # fmt: skip
_NOT_ARRAY_FUNCTIONS = ("numpy.char", "numpy.rec", "numpy.ma", "numpy.strings")


def table() -> str:
    """The page: topics with their functions, then what has no meaning yet."""
    import scipy.special  # noqa: F401  # its functions are listed too; slow to import, so only here

    REGISTRY.register_imported()
    REGISTRY.complete()
    lines = [_HEAD, "## Supported", "", "| topic | functions |", "| --- | --- |"]
    for topic in TOPICS:
        own = [f for f in FUNCTIONS if not _home(f).startswith("jitml.")]  # NumPy's
        functions = [f for f in own if _topic(f) == f"jitml.numpy.{topic}"]
        functions = [f for f in functions if getattr(f, "__name__", "") != "outer" or not hasattr(f, "__self__")]
        if functions:
            lines.append(f"| {_title(topic)} | {_listed(functions)} |")
    lines += [
        "",
        "Every supported ufunc of two operands has `.outer`, too. For floats it also has `.reduce`, `.accumulate`,",
        "`.reduceat` and `.at`.",
    ]
    lines += ["`x[i]` and `x[i] = v` are in *indexing*."]
    missing = [f for f in array_functions() if f not in FUNCTIONS]
    refused = [f for f in missing if f.__name__ in _REFUSED]
    lines += ["", "## Host calls", "", _listed(f for f in missing if f not in refused)]
    lines += [
        "",
        "## Refused",
        "",
        "These return texts or types, take dates, or write files. Without `jit(strict=True)` they run as Python.",
        "",
        _listed(refused),
        "",
    ]
    return "\n".join(lines)


def array_functions() -> list[Any]:
    """Every public function of NumPy that hands its arrays to protocols: the ufuncs and the dispatched functions."""
    dispatched = type(np.sum)
    found: dict[int, Any] = {}
    for module in (np, np.linalg, np.fft):
        for name in dir(module):
            value = getattr(module, name)
            if isinstance(value, (np.ufunc, dispatched)) and not _home(value).startswith(_NOT_ARRAY_FUNCTIONS):
                found[id(value)] = value
    return list(found.values())


def _topic(function: Any) -> str:
    """The module that gives a function its meaning."""
    if isinstance(function, np.ufunc) and not _is_numpys(function):
        return special.__name__
    return _home(FUNCTIONS[function])


def _is_numpys(ufunc: np.ufunc) -> bool:
    return getattr(np, ufunc.__name__, None) is ufunc


def _home(function: Any) -> str:
    """The module of a function, seen through `functools.partial`."""
    function = getattr(function, "func", function)
    return getattr(function, "__module__", None) or ""


def _title(topic: str) -> str:
    return topic.rpartition(".")[2].replace("_", " ")


def _listed(functions: Iterable[Callable[..., Any]]) -> str:
    return " ".join(sorted({f"`{_name(f)}`" for f in functions}, key=str.lower))


def _name(function: Any) -> str:
    if type(function).__module__ == np.lib._index_tricks_impl.__name__:
        return next(f"np.{name}" for name in ("r_", "c_", "mgrid", "ogrid") if function is getattr(np, name))
    if isinstance(function, np.ufunc) and not _is_numpys(function):
        return f"scipy.special.{function.__name__}"
    return _OPERATORS.get(function) or full_name(function)


if __name__ == "__main__":
    print(table(), end="")
