"""Result memory: whose memory do large results get?

That of results which nobody holds any more, where there is some of that size.

The system hands out large memory page by page, each filled with zeros as it is first touched, and takes it back as soon as an
array goes: for a result of some megabytes that takes longer than what a kernel does with it. An array of NumPy's says who frees
it (NEP 49): large results come from here and go back here, and some of what came back is kept for the next. They own their
memory as any array does, may be resized, and may outlive everything else.

The handler is written into the array (`native_call.py`). NumPy's own way, a context variable that is set while the array is made,
lets finalizers run in the midst of setting it, and CPython 3.11 crashes where they set another. All of this runs under the GIL,
as NumPy makes and frees arrays.
"""

from __future__ import annotations

import ctypes
import sys

from jitml.codegen.llvm.runtime.arena import HUGE_PAGE, MADV_HUGEPAGE
from jitml.codegen.llvm.runtime.jit import Code, addresses, defined, load
from jitml.codegen.llvm.runtime.singletons import once
from jitml.config import CONFIG
from jitml.headroom import give_back_first

LARGE = 1 << 16  # bytes from which memory is worth keeping
_SLOTS = 32  # blocks that are kept at most

# A block: { where it starts, how many bytes its data may have }, then the data. Blocks start at different places within their
# pages: arrays of one size that are read side by side would else take each other's place in the cache.
_RESULTS = """
%Kept = type {{ ptr, i64 }}
@kept = internal global [{slots} x %Kept] zeroinitializer  ; the one that came back last stands last
@count = internal global i64 0
@bytes = internal global i64 0
@limit = internal global i64 {limit}
@turn = internal global i64 0

declare i32 @posix_memalign(ptr, i64, i64)
declare void @free(ptr)
declare i32 @madvise(ptr, i64, i32)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)
declare {{ i64, i1 }} @llvm.umul.with.overflow.i64(i64, i64)
declare i64 @llvm.umin.i64(i64, i64)

define internal i64 @room(ptr %data) {{
  %roomp = getelementptr i8, ptr %data, i64 -8
  %room = load i64, ptr %roomp
  ret i64 %room
}}

define internal void @give_back(ptr %data) {{
  %startp = getelementptr i8, ptr %data, i64 -16
  %start = load ptr, ptr %startp
  call void @free(ptr %start)
  ret void
}}

; The data of a kept block, which is kept no longer.
define internal ptr @take(i64 %k) {{
  %slot = getelementptr %Kept, ptr @kept, i64 %k
  %data = load ptr, ptr %slot
  %room = call i64 @room(ptr %data)
  %after = getelementptr %Kept, ptr %slot, i64 1
  %count = load i64, ptr @count
  %less = sub i64 %count, 1
  %behind = sub i64 %less, %k
  %moved = mul i64 %behind, 16
  call void @llvm.memmove.p0.p0.i64(ptr %slot, ptr %after, i64 %moved, i1 false)
  store i64 %less, ptr @count
  %bytes = load i64, ptr @bytes
  %left = sub i64 %bytes, %room
  store i64 %left, ptr @bytes
  ret ptr %data
}}

define void @jitml_results_release() {{
  br label %look
look:
  %count = load i64, ptr @count
  %none = icmp eq i64 %count, 0
  br i1 %none, label %out, label %drop
drop:
  %data = call ptr @take(i64 0)
  call void @give_back(ptr %data)
  br label %look
out:
  ret void
}}

define i64 @jitml_results_kept() {{
  %bytes = load i64, ptr @bytes
  ret i64 %bytes
}}

define void @jitml_results_limit(i64 %limit) {{
  call void @jitml_results_release()
  store i64 %limit, ptr @limit
  ret void
}}

define internal ptr @fresh(i64 %room) {{
  %block = alloca ptr
  %turn = load i64, ptr @turn
  %next = add i64 %turn, 1
  store i64 %next, ptr @turn
  %nth = and i64 %turn, 15
  %ahead = mul i64 %nth, 128
  %large = icmp uge i64 %room, {large}
  %shift = select i1 %large, i64 %ahead, i64 0
  %before = add i64 %shift, 64
  %total = add i64 %room, %before
  %huge = icmp uge i64 %room, {huge_page}
  %align = select i1 %huge, i64 {huge_page}, i64 64
  %failed = call i32 @posix_memalign(ptr %block, i64 %align, i64 %total)
  %bad = icmp ne i32 %failed, 0
  br i1 %bad, label %fail, label %got
got:
  %start = load ptr, ptr %block
  br i1 %huge, label %advise, label %out
advise:
  {advise}
  br label %out
out:
  %data = getelementptr i8, ptr %start, i64 %before
  %startp = getelementptr i8, ptr %data, i64 -16
  store ptr %start, ptr %startp
  %roomp = getelementptr i8, ptr %data, i64 -8
  store i64 %room, ptr %roomp
  ret ptr %data
fail:
  ret ptr null
}}

define ptr @jitml_results_malloc(ptr %context, i64 %size) {{
  %absurd = icmp ugt i64 %size, {most}
  br i1 %absurd, label %fail, label %measure
measure:
  %padded = add i64 %size, 4095
  %pages = and i64 %padded, -4096
  %large = icmp uge i64 %size, {large}
  %room = select i1 %large, i64 %pages, i64 %size
  %spare = lshr i64 %room, 3
  %most = add i64 %room, %spare
  %count = load i64, ptr @count
  br i1 %large, label %look, label %make
look:
  %k = phi i64 [ %count, %measure ], [ %k.next, %compare ]
  %none = icmp eq i64 %k, 0
  br i1 %none, label %make, label %compare
compare:
  %k.next = sub i64 %k, 1
  %slot = getelementptr %Kept, ptr @kept, i64 %k.next
  %has = getelementptr i64, ptr %slot, i64 1
  %own = load i64, ptr %has
  %enough = icmp uge i64 %own, %room
  %close = icmp ule i64 %own, %most
  %fits = and i1 %enough, %close
  br i1 %fits, label %found, label %look
found:
  %again = call ptr @take(i64 %k.next)
  ret ptr %again
make:
  %new = call ptr @fresh(i64 %room)
  %short = icmp eq ptr %new, null
  br i1 %short, label %retry, label %done
retry:
  call void @jitml_results_release()
  %last = call ptr @fresh(i64 %room)
  ret ptr %last
done:
  ret ptr %new
fail:
  ret ptr null
}}

define ptr @jitml_results_calloc(ptr %context, i64 %n, i64 %size) {{
  %product = call {{ i64, i1 }} @llvm.umul.with.overflow.i64(i64 %n, i64 %size)
  %total = extractvalue {{ i64, i1 }} %product, 0
  %over = extractvalue {{ i64, i1 }} %product, 1
  %asked = select i1 %over, i64 -1, i64 %total
  %data = call ptr @jitml_results_malloc(ptr %context, i64 %asked)
  %none = icmp eq ptr %data, null
  br i1 %none, label %out, label %clear
clear:
  call void @llvm.memset.p0.i64(ptr %data, i8 0, i64 %total, i1 false)
  br label %out
out:
  ret ptr %data
}}

define ptr @jitml_results_realloc(ptr %context, ptr %data, i64 %size) {{
  %new = call ptr @jitml_results_malloc(ptr %context, i64 %size)
  %none = icmp eq ptr %new, null
  %first = icmp eq ptr %data, null
  %done = or i1 %none, %first
  br i1 %done, label %out, label %copy
copy:
  %room = call i64 @room(ptr %data)
  %n = call i64 @llvm.umin.i64(i64 %room, i64 %size)
  call void @llvm.memcpy.p0.p0.i64(ptr %new, ptr %data, i64 %n, i1 false)
  call void @jitml_results_free(ptr %context, ptr %data, i64 0)
  br label %out
out:
  ret ptr %new
}}

define void @jitml_results_free(ptr %context, ptr %data, i64 %size) {{
  %nothing = icmp eq ptr %data, null
  br i1 %nothing, label %out, label %measure
measure:
  %room = call i64 @room(ptr %data)
  %limit = load i64, ptr @limit
  %large = icmp uge i64 %room, {large}
  %fits = icmp ule i64 %room, %limit
  %keeps = and i1 %large, %fits
  br i1 %keeps, label %look, label %drop
drop:
  call void @give_back(ptr %data)
  br label %out
look:
  %bytes = load i64, ptr @bytes
  %together = add i64 %bytes, %room
  %count = load i64, ptr @count
  %too_much = icmp ugt i64 %together, %limit
  %too_many = icmp uge i64 %count, {slots}
  %full = or i1 %too_much, %too_many
  br i1 %full, label %oldest, label %keep
oldest:
  %old = call ptr @take(i64 0)
  call void @give_back(ptr %old)
  br label %look
keep:
  %slot = getelementptr %Kept, ptr @kept, i64 %count
  %has = getelementptr i64, ptr %slot, i64 1
  store ptr %data, ptr %slot
  store i64 %room, ptr %has
  %more = add i64 %count, 1
  store i64 %more, ptr @count
  store i64 %together, ptr @bytes
  br label %out
out:
  ret void
}}
"""


class _MemoryHandler(ctypes.Structure):
    """NumPy's PyDataMem_Handler."""

    _fields_ = (
        ("name", ctypes.c_char * 127),
        ("version", ctypes.c_uint8),
        ("context", ctypes.c_void_p),
        ("malloc", ctypes.c_void_p),
        ("calloc", ctypes.c_void_p),
        ("realloc", ctypes.c_void_p),
        ("free", ctypes.c_void_p),
    )


@once
def results() -> Code:
    """The functions above, compiled at the first need."""
    linux = sys.platform == "linux"
    advise = f"%a = call i32 @madvise(ptr %start, i64 %total, i32 {MADV_HUGEPAGE})" if linux else ""
    text = _RESULTS.format(slots=_SLOTS, limit=CONFIG.kept_bytes, large=LARGE, huge_page=HUGE_PAGE, most=2**62, advise=advise)
    imports = addresses(ctypes.CDLL(None), ("posix_memalign", "free", "madvise"))
    exports = defined(text)
    loaded = load(text, imports=imports, exports=exports, is_first=True)
    give_back_first(release_results)
    return loaded


@once
def results_handler() -> int:
    """The address of the capsule that says how NumPy frees and resizes a large result."""
    code = results()
    functions = (code[f"jitml_results_{name}"] for name in ("malloc", "calloc", "realloc", "free"))
    handler = _MemoryHandler(b"jitml", 1, None, *functions)
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
    name = ctypes.create_string_buffer(b"mem_handler")
    capsule = new(ctypes.addressof(handler), ctypes.addressof(name), None)
    for needed in (handler, name, capsule):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(needed))  # as long as there are arrays
    return id(capsule)


def kept_bytes() -> int:
    """Bytes of results that nobody holds any more, which are kept for new ones."""
    return int(ctypes.PYFUNCTYPE(ctypes.c_int64)(results()["jitml_results_kept"])())


def release_results() -> None:
    """Give all that is kept for new results back to the system."""
    ctypes.PYFUNCTYPE(None)(results()["jitml_results_release"])()


def keep_at_most(nbytes: int) -> None:
    """Keep no more than so many bytes from now on, and nothing of what is kept so far."""
    ctypes.PYFUNCTYPE(None, ctypes.c_int64)(results()["jitml_results_limit"])(nbytes)
