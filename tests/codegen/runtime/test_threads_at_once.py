"""First calls of several threads at the same time."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

from jitml.codegen.llvm.runtime.singletons import once

PROGRAM = """
import threading
import numpy as np
import jitml

functions = [lambda x: (x * 2).sum(), lambda x: np.sort(-x), lambda x: np.sin(x) @ x, lambda x: x[::-1].cumsum()]
x, results = np.arange(5.0), {}


def first_call(k):
    results[k] = jitml.jit(functions[k % 4], verify="never")(x)


for turn in range(3):
    threads = [threading.Thread(target=first_call, args=(k,)) for k in range(turn * 4, turn * 4 + 4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
assert all(np.allclose(results[k], functions[k % 4](x)) for k in range(12))
"""


def test_a_process_that_begins_with_many() -> None:
    """Garbage of LLVM's was collected in an order that ended the process."""
    ran = subprocess.run([sys.executable, "-c", PROGRAM], check=False, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


def _made_by_threads(decorate: Any) -> int:
    barrier = Barrier(4)

    @decorate
    def make() -> object:
        for _ in range(1000):
            pass
        return object()

    def ask(_: int) -> object:
        barrier.wait()
        return make()

    with ThreadPoolExecutor(4) as pool:
        return len({id(x) for x in [*pool.map(ask, range(4))]})


def test_singletons_are_made_once() -> None:
    assert {_made_by_threads(once) for _ in range(20)} == {1}
