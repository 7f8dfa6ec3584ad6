"""A function that does not end for 0 is computed for no element but those that the program has, however they move around."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import jitml
from support.cuda_emulation import has_compiler
from support.cuda_emulation.device import emulated

numba = pytest.importorskip("numba")
POSITIVE, EVEN = np.arange(1, 38), np.arange(37) * 2  # the second has a 0, which the functions leave out


@jitml.elementwise
def collatz(n: Any) -> Any:
    count = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        count += 1
    return count


def joined(n: Any) -> Any:
    return np.concatenate([collatz(n), n * 2, collatz(n[::2])])


def padded(n: Any) -> Any:
    return np.pad(collatz(n), 3) + 1


def picked(m: Any) -> Any:
    return collatz(m[m > 0])


def total_of_picked(m: Any) -> Any:
    return collatz(m[m > 0]).sum()


def rolled(n: Any) -> Any:
    return np.roll(collatz(n), 2) * 2


def in_part(n: Any) -> Any:
    y = np.zeros_like(n)
    y[3:20] = collatz(n[3:20])
    return y


def where_it_holds(m: Any) -> Any:
    y, holds = np.zeros_like(m), m > 0
    y[holds] = collatz(m[holds])
    return y


def triangle(n: Any) -> Any:
    return np.tril(collatz(n[:36].reshape(6, 6)))


def convolved(n: Any) -> Any:
    return np.convolve(collatz(n), [1, 2, 1])


def of_longer_and_longer(n: Any) -> Any:
    total = 0
    for k in range(1, len(n)):
        total += collatz(n[:k]).sum()
    return total


def one_by_one(m: Any) -> Any:
    y = np.zeros_like(m)
    for k in range(len(m)):
        if m[k] > 0:
            y[k] = collatz(m[k])
    return y


def summed_up(n: Any) -> Any:
    return np.cumsum(collatz(n)), np.sort(collatz(n))[::-1][:5]


OF_POSITIVE = (joined, padded, rolled, in_part, triangle, convolved, of_longer_and_longer, summed_up)
OF_EVEN = (picked, total_of_picked, where_it_holds, one_by_one)
CASES = [*((f, POSITIVE) for f in OF_POSITIVE), *((f, EVEN) for f in OF_EVEN)]


@pytest.fixture(autouse=True)
def ends() -> Iterator[None]:
    """A loop in machine code hears no exception: the process ends, with the stack of what it was in."""
    signal.alarm(120)
    yield
    signal.alarm(0)


@pytest.mark.parametrize(("f", "x"), CASES, ids=[f.__name__ for f, _ in CASES])
def test_no_other_elements_are_computed(f: Callable[..., Any], x: Any) -> None:
    found, wanted = jitml.jit(f, strict=True)(x), f(x)
    for mine, numpys in zip(found, wanted, strict=True) if type(wanted) is tuple else [(found, wanted)]:
        np.testing.assert_array_equal(mine, numpys)


@pytest.mark.skipif(not has_compiler(), reason="kernels are emulated by g++")
@pytest.mark.parametrize("f", [picked, one_by_one], ids=lambda f: f.__name__)
def test_nor_on_a_gpu(f: Callable[..., Any]) -> None:
    with emulated():
        np.testing.assert_array_equal(jitml.jit(f, device="cuda", verify="never")(EVEN), f(EVEN))
