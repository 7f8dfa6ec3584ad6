"""Large arrays that a program only reads are not copied for the check: who writes them nevertheless is found."""

from __future__ import annotations

import sys
import threading
import warnings
from types import FrameType
from typing import Any

import numpy as np
import pytest
from tests.verification.test_verification import Planted, one_more, silently

import jitml
from jitml.errors import CompilerError, WrongResultWarning
from jitml.verification.blockwise_comparison import same_bits
from jitml.verification.rounding import ROUNDING, within
from jitml.verification.saved_state import SavedState

SIZE = 40_000  # numbers: more than what is copied anyway


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads of the test runner's do not count: with them, all is copied."""
    frames, mine = sys._current_frames, threading.get_ident()
    others = frames().keys() - {mine}

    def seen() -> dict[int, FrameType]:
        caller = sys._getframe(1)
        return {thread: at for thread, at in frames().items() if thread not in others} | {mine: caller}

    monkeypatch.setattr(sys, "_current_frames", seen)


def large() -> Any:
    return np.linspace(0.0, 1.0, SIZE)


def ask_instead(jitted: Any, function: Any) -> None:
    """Have another function called where the plain one is, to compare answers."""
    make = jitted.engine._specializer.make

    def planted(*args: Any) -> Any:
        variant = make(*args)
        variant.enter.function = function
        return variant

    jitted.engine._specializer.make = planted


def constants(*arrays: Any, function: Any = None, written: Any = ()) -> list[str]:
    state = SavedState([(function, "f"), *((x, f"x{n}") for n, x in enumerate(arrays))], 1 << 30, written=list(written))
    return sorted(state.name_of(x) for x in state.constants.values())


def test_what_is_copied() -> None:
    x, y = large(), large()
    assert constants(x, y, np.ones(5)) == ["x0", "x1"]
    assert constants(x, y, written=[x[7:9]]) == ["x1"]
    assert constants(x, x[::2], x[5:]) == ["x0", "x2"]
    assert constants(np.frombuffer(bytearray(8 * SIZE))) == []  # NumPy might not let it be written again
    assert constants(x, function=lambda x: x.base) == []
    assert constants(x, memoryview(y)) == []
    waiting = threading.Event()
    thread = threading.Thread(target=waiting.wait)
    thread.start()
    assert constants(x) == []  # the thread might find it frozen
    waiting.set()
    thread.join()


def test_frozen_arrays_are_as_they_were_afterwards() -> None:
    x = large()
    read_only = x[:20_000]
    read_only.flags.writeable = False
    arrays = [x[1:], x, x[2:][1:], read_only]
    state = SavedState([(a, f"x{n}") for n, a in enumerate(arrays)], 0, written=[])
    with pytest.raises(ZeroDivisionError):
        state.frozen(lambda: any(a.flags.writeable for a in arrays) or 1 // 0)
    assert [a.flags.writeable for a in arrays] == [True, True, True, False]


def test_the_bound_is_for_copies() -> None:
    f = jitml.jit(lambda x, y: x @ y, verify="first")
    silently(f, large(), large())
    assert f.variants[0].checked == "its first answer is as NumPy gives it"


@pytest.mark.parametrize("write", ["x[3] = 5", "x += 1", "np.add(x, 1, out=x)", "x.sort()", "x[::2][1:] = 0", "x.T.fill(2)"])
def test_a_write_that_the_program_does_not_make(write: str) -> None:
    scope: dict[str, Any] = {"np": np}
    exec(f"def writes(x):\n    {write}\n    return x[0]", scope)
    f = jitml.jit(lambda x: x[0], verify="first")
    ask_instead(f, scope["writes"])
    x, expected = large()[::-1].copy(), large()[::-1].copy()
    scope["writes"](expected)
    with pytest.warns(WrongResultWarning):
        f(x)
    np.testing.assert_array_equal(x, expected)
    x[0] = 1  # still writeable


def test_what_would_rather_write_is_asked_with_copies() -> None:
    def writes_and_undoes(x: Any) -> Any:
        before = x[0]
        x[0] = 5
        x[0] = before
        return x.sum()

    x = large()
    assert silently(jitml.jit(writes_and_undoes, verify="first"), x) == pytest.approx(x.sum())


def test_a_wrong_answer_of_an_array_that_is_read() -> None:
    f = Planted(lambda x: (x * 2, x[5:]), one_more)
    x = large()
    with pytest.warns(WrongResultWarning):
        doubled, part = f(x)
    np.testing.assert_array_equal(doubled, x * 2)
    part[0] = 7  # a view that may be written, as NumPy's
    assert x[5] == 7


def test_a_program_that_writes_what_it_reads_is_told_of() -> None:
    def stray(execute: Any, inputs: Any) -> Any:
        results = execute(*inputs)
        inputs[0][:] += 1
        return results

    f = Planted(lambda x: x.sum(), stray)
    with pytest.raises(CompilerError, match="its program has written x"):
        f(large())
    assert f(large()) == large().sum()


def test_transposed_results_are_not_taken_for_equal() -> None:
    """Memory that is the same, read by rows and by columns."""
    a = np.arange(6.0).reshape(2, 3)
    b = np.arange(6.0).reshape(3, 2).T
    assert not same_bits(a, b)
    assert same_bits(a, np.asfortranarray(a))
    f = Planted(
        lambda x: np.asfortranarray(x * 1.0), lambda execute, inputs: [r.reshape(3, 2).T.copy() for r in execute(*inputs)]
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.testing.assert_array_equal(f(a), a)


@pytest.mark.parametrize("dtype", ["f8", "f4", "c16", "f2"])
def test_closeness_block_by_block_is_that_of_the_whole(dtype: str) -> None:
    rng = np.random.default_rng(0)
    slack = ROUNDING[np.zeros(1, dtype).real.dtype]
    close = within(ROUNDING[np.dtype(np.float64)])
    x = rng.standard_normal(100_001).astype(dtype)
    x[5], x[6], x[70_000] = np.nan, np.inf, 1e3
    y = x.copy()
    y[80_000] += slack * 500  # by the largest number of all, which is in another block
    z = x.copy()
    z[90_000] = np.nan
    with np.errstate(all="ignore"):
        assert close(y, x)
        assert not close(z, x)
        y[80_000] += slack * 2000
        assert not close(y, x)
