"""Selection from long rows, as native code: what is at a few places of a row in order, found by the highest bits of the words."""

from __future__ import annotations

from jitml.codegen.llvm.sorts.courses import COURSE
from jitml.codegen.llvm.sorts.radix_sort import with_radix
from jitml.ir.types import DType

_PLACES = """
declare i32 @numpy_sort(ptr, i64, ptr)

; out[place] = what is there in the row x in order, for places that rise. Both may be the same memory.
define i32 @jitml_sort_places(ptr %x, ptr %out, i64 %n, ptr %places, i64 %count) {
entry:
  %is.long = icmp sge i64 %n, LEAST
  %is.short = icmp slt i64 %n, 4294967296
  %suits = and i1 %is.long, %is.short
  br i1 %suits, label %survey, label %plain
survey:
  %course = call i64 @course(ptr %x, i64 %n, i64 0, i1 false)
  %is.ordered = icmp ult i64 %course, 2
  br i1 %is.ordered, label %ordered, label %reserve
ordered:
  %is.mixed = call i1 @is_ambiguous(ptr %x, i64 %n)
  br i1 %is.mixed, label %plain, label %pick
reserve:
  %own = shl i64 %count, 3
  %is.large = icmp sge i64 %n, 65536
  %width = select i1 %is.large, i64 16, i64 11
  %number = shl i64 1, %width
  %highest = add i64 %number, -1
  %table = shl i64 %number, 2
  %bytes = add i64 %own, %table
  %bins = call ptr @malloc(i64 %bytes)
  %lacks = icmp eq ptr %bins, null
  br i1 %lacks, label %plain, label %look
look:
  %within = getelementptr i8, ptr %bins, i64 %table
  call void @llvm.memset.p0.i64(ptr %bins, i8 0, i64 %table, i1 false)
  %varying = call i64 @differ(ptr %x, i64 %n)
  %shift = call i64 @low_end(i64 %varying, i64 %width)
  br label %tally
tally:
  %i = phi i64 [ 0, %look ], [ %i.next, %tally ]
  %w = call i64 @word(ptr %x, i64 %i)
  %v = lshr i64 %w, %shift
  %digit = and i64 %v, %highest
  %slot = getelementptr i32, ptr %bins, i64 %digit
  %old = load i32, ptr %slot
  %new = add i32 %old, 1
  store i32 %new, ptr %slot
  %i.next = add i64 %i, 1
  %more = icmp slt i64 %i.next, %n
  br i1 %more, label %tally, label %walk
; A bin that holds a wanted place is kept: 1, else 0. Its words come behind those of the bins kept before.
walk:
  %bin = phi i64 [ 0, %tally ], [ %bin.next, %mark ]
  %j = phi i64 [ 0, %tally ], [ %j.now, %mark ]
  %base = phi i64 [ 0, %tally ], [ %upto, %mark ]
  %kept = phi i64 [ 0, %tally ], [ %kept.now, %mark ]
  %bin.slot = getelementptr i32, ptr %bins, i64 %bin
  %narrow = load i32, ptr %bin.slot
  %size = zext i32 %narrow to i64
  %upto = add i64 %base, %size
  br label %wanted
wanted:
  %j.now = phi i64 [ %j, %walk ], [ %j.next, %take ]
  %is.left = icmp slt i64 %j.now, %count
  br i1 %is.left, label %ask, label %mark
ask:
  %place.slot = getelementptr i64, ptr %places, i64 %j.now
  %place = load i64, ptr %place.slot
  %is.here = icmp slt i64 %place, %upto
  br i1 %is.here, label %take, label %mark
take:
  %inside = sub i64 %place, %base
  %behind = add i64 %inside, %kept
  %within.slot = getelementptr i64, ptr %within, i64 %j.now
  store i64 %behind, ptr %within.slot
  %j.next = add i64 %j.now, 1
  br label %wanted
mark:
  %keeps = icmp ne i64 %j.now, %j
  %flag = zext i1 %keeps to i32
  store i32 %flag, ptr %bin.slot
  %added = select i1 %keeps, i64 %size, i64 0
  %kept.now = add i64 %kept, %added
  %bin.next = add i64 %bin, 1
  %walking = icmp slt i64 %bin.next, %number
  br i1 %walking, label %walk, label %room
room:
  %half = add i64 %kept.now, 1
  %words.bytes = shl i64 %half, 4
  %a = call ptr @malloc(i64 %words.bytes)
  %has.none = icmp eq ptr %a, null
  br i1 %has.none, label %drop, label %filter
filter:
  %f = phi i64 [ 0, %room ], [ %f.next, %filter ]
  %to = phi i64 [ 0, %room ], [ %to.next, %filter ]
  %fw = call i64 @word(ptr %x, i64 %f)
  %fv = lshr i64 %fw, %shift
  %fd = and i64 %fv, %highest
  %flag.slot = getelementptr i32, ptr %bins, i64 %fd
  %step.narrow = load i32, ptr %flag.slot
  %step = zext i32 %step.narrow to i64
  %target = getelementptr i64, ptr %a, i64 %to
  store i64 %fw, ptr %target
  %to.next = add i64 %to, %step
  %f.next = add i64 %f, 1
  %filtering = icmp slt i64 %f.next, %n
  br i1 %filtering, label %filter, label %sort
sort:
  %b = getelementptr i64, ptr %a, i64 %half
  %r = call ptr @order(ptr %a, ptr %b, i64 %kept.now, i64 %varying)
  br label %check
check:
  %c = phi i64 [ 0, %sort ], [ %c.next, %check ]
  %doubt = phi i1 [ false, %sort ], [ %doubt.now, %check ]
  %c.slot = getelementptr i64, ptr %within, i64 %c
  %c.place = load i64, ptr %c.slot
  %cp = getelementptr i64, ptr %r, i64 %c.place
  %cw = load i64, ptr %cp
  %ce = call i64 @even(i64 %cw)
  %is.zero = icmp eq i64 %ce, SIGN
  %is.nan = icmp uge i64 %cw, NAN_WORD
  %is.doubtful = or i1 %is.zero, %is.nan
  %doubt.now = or i1 %doubt, %is.doubtful
  %c.next = add i64 %c, 1
  %checking = icmp slt i64 %c.next, %count
  br i1 %checking, label %check, label %checked
checked:
  br i1 %doubt.now, label %signs, label %write
signs:
  %mixed = call i1 @is_ambiguous(ptr %x, i64 %n)
  br i1 %mixed, label %leave, label %write
write:
  %o = phi i64 [ 0, %checked ], [ 0, %signs ], [ %o.next, %write ]
  %o.slot = getelementptr i64, ptr %within, i64 %o
  %o.within = load i64, ptr %o.slot
  %op = getelementptr i64, ptr %r, i64 %o.within
  %ow = load i64, ptr %op
  %o.place.slot = getelementptr i64, ptr %places, i64 %o
  %o.place = load i64, ptr %o.place.slot
  call void @put(ptr %out, i64 %o.place, i64 %ow)
  %o.next = add i64 %o, 1
  %writing = icmp slt i64 %o.next, %count
  br i1 %writing, label %write, label %done
done:
  call void @free(ptr %a)
  call void @free(ptr %bins)
  ret i32 0
leave:
  call void @free(ptr %a)
  br label %drop
drop:
  call void @free(ptr %bins)
  br label %plain
plain:
  %all.bytes = mul i64 %n, ITEMSIZE
  %copy = call ptr @malloc(i64 %all.bytes)
  %fails = icmp eq ptr %copy, null
  br i1 %fails, label %failed, label %whole
whole:
  call void @llvm.memcpy.p0.p0.i64(ptr %copy, ptr %x, i64 %all.bytes, i1 false)
  %status = call i32 @numpy_sort(ptr %copy, i64 %n, ptr null)
  br label %pick
pick:
  %m = phi i64 [ 0, %whole ], [ 0, %ordered ], [ %m.next, %pick ]
  %row = phi ptr [ %copy, %whole ], [ %x, %ordered ], [ %row, %pick ]
  %code = phi i32 [ %status, %whole ], [ 0, %ordered ], [ %code, %pick ]
  %own.copy = phi ptr [ %copy, %whole ], [ null, %ordered ], [ %own.copy, %pick ]
  %m.slot = getelementptr i64, ptr %places, i64 %m
  %m.place = load i64, ptr %m.slot
  %source = getelementptr iBITS, ptr %row, i64 %m.place
  %e = load iBITS, ptr %source, align 1
  %dest = getelementptr iBITS, ptr %out, i64 %m.place
  store iBITS %e, ptr %dest, align 1
  %m.next = add i64 %m, 1
  %picking = icmp slt i64 %m.next, %count
  br i1 %picking, label %pick, label %end
end:
  call void @free(ptr %own.copy)
  ret i32 %code
failed:
  ret i32 1
}
"""


def places_ir(dtype: DType) -> str:
    """`jitml_sort_places`, which calls NumPy's `numpy_sort`."""
    return with_radix(COURSE + _PLACES, dtype)
