"""Safepoint timer: who tells running programs that it is time to look?  A thread that sets a word of each, twenty times a second.

Python's handlers of signals run in the main thread, between its own steps, and so do exceptions that one thread sends to another:
not while compiled code runs. So long programs come back to Python at the places where they look
(`codegen/llvm/loops/safepoints.py`): they take the GIL, let Python do whatever is waiting, by calling a function that does
nothing, and end if that raises. No handler is replaced, and none is called elsewhere than Python would.

The words lie in a table, so that the thread writes to no memory of a program that has just ended. Where nothing runs it sleeps.
"""

from __future__ import annotations

import ctypes
import sys

from jitml.codegen.llvm.ir.conventions import DUE, LOOK, OWNER, STOPPED
from jitml.codegen.llvm.ir.cpu import Cpu
from jitml.codegen.llvm.ir.flags import flags_ir
from jitml.codegen.llvm.runtime.arena import arenas
from jitml.codegen.llvm.runtime.cpu import host_cpu
from jitml.codegen.llvm.runtime.jit import Code, addresses, load
from jitml.codegen.llvm.runtime.singletons import once

ENTER, LEAVE = "jitml_run_begins", "jitml_run_ends"
PERIOD_NS = 50_000_000
FUTEX = {"x86_64": 202, "aarch64": 98}  # the number of the system call (Linux)

_SAFEPOINTS = """
; Of each running program: whether it is time to look, and whether the place is taken.
%Place = type {{ i64, i64 }}
@places = internal global [64 x %Place] zeroinitializer, align 64
@nowhere = internal global %Place zeroinitializer  ; of those that find no place: they never look
@clock = internal global i32 0  ; 0: there is no thread yet, 1: it goes, 2: it sleeps, 3: there is none to be had
@period = private constant [2 x i64] [i64 0, i64 {period}]
{flags}
declare i64 @pthread_self()
declare i32 @PyGILState_Ensure()
declare void @PyGILState_Release(i32)
declare ptr @PyObject_CallNoArgs(ptr)
declare void @Py_DecRef(ptr)
declare void @jitml_arena_put_aside(ptr)
declare void @jitml_arena_bring_back(ptr)
@nothing = external global i8

define void @jitml_run_begins(ptr %error) {{
  %stopped = getelementptr i64, ptr %error, i64 {STOPPED}
  store i64 0, ptr %stopped
  %self = call i64 @pthread_self()
  %owner = getelementptr i64, ptr %error, i64 {OWNER}
  store i64 %self, ptr %owner
  %far = lshr i64 %self, 12
  br label %try
try:
  %n = phi i64 [ 0, %0 ], [ %n.next, %next ]
  %nth = add i64 %far, %n
  %k = and i64 %nth, 63
  %place = getelementptr %Place, ptr @places, i64 %k
  %takenp = getelementptr i64, ptr %place, i64 1
  %swap = cmpxchg ptr %takenp, i64 0, i64 1 seq_cst seq_cst
  %mine = extractvalue {{ i64, i1 }} %swap, 1
  br i1 %mine, label %found, label %next
next:
  %n.next = add i64 %n, 1
  %more = icmp slt i64 %n.next, 64
  br i1 %more, label %try, label %found
found:
  %own = phi ptr [ %place, %try ], [ @nowhere, %next ]
  store atomic i64 0, ptr %own monotonic, align 8
  %due = getelementptr i64, ptr %error, i64 {DUE}
  store ptr %own, ptr %due
  call void @wind()
  ret void
}}

define void @jitml_run_ends(ptr %error) {{
  %due = getelementptr i64, ptr %error, i64 {DUE}
  %place = load ptr, ptr %due
  %takenp = getelementptr i64, ptr %place, i64 1
  store atomic i64 0, ptr %takenp release, align 8
  ret void
}}

; Not 0 if the program is to end. Threads that help only hear of it.
define i64 @jitml_look(ptr %error) {{
  %stoppedp = getelementptr i64, ptr %error, i64 {STOPPED}
  %stopped = load atomic i64, ptr %stoppedp acquire, align 8
  %over = icmp ne i64 %stopped, 0
  br i1 %over, label %stop, label %who
stop:
  ret i64 1
who:
  %ownerp = getelementptr i64, ptr %error, i64 {OWNER}
  %owner = load i64, ptr %ownerp
  %self = call i64 @pthread_self()
  %mine = icmp eq i64 %self, %owner
  br i1 %mine, label %ask, label %on
on:
  ret i64 0
ask:
  %kept = alloca {{ ptr, i64 }}
  %duep = getelementptr i64, ptr %error, i64 {DUE}
  %due = load ptr, ptr %duep
  store atomic i64 0, ptr %due monotonic, align 8
  %flags = call i64 @take_flags()
  call void @jitml_arena_put_aside(ptr %kept)
  %state = call i32 @PyGILState_Ensure()
  %result = call ptr @PyObject_CallNoArgs(ptr @nothing)
  %raised = icmp eq ptr %result, null
  br i1 %raised, label %end, label %drop
end:
  store atomic i64 1, ptr %stoppedp release, align 8
  store atomic i64 1, ptr %due release, align 8  ; for those that help
  br label %out
drop:
  call void @Py_DecRef(ptr %result)
  br label %out
out:
  call void @PyGILState_Release(i32 %state)
  call void @jitml_arena_bring_back(ptr %kept)
  %later = call i64 @take_flags()
  call void @raise_flags(i64 %flags)
  %code = zext i1 %raised to i64
  ret i64 %code
}}

; What a child of fork() finds: no thread, and no programs but those around the fork.
define void @jitml_clock_reset() {{
  store i32 0, ptr @clock
  call void @llvm.memset.p0.i64(ptr @places, i8 0, i64 1024, i1 false)
  ret void
}}

declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
"""

_CLOCK = """
declare i64 @syscall(i64, ...)
declare i32 @nanosleep(ptr, ptr)
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_detach(ptr)
declare i32 @pthread_sigmask(i32, ptr, ptr)
declare i32 @sigfillset(ptr)

define internal void @wind() {{
  %state = load atomic i32, ptr @clock seq_cst, align 4
  switch i32 %state, label %out [ i32 0, label %first i32 2, label %asleep ]
first:
  %swap = cmpxchg ptr @clock, i32 0, i32 1 seq_cst seq_cst
  %mine = extractvalue {{ i32, i1 }} %swap, 1
  br i1 %mine, label %start, label %out
start:
  call void @start()
  br label %out
asleep:
  %swap2 = cmpxchg ptr @clock, i32 2, i32 1 seq_cst seq_cst
  %wakes = extractvalue {{ i32, i1 }} %swap2, 1
  br i1 %wakes, label %wake, label %out
wake:
  %r = call i64 (i64, ...) @syscall(i64 {futex}, ptr @clock, i32 129, i32 1)
  br label %out
out:
  ret void
}}

; All signals blocked: they belong to Python's threads.
define internal void @start() {{
  %all = alloca [128 x i8], align 16
  %old = alloca [128 x i8], align 16
  %thread = alloca ptr
  %f = call i32 @sigfillset(ptr %all)
  %m = call i32 @pthread_sigmask(i32 2, ptr %all, ptr %old)
  %failed = call i32 @pthread_create(ptr %thread, ptr null, ptr @tick, ptr null)
  %ok = icmp eq i32 %failed, 0
  br i1 %ok, label %good, label %bad
good:
  %t = load ptr, ptr %thread
  %d = call i32 @pthread_detach(ptr %t)
  br label %out
bad:
  store atomic i32 3, ptr @clock seq_cst, align 4
  br label %out
out:
  %r = call i32 @pthread_sigmask(i32 2, ptr %old, ptr null)
  ret void
}}

; How many places are taken; those have the word set.
define internal i64 @tell() {{
  br label %look
look:
  %k = phi i64 [ 0, %0 ], [ %k.next, %next ]
  %count = phi i64 [ 0, %0 ], [ %count.next, %next ]
  %place = getelementptr %Place, ptr @places, i64 %k
  %takenp = getelementptr i64, ptr %place, i64 1
  %taken = load atomic i64, ptr %takenp seq_cst, align 8
  %is = icmp ne i64 %taken, 0
  br i1 %is, label %set, label %next
set:
  store atomic i64 1, ptr %place monotonic, align 8
  br label %next
next:
  %count.next = add i64 %count, %taken
  %k.next = add i64 %k, 1
  %more = icmp slt i64 %k.next, 64
  br i1 %more, label %look, label %out
out:
  ret i64 %count.next
}}

define internal ptr @tick(ptr %unused) {{
  br label %wait
wait:
  %idle = phi i64 [ 0, %0 ], [ 0, %busy ], [ %idle.next, %quiet ], [ 0, %awake ]
  %r = call i32 @nanosleep(ptr @period, ptr null)
  %some = call i64 @tell()
  %any = icmp ne i64 %some, 0
  br i1 %any, label %busy, label %quiet
busy:
  br label %wait
quiet:
  %idle.next = add i64 %idle, 1
  %patient = icmp slt i64 %idle.next, 4
  br i1 %patient, label %wait, label %rest
rest:
  store atomic i32 2, ptr @clock seq_cst, align 4
  %late = call i64 @tell()
  %came = icmp ne i64 %late, 0
  br i1 %came, label %stay, label %sleep
stay:
  store atomic i32 1, ptr @clock seq_cst, align 4
  br label %awake
sleep:
  %state = load atomic i32, ptr @clock seq_cst, align 4
  %still = icmp eq i32 %state, 2
  br i1 %still, label %doze, label %awake
doze:
  %w = call i64 (i64, ...) @syscall(i64 {futex}, ptr @clock, i32 128, i32 2, ptr null)
  br label %sleep
awake:
  br label %wait
}}
"""

_NO_CLOCK = """
define internal void @wind() {{
  ret void
}}
"""

_PYTHON = ("PyGILState_Ensure", "PyGILState_Release", "PyObject_CallNoArgs", "Py_DecRef")
_LIBC = ("syscall", "nanosleep", "pthread_create", "pthread_detach", "pthread_sigmask", "sigfillset")


def _nothing() -> None:
    """What is called for Python to look around as it begins."""


def safepoints_ir(cpu: Cpu, *, linux: bool) -> str:
    """The source for a target; where the kernel has no futex nobody is told."""
    has_clock = linux and cpu.arch in FUTEX
    text = _SAFEPOINTS + (_CLOCK if has_clock else _NO_CLOCK)
    futex = FUTEX.get(cpu.arch, 0)
    return text.format(flags=flags_ir(cpu), futex=futex, period=PERIOD_NS, DUE=DUE, STOPPED=STOPPED, OWNER=OWNER)


@once
def safepoints() -> Code:
    """The functions above, compiled at the first need."""
    cpu, linux = host_cpu(), sys.platform == "linux"
    names = ("pthread_self", *(_LIBC if linux and cpu.arch in FUTEX else ()))
    imports = addresses(ctypes.CDLL(None), names)
    imports |= addresses(ctypes.pythonapi, _PYTHON)
    imports |= {name: arenas()[name] for name in ("jitml_arena_put_aside", "jitml_arena_bring_back")}
    imports["nothing"] = id(_nothing)
    reset = "jitml_clock_reset"
    text, exports = safepoints_ir(cpu, linux=linux), (ENTER, LEAVE, LOOK, reset)
    loaded = load(text, imports=imports, exports=exports, reset=reset, is_first=True)
    loaded.keep(_nothing)
    return loaded
