"""Quick code answers at first, full code takes over: when, for whom, and what may come in between."""

from __future__ import annotations

import ctypes
import gc
import inspect
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jitml
from codegen.tiers import Gate, same_bits, tier
from jitml.codegen.llvm.ir.conventions import ModulePart
from jitml.codegen.llvm.runtime import compiler, executable, jit
from jitml.codegen.llvm.runtime.cpu import host_cpu
from jitml.codegen.run import background
from jitml.codegen.run.background import BACKGROUND
from jitml.disk_cache import DiskCache
from jitml.errors import StarvedError

X = np.linspace(0.1, 1.0, 1000)
LIMIT = 60.0  # seconds


def long(x: np.ndarray[Any, Any], k: float = 3.25) -> object:
    for n in range(1, 8):
        x = np.sin(x) + x / (n + x * x)
    return x * k


def number(of: float) -> str:
    return f"0x{np.float64(of).view(np.uint64):016X}"


@pytest.fixture(autouse=True)
def auto(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As users have it, on a machine with two cores, and nothing on disk."""
    cache = DiskCache(tmp_path, 1 << 24)
    monkeypatch.setattr(jit, "disk_cache", lambda: cache)
    monkeypatch.setattr(jit, "usable_cores", lambda: 2)
    monkeypatch.setattr(jit, "is_limited", lambda: False)
    with tier("auto"):
        yield
    assert jitml.settle(LIMIT)


@pytest.fixture
def gate() -> Iterator[Gate]:
    """Full code is not made before it is opened."""
    gate = Gate()
    BACKGROUND.take(gate)
    assert gate.entered.wait(LIMIT)
    yield gate
    gate.opened.set()


def executable_of(f: Any) -> Any:
    (variant,) = f.variants
    return variant.executable


def test_quick_code_answers_until_the_full_one_takes_over(gate: Gate) -> None:
    f = jitml.jit(long)
    quick, program = f(X), executable_of(f)
    assert (program.tier, program.is_made_better) == ("quick", True)
    assert "quick code, until the full one is made" in f.explain(X)
    assert not jitml.settle(0.01)
    gate.opened.set()
    assert jitml.settle(LIMIT)
    assert (program.tier, program.is_made_better, program.better.outcome) == ("full", False, "done")
    assert "quick code" not in f.explain(X)
    assert same_bits(f(X), quick)
    np.testing.assert_allclose(quick, long(X), rtol=1e-14)


@pytest.mark.parametrize("is_portable", [False, True])
def test_all_that_calls_the_program_runs_the_code_that_took_over(
    is_portable: bool, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The full code is spoilt here, so that it shows: another factor."""
    full = jit.full_code
    if is_portable:
        monkeypatch.setattr(executable, "native_calls", lambda: False)

    def spoilt(part: ModulePart, cpu: Any) -> bytes:
        text = part.text.replace(number(3.25), number(6.5))
        return full(part._replace(text=text), cpu)

    monkeypatch.setattr(jit, "full_code", spoilt)
    f = jitml.jit(long)
    for _ in range(20):
        assert same_bits(f(X), f(X))
    quick, program, entries = f(X), executable_of(f), f.engine._entries
    np.testing.assert_allclose(quick, long(X), rtol=1e-14)
    gate.opened.set()
    assert jitml.settle(LIMIT)
    assert is_portable or entries.have_answered()
    np.testing.assert_allclose(f(X), 2 * quick)
    assert is_portable or entries.have_answered()  # the entry that there was: it is linked to the program, not to its code
    np.testing.assert_allclose(program(X, *[3.25] * (len(program.inputs) - 1))[0], 2 * quick)


def test_shapes_that_the_program_says_are_the_full_codes_too(gate: Gate) -> None:
    def masked(x: np.ndarray[Any, Any], n: int) -> Any:
        return long(x)[:n], np.nonzero(x > 0.5)

    f = jitml.jit(masked, dynamic=True)
    results = [f(X, n) for n in (3, 700)]
    gate.opened.set()
    assert jitml.settle(LIMIT)
    for n, (part, (places,)) in zip((3, 700), results):
        assert part.shape == (n,)
        again, (later,) = f(X, n)
        assert same_bits(again, part) and same_bits(later, places)


def test_calls_under_way_end_in_the_code_that_they_began_in() -> None:
    f, wrong, ending = jitml.jit(long), [], threading.Event()
    expected = f(X)

    def call() -> None:
        while not ending.is_set():
            if not same_bits(f(X), expected):
                wrong.append(1)

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    others = [jitml.jit(lambda x, k=k: long(x, k)) for k in (1.5, 2.5, 4.5)]
    results = [g(X) for g in others]
    assert jitml.settle(LIMIT)
    ending.set()
    for thread in threads:
        thread.join(LIMIT)
    assert not wrong and not any(thread.is_alive() for thread in threads)
    assert executable_of(f).tier == "full" == executable_of(others[-1]).tier
    assert all(same_bits(g(X), result) for g, result in zip(others, results, strict=True))


def test_only_full_code_is_kept_on_disk(gate: Gate) -> None:
    f, folder = jitml.jit(long), Path(str(jit.disk_cache().folder))
    f(X)
    kept = {path.name for path in folder.glob("**/*") if path.is_file()}
    gate.opened.set()
    assert jitml.settle(LIMIT)
    assert {path.name for path in folder.glob("**/*") if path.is_file()} > kept
    again = jitml.jit(long)
    again(X)
    assert executable_of(again).tier == "full" and executable_of(again).better is None


@pytest.mark.parametrize("error", [StarvedError("no memory"), MemoryError(), KeyboardInterrupt()])
def test_without_memory_for_the_full_code_the_quick_one_stays(
    error: BaseException, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    f = jitml.jit(long)
    quick = f(X)

    def starve(**sizes: int) -> None:
        raise error

    monkeypatch.setattr(jit, "require_llvm", starve)
    gate.opened.set()
    assert jitml.settle(LIMIT)
    program = executable_of(f)
    assert (program.tier, program.is_made_better) == ("quick", False)
    assert type(error).__name__ in program.better.outcome
    assert same_bits(f(X), quick)
    assert "quick code" in f.explain(X) and "until" not in f.explain(X)


def test_without_a_thread_the_quick_code_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "has_room_to_start", lambda start: False)
    f = jitml.jit(long)
    f(X)
    assert (executable_of(f).tier, executable_of(f).is_made_better) == ("quick", False)
    assert jitml.settle(LIMIT)


def test_what_nobody_has_any_more_is_not_made(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[ModulePart] = []
    f = jitml.jit(long)
    f(X)
    job = executable_of(f).better
    monkeypatch.setattr(jit, "full_code", lambda part, cpu: made.append(part) or b"")
    f.clear_cache()
    del f
    gc.collect()
    gate.opened.set()
    assert jitml.settle(LIMIT)
    assert not made and job.outcome == "nobody has the program any more"


def test_the_background_does_not_hold_up_what_is_compiled_now(monkeypatch: pytest.MonkeyPatch) -> None:
    """LLVM makes code for both at once: neither waits for llvmlite's lock."""
    inside, leave, unserialised = threading.Event(), threading.Event(), jit._unserialised

    def slow(name: str) -> Any:
        def call(*args: Any) -> Any:
            inside.set()
            assert leave.wait(LIMIT)
            return unserialised(name)(*args)

        return call

    monkeypatch.setattr(jit, "_unserialised", slow)
    f, g = jitml.jit(long), jitml.jit(lambda x: long(x, 7.0))
    first = f(X)
    assert inside.wait(LIMIT)
    np.testing.assert_allclose(g(X), long(X, 7.0), rtol=1e-14)
    assert executable_of(f).tier == "quick"
    leave.set()
    assert jitml.settle(LIMIT)
    assert executable_of(f).tier == executable_of(g).tier == "full"
    assert same_bits(f(X), first)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("is_under_way", [False, True])
@pytest.mark.parametrize("settles", [False, True])
def test_a_child_goes_on_with_what_was_to_be_done(
    is_under_way: bool, settles: bool, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also with the job that was under way, and where it only waits for better code."""
    run, begun, leave = compiler.Upgrade.run, threading.Event(), threading.Event()

    def held(self: compiler.Upgrade) -> None:
        begun.set()
        assert leave.wait(LIMIT)
        run(self)

    monkeypatch.setattr(compiler.Upgrade, "run", held)
    f = jitml.jit(long)
    expected, program = f(X), executable_of(f)
    if is_under_way:
        gate.opened.set()
        assert begun.wait(LIMIT)
    child = os.fork()
    if not child:
        signal.alarm(int(LIMIT))
        gate.opened.set()
        leave.set()
        if settles:
            jitml.settle(LIMIT)
        while program.is_made_better:
            assert same_bits(f(X), expected)
        os._exit(0 if program.tier == "full" and same_bits(f(X), expected) else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert program.tier == "quick"
    leave.set()


class Noted:
    def __init__(self, outlasts: bool) -> None:
        self.outlasts, self.became = outlasts, ""

    def run(self) -> None:
        self.became = "done"

    def give_up(self, why: str) -> None:
        self.became = why


def test_where_python_ends_only_that_is_done_of_which_later_processes_have_something(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, others = Noted(outlasts=False), Noted(outlasts=True)
    BACKGROUND.take(ours)
    BACKGROUND.take(others)
    monkeypatch.setattr(background.threading, "main_thread", lambda: threading.Thread())  # noqa: PLW0108
    gate.opened.set()
    assert jitml.settle(LIMIT)
    assert (ours.became, others.became) == ("Python ends", "done")


SUPPORT = """
define i64 @jitml_squares(i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %more, %loop ]
  %sum = phi i64 [ 0, %entry ], [ %next, %loop ]
  %square = mul i64 %i, %i
  %next = add i64 %sum, %square
  %more = add i64 %i, 1
  %again = icmp slt i64 %more, %n
  br i1 %again, label %loop, label %done
done:
  ret i64 %next
}
"""


def test_the_first_process_of_all_has_quick_code_of_what_each_needs(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    cpu, levels, generate = host_cpu(), [], jit.generate
    monkeypatch.setattr(jit, "generate", lambda *a, level: levels.append(level) or generate(*a, level=level))

    def squares() -> int:
        code = jit.load(SUPPORT, level=2, imports={}, exports=("jitml_squares",), is_first=True)
        return int(ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(code["jitml_squares"])(5))

    assert (squares(), levels) == (30, [0])
    gate.opened.set()
    assert jitml.settle(LIMIT)
    assert levels == [0, 2] and jit.disk_cache().get(jit.object_key(SUPPORT, cpu, level=2)) is not None
    assert (squares(), levels) == (30, [0, 2])  # as in a later process
    monkeypatch.setattr(jit, "disk_cache", lambda: DiskCache(None, 0))
    assert (squares(), levels) == (30, [0, 2, 2])  # there will be no later one that has it


END = """
import os, threading, time
import numpy as np
import jitml
from jitml.codegen.llvm.runtime import compiler, jit
jit.usable_cores = lambda: 2
run = compiler.Upgrade.run
compiler.Upgrade.run = lambda self: (time.sleep(0.5), run(self))
{function}
X = np.linspace(0.1, 1.0, 1000)
def main():
    f = jitml.jit(long)
    f(X)
    return f
f = main()
print(f.variants[0].executable.tier, flush=True)
{end}
"""
ENDS = {
    "of itself": "",
    "by an error": "raise SystemExit(0)",
    "from another thread": "t = threading.Thread(target=lambda: f(X)); t.start()",
    "at once": "os._exit(0)",
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS.keys())
def test_a_process_ends_while_code_is_made(end: str, tmp_path: Path) -> None:
    """It does without a word; and what it has made, another one has, unless it was gone at once."""
    environment = os.environ | {"JITML_TIER": "auto", "JITML_CHECK": "0", "JITML_CACHE_DIR": str(tmp_path / "cache")}
    program = tmp_path / "program.py"
    program.write_text(END.format(function=inspect.getsource(long).replace("np.ndarray[Any, Any]", "object"), end=end))
    for expected in ("quick", "quick" if "_exit" in end else "full"):
        ran = subprocess.run(
            [sys.executable, str(program)], check=False, capture_output=True, text=True, env=environment, timeout=LIMIT
        )
        assert (ran.returncode, ran.stdout, ran.stderr) == (0, f"{expected}\n", "")


def test_where_quick_code_does_not_pay(monkeypatch: pytest.MonkeyPatch) -> None:
    def tier_of(function: Any, *args: Any, **options: Any) -> str:
        f = jitml.jit(function, **options)
        f(*args)
        return str(executable_of(f).tier)

    def halved(x: float) -> Any:
        y = X
        while x > 1e-3:
            x, y = x / 2, long(y)
        return y

    assert tier_of(long, X + 1) == "quick"
    assert tier_of(halved, 1.0) == "full"  # who knows how long it takes?
    assert tier_of(lambda x: long(x, 8.5), np.ones(30_000_000, np.float32)) == "full"  # a call takes longer than LLVM
    assert tier_of(lambda x: long(x, 9.5), X, fastmath=True) == "full"  # other bits, perhaps
    assert tier_of(lambda x: x + 1, X) == "full"  # it is short
    monkeypatch.setattr(background, "MANY", 0)
    assert tier_of(lambda x: long(x, 10.5), X) == "full"  # many wait already
    monkeypatch.setattr(background, "MANY", 64)
    monkeypatch.setattr(jit, "usable_cores", lambda: 1)
    assert tier_of(lambda x: long(x, 11.5), X) == "full"
    monkeypatch.setattr(jit, "usable_cores", lambda: 2)
    monkeypatch.setattr(jit, "is_limited", lambda: True)
    assert tier_of(lambda x: long(x, 13.5), X) == "full"
    monkeypatch.setattr(compiler, "CONFIG", replace(compiler.CONFIG, tier="quick"))
    assert tier_of(lambda x: long(x, 12.5), X) == "quick"
