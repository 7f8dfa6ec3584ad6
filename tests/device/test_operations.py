"""Operations on device arrays outside `jit`: NumPy's functions, operators and methods, each compiled by itself."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.device.memory import ArrayDevice

x = np.arange(24, dtype=np.float64).reshape(4, 6) / 7 + 0.1

OPERATIONS: list[Callable[[Any], Any]] = [
    lambda a: a + 1, lambda a: 1 - a, lambda a: a * a, lambda a: a / 2.5, lambda a: a**2, lambda a: 2**a, lambda a: -a, abs,
    lambda a: a @ a.T, lambda a: a > 1, lambda a: a == a, lambda a: (a > 1) & ~(a > 2), lambda a: a // 0.3, lambda a: a % 0.3,
    np.exp, np.add.reduce, lambda a: np.maximum.accumulate(a, axis=1), lambda a: a.sum(axis=1),
    lambda a: a.mean(), lambda a: a.argmax(), lambda a: np.concatenate([a, a]), lambda a: np.where(a > 1, a, 0),
    lambda a: np.einsum("ij,ij->i", a, a), lambda a: a.astype(np.float32), lambda a: a[a > 1], lambda a: a[[0, 2]],
    lambda a: a.T.reshape(-1), np.linalg.norm, lambda a: np.stack([a[0], a[1]]), lambda a: a.flatten(),
    lambda a: np.float32(2) * a, lambda a: np.ones(6) + a, lambda a: a.clip(0.5, 1.0), lambda a: a.copy(),
    copy.copy, copy.deepcopy,
    lambda a: np.percentile(a, 30), lambda a: np.histogram(a, bins=3)[0], lambda a: a.take([1, 2]), lambda a: a.conj().real,
    lambda a: a.__array_namespace__().tanh(a),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(OPERATIONS)))
def test_is_computed_on_the_device(device: ArrayDevice, number: int) -> None:
    operation = OPERATIONS[number]
    plain = operation if number != len(OPERATIONS) - 1 else np.tanh
    result, expected = operation(jitml.asarray(x, device="cuda")), plain(x)
    assert type(result) is jitml.Array and result.dtype == np.asarray(expected).dtype
    np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-12)


def test_operations_in_place_change_the_array(device: ArrayDevice) -> None:
    a, b, expected = jitml.asarray(x, device="cuda"), None, x.copy()
    b = a
    for y in (a, expected):
        y += 1
        y[1:, ::2] *= 3
        y[0] = y[2]
        y[y > 5] = 0
        y.sort(axis=0)
        np.add(y, 1, out=y)
    assert a is b
    np.testing.assert_allclose(np.asarray(a), expected)


def test_a_host_array_takes_what_is_written_into_it(device: ArrayDevice) -> None:
    total = np.zeros(6)
    same = total
    for row in jitml.asarray(x, device="cuda"):
        total += row
    assert total is same
    np.testing.assert_allclose(total, x.sum(axis=0))


def test_functions_are_compiled_once_for_a_kind_of_arguments(device: ArrayDevice) -> None:
    a = jitml.asarray(x, device="cuda")
    np.arctan2(a, a)
    copies = device.copies.to_host
    np.arctan2(a, 2 * a[::-1].copy() - a)
    assert device.copies.to_host == copies  # no answer is checked again


@pytest.mark.loose
def test_what_is_not_compiled_runs_on_copies(device: ArrayDevice) -> None:
    a = jitml.asarray(x[0], device="cuda")
    assert np.array_str(a) == np.array_str(x[0])
    found = np.apply_along_axis(_odd, 0, a)
    assert found.device == "cuda" and float(found) == _odd(x[0])


def _odd(row: Any) -> Any:
    return float(memoryview(np.ascontiguousarray(row))[0])
