"""The pool: every iteration exactly once, from many threads, at any count, across fork and exit."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

from jitml.codegen.llvm.ir.conventions import LOOK
from jitml.codegen.llvm.ir.cpu import AARCH64
from jitml.codegen.llvm.ir.flags import flags_ir, mode_ir
from jitml.codegen.llvm.runtime.cpu import host_cpu, usable_cores
from jitml.codegen.llvm.runtime.jit import Code, addresses, generate, link, parse
from jitml.codegen.llvm.runtime.safepoints import safepoints
from jitml.codegen.llvm.runtime.threads import LIBC, pool, pool_ir

# A body that adds 1 to each of its cells, one that runs the first as a parallel loop of its own, one
# that notes its piece, and one that notes its thread.
BODIES = """
declare void @jitml_pool_run(ptr, ptr, i64, i64, i64, i32)

define void @count(ptr %cells, i64 %from, i64 %to) {
  br label %loop
loop:
  %i = phi i64 [ %from, %0 ], [ %i1, %loop ]
  %p = getelementptr i64, ptr %cells, i64 %i
  %x = load i64, ptr %p
  %y = add i64 %x, 1
  store i64 %y, ptr %p
  %i1 = add i64 %i, 1
  %more = icmp slt i64 %i1, %to
  br i1 %more, label %loop, label %out
out:
  ret void
}

define void @nested(ptr %cells, i64 %from, i64 %to) {
  call void @jitml_pool_run(ptr @count, ptr %cells, i64 %from, i64 %to, i64 1, i32 4)
  ret void
}

define void @note(ptr %cells, i64 %from, i64 %to) {
  %p = getelementptr i64, ptr %cells, i64 %from
  %n = sub i64 %to, %from
  store i64 %n, ptr %p
  ret void
}

declare ptr @pthread_self()

define void @who(ptr %cells, i64 %from, i64 %to) {
  %own = call ptr @pthread_self()
  %tid = ptrtoint ptr %own to i64
  br label %loop
loop:
  %i = phi i64 [ %from, %0 ], [ %i1, %loop ]
  %p = getelementptr i64, ptr %cells, i64 %i
  store volatile i64 %tid, ptr %p
  %i1 = add i64 %i, 1
  %more = icmp slt i64 %i1, %to
  br i1 %more, label %loop, label %out
out:
  ret void
}
"""


@cache
def bodies(runner: Code) -> Code:
    imports = addresses(ctypes.CDLL(None), ("pthread_self",)) | {"jitml_pool_run": runner["jitml_pool_run"]}
    return link([generate(parse(BODIES), host_cpu(), level=1)], imports=imports, exports=("count", "nested", "note", "who"))


@cache
def without_threads() -> Code:
    """What runs loops on systems that have no futexes."""
    code = generate(parse(pool_ir(host_cpu(), linux=False)), host_cpu(), level=1)
    return link([code], imports={}, exports=("jitml_pool_run",))


def pool_run(runner: Code) -> Callable[..., None]:
    signature = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 2, *[ctypes.c_int64] * 3, ctypes.c_int32)
    return signature(runner["jitml_pool_run"])


def run(
    cells: np.ndarray, *, threads: int, grain: int = 1, body: str = "count", begin: int = 0, runner: Code | None = None
) -> None:
    runner = runner or pool()
    pool_run(runner)(bodies(runner)[body], cells.ctypes.data, begin, len(cells), grain, threads)


@pytest.mark.parametrize("body", ["count", "nested"])
@pytest.mark.parametrize("threads", [1, 2, 3, 8, 2])
def test_each_iteration_runs_once(threads: int, body: str) -> None:
    for n in (0, 1, 2, 7, 1000, 4097):
        for grain in (1, 3, 64, 10_000):
            cells = np.zeros(n, np.int64)
            run(cells, threads=threads, grain=grain, body=body)
            assert (cells == 1).all()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="there all is one piece")
@pytest.mark.parametrize("grain", [1, 16])
def test_pieces_are_large_at_first_and_small_at_the_end(grain: int) -> None:
    cells = np.zeros(1000, np.int64)
    run(cells, threads=2, grain=grain, body="note")
    pieces = cells[cells > 0].tolist()
    middle = pieces.index(min(pieces[:-1]))  # the caller comes from the front, the worker from the back
    assert sum(pieces) == 1000
    assert pieces[:middle] == sorted(pieces[:middle], reverse=True)
    assert pieces[middle:-1] == sorted(pieces[middle:-1])
    assert 100 < max(pieces) <= 128
    assert pieces[middle] == grain
    assert all(n % grain == 0 for n in pieces[:-1])


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="there all is one piece")
def test_a_thread_comes_back_to_where_it_was() -> None:
    """What a caller has done of a loop lies in front, and then what it finds in its cache is what it needs."""
    cells, done = np.zeros(4000, np.int64), 0
    for _ in range(20):
        run(cells, threads=3, body="who")
        mine = np.flatnonzero(cells == threading.get_ident())
        np.testing.assert_array_equal(mine, np.arange(len(mine)))
        done += len(mine)
    assert done


@pytest.mark.parametrize("runner", [pool, without_threads])
def test_a_range_may_be_empty(runner: Callable[[], Code]) -> None:
    cells = np.zeros(8, np.int64)
    for begin, expected in ((3, 0), (5, 0), (1, 2)):
        run(cells[:3], threads=1, begin=begin, runner=runner())
        assert cells.sum() == expected


def test_a_range_need_not_start_at_zero() -> None:
    cells = np.zeros(100, np.int64)
    run(cells, threads=3, begin=40)
    assert (cells[:40] == 0).all() and (cells[40:] == 1).all()


def test_many_python_threads() -> None:
    wrong = []

    def work() -> None:
        for _ in range(300):
            cells = np.zeros(2000, np.int64)
            run(cells, threads=4, grain=16)
            if not (cells == 1).all():
                wrong.append(cells)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not any(thread.is_alive() for thread in threads)
    assert not wrong


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_fork_while_others_compute() -> None:
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            run(np.zeros(5000, np.int64), threads=3, grain=8)

    busy = threading.Thread(target=work)
    busy.start()
    try:
        for _ in range(10):
            child = os.fork()
            if child == 0:
                cells = np.zeros(3000, np.int64)
                for _ in range(20):
                    run(cells, threads=3, grain=4)
                os._exit(0 if (cells == 20).all() else 1)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        stop.set()
        busy.join()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="there no thread helps")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_leaves_floating_point_errors_to_the_parent() -> None:
    """What workers of a loop have seen that the parent is running is no error of the child's next loop."""
    libm, division = ctypes.CDLL("libm.so.6"), {"x86_64": 4, "aarch64": 2}[host_cpu().arch]
    helped, forked = threading.Event(), threading.Event()

    def work() -> None:
        caller, seen = threading.get_ident(), []

        @ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
        def body(_: int, start: int, stop: int) -> None:
            if threading.get_ident() != caller:
                libm.feraiseexcept(division)
                seen.extend(range(start, stop))
                if stop - start == 1:  # the last pieces are that small
                    helped.set()
            elif not seen:
                helped.wait(10)
                forked.wait(10)

        pool_run(pool())(ctypes.cast(body, ctypes.c_void_p).value, None, 0, 1000, 1, 2)

    busy = threading.Thread(target=work)
    busy.start()
    assert helped.wait(10)
    time.sleep(0.1)  # the worker leaves
    child = os.fork()
    if child == 0:
        libm.feclearexcept(division)
        run(np.zeros(5000, np.int64), threads=2)
        os._exit(1 if libm.fetestexcept(division) else 0)
    forked.set()
    busy.join()
    assert os.waitpid(child, 0)[1] == 0


def test_exit_with_idle_and_with_fresh_workers() -> None:
    program = textwrap.dedent(f"""
        import sys; sys.path[:0] = {sys.path!r}
        import numpy as np
        from codegen.runtime.test_threads import run
        run(np.zeros(5000, np.int64), threads=8, grain=1)
    """)
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", program], timeout=60, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def test_other_machines() -> None:
    assert b"ELF" in generate(parse(pool_ir(AARCH64, linux=True)), AARCH64, level=2)[:4]
    assert "pthread" not in pool_ir(AARCH64, linux=False)


# A body that writes down how its thread rounds, slow enough that workers take pieces; and what sets that for the caller.
MODES = """
define void @note(ptr %cells, i64 %from, i64 %to) {
  %mode = call i64 @read_mode()
  br label %wait
wait:
  %k = phi i64 [ 0, %0 ], [ %k1, %wait ]
  store volatile i64 0, ptr @spent
  %k1 = add i64 %k, 1
  %on = icmp slt i64 %k1, 20000
  br i1 %on, label %wait, label %loop
loop:
  %i = phi i64 [ %from, %wait ], [ %i1, %loop ]
  %p = getelementptr i64, ptr %cells, i64 %i
  store i64 %mode, ptr %p
  %i1 = add i64 %i, 1
  %more = icmp slt i64 %i1, %to
  br i1 %more, label %loop, label %out
out:
  ret void
}
@spent = internal global i64 0

define i64 @switch(i64 %mode) {
  %before = call i64 @read_mode()
  call void @take_mode(i64 %mode)
  ret i64 %before
}
"""


@pytest.mark.skipif(not host_cpu().is_x86, reason="the bits are those of x86-64")
def test_workers_round_and_treat_subnormal_numbers_as_their_caller_does() -> None:
    text = flags_ir(host_cpu()) + mode_ir(host_cpu()) + MODES
    code = link([generate(parse(text), host_cpu(), level=1)], imports={}, exports=("note", "switch"))
    switch = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(code["switch"])
    start = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 2, *[ctypes.c_int64] * 3, ctypes.c_int32)(pool()["jitml_pool_run"])
    usual = switch(0x1F80)
    try:
        for mode in (0x1F80, 0x1F80 | 0x6000, 0x1F80 | 0x8040, 0x1F80 | 0x2000, 0x1F80):
            for _ in range(10):
                cells = np.zeros(100, np.int64)  # too many grains to run alone
                switch(mode)
                start(code["note"], cells.ctypes.data, 0, len(cells), 1, 4)
                switch(usual)
                assert set(cells.tolist()) == {mode}
    finally:
        switch(usual)


# What a worker does when it wakes up, on a thread of the test's own.
MOVES = """
define i32 @leave() {
  %core = call i32 @sched_getcpu()
  store i32 %core, ptr @job_core
  call void @move_off()
  %now = call i32 @sched_getcpu()
  %moved = icmp ne i32 %now, %core
  %one = zext i1 %moved to i32
  ret i32 %one
}
"""


@pytest.mark.skipif(usable_cores() < 2 or not sys.platform.startswith("linux"), reason="there is no other core")
def test_a_worker_leaves_its_callers_core() -> None:
    """If it may be on another; and then it may go where it could go before."""
    libc = ctypes.CDLL(None)
    imports = addresses(libc, LIBC) | {LOOK: safepoints()[LOOK]}
    text = pool_ir(host_cpu(), linux=True) + MOVES
    code = link([generate(parse(text), host_cpu(), level=1)], imports=imports, exports=("leave",))
    leave = ctypes.CFUNCTYPE(ctypes.c_int32)(code["leave"])
    cores, found = sorted(os.sched_getaffinity(0)), []

    def try_with(allowed: set[int]) -> None:
        os.sched_setaffinity(0, allowed)  # of this thread
        moved = sum(leave() for _ in range(50))  # Linux may move it back at any time
        found.append((moved > 0, os.sched_getaffinity(0) == allowed))

    for allowed in (cores[:2], cores[:1]):
        thread = threading.Thread(target=try_with, args=(set(allowed),))
        thread.start()
        thread.join()
    assert found == [(True, True), (False, True)]
