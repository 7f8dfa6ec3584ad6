"""`import jitml` is cheap: what only the first trace, derivative or compilation needs waits for it."""

from __future__ import annotations

import subprocess
import sys

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
