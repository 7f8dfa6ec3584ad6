"""Thread pool: who runs the iterations of a parallel loop?  One pool of threads per process, written in LLVM IR.

Native code calls `jitml_parallel_for(body, ctx, begin, end, grain)`; `body(ctx, from, to)` is then called for pieces that
cover begin..end, on this thread and on workers. Iterations are independent, so results do not depend on who runs what.

The pool is polite. Workers start at the first parallel loop, spin for some 50 microseconds for the next one and then sleep
in the kernel. Nobody waits for a worker that has not woken up: the caller takes pieces like everyone else, and returns when
all pieces are done. The caller runs a loop alone if the pool is taken (another Python thread, a parallel loop within one), or if
that has been faster (`thread_choice.py`). After fork() the child starts anew.

A worker that wakes up on its caller's core moves off it. Linux puts it there if the other cores are busy, and it would wait until
the caller's time is over, to find the work done.

The protocol, on four words. `gate` holds the free seats of the open job (high half) and the workers at work (low half): a
worker joins by moving one from the former to the latter, and the caller closes the job by clearing the seats and waits for
the workers to leave. So a late worker finds no seat, and never sees the memory of a job that has returned. `epoch` counts
jobs; idle workers sleep on it (futex), and `asleep` says whether to wake them. `waiting` says that the caller sleeps on `gate`.
"""

from __future__ import annotations

import ctypes
import sys

from jitml.codegen.llvm.ir.conventions import DUE, LOOK, PARALLEL_FOR_WATCHED
from jitml.codegen.llvm.ir.cpu import Cpu
from jitml.codegen.llvm.ir.flags import flags_ir, mode_ir
from jitml.codegen.llvm.ir.thread_choice import CHOICE, CLOCK, SMALL
from jitml.codegen.llvm.runtime.cpu import host_cpu
from jitml.codegen.llvm.runtime.jit import Code, addresses, load
from jitml.codegen.llvm.runtime.safepoints import PERIOD_NS, safepoints
from jitml.codegen.llvm.runtime.singletons import once

# By architecture (Linux): the numbers of the system calls futex, sched_setaffinity and sched_getaffinity, and the hint of a
# spinning thread.
_LINUX = {
    "x86_64": (202, 203, 204, "call void @llvm.x86.sse2.pause()", "declare void @llvm.x86.sse2.pause()"),
    "aarch64": (98, 122, 123, "call void @llvm.aarch64.hint(i32 1)", "declare void @llvm.aarch64.hint(i32)"),
}

_POOL = """
@taken = internal global i32 0
@epoch = internal global i32 0
@asleep = internal global i32 0
@waiting = internal global i32 0
@started = internal global i32 0
@gate = internal global i64 0, align 64
@next = internal global i64 0, align 64             ; grains taken from the back (high half) and from the front (low half)
@job_end = internal global i64 0, align 64
@job_begin = internal global i64 0
@job_grain = internal global i64 0
@job_grains = internal global i64 0
@job_parts = internal global i64 0
@job_body = internal global ptr null
@job_ctx = internal global ptr null
@job_flags = internal global i64 0
@job_mode = internal global i64 0
@job_core = internal global i32 0                ; the caller's

@period = private constant [2 x i64] [i64 0, i64 {period}]

declare i64 @jitml_look(ptr)
declare i64 @syscall(i64, ...)
declare i32 @sched_getcpu()
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_detach(ptr)
declare i32 @pthread_sigmask(i32, ptr, ptr)
declare i32 @sigfillset(ptr)
{declare_pause}
{flags}
{choice}

; Sleep while the word holds the value (FUTEX_WAIT_PRIVATE), and wake sleepers (FUTEX_WAKE_PRIVATE).
define internal void @sleep(ptr %word, i32 %value, ptr %most) {{
  %r = call i64 (i64, ...) @syscall(i64 {futex}, ptr %word, i32 128, i32 %value, ptr %most)
  ret void
}}

define internal void @wake(ptr %word, i32 %count) {{
  %r = call i64 (i64, ...) @syscall(i64 {futex}, ptr %word, i32 129, i32 %count)
  ret void
}}

; Leave the core if it is the caller's: be barred from it for a moment. All else is as it was, and so is a thread that may run
; on no other core.
define internal void @move_off() {{
  %allowed = alloca [128 x i8], align 8
  %own = call i32 @sched_getcpu()
  %core = load atomic i32, ptr @job_core monotonic, align 4
  %same = icmp eq i32 %own, %core
  %known = icmp ult i32 %own, 1024
  %ask = and i1 %same, %known
  br i1 %ask, label %get, label %out
get:
  %size = call i64 (i64, ...) @syscall(i64 {getaffinity}, i32 0, i64 128, ptr %allowed)
  %ok = icmp sgt i64 %size, 0
  br i1 %ok, label %leave, label %out
leave:
  %place = lshr i32 %own, 3
  %byte = getelementptr i8, ptr %allowed, i32 %place
  %bits = load i8, ptr %byte
  %which = and i32 %own, 7
  %bit = shl i32 1, %which
  %bit8 = trunc i32 %bit to i8
  %keep = xor i8 %bit8, -1
  %fewer = and i8 %bits, %keep
  store i8 %fewer, ptr %byte
  %barred = call i64 (i64, ...) @syscall(i64 {setaffinity}, i32 0, i64 %size, ptr %allowed)
  store i8 %bits, ptr %byte
  %free = call i64 (i64, ...) @syscall(i64 {setaffinity}, i32 0, i64 %size, ptr %allowed)
  br label %out
out:
  ret void
}}

; Take pieces until none is left: the caller from the front, workers from the back. If a loop runs again, each core has in its
; cache what it left there, and need not fetch from others what these have written (measured: 10 to 30 % of loops of 0.1 ms).
define internal void @take_pieces(i1 %is_caller) {{
  %body = load ptr, ptr @job_body
  %ctx = load ptr, ptr @job_ctx
  %begin = load i64, ptr @job_begin
  %end = load i64, ptr @job_end
  %grain = load i64, ptr @job_grain
  %grains = load i64, ptr @job_grains
  %parts = load i64, ptr @job_parts
  br label %again
again:
  %taken = load atomic i64, ptr @next monotonic, align 8
  %front = and i64 %taken, 4294967295
  %back = lshr i64 %taken, 32
  %both = add i64 %front, %back
  %left = sub i64 %grains, %both
  %more = icmp sgt i64 %left, 0
  br i1 %more, label %choose, label %out
choose:
  %share = udiv i64 %left, %parts
  %step = call i64 @llvm.smax.i64(i64 %share, i64 1)
  %high = shl i64 %step, 32
  %some = select i1 %is_caller, i64 %step, i64 %high
  %then = add i64 %taken, %some
  %swap = cmpxchg ptr @next, i64 %taken, i64 %then monotonic monotonic
  %mine = extractvalue {{ i64, i1 }} %swap, 1
  br i1 %mine, label %piece, label %again
piece:
  %behind = sub i64 %grains, %back
  %low = sub i64 %behind, %step
  %first = select i1 %is_caller, i64 %front, i64 %low
  %skipped = mul i64 %first, %grain
  %length = mul i64 %step, %grain
  %from = add i64 %begin, %skipped
  %far = add i64 %from, %length
  %to = call i64 @llvm.smin.i64(i64 %far, i64 %end)
  call void %body(ptr %ctx, i64 %from, i64 %to)
  br label %again
out:
  ret void
}}

define internal ptr @worker(ptr %unused) {{
  br label %look
look:
  %seen = load atomic i32, ptr @epoch seq_cst, align 4
  br label %try
try:
  %now = load atomic i64, ptr @gate seq_cst, align 8
  %seat = icmp ugt i64 %now, 4294967295
  br i1 %seat, label %join, label %spin
join:
  %joined = sub i64 %now, 4294967295      ; one seat fewer, one worker more
  %swap = cmpxchg ptr @gate, i64 %now, i64 %joined seq_cst seq_cst
  %in = extractvalue {{ i64, i1 }} %swap, 1
  br i1 %in, label %work, label %try
work:
  %mode = load i64, ptr @job_mode
  call void @take_mode(i64 %mode)        ; the caller may round otherwise than it did when the worker started
  %old_flags = call i64 @take_flags()
  call void @take_pieces(i1 false)
  %flags = call i64 @take_flags()
  %all_flags = atomicrmw or ptr @job_flags, i64 %flags seq_cst
  %before = atomicrmw sub ptr @gate, i64 1 seq_cst
  %others = trunc i64 %before to i32
  %last = icmp eq i32 %others, 1
  br i1 %last, label %tell, label %spin
tell:
  %w = load atomic i32, ptr @waiting seq_cst, align 4
  %must = icmp ne i32 %w, 0
  br i1 %must, label %rouse, label %spin
rouse:
  call void @wake(ptr @gate, i32 1)
  br label %spin
spin:
  %i = phi i32 [ 0, %try ], [ 0, %work ], [ 0, %tell ], [ 0, %rouse ], [ %i1, %idle ]
  %e = load atomic i32, ptr @epoch seq_cst, align 4
  %moved = icmp ne i32 %e, %seen
  br i1 %moved, label %look, label %idle
idle:
  {pause}
  %i1 = add i32 %i, 1
  %patient = icmp slt i32 %i1, {spins}
  br i1 %patient, label %spin, label %rest
rest:
  %a = atomicrmw add ptr @asleep, i32 1 seq_cst
  call void @sleep(ptr @epoch, i32 %seen, ptr null)
  %b = atomicrmw sub ptr @asleep, i32 1 seq_cst
  call void @move_off()
  br label %look
}}

; Start workers until there are enough, all signals blocked: they belong to Python's threads. May start fewer.
define internal void @start(i32 %wanted) {{
  %all = alloca [128 x i8], align 16
  %old = alloca [128 x i8], align 16
  %thread = alloca ptr
  %f = call i32 @sigfillset(ptr %all)
  %m = call i32 @pthread_sigmask(i32 2, ptr %all, ptr %old)
  br label %again
again:
  %have = load i32, ptr @started
  %more = icmp slt i32 %have, %wanted
  br i1 %more, label %one, label %out
one:
  %failed = call i32 @pthread_create(ptr %thread, ptr null, ptr @worker, ptr null)
  %ok = icmp eq i32 %failed, 0
  br i1 %ok, label %count, label %out
count:
  %t = load ptr, ptr %thread
  %d = call i32 @pthread_detach(ptr %t)
  %n = add i32 %have, 1
  store i32 %n, ptr @started
  br label %again
out:
  %r = call i32 @pthread_sigmask(i32 2, ptr %old, ptr null)
  ret void
}}

define void @jitml_pool_run(ptr %body, ptr %ctx, i64 %begin, i64 %end, i64 %grain, i32 %threads) {{
  call void @jitml_pool_run_watched(ptr %body, ptr %ctx, i64 %begin, i64 %end, i64 %grain, i32 %threads, ptr null)
  ret void
}}

; With the record of a long program, the caller looks whether it is to end while it waits (`safepoints.py`); so do bodies.
define void @jitml_pool_run_watched(ptr %body, ptr %ctx, i64 %begin, i64 %end, i64 %grain, i32 %threads, ptr %error) {{
  %n = sub i64 %end, %begin
  %some = icmp sgt i64 %n, 0
  br i1 %some, label %size, label %nothing
nothing:
  ret void
size:
  %small = icmp sle i64 %n, %grain
  %single = icmp sle i32 %threads, 1
  %serial = or i1 %small, %single
  br i1 %serial, label %alone, label %claim
claim:
  %swap = cmpxchg ptr @taken, i32 0, i32 1 seq_cst seq_cst
  %mine = extractvalue {{ i32, i1 }} %swap, 1
  br i1 %mine, label %ready, label %alone
alone:
  call void %body(ptr %ctx, i64 %begin, i64 %end)
  ret void
ready:
  %wide = sdiv i64 %n, %grain
  %is.large = icmp sgt i64 %wide, {small}
  br i1 %is.large, label %hire, label %choose
choose:
  %known = call ptr @site_of(ptr %body, i64 %n)
  %way = call i32 @way_of(ptr %known)
  %start = call i64 @clock()
  %together = icmp eq i32 %way, 0
  br i1 %together, label %hire, label %lone
lone:
  store atomic i32 0, ptr @taken seq_cst, align 4
  call void %body(ptr %ctx, i64 %begin, i64 %end)
  call void @learn(ptr %known, i32 1, i64 %n, i64 %start, i1 true)
  ret void
hire:
  %site = phi ptr [ null, %ready ], [ %known, %choose ]
  %since = phi i64 [ 0, %ready ], [ %start, %choose ]
  %helpers = sub i32 %threads, 1
  %have = load i32, ptr @started
  %few = icmp slt i32 %have, %helpers
  br i1 %few, label %grow, label %publish
grow:
  call void @start(i32 %helpers)
  br label %publish
publish:
  ; Each piece is a quarter of a thread's share of what is left, in whole grains: few pieces, and small ones at the end, where
  ; they even out what the threads have done, and a core that is taken away.
  %threads64 = zext i32 %threads to i64
  %parts = shl i64 %threads64, 2
  %n.high = lshr i64 %n, 31                    ; grains are counted in 32 bits
  %g.least = add i64 %n.high, 1
  %g = call i64 @llvm.smax.i64(i64 %grain, i64 %g.least)
  %n.up = add i64 %n, %g
  %n.less = sub i64 %n.up, 1
  %grains = udiv i64 %n.less, %g
  %mode = call i64 @read_mode()
  store i64 %mode, ptr @job_mode
  %core = call i32 @sched_getcpu()
  store atomic i32 %core, ptr @job_core monotonic, align 4
  store ptr %body, ptr @job_body
  store ptr %ctx, ptr @job_ctx
  store i64 %end, ptr @job_end
  store i64 %g, ptr @job_grain
  store i64 %parts, ptr @job_parts
  store i64 %begin, ptr @job_begin
  store i64 %grains, ptr @job_grains
  store i64 0, ptr @next
  %seats = zext i32 %helpers to i64
  %open = shl i64 %seats, 32
  store atomic i64 %open, ptr @gate seq_cst, align 8
  %e = atomicrmw add ptr @epoch, i32 1 seq_cst
  %a = load atomic i32, ptr @asleep seq_cst, align 4
  %idle = icmp ne i32 %a, 0
  br i1 %idle, label %call, label %go
call:
  call void @wake(ptr @epoch, i32 %helpers)
  br label %go
go:
  call void @take_pieces(i1 true)
  %closed = atomicrmw and ptr @gate, i64 4294967295 seq_cst
  %helped = icmp ult i64 %closed, %open        ; a seat has been taken
  br label %spin
spin:
  %i = phi i32 [ 0, %go ], [ %i1, %busy ]
  %g0 = load atomic i64, ptr @gate seq_cst, align 8
  %quiet = icmp eq i64 %g0, 0
  br i1 %quiet, label %done, label %busy
busy:
  {pause}
  %i1 = add i32 %i, 1
  %patient = icmp slt i32 %i1, {waits}
  br i1 %patient, label %spin, label %rest
rest:
  store atomic i32 1, ptr @waiting seq_cst, align 4
  br label %check
check:
  %g1 = load atomic i64, ptr @gate seq_cst, align 8
  %left = icmp eq i64 %g1, 0
  br i1 %left, label %awake, label %doze
doze:
  %value = trunc i64 %g1 to i32
  %watched = icmp ne ptr %error, null
  %most = select i1 %watched, ptr @period, ptr null
  call void @sleep(ptr @gate, i32 %value, ptr %most)
  br i1 %watched, label %look, label %check
look:
  %due.at = getelementptr i64, ptr %error, i64 {DUE}
  %due = load ptr, ptr %due.at
  %is_due = load atomic i64, ptr %due monotonic, align 8
  %time = icmp ne i64 %is_due, 0
  br i1 %time, label %ask, label %check
ask:
  %told = call i64 @jitml_look(ptr %error)
  br label %check
awake:
  store atomic i32 0, ptr @waiting seq_cst, align 4
  br label %done
done:
  ; Floating-point errors of the workers are the caller's.
  %flags = atomicrmw xchg ptr @job_flags, i64 0 seq_cst
  call void @raise_flags(i64 %flags)
  %timed = icmp ne ptr %site, null
  br i1 %timed, label %tell, label %release
tell:
  call void @learn(ptr %site, i32 0, i64 %n, i64 %since, i1 %helped)
  br label %release
release:
  store atomic i32 0, ptr @taken seq_cst, align 4
  ret void
}}

; The state of a process whose only thread is the caller: what a child finds after fork().
define void @jitml_pool_reset() {{
  store i32 0, ptr @taken
  store i32 0, ptr @asleep
  store i32 0, ptr @waiting
  store i32 0, ptr @started
  store i64 0, ptr @gate
  store i64 0, ptr @job_flags
  ret void
}}

declare i64 @llvm.smin.i64(i64, i64)
declare i64 @llvm.smax.i64(i64, i64)
"""

# Without futexes every loop runs on its caller. Bodies rely on having an iteration.
_SERIAL = """
define void @jitml_pool_run(ptr %body, ptr %ctx, i64 %begin, i64 %end, i64 %grain, i32 %threads) {
  %some = icmp slt i64 %begin, %end
  br i1 %some, label %all, label %out
all:
  call void %body(ptr %ctx, i64 %begin, i64 %end)
  br label %out
out:
  ret void
}

define void @jitml_pool_run_watched(ptr %body, ptr %ctx, i64 %begin, i64 %end, i64 %grain, i32 %threads, ptr %error) {
  call void @jitml_pool_run(ptr %body, ptr %ctx, i64 %begin, i64 %end, i64 %grain, i32 %threads)
  ret void
}

define void @jitml_pool_reset() {
  ret void
}
"""

RUNS = ("jitml_pool_run", "jitml_pool_run_watched")
LIBC = ("syscall", "sched_getcpu", "pthread_create", "pthread_detach", "pthread_sigmask", "sigfillset", "clock_gettime")


def pool_ir(cpu: Cpu, *, linux: bool) -> str:
    """The pool's source for a target; serial where the kernel has no futex."""
    if not linux or cpu.arch not in _LINUX:
        return _SERIAL
    futex, setaffinity, getaffinity, pause, declare_pause = _LINUX[cpu.arch]
    # Some 50 us of spinning for the next job: a sleeping core takes longer than a small job to wake, so that a worker which
    # sleeps between the calls of a loop never helps (a product of 60 us with a vector ran at half the speed). The caller
    # waits 2 us for the last worker before it sleeps (3-6 us).
    words: dict[str, object] = {"futex": futex, "setaffinity": setaffinity, "getaffinity": getaffinity}
    words |= {"DUE": DUE, "period": PERIOD_NS, "spins": 2500, "waits": 200, "choice": CLOCK + CHOICE, "small": SMALL}
    return _POOL.format(pause=pause, declare_pause=declare_pause, flags=flags_ir(cpu) + mode_ir(cpu), **words)


@once
def pool() -> Code:
    """The process's pool, compiled at the first need: `jitml_pool_run` is its address."""
    cpu = host_cpu()
    linux = sys.platform == "linux"
    imports = addresses(ctypes.CDLL(None), LIBC) | {LOOK: safepoints()[LOOK]} if linux else {}
    text, reset = pool_ir(cpu, linux=linux), "jitml_pool_reset"
    return load(text, level=2, imports=imports, exports=(*RUNS, reset), reset=reset)


def parallel_for_ir(threads: int) -> str:
    """`jitml_parallel_for` for one program: the pool with the number of threads that this program may use."""
    return f"""
declare void @jitml_pool_run(ptr, ptr, i64, i64, i64, i32)
declare void @jitml_pool_run_watched(ptr, ptr, i64, i64, i64, i32, ptr)
define void @{PARALLEL_FOR_WATCHED}(ptr %body, ptr %ctx, i64 %begin, i64 %end, i64 %grain, ptr %error) {{
  tail call void @jitml_pool_run_watched(ptr %body, ptr %ctx, i64 %begin, i64 %end, i64 %grain, i32 {threads}, ptr %error)
  ret void
}}
define void @jitml_parallel_for(ptr %body, ptr %ctx, i64 %begin, i64 %end, i64 %grain) {{
  tail call void @jitml_pool_run(ptr %body, ptr %ctx, i64 %begin, i64 %end, i64 %grain, i32 {threads})
  ret void
}}
"""
