"""Functions whose results are arguments, parts of them, or parts of each other: the rows of `test_sharing.py`."""

from __future__ import annotations

from tests.trace.regions.sharing import branches, loops, objects, views  # noqa: F401  # each adds its rows
from tests.trace.regions.sharing.rows import ROWS as ROWS
