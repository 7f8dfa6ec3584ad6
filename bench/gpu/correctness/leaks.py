"""Memory and processes: what is left on the device after many compilations and calls, and how a process ends."""

from __future__ import annotations

import gc
import subprocess
import sys
from functools import partial
from typing import Any

import numpy as np

from gpu.cases import Cases, Outcome, Setting
from gpu.failures import Mismatch
from gpu.supervision import environment

_MiB = 1 << 20
_SLACK = 8 * _MiB  # of growth: code of kernels that the driver has loaded


def cases(setting: Setting) -> Cases:
    yield "calls", calls
    yield "compilations", compilations
    for name, text in ENDS.items():
        yield f"the end of a process: {name}", partial(end_of_a_process, text, setting.backend)


def program(x: Any) -> Any:
    y = np.sort(np.exp(x - x.max()), axis=0)
    return y / y.sum(), y @ y.T


def used() -> int:
    """Bytes of the device that are taken, by all processes; it must be quiet for this."""
    from cuda.bindings import driver

    gc.collect()
    driver.cuCtxSynchronize()
    error, free, total = driver.cuMemGetInfo()
    if int(error):
        raise RuntimeError(str(error))
    return int(total) - int(free)


def calls() -> Outcome:
    import jitml

    jitted = jitml.jit(program, verify="never")
    x = np.random.default_rng(0).normal(size=(700, 600))
    for _ in range(5):
        jitted(x)
    before = used()
    for _ in range(200):
        jitted(x)
    return _grown(before)


def compilations() -> Outcome:
    import jitml

    def once(n: int) -> None:
        jitml.jit(program, verify="never", dynamic=False)(np.ones((100 + n, 50)))

    for n in range(3):
        once(n)
    before = used()
    for n in range(25):
        once(3 + n)
    return _grown(before)


def _grown(before: int) -> Outcome:
    grown = used() - before
    if grown > _SLACK:
        raise Mismatch(f"{grown / _MiB:.1f} MiB more are taken on the device than before")
    return {"figures": {"grown MiB": grown / _MiB}}


_HEAD = (
    "import numpy as np, jitml, sys\nf = jitml.jit(lambda x: (np.exp(x).sum(), x @ x), verify='never')\nx = np.ones((300, 300))\n"
)
ENDS = {
    "after a call": _HEAD + "print(f(x)[0])",
    "by an exception": _HEAD + "print(f(x)[0])\nsys.exit(3)",
    "with a thread that has called": _HEAD
    + "import threading\nt = threading.Thread(target=f, args=(x,)); t.start(); t.join(); print(1)",
    "results kept in a module": _HEAD + "sys.kept = f(x), f; print(2)",
}


def end_of_a_process(text: str, backend: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, env=environment(backend), timeout=25, check=False
    )
    wanted = 3 if "exit(3)" in text else 0
    if done.returncode != wanted or done.stderr.strip():
        raise Mismatch(f"exit status {done.returncode}, not {wanted}: {done.stderr[-2000:]}")
