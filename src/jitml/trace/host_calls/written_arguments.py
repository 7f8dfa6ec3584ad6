"""Written arguments: does a library's function write into what it is given?  The program would not know: that is refused.

What it would write may be what is there, in the call that is traced. So arrays are lent to it, where whoever writes gets NumPy's
ValueError; code written in Fortran does not ask, but has names for such arguments.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from jitml.trace.record.pytree import flatten
from jitml.trace.record.recording import unsupported
from jitml.trace.values.boxing import is_traced

Array = np.ndarray[Any, Any]
_OUTPUTS = ("distances", "out", "output")


def require_no_output(name: str, function: Callable[..., Any], args: Any, kwargs: Mapping[str, Any]) -> None:
    """Refuse arguments that ask a function to write into what it is given."""
    given = _by_name(function, args, kwargs)
    written = [x for word in _OUTPUTS for x in flatten(given.get(word))[0]]
    overwritten = any(word.startswith("overwrite_") and given[word] is not False for word in given)
    if overwritten or any(is_traced(x) or type(x) is np.ndarray for x in written):
        how = "output=, out= or overwrite_...="
        unsupported(f"{name} with {how} is not supported in jitted code", "Assign its result: x[...] = f(...).")


def _by_name(function: Callable[..., Any], args: Any, kwargs: Mapping[str, Any]) -> Mapping[str, Any]:
    """The arguments by the names of their parameters, as far as these are known."""
    try:
        return {**inspect.signature(function).bind_partial(*args).arguments, **kwargs}
    except (TypeError, ValueError):
        return kwargs


def lent(x: Array) -> Array:
    """The same memory, where nobody may write."""
    seen = x.view()
    seen.flags.writeable = False
    return seen


def differ(before: Sequence[Array], after: Sequence[Array]) -> bool:
    """Whether something has been written into one of these."""
    return any(x.tobytes() != y.tobytes() for x, y in zip(before, after))
