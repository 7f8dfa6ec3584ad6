"""What is known of a call while it is traced takes no longer than some loops of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import jitml
from jitml.errors import UnknownSizeError
from jitml.trace.record import concrete_evaluation


def _counted(x: Any) -> Any:
    """A length that a while inside a loop counts."""
    count = 0
    for k in range(6):
        t = x[k]
        while t < 1e5:
            t = t + 1.0
            count += 1
    return np.ones(count).sum()


def test_a_size_that_a_long_loop_counts_has_no_limit() -> None:
    x = np.arange(10.0)
    with pytest.raises(UnknownSizeError, match="a size that only the running program knows has no limit"):
        jitml.jit(_counted)(x)


@pytest.mark.loose
def test_what_a_long_loop_counts_is_pythons() -> None:
    x = np.arange(10.0)
    assert jitml.jit(_counted)(x) == _counted(x)


def _decided(x: Any) -> Any:
    """Which of two results that cannot be merged, a loop tells that takes long."""
    total = 0.0
    while total < 1e6:
        total = total + x[0]
    return x if total > 1e6 else (x, x)


@pytest.mark.loose
def test_which_way_a_long_loop_tells_is_pythons() -> None:
    for x in (np.ones(2), np.full(2, 3.0)):
        got, expected = jitml.jit(_decided)(x), _decided(x)
        assert type(got) is type(expected)
        assert_array_equal(got, expected)


def _growing(x: Any, y: Any) -> Any:
    """An array whose two sizes change as a loop goes on: memory of gigabytes is reserved for it."""
    for i in range(5):
        for k in range(y.shape[0]):
            v = np.where(np.eye(i) > 2, np.sum(y), x[:i] >> (y.shape[0] & 3))
            x.sort()
            v -= x[k % 5]
            x[x < 4] = x[x < 4][::-1]
    for _ in v:
        last = v.reshape(-1)
    return last


def test_memory_that_is_only_reserved_is_not_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    reserved, refused = [], []
    plain_run, plain_look = concrete_evaluation._examples_of_node, concrete_evaluation._reserves_much

    def run(node: Any, operands: Any, params: Any) -> Any:
        if any(v.aval.is_static and v.aval.nbytes > 1 << 30 for v in node.outputs):
            reserved.append(node)
            raise MemoryError  # rather than to take it
        return plain_run(node, operands, params)

    def look(node: Any) -> bool:
        if found := plain_look(node):
            refused.append(node)
        return found

    monkeypatch.setattr(concrete_evaluation, "_examples_of_node", run)
    monkeypatch.setattr(concrete_evaluation, "_reserves_much", look)
    jitted = jitml.jit(_growing)
    for n in (5, 1):
        x, y = np.arange(n, dtype=np.uint8), np.ones(n, np.float32)
        assert_array_equal(jitted(x.copy(), y), _growing(x.copy(), y))
    assert refused and not reserved
