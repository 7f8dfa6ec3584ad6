"""Memory headroom: where a library would end the process for want of memory, plain Python answers, with a warning."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import jitml
from jitml.errors import StarvedError
from jitml.headroom import require_llvm, require_memory

resource = pytest.importorskip("resource", reason="limits of memory are POSIX's")

_CHILD = """
import resource, sys, warnings
import numpy as np, jitml
from jitml import jit  # what it brings needs memory of its own
def f(x):
    return np.exp(-x) @ x
x = np.ones((60, 60))
expected = f(x)
with open("/proc/self/statm") as file:
    now = int(file.read().split()[0]) * resource.getpagesize()
known = resource.getrlimit(resource.RLIMIT_AS)
resource.setrlimit(resource.RLIMIT_AS, (now + (int(sys.argv[1]) << 20), known[1]))
fast = jit(f)
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    assert np.allclose(fast(x), expected)
print(said[0].message if said else "", len(fast.variants))
resource.setrlimit(resource.RLIMIT_AS, known)
assert np.allclose(fast(x), expected)
print(len(fast.variants))
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="asks Linux how much memory it has")
@pytest.mark.parametrize("mebibytes", [8, 300])
def test_a_starved_process_answers_and_compiles_when_there_is_memory_again(mebibytes: int) -> None:
    ran = subprocess.run([sys.executable, "-c", _CHILD, str(mebibytes)], check=False, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    first, code, later = ran.stdout.splitlines()
    assert first.startswith("f was not compiled: no memory for ")
    assert first.endswith("each call tries again")
    assert code.startswith("JM301: ") and code.endswith(" 0")
    assert later == "1"


def test_more_than_there_can_be_is_no_memory() -> None:
    require_memory(1 << 20, "a little")
    with pytest.raises(StarvedError, match="no memory for a lot: some"):
        require_memory(1 << 62, "a lot")
    with pytest.raises(MemoryError, match="no memory for LLVM to compile"):
        require_llvm(text=1 << 54)


def test_the_report_says_that_there_is_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jitml.headroom._MARGIN", 1 << 61)
    fast = jitml.jit(lambda x: np.cos(x) * 2)
    with pytest.warns(jitml.errors.UncompiledWarning, match="no memory for the compiler"):
        assert fast(0.0) == 2.0
