"""What is guessed of a call while it is traced takes no longer than a few iterations of its loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitml
from jitml.trace import examples


def _counted(x: Any) -> Any:
    """A length that a while inside a loop counts."""
    count = 0
    for k in range(6):
        t = x[k]
        while t < 1e5:
            t = t + 1.0
            count += 1
    return np.ones(count).sum()


def test_a_while_inside_a_loop_is_cut_short(monkeypatch: pytest.MonkeyPatch) -> None:
    shortened = []
    plain = examples._counted
    monkeypatch.setattr(examples, "_counted", lambda node, bodies: shortened.append(node) or plain(node, bodies))
    x = np.arange(10.0)
    assert jitml.jit(_counted)(x) == _counted(x)
    assert shortened
