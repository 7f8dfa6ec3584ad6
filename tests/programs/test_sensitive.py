"""Programs whose numbers are nothing but rounding are told from those that jitml has got wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from programs.drawn import outcomes
from programs.drawn.outcomes import is_sensitive, judge

_HEAD = """
import numpy as np

def arguments(call):
    return ({x},)

def program(x):
"""
CHAOS = {
    "cancellation": ("np.array([[3, -3, 16, -16]], np.int16) + call * 0", "y = np.tanh(x)[0]; return y[::2] + y[1::2]"),
    "large powers": (
        "np.arange(1.0, 18.0) + call",
        "for i in range(2): y = np.sin(x); x = np.power(x + x @ x, 9.0)\n    return y",
    ),
}
SOUND = {
    "elements": ("np.linspace(0.1, 3.0, 9) + call", "return np.sin(x) * 2.0 + np.cos(x)"),
    "sums": ("np.linspace(0.1, 3.0, 9) + call", "return np.exp(x) @ x, (x ** 3).sum(), np.cumsum(x)"),
    "exact sums": ("np.arange(6.0) + call", "return x.sum() == 15.0 + 6 * (x[0] + 0.0), x @ x, np.exp(x)"),
}


def text_of(x: str, body: str) -> str:
    return _HEAD.format(x=x) + f"    {body}\n"


@pytest.mark.parametrize("name", CHAOS)
def test_what_is_nothing_but_rounding(name: str) -> None:
    assert is_sensitive(text_of(*CHAOS[name]))


@pytest.mark.parametrize("name", SOUND)
def test_wrong_numbers_are_different(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text, jit = text_of(*SOUND[name]), outcomes.jitml.jit
    assert judge(text, exact=False).kind == "equal"

    def wrong(f: Any) -> Any:
        def slightly(x: Any) -> Any:
            result = f(x)
            *rest, last = result if isinstance(result, tuple) else (result,)
            last = last * (1 + 1e-8)
            return (*rest, last) if rest else last

        return jit(slightly)

    monkeypatch.setattr(outcomes.jitml, "jit", wrong)
    assert judge(text, exact=False).kind == "different"
    assert not is_sensitive(text)


def test_other_kinds_of_results_are_different(monkeypatch: pytest.MonkeyPatch) -> None:
    jit = outcomes.jitml.jit
    monkeypatch.setattr(outcomes.jitml, "jit", lambda f: jit(lambda x: f(x).astype(np.float64)))
    assert judge(text_of(*CHAOS["cancellation"]), exact=False).kind == "different"
