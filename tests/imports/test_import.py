"""`import jitml` is cheap: each name is imported when it is asked for, and what the first trace needs when that begins."""

from __future__ import annotations

import doctest
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import jitml
from jitml.imports.late import late, late_class

pytestmark = pytest.mark.every_row

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


WARM = """
import sys
import numpy as np
before = set(sys.modules)
import jitml
@jitml.jit
def f(x, y):
    z = x * 2.0 + y
    for _ in range(3):
        z = z + np.sin(z) * 0.5
    return np.where(z > 0, z, -z).sum(axis=0) + np.sqrt(x[0])
x = np.linspace(0, 1, 12000).reshape(300, 40)
f(x, x + 1)
assert len(f.variants) == 1
print(len([name for name in sys.modules if name.partition(".")[0] == "jitml"]), len(sys.modules.keys() - before))
rare = "jitml.fusion jitml.trace.rewrite.function jitml.sections.split jitml.numpy.numerics.fft jitml.autograd"
print([name for name in (rare + " numpy.ma numpy.random numpy.fft logging decimal subprocess").split() if name in sys.modules])
"""
# Modules of ours, and all that a first call imports, llvmlite's and the standard library's with them. It is some 0.2 ms for each.
MOST_MODULES, MOST_IN_ALL, MOST_COMPILING = 153, 252, 508


def test_what_a_first_call_brings_if_its_program_is_on_disk(tmp_path: Path) -> None:
    """Who adds a module here makes the first call of every process slower: import it where it is needed (`imports/late.py`)."""
    script = tmp_path / "program.py"
    script.write_text(WARM)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("JITML_")}
    environment |= {"JITML_CACHE_DIR": str(tmp_path / "cache"), "JITML_TRIAL": "0"}
    first, then = (
        subprocess.run([sys.executable, script], capture_output=True, text=True, check=True, env=environment).stdout.splitlines()
        for _ in range(2)
    )
    assert int(first[0].split()[0]) <= MOST_COMPILING
    assert then[1] == "[]"
    ours, everything = map(int, then[0].split())
    assert ours <= MOST_MODULES and everything <= MOST_IN_ALL


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A module that counts how often it is run, and what stands for it in the globals of a user."""
    (tmp_path / "brought_late.py").write_text("import builtins, time\nbuiltins.runs.append(1)\ntime.sleep(0.05)\nvalue = 7\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("builtins.runs", [], raising=False)
    user: dict[str, Any] = {"late": late}
    exec("brought = late('brought_late')\ndef ask():\n    return brought.value", user)
    yield user
    sys.modules.pop("brought_late", None)


def runs() -> int:
    return len(sys.modules["builtins"].runs)


def test_a_late_module_is_imported_when_it_is_asked(module: Any) -> None:
    assert runs() == 0 and "brought_late" not in sys.modules
    assert module["ask"]() == 7 and module["brought"] is sys.modules["brought_late"]
    assert module["ask"]() == 7 and runs() == 1
    with pytest.raises(AttributeError, match="no_such"):
        module["brought"].no_such  # noqa: B018  # the lookup is what is tested


def test_threads_that_ask_at_once_wait_for_one_import(module: Any) -> None:
    found: list[int] = []
    threads = [threading.Thread(target=lambda: found.append(module["ask"]())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [7] * 8 and runs() == 1


def test_a_late_module_that_fails_is_imported_again(module: Any, tmp_path: Path) -> None:
    whole = (tmp_path / "brought_late.py").read_text()
    (tmp_path / "brought_late.py").write_text("raise MemoryError")
    with pytest.raises(MemoryError):
        module["ask"]()
    (tmp_path / "brought_late.py").write_text(whole)
    assert module["ask"]() == 7


def test_an_exception_from_outside_ends_the_wait_and_not_the_import(module: Any) -> None:
    import signal

    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        with pytest.raises(KeyboardInterrupt):
            module["ask"]()
    finally:
        signal.signal(signal.SIGALRM, before)
    assert module["ask"]() == 7 and runs() == 1


def test_nothing_is_of_a_class_whose_module_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    from fractions import Fraction

    kind, half = late_class("fractions", "Fraction"), Fraction(1, 2)
    assert isinstance(half, kind) and isinstance(half, (int, kind)) and issubclass(Fraction, kind)
    assert not isinstance(0.5, kind) and not issubclass(float, kind)
    monkeypatch.delitem(sys.modules, "fractions")
    assert not isinstance(half, kind) and not isinstance(half, late_class("fractions", "NoSuch"))


MANY = """
import gc
import sys
import numpy
import jitml
from jitml.process import importing
gc.collect()
with importing():
    for n in range(10):
        __import__(f"one_of_many_{n}")
young = gc.get_objects(generation=0) + gc.get_objects(generation=1)
made = sys.modules["one_of_many_3"].made
print(len(young) < 3000, gc.get_freeze_count() < 1000, any(x is made for x in gc.get_objects(generation=2)))
"""


def test_what_imports_make_is_looked_through_no_more(tmp_path: Path) -> None:
    for n in range(10):
        (tmp_path / f"one_of_many_{n}.py").write_text("made = [[] for _ in range(3000)]")
    path = os.pathsep.join([str(tmp_path), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", MANY], capture_output=True, text=True, check=True, env=os.environ | {"PYTHONPATH": path}
    )
    assert done.stdout == "True True True\n"


def test_what_a_program_has_frozen_stays_so() -> None:
    program = "import gc, numpy, jitml; gc.freeze(); n = gc.get_freeze_count(); jitml.jit(lambda x: x + 1)(numpy.ones(3)); "
    program += "import jitml.engine; print(gc.get_freeze_count() > 0.9 * n)"
    environment = os.environ | {"JITML_TRIAL": "0"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout == "True\n"


FURTHER = """
import sys
import threading
import numpy as np
from jitml.trace.trace import trace
from jitml.ir import ops

def simple(x): return np.sin(x) + 1.0
def further(x): return np.linalg.norm(x) + np.unique(x).sum() + np.fft.rfft(x).real.sum()

x = np.arange(5.0)
trace(simple, (x,), {})
late = ["jitml.numpy.selection.sets", "jitml.numpy.numerics.fft", "jitml.numpy.linear_algebra.norms"]
print([name for name in late if name in sys.modules])
found = []
threads = [threading.Thread(target=lambda: found.append(trace(further, (x,), {}, host_calls=False))) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(len(found), [name for name in late if name not in sys.modules])
"""


def test_topics_of_numpy_come_with_their_functions() -> None:
    """In threads that meet the first one at once, too; none takes a function for one that is not compiled."""
    done = subprocess.run([sys.executable, "-c", FURTHER], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("[]\n4 []\n", "")


def test_a_topic_that_fails_leaves_nothing_half_known() -> None:
    program = """
import sys
import numpy as np
import jitml.numpy
from jitml.trace.values.registry import FUNCTIONS, REGISTRY
REGISTRY.register_imported()
np.reshape in FUNCTIONS  # what has come before stays
before = dict(FUNCTIONS)
sys.modules["jitml.numpy.reductions.statistics"] = None  # an import of it fails, when norms have brought much already
try:
    np.linalg.norm in FUNCTIONS
except ImportError:
    print(dict(FUNCTIONS) == before)
sys.modules.pop("jitml.numpy.reductions.statistics", None)
print(*(f in FUNCTIONS for f in (np.unique, np.linalg.norm, np.linalg.det, np.fft.fft, np.flip)))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("True\nTrue True True True True\n", "")


def test_topics_are_where_their_functions_are_looked_for() -> None:
    """A function that is known only once a topic has come for another reason would be called, and not compiled, before."""
    each = """
import sys
from jitml.numpy.topics import TOPICS
from jitml.trace.values.registry import FUNCTIONS, REGISTRY
REGISTRY.register_imported()
further, missing = dict(REGISTRY._further), []
REGISTRY.complete()
every = list(dict.items(FUNCTIONS))
for key, meaning in every:
    home = getattr(getattr(meaning, "func", meaning), "__module__", "")
    if home in further:
        del FUNCTIONS[key]
        REGISTRY._further = dict(further)
        found = []
        REGISTRY._import = found.append
        key in FUNCTIONS
        if home not in found:
            missing.append((home, key))
        FUNCTIONS[key] = meaning
print(missing)
"""
    assert subprocess.run([sys.executable, "-c", each], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_a_topic_may_be_imported_by_its_name_after_the_first_trace() -> None:
    """It waited for ever for another topic, which a thread of ours imported, and which imports this one."""
    program = """
import numpy as np, jitml
jitml.jit(lambda x: x + 1, strict=True)(np.ones(3))
import jitml.numpy.linear_algebra.factorizations
print(jitml.jit(lambda x: np.linalg.norm(np.linalg.inv(x)), strict=True)(np.eye(4)))
"""
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True, timeout=120)
    assert done.stdout == "2.0\n", done.stderr
