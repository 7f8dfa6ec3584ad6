"""Memory that arrays show and other objects lend: what these hold is read after it has been written, as in Python."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import jitml

Array = np.ndarray[Any, Any]
Lent = tuple[Any, Array]  # what lends memory, and an array that shows it


def of_bytes() -> Lent:
    lender = bytearray(24)
    return lender, np.frombuffer(lender)


def of_a_view() -> Lent:
    lender = bytearray(24)
    return memoryview(lender)[:8].toreadonly(), np.frombuffer(lender)


def of_numbers() -> Lent:
    lender = array("d", [0.0, 0.0, 0.0])
    return lender, np.frombuffer(lender)


def of_an_array() -> Lent:
    rows = np.zeros((3, 2))
    return memoryview(rows[:, 0]), rows[:, 0]


def of_a_record() -> Lent:
    records = np.zeros(3, dtype=[("a", "f8"), ("b", "i4")])
    return records[0], records["a"]


def apart() -> Lent:
    return bytearray(24), np.zeros(3)


def held(lender: Any) -> Any:
    return lender["a"] if isinstance(lender, np.void) else lender[0]


def read_afterwards(get: Callable[[], Any]) -> Callable[..., Any]:
    def f(a: Array, x: Array) -> Any:
        a[:] = x
        return a * x, held(get())

    return f


def read_before(get: Callable[[], Any]) -> Callable[..., Any]:
    def f(a: Array, x: Array) -> Any:
        was = held(get())
        for i in range(3):
            a[i] = x[i] + was
        return was

    return f


@pytest.mark.loose
@pytest.mark.parametrize("make", [read_afterwards, read_before])
@pytest.mark.parametrize("lent", [of_bytes, of_a_view, of_numbers, of_an_array, of_a_record, apart])
def test_what_is_written_is_read(lent: Callable[[], Lent], make: Callable[..., Any]) -> None:
    found = []
    for compiled in (False, True):
        lender, a = lent()
        holder = SimpleNamespace(lender=lender)
        f = make(lambda holder=holder: holder.lender)
        f = jitml.jit(f) if compiled else f
        found.append([(np.copy(x), f(a, x), a.tolist()) for x in (np.full(3, 1.5), np.arange(3.0), np.full(3, 3e-310))])
    assert repr(found[1]) == repr(found[0])


BYTES = bytearray(24)


@pytest.mark.loose
def test_another_array_may_lie_there() -> None:
    """What the first call has written was apart, what a later one writes is not."""

    def f(a: Array, x: Array) -> Any:
        a[:] = x
        return a * x, BYTES[6]

    compiled, x = jitml.jit(f), np.full(3, 1.5)
    assert compiled(np.zeros(3), x)[1] == 0
    before = bytes(BYTES)
    assert compiled(np.frombuffer(BYTES), x)[1] == np.full(3, 1.5).tobytes()[6]
    BYTES[:] = before
