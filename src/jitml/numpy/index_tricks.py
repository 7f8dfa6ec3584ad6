"""`np.r_[...]` and `np.c_[...]` with traced parts; without any they are NumPy's own, and so are `mgrid` and `ogrid`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jitml.numpy.joining import concatenate
from jitml.numpy.operands import as_array, holds_traced, not_compiled
from jitml.numpy.reshaping import atleast_1d, reshaped
from jitml.trace.registry import implements
from jitml.trace.tracers import TracedArray


def _joining(name: str, place: Callable[[TracedArray], TracedArray]) -> Callable[[Any], Any]:
    plain = getattr(np, name)

    def index(key: Any) -> Any:
        items = key if isinstance(key, tuple) else (key,)
        if not holds_traced(list(items)):
            return as_array(plain[key])
        if any(isinstance(i, str) for i in items):
            not_compiled(name, "with a string of directives", "np.concatenate and np.stack take an axis.")
        parts = [as_array(plain[i]) if isinstance(i, slice) else as_array(i) for i in items]
        return concatenate([place(part) for part in parts], -1)

    return index


for _name, _place in (("r_", atleast_1d), ("c_", lambda x: reshaped(x, (x.size, 1)) if x.ndim < 2 else x)):
    implements(getattr(np, _name))(_joining(_name, _place))
