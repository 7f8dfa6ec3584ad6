"""First answers are compared with plain NumPy's: what is wrong is told and corrected, and what is right goes on as it is."""

from __future__ import annotations

import dis
import functools
import inspect
import sys
import threading
import warnings
from time import sleep
from types import FunctionType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.api import Jit
from jitml.dispatch.renting import TimedTurn
from jitml.errors import WrongResultWarning
from jitml.trace.record.threads import others_run
from jitml.trace.traced import Traced
from jitml.verification.trial import Trial
from jitml.verification.verification import Verification

X = np.arange(6.0)


class Planted(Jit):
    """A jitted function whose compiled programs have a fault."""

    def __init__(self, function: Any, fault: Any, verify: str = "first") -> None:
        super().__init__(function, jitml.jit(function, verify=verify).options)
        self.fault = fault
        self.answers = 0
        self.compiled = self.engine._compile
        self.engine._compile = self._planted  # type: ignore[method-assign]

    def _planted(self, traced: Traced) -> Any:
        execute = self.compiled(traced)

        def wrong(*inputs: Any) -> Any:
            self.answers += 1
            return self.fault(execute, inputs)

        return wrong


def one_more(execute: Any, inputs: Any) -> Any:
    return [x + 1 if x.dtype.kind == "f" else x for x in execute(*inputs)]


def silently(function: Any, *args: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return function(*args)


def test_a_right_answer_is_checked_once_and_stays() -> None:
    f = jitml.jit(lambda x: np.exp(x).sum(), verify="first")
    verified = silently(f, X)
    (variant,) = f.variants
    assert variant.checked == "its first answer is as NumPy gives it"
    assert silently(f, X) == verified
    assert isinstance(variant.enter, FunctionType)  # the compiled call itself again


def test_a_wrong_answer_is_told_and_corrected() -> None:
    f = Planted(lambda x: x * 2, one_more)
    with pytest.warns(WrongResultWarning, match=r"the result\[0\] is np.float64\(1.0\), NumPy gives np.float64\(0.0\)"):
        np.testing.assert_array_equal(f(X), X * 2)
    np.testing.assert_array_equal(silently(f, X), X * 2)  # plain Python, from now on
    assert f.answers == 1
    assert len(f.variants) == 1
    assert "wrong in call 1" in f.explain(X)


def test_a_lost_write_is_told_and_made() -> None:
    def half_written(execute: Any, inputs: Any) -> Any:
        before = inputs[0][3]
        results = execute(*inputs)
        inputs[0][3] = before
        return results

    def add(x: Any) -> None:
        x += 1

    x = X.copy()
    with pytest.warns(WrongResultWarning, match=r"x\[3\]"):
        Planted(add, half_written)(x)
    np.testing.assert_array_equal(x, X + 1)


def test_a_wrong_attribute_is_told_and_set() -> None:
    class Model:
        def __init__(self) -> None:
            self.mean, self.history = 0.0, [1.0]

        def update(self, x: Any) -> None:
            self.mean = x.mean()
            self.history.append(self.mean)

    model = Model()
    step = Planted(Model.update, one_more)
    with pytest.warns(WrongResultWarning, match=r"self.mean"):
        step(model, X)
    assert (model.mean, model.history) == (2.5, [1.0, 2.5])


def test_arrays_are_left_as_the_program_has_left_them_to_the_last_bit() -> None:
    """Those that plain NumPy leaves with the same bits are not written again."""

    def rounded(execute: Any, inputs: Any) -> Any:
        results = execute(*inputs)
        inputs[0][:] = np.nextafter(inputs[0], np.inf)
        return results

    def change(x: Any, y: Any) -> None:
        x += 1
        y *= 2

    x, y = X.copy(), X.copy()
    silently(Planted(change, rounded), x, y)
    np.testing.assert_array_equal(x, np.nextafter(X + 1, np.inf))
    np.testing.assert_array_equal(y, X * 2)


def test_checks_are_no_time_of_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    answer, run = Planted(lambda x: x * 2, lambda execute, inputs: execute(*inputs), "always"), Trial.plainly
    silently(answer, X)
    monkeypatch.setattr(Trial, "plainly", lambda *args: (sleep(0.05), run(*args))[1])
    turn = TimedTurn()
    silently(answer, X)
    assert 0.0 < turn.seconds < 0.05
    assert not turn.is_usual(turn.seconds)


def test_never_and_always() -> None:
    never = Planted(lambda x: x * 2, one_more, "never")
    np.testing.assert_array_equal(silently(never, X), X * 2 + 1)
    calls = []

    def from_the_third(execute: Any, inputs: Any) -> Any:
        calls.append(1)
        return one_more(execute, inputs) if len(calls) > 2 else execute(*inputs)

    always = Planted(lambda x: x * 2, from_the_third, "always")
    assert silently(always, X)[0] == silently(always, X)[0] == 0
    with pytest.warns(WrongResultWarning):
        assert always(X)[0] == 0


def test_each_third_call() -> None:
    f = jitml.jit(lambda x: x + 1, verify=3)
    for call in range(1, 8):
        silently(f, X)
        last = call - (call - 1) % 3
        assert f.variants[0].checked.startswith("its first" if last == 1 else f"its answer to call {last} ")


def test_a_change_that_the_program_does_not_make_is_found() -> None:
    calls: list[int] = []
    f = jitml.jit(lambda x: x + 1, verify="always")
    f(X)
    f.variants[0].enter.function = lambda x: calls.append(1) or x + 1
    with pytest.warns(WrongResultWarning, match="calls is 0 items, NumPy gives 1"):
        f(X)
    assert calls == [1]


def test_what_is_drawn_is_drawn_once() -> None:
    rng, other = np.random.default_rng(0), np.random.default_rng(0)
    f = jitml.jit(lambda rng: rng.standard_normal(4), verify="first")
    for _ in range(2):
        np.testing.assert_array_equal(silently(f, rng), other.standard_normal(4))


@functools.lru_cache
def kept() -> Any:
    return np.zeros(6), [1.0], SimpleNamespace(v=1.0), np.random.default_rng(3)


def changing_what_is_kept(x: Any) -> Any:
    total, log, last, rng = kept()
    total += x
    log.append(total[1])
    last.v += x[1]
    return rng.normal() * x


@pytest.mark.loose
def test_what_a_cache_keeps_changes_once() -> None:
    """Nobody reaches it but by calling the cached function, as what a library's module keeps."""
    results = []
    for function in (changing_what_is_kept, jitml.jit(changing_what_is_kept, verify="first")):
        kept.cache_clear()
        results.append(repr(([silently(function, X * k) for k in range(3)], kept()[:3], kept()[3].bit_generator.state)))
    assert results[0] == results[1]


def test_effects_happen_once(capsys: pytest.CaptureFixture[str]) -> None:
    def f(x: Any) -> Any:
        print("once")
        return x + 1

    jitted = jitml.jit(f, verify="first")
    jitted(X)
    assert capsys.readouterr().out == "once\n"
    assert jitted.variants[0].checked == "not checked: it calls print, which others see"


def test_what_cannot_be_put_back_is_not_checked() -> None:
    class Holder:
        numbers = iter([1, 2])
        x = X

    f = jitml.jit(lambda holder: holder.x * 2, verify="first")
    np.testing.assert_array_equal(f(Holder()), X * 2)
    assert "whose state cannot be saved" in f.variants[0].checked


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.tanh(x).sum() - np.tanh(x)[::-1].sum(),  # nothing but rounding
        lambda x: np.sin(1e25 * np.exp(x)),
        lambda x: np.argmax(np.exp(x) - np.exp(x.copy()) + 0.0),
        lambda x: np.empty(5),  # anything at all
        lambda x: np.linalg.eigh(np.ones((3, 3)) + np.exp(x[:3] * 1e-17))[1],  # any basis of what is degenerate
    ],
    ids=["cancellation", "huge argument", "tie", "uninitialised", "degenerate"],
)
def test_no_false_alarm(function: Any) -> None:
    jitted = jitml.jit(function, verify="always")
    for _ in range(3):
        silently(jitted, X)


def test_a_jitted_function_inside_runs_as_python() -> None:
    inner = jitml.jit(lambda x: np.exp(x) + x, verify="first")
    outer = jitml.jit(lambda x: inner(x) + 1, verify="first")
    silently(outer, X)
    assert not inner.variants
    assert outer.variants[0].checked == "its first answer is as NumPy gives it"


def test_an_interrupt_leaves_all_as_it_was() -> None:
    x = X.copy()

    def add(x: Any) -> None:
        x += 1

    f = jitml.jit(add, verify="first")
    specializer = f.engine._specializer
    variant_of = specializer.make

    def make(*args: Any) -> Any:
        variant = variant_of(*args)
        variant.enter.function = interrupted  # what verification calls
        return variant

    specializer.make = make
    with pytest.raises(KeyboardInterrupt):
        f(x)
    np.testing.assert_array_equal(x, X)


def interrupted(x: Any) -> None:
    x[2] = 99
    raise KeyboardInterrupt


@pytest.mark.parametrize("option", ["sometimes", 0, True, -2, 1.5])
def test_options_that_mean_nothing(option: Any) -> None:
    with pytest.raises(ValueError, match="is neither 'first', 'always', 'never' nor a number of calls"):
        jitml.jit(lambda x: x, verify=option)


def test_an_exception_at_any_step_of_a_checked_call_leaves_nobody_who_checks() -> None:
    class Alarm(BaseException):
        pass

    checked = Verification(min, "min", lambda leaves: 7, None, lambda leaves: True, None, 1000, False, None, calls=1)  # type: ignore[arg-type]
    code = Verification.__call__.__code__
    lines, first = inspect.getsourcelines(code)
    last = first + next(n for n, line in enumerate(lines) if "finally:" in line)  # from there on none comes before the call
    steps = 0

    def trace(frame: Any, event: str, arg: Any) -> Any:
        nonlocal left
        if frame.f_code is not code:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode" and frame.f_lineno < last and dis.opname[code.co_code[frame.f_lasti]] != "NOP":
            left -= 1
            if left < 0:
                raise Alarm
        return trace

    while True:
        left, before = steps, sys.gettrace()
        sys.settrace(trace)
        try:
            assert checked([]) == 7
            break
        except Alarm:
            steps += 1
        finally:
            sys.settrace(before)
        assert not checked.callers
    assert steps > 20


def test_looking_at_further_calls_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes as long as there is much to look at."""
    held = SimpleNamespace(rows=[{"a": [float(n)], "b": [n, n]} for n in range(3)], factor=2.0)

    def f(held: Any, x: Any) -> Any:
        return x * held.factor

    fast = jitml.jit(f, verify="first")
    for _ in range(3):
        fast(held, X)
    assert type(fast.variants[0].enter) is Verification
    monkeypatch.setattr("jitml.verification.looks._MOST_SECONDS", 0.0)
    fast(held, X)
    assert type(fast.variants[0].enter) is not Verification
    assert fast.variants[0].checked == "its first answer is as NumPy gives it"


def test_a_thread_in_a_file_that_is_called_like_pythons_is_the_users() -> None:
    begun, end = threading.Event(), list[int]()
    code = compile("def wait(begun, end):\n    begun.set()\n    while not end:\n        pass", "my_threading.py", "exec")
    space: dict[str, Any] = {}
    exec(code, space)
    thread = threading.Thread(target=space["wait"], args=(begun, end), daemon=True)
    thread.start()
    begun.wait()
    try:
        assert others_run()
    finally:
        end.append(1)
        thread.join()
