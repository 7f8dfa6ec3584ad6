"""The choice of threads: a small loop runs the way that has been faster."""

from __future__ import annotations

import ctypes
import sys
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from jitml.codegen.llvm.ir.thread_choice import CHOICE, FIRST, MOST, PATIENCE, TRIES
from jitml.codegen.llvm.runtime.cpu import host_cpu
from jitml.codegen.llvm.runtime.jit import Code, generate, link, parse
from jitml.codegen.llvm.runtime.threads import pool

TOGETHER, ALONE = 0, 1

# The choice with a clock that the test sets, and one loop run: which way it goes, and how long that takes in either.
CLOCKWORK = """
@time = internal global i64 0

define internal i64 @clock() {
  %now = load i64, ptr @time
  ret i64 %now
}

define i32 @run(ptr %body, i64 %n, i64 %together, i64 %alone, i1 %helped) {
  %site = call ptr @site_of(ptr %body, i64 %n)
  %way = call i32 @way_of(ptr %site)
  %is.alone = icmp eq i32 %way, 1
  %takes = select i1 %is.alone, i64 %alone, i64 %together
  %since = call i64 @clock()
  %then = add i64 %since, %takes
  store i64 %then, ptr @time
  call void @learn(ptr %site, i32 %way, i64 %n, i64 %since, i1 %helped)
  ret i32 %way
}
"""

Run = Callable[..., int]


@pytest.fixture
def run() -> Iterator[Run]:
    code: Code = link([generate(parse(CLOCKWORK + CHOICE), host_cpu(), level=2)], imports={}, exports=("run",))
    function = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_int64] * 4, ctypes.c_bool)(code["run"])
    yield lambda code, n, together, alone, helped=True: function(code, n, together, alone, helped)


def test_both_ways_are_tried_and_the_faster_one_is_kept(run: Run) -> None:
    for code, together, alone, kept in ((1 << 20, 500, 1000, TOGETHER), (1 << 21, 1000, 500, ALONE), (1 << 22, 950, 1000, ALONE)):
        ways = [run(code, 100, together, alone) for _ in range(2 * TRIES + FIRST)]
        assert ways == [TOGETHER] * TRIES + [ALONE] * TRIES + [kept] * FIRST


def test_what_stays_as_it_is_is_tried_ever_more_rarely(run: Run) -> None:
    ways = [run(1 << 20, 100, 500, 1000) for _ in range(20_000)][2 * TRIES :]
    stints, gap = [], FIRST
    while ways:
        stints.append((ways[:gap], ways[gap : gap + TRIES]))
        ways, gap = ways[gap + TRIES :], min(2 * gap, MOST)
    assert all(set(settled) == {TOGETHER} for settled, _ in stints)
    assert all(set(tried) <= {ALONE} for _, tried in stints)
    assert sum(len(tried) for _, tried in stints) < 100


def test_a_core_that_is_taken_away_and_given_back_is_seen(run: Run) -> None:
    def share(times: int, together: int) -> float:
        return sum(run(1 << 20, 100, together, 1000) == TOGETHER for _ in range(times)) / times

    assert share(5000, 500) > 0.95
    assert [run(1 << 20, 100, 4000, 1000) for _ in range(40)][-1] == ALONE  # at once, not at the next trial
    assert share(1000, 4000) < 0.1
    assert share(3 * MOST, 500) > 0.5


def test_a_trial_waits_until_a_worker_is_awake(run: Run) -> None:
    """What workers that sleep do not change says nothing of two threads. If none comes, the loop is its caller's."""
    code = 1 << 20
    for awake_after, kept in ((PATIENCE // 2, TOGETHER), (10**6, ALONE)):
        code += 1 << 12
        helped = [i >= awake_after for i in range(300)]
        ways = [run(code, 100, 500 if each else 1100, 1000, each) for each in helped]
        assert ways.index(ALONE) == min(awake_after, PATIENCE) + TRIES
        assert ways[100:].count(kept) > 100


def test_loops_that_take_turns_are_tried_together(run: Run) -> None:
    """Where one loop leaves what the next one reads, two threads pay only if both have them."""
    loops, ways = (1 << 20, 1 << 21), [ALONE, ALONE]

    def turn(far: bool) -> None:
        for i, code in enumerate(loops):
            is_far = far or ways[1 - i] == ALONE
            ways[i] = run(code, 100, 3000 if is_far else 500, 1000)

    for _ in range(2 * TRIES):
        turn(far=True)  # other processes hold the cores
    for _ in range(FIRST // 3):
        ways[1] = run(loops[1], 100, 3000, 1000)  # its next trial would come sooner than the other one's
    assert ways == [ALONE, ALONE]
    for _ in range(4 * FIRST):
        turn(far=False)
    assert ways == [TOGETHER, TOGETHER]


def test_one_interruption_changes_nothing(run: Run) -> None:
    for _ in range(500):
        run(1 << 20, 100, 500, 1000)
    assert run(1 << 20, 100, 10_000_000, 1000) == TOGETHER
    assert run(1 << 20, 100, 500, 1000) == TOGETHER


def test_lengths_are_told_apart(run: Run) -> None:
    """A long loop may pay where a short one of the same code does not."""
    for _ in range(50):
        run(1 << 20, 10, 1000, 500)
        run(1 << 20, 1000, 500, 1000)
    assert run(1 << 20, 10, 1000, 500) == ALONE
    assert run(1 << 20, 1000, 500, 1000) == TOGETHER


def test_a_row_that_another_loop_takes_begins_anew(run: Run) -> None:
    """More loops than there are rows: each tries both ways again, and none learns from another."""
    for code in range(1, 2000):
        assert run(code << 12, 100, 500, 1000) == TOGETHER


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="there no thread helps")
def test_a_loop_that_workers_hold_up_runs_alone() -> None:
    caller, took_part = threading.get_ident(), []

    @ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
    def body(_: int, start: int, stop: int) -> None:
        helps = threading.get_ident() != caller
        took_part[-1] |= helps
        time.sleep(0.005 if helps else 0.0001 * (stop - start))

    start = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 2, *[ctypes.c_int64] * 3, ctypes.c_int32)(pool()["jitml_pool_run"])
    for _ in range(2 * TRIES + FIRST):
        took_part.append(False)
        start(ctypes.cast(body, ctypes.c_void_p).value, None, 0, 20, 1, 2)
    assert sum(took_part[2 * TRIES :]) <= TRIES
