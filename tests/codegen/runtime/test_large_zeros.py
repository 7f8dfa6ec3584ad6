"""Zeros that may not all be touched come from the system, page by page."""

from __future__ import annotations

import ctypes
import mmap
import subprocess
import sys
from itertools import product

import numpy as np
import pytest

import jitml
from jitml.codegen.llvm.ir.conventions import CLEAR
from jitml.codegen.llvm.runtime.arena import arenas
from jitml.kernels.program import Call

PAGE = mmap.PAGESIZE


@pytest.mark.parametrize(("start", "size"), list(product((0, 1, 64, PAGE - 1), (0, 1, PAGE - 1, PAGE, PAGE + 1, 3 * PAGE + 8))))
def test_what_is_cleared_is_zero_and_nothing_else(start: int, size: int) -> None:
    with mmap.mmap(-1, 6 * PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        there = np.frombuffer(memory, np.uint8)
        there[...] = 7
        clear = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(arenas()[CLEAR])
        clear(there.ctypes.data + start, size)
        expected = np.full(6 * PAGE, 7, np.uint8)
        expected[start : start + size] = 0
        np.testing.assert_array_equal(there, expected)
        del there


def marked(places, n):
    board = np.zeros(20_000)
    for k in range(len(places)):
        board[places[k]] += k + 1.0
    return board[::n].sum(), board[places].copy()


def calls_of_zeros(f, *args):
    steps = jitml.jit(f).lower(*args).program.kernels.steps
    return [step for step in steps if isinstance(step, Call) and step.name == "zeros"]


def test_large_zeros_are_zero_at_every_call(monkeypatch):
    places = np.arange(0, 20_000, 37)
    assert not calls_of_zeros(marked, places, 1)
    monkeypatch.setattr("jitml.fusion.write_group.UNTOUCHED_BYTES", 100_000)
    assert len(calls_of_zeros(marked, places, 1)) == 1
    compiled = jitml.jit(marked)
    assert CLEAR in compiled.lower(places, 1).llvm
    for shift in range(5):
        for n in (1, 3):
            for got, expected in zip(compiled(places + shift, n), marked(places + shift, n)):
                np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("fill", [1.0, -0.0, np.nan])
def test_other_numbers_are_written(fill, monkeypatch):
    monkeypatch.setattr("jitml.fusion.write_group.UNTOUCHED_BYTES", 100_000)

    def f(places):
        board = np.full(20_000, fill)
        for k in range(len(places)):
            board[places[k]] += k + 1.0
        return board[::7].copy()

    places = np.arange(0, 20_000, 37)
    assert not calls_of_zeros(f, places)
    got, expected = jitml.jit(f)(places), f(places)
    np.testing.assert_array_equal(got, expected)
    np.testing.assert_array_equal(np.signbit(got), np.signbit(expected))


SECOND = """
import numpy as np, jitml

def settled(x):
    while np.abs(x).sum() > 0.5:
        x = 0.9 * x + 0.001 * np.sin(x)
    return (x * x).sum()

def slope(x):
    return (jitml.grad(settled)(x) ** 2).sum()

x = np.linspace(1, 2, 20)
got = jitml.jit(jitml.grad(slope))(x)
step = 1e-5 * np.eye(len(x))
wanted = [(slope(x + d) - slope(x - d)) / 2e-5 for d in step]
np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-9)
with open("/proc/self/status") as f:  # ru_maxrss begins with what the parent process had
    (peak,) = (line for line in f if line.startswith("VmHWM"))
print(int(peak.split()[1]) // 1024)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere zeros are written")
def test_reverse_over_reverse_of_a_while_touches_what_ran():
    """Of the gigabyte that it may save there are a few pages in use."""
    environment = {"JITML_SAVED_BYTES": str(1 << 30), "PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run([sys.executable, "-c", SECOND], capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 512  # MiB
