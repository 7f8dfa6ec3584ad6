"""`import jitml` is cheap: what only the first trace, derivative or compilation needs waits for it."""

from __future__ import annotations

import doctest
import subprocess
import sys

import pytest

import jitml

PROGRAM = """
import sys
import jitml
heavy = {"scipy", "llvmlite", "numba", "jitml.numpy", "jitml.autograd", "jitml.pipeline", "jitml.fusion.fuse"}
print(sorted(heavy & set(sys.modules)))
print(all(hasattr(jitml, name) for name in jitml.__all__), jitml.numpy.__name__, jitml.jvp.__module__)
print(set(jitml.__all__) <= set(dir(jitml)), hasattr(jitml, "no_such_name"))
"""


def test_what_import_brings() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[]", "True jitml.numpy jitml.autograd.api.directions", "True False"]


@pytest.mark.parametrize("name", [name for name in jitml.__all__ if ">>>" in str(getattr(jitml, name).__doc__)])
def test_examples_need_nothing_but_public_names(name: str) -> None:
    """What `help` shows can be typed as it stands, after `from jitml import *`."""
    names = {public: getattr(jitml, public) for public in jitml.__all__}
    example = doctest.DocTestParser().get_doctest(getattr(jitml, name).__doc__, {"jitml": jitml, **names}, name, None, 0)
    assert doctest.DocTestRunner(verbose=False).run(example).failed == 0
