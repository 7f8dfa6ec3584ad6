"""Arenas: whose scratch memory does a call use?  One arena per thread, which only grows, and is shared by all programs.

Native code asks `jitml_arena(bytes)`. A program holds the arena for one call only; where it calls Python meanwhile (a host
call), the arena is put aside, for that Python may call another program. Blocks are aligned to 64 bytes, and from 2 MiB up they
stand on huge pages. Large zeros are asked of the system (`jitml_arena_clear`).
"""

from __future__ import annotations

import ctypes
import mmap
import sys

from jitml.codegen.llvm.runtime.jit import Code, addresses, defined, load
from jitml.codegen.llvm.runtime.singletons import once

HUGE_PAGE = 2 << 20
MADV_DONTNEED = 4
MADV_HUGEPAGE = 14

_ARENA = """
@key = internal global i64 0

declare i32 @pthread_key_create(ptr, ptr)
declare ptr @pthread_getspecific({key})
declare i32 @pthread_setspecific({key}, ptr)
declare i32 @posix_memalign(ptr, i64, i64)
declare ptr @malloc(i64)
declare void @free(ptr)
declare i32 @madvise(ptr, i64, i32)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

define internal void @destroy(ptr %record) {{
  %block = load ptr, ptr %record
  call void @free(ptr %block)
  call void @free(ptr %record)
  ret void
}}

define void @jitml_arena_start() {{
  %r = call i32 @pthread_key_create(ptr @key, ptr @destroy)
  ret void
}}

; The thread's record {{ block, bytes }}; null if there is no memory even for that.
define internal ptr @record() {{
  %key = load {key}, ptr @key
  %known = call ptr @pthread_getspecific({key} %key)
  %old = icmp ne ptr %known, null
  br i1 %old, label %have, label %make
have:
  ret ptr %known
make:
  %new = call ptr @malloc(i64 16)
  %none = icmp eq ptr %new, null
  br i1 %none, label %out, label %fill
fill:
  store ptr null, ptr %new
  %size = getelementptr i64, ptr %new, i64 1
  store i64 0, ptr %size
  %r = call i32 @pthread_setspecific({key} %key, ptr %new)
  br label %out
out:
  ret ptr %new
}}

; At least that many bytes, aligned to 64; null if there are none.
define ptr @jitml_arena(i64 %bytes) {{
  %record = call ptr @record()
  %none = icmp eq ptr %record, null
  br i1 %none, label %fail, label %look
look:
  %sizep = getelementptr i64, ptr %record, i64 1
  %size = load i64, ptr %sizep
  %block = load ptr, ptr %record
  %enough = icmp uge i64 %size, %bytes
  br i1 %enough, label %reuse, label %grow
reuse:
  ret ptr %block
grow:
  call void @free(ptr %block)
  store ptr null, ptr %record
  store i64 0, ptr %sizep
  %huge = icmp uge i64 %bytes, {huge_page}
  %align = select i1 %huge, i64 {huge_page}, i64 64
  %failed = call i32 @posix_memalign(ptr %record, i64 %align, i64 %bytes)
  %bad = icmp ne i32 %failed, 0
  br i1 %bad, label %clear, label %got
got:
  store i64 %bytes, ptr %sizep
  %fresh = load ptr, ptr %record
  br i1 %huge, label %advise, label %out
advise:
  {advise}
  br label %out
out:
  ret ptr %fresh
clear:
  store ptr null, ptr %record
  br label %fail
fail:
  ret ptr null
}}

; Let the thread have no arena for a while: what it had goes to {{ block, bytes }} at %kept, and comes back from there.
define void @jitml_arena_put_aside(ptr %kept) {{
  %record = call ptr @record()
  %none = icmp eq ptr %record, null
  br i1 %none, label %out, label %take
take:
  %block = load ptr, ptr %record
  %sizep = getelementptr i64, ptr %record, i64 1
  %size = load i64, ptr %sizep
  %keptp = getelementptr i64, ptr %kept, i64 1
  store ptr %block, ptr %kept
  store i64 %size, ptr %keptp
  store ptr null, ptr %record
  store i64 0, ptr %sizep
  br label %out
out:
  ret void
}}

define void @jitml_arena_bring_back(ptr %kept) {{
  call void @jitml_arena_release()
  %record = call ptr @record()
  %none = icmp eq ptr %record, null
  br i1 %none, label %out, label %put
put:
  %block = load ptr, ptr %kept
  %keptp = getelementptr i64, ptr %kept, i64 1
  %size = load i64, ptr %keptp
  %sizep = getelementptr i64, ptr %record, i64 1
  store ptr %block, ptr %record
  store i64 %size, ptr %sizep
  br label %out
out:
  ret void
}}

; Zeros in an arena. Whole pages are given back: the system has others there, all zeros, as they are touched.
define void @jitml_arena_clear(ptr %start, i64 %bytes) {{
  %from = ptrtoint ptr %start to i64
  %to = add i64 %from, %bytes
  %from.up = add i64 %from, {within_page}
  %first = and i64 %from.up, {page_mask}
  %last = and i64 %to, {page_mask}
  %some = icmp ult i64 %first, %last
  br i1 %some, label %ask, label %all
ask:
  %pages = inttoptr i64 %first to ptr
  %n = sub i64 %last, %first
  %refused = {forget}
  %ok = icmp eq i32 %refused, 0
  br i1 %ok, label %edges, label %all
edges:
  %head = sub i64 %first, %from
  call void @llvm.memset.p0.i64(ptr %start, i8 0, i64 %head, i1 false)
  %end = inttoptr i64 %last to ptr
  %tail = sub i64 %to, %last
  call void @llvm.memset.p0.i64(ptr %end, i8 0, i64 %tail, i1 false)
  ret void
all:
  call void @llvm.memset.p0.i64(ptr %start, i8 0, i64 %bytes, i1 false)
  ret void
}}

; Give the calling thread's arena back.
define void @jitml_arena_release() {{
  %record = call ptr @record()
  %none = icmp eq ptr %record, null
  br i1 %none, label %out, label %drop
drop:
  %block = load ptr, ptr %record
  call void @free(ptr %block)
  store ptr null, ptr %record
  %size = getelementptr i64, ptr %record, i64 1
  store i64 0, ptr %size
  br label %out
out:
  ret void
}}
"""

_LIBC = ("pthread_key_create", "pthread_getspecific", "pthread_setspecific", "posix_memalign", "malloc", "free", "madvise")


@once
def arenas() -> Code:
    """The process's arenas, compiled at the first need: `jitml_arena` is the address of the function above."""
    linux = sys.platform == "linux"
    advise = f"%a = call i32 @madvise(ptr %fresh, i64 %bytes, i32 {MADV_HUGEPAGE})" if linux else ""
    # pthread_key_t is an unsigned int with glibc and musl, an unsigned long on macOS.
    # Only Linux gives zeros for what it was told that nobody needs.
    forget = f"call i32 @madvise(ptr %pages, i64 %n, i32 {MADV_DONTNEED})" if linux else "add i32 0, 1"
    text = _ARENA.format(
        key="i32" if linux else "i64",
        huge_page=HUGE_PAGE,
        advise=advise,
        forget=forget,
        within_page=mmap.PAGESIZE - 1,
        page_mask=-mmap.PAGESIZE,
    )
    imports = addresses(ctypes.CDLL(None), _LIBC)
    exports = defined(text)
    loaded = load(text, imports=imports, exports=exports, is_first=True)
    ctypes.CFUNCTYPE(None)(loaded["jitml_arena_start"])()
    return loaded


def release_arena() -> None:
    """Give the calling thread's arena back to the system."""
    ctypes.CFUNCTYPE(None)(arenas()["jitml_arena_release"])()
