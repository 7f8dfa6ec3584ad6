"""Functions full of control flow, on plain numbers and lists: the rows of `test_control.py`.

Each takes a list of ints and an int. They are pure, so that a body may be run twice.
"""

from __future__ import annotations

from tests.trace.rewrite.control import exceptions, expressions, scopes, statements, whole  # noqa: F401  # each adds its rows
from tests.trace.rewrite.control.rows import PROGRAMS as PROGRAMS
