"""A program that cannot have the memory it needs raises MemoryError; the process lives on."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import resource
import numpy as np, jitml

@jitml.jit
def gram(x, out):
    np.matmul(x.T, x, out=out)

@jitml.jit
def spread(x, out):
    e = np.exp(x)
    out[...] = ((e - e.mean(axis=1, keepdims=True)) ** 2).sum(axis=1)

def limited(function, *args):
    function(*args)  # compiles, and takes what stays
    expected = args[-1].copy()
    with open("/proc/self/statm") as f:
        now = int(f.read().split()[0]) * resource.getpagesize()
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (now + (1 << 16), limits[1]))
    try:
        function(*args)
        outcome = "enough"
    except MemoryError as error:
        outcome = str(error)
    resource.setrlimit(resource.RLIMIT_AS, limits)
    function(*args)
    assert np.array_equal(args[-1], expected)
    return outcome

rng = np.random.default_rng(0)
print(limited(gram, rng.normal(size=(200000, 180)), np.empty((180, 180))))
print(limited(spread, rng.normal(size=(2, 60000)), np.empty(2)))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits the address space as Linux does")
def test_scratch_that_cannot_be_had() -> None:
    environment = {**os.environ, "MALLOC_ARENA_MAX": "1"}  # else there is what the memory of threads that have ended has room for
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    outcomes = done.stdout.splitlines()
    assert outcomes[0] == "no memory for the scratch of a compiled program"
    assert outcomes[1] in ("enough", outcomes[0])  # a small scratch may come from what the process has already


KEPT = """
import resource
import numpy as np, jitml

f = jitml.jit(lambda x: (np.sort(x * 2)[::-1] * 3).sum())
x = np.ones(4_000_000)
f(x[:1000]), f(x[:2000])  # for any length from then on
jitml.jit(lambda x: x * 2)(np.ones(10_000_000))  # 80 MB, which nobody holds: they are kept
with open("/proc/self/statm") as file:
    now = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (now + (30 << 20), resource.getrlimit(resource.RLIMIT_AS)[1]))
assert f(x) == 24_000_000
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits the address space as Linux does")
def test_scratch_may_have_what_is_kept_for_results() -> None:
    environment = {**os.environ, "JITML_KEPT_BYTES": str(100 << 20)}
    done = subprocess.run([sys.executable, "-c", KEPT], capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
