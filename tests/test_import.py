"""`import jitml` is cheap: each name is imported when it is asked for, and what the first trace needs when that begins."""

from __future__ import annotations

import doctest
import subprocess
import sys

import pytest

import jitml

PROGRAM = """
import sys
import jitml
print(sorted(name for name in sys.modules if name.partition(".")[0] == "jitml"))
jitml.jit
heavy = {"scipy", "llvmlite", "numba", "jitml.numpy", "jitml.autograd", "jitml.pipeline", "jitml.fusion.fuse"}
print(sorted(heavy & set(sys.modules)))
print(all(hasattr(jitml, name) for name in jitml.__all__), jitml.numpy.__name__, jitml.jvp.__module__)
print(set(jitml.__all__) <= set(dir(jitml)), hasattr(jitml, "no_such_name"))
"""


def test_what_import_brings() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    at_once, *rest = done.stdout.splitlines()
    assert at_once == "['jitml', 'jitml.config', 'jitml.errors', 'jitml.options', 'jitml.records']"
    assert rest == ["[]", "True jitml.numpy jitml.autograd.api.directions", "True False"]


NAMES = """
import sys
import jitml
first = dir(jitml)
jitml.jit(lambda x: x + 1)(1)
jitml.grad(lambda x: x * x)(1.0)
jitml.numpy.ones(3)
print(dir(jitml) == first == sorted({*jitml.__all__, "__version__", "typing"}), all(hasattr(jitml, name) for name in first))
"""


def test_names_are_public_and_each_is_told_once() -> None:
    done = subprocess.run([sys.executable, "-c", NAMES], capture_output=True, text=True, check=True)
    assert done.stdout == "True True\n"
    assert not [name for name in jitml.__all__ if name.startswith("_")] and len({*jitml.__all__}) == len(jitml.__all__)


ENGINE = """
import sys
import jitml.engine
rare = ["dispatch.eager", "dispatch.numpy_execution", "ir.passes", "pipeline", "fusion", "kernels", "memory", "codegen"]
print([name for name in rare if f"jitml.{name}" in sys.modules])
"""


def test_what_the_engine_brings() -> None:
    """Not what transforms outside `jit`, and compilers of what no earlier process has compiled, need."""
    done = subprocess.run([sys.executable, "-c", ENGINE], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


STANDALONE = """
import numpy as np
from {module} import {name}
print(float({call}))
"""


@pytest.mark.parametrize(
    ("module", "name", "call"),
    [
        ("jitml", "jit", "jit(np.sum)(np.ones(3))"),
        ("jitml.api", "jit", "jit(lambda x: np.dot(x, x))(np.ones(3))"),
        ("jitml", "grad", "grad(lambda x: (x * x).sum() / 2)(np.full(1, 3.0))[0]"),
        ("jitml.autograd.api", "grad", "grad(lambda x: (x * x).sum() / 2)(np.full(1, 3.0))[0]"),
        ("jitml", "vmap", "vmap(lambda x: x.sum())(np.ones((3, 1))).sum()"),
        ("jitml", "cond", "cond(True, lambda x: x, lambda x: -x, 3.0)"),
        ("jitml", "trace", "trace is not None and 3"),
        ("jitml.trace.trace", "trace", "len(trace(lambda x: x * 2, (np.ones(3),), {}).graph.outputs) + 2"),
    ],
)
def test_each_part_can_be_imported_first(module: str, name: str, call: str) -> None:
    program = STANDALONE.format(module=module, name=name, call=call)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("3.0\n", "")


@pytest.mark.parametrize("name", [name for name in jitml.__all__ if ">>>" in str(getattr(jitml, name).__doc__)])
def test_examples_need_nothing_but_public_names(name: str) -> None:
    """What `help` shows can be typed as it stands, after `from jitml import *`."""
    names = {public: getattr(jitml, public) for public in jitml.__all__}
    example = doctest.DocTestParser().get_doctest(getattr(jitml, name).__doc__, {"jitml": jitml, **names}, name, None, 0)
    assert doctest.DocTestRunner(verbose=False).run(example).failed == 0
