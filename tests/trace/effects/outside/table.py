"""Things that Python code does to what others see, one kind a row: `(act, state)`, made anew for each run.

`act(v)` does it, given a number of NumPy's, and may return one; `state()` says what others see of it.
"""

from __future__ import annotations

from tests.trace.effects.outside import (  # noqa: F401  # each adds its rows
    attributes,
    caches,
    classes,
    containers,
    helpers,
    iterators,
    names,
    objects,
    sources,
    special_methods,
)
from tests.trace.effects.outside.rows import ROWS as ROWS
