"""The ends of a partition, as native code: which elements are the first or the last few of a row, found by insertion."""

from __future__ import annotations

from jitml.codegen.llvm.sorts.radix_sort import with_radix
from jitml.ir.types import DType

MOST = 15  # places of `argsort` that are found by insertion: with one more, they fill two registers

_ENDS = """
declare i32 @numpy_argsort(ptr, ptr, i64, ptr)
declare i64 @llvm.cttz.i64(i64, i1)

; Where the first or the last `count` of a row stand: inserted into a list of one more, which lies in registers. For the first it
; is filled from behind, with words upside down. If the one more is equal to the next one, NumPy tells which of them it is to be.
; Of a longer row a sample comes first, some blocks far apart: what is below its last ones is not among the last ones of all. In a
; row that rises each element would enter the list else.
define i32 @jitml_argsort_places(ptr %x, ptr %positions, i64 %n, i64 %count, i1 %is.first) {
entry:
  %words = alloca <16 x i64>
  %places = alloca <16 x i64>
  %count.0 = insertelement <16 x i64> zeroinitializer, i64 %count, i64 0
  %counts = shufflevector <16 x i64> %count.0, <16 x i64> zeroinitializer, <16 x i32> zeroinitializer
  %is.held = icmp ule <16 x i64> LANES, %counts
  %is.below = icmp ult <16 x i64> LANES, %counts
  %last = add i64 %n, -1
  %start = select i1 %is.first, i64 %last, i64 0
  %step = select i1 %is.first, i64 -1, i64 1
  %flip = select i1 %is.first, i64 -1, i64 0
  %flip.0 = insertelement <8 x i64> zeroinitializer, i64 %flip, i64 0
  %flips = shufflevector <8 x i64> %flip.0, <8 x i64> zeroinitializer, <8 x i32> zeroinitializer
  %back = select i1 %is.first, i64 7, i64 0
  %is.long = icmp sge i64 %n, 512
  %blocks = lshr i64 %n, 3
  %unused = call i64 @llvm.ctlz.i64(i64 %blocks, i1 false)
  %bits = sub i64 64, %unused
  %half = lshr i64 %bits, 1
  %every = lshr i64 %blocks, %half
  %apart = shl i64 %every, 3
  br label %block
; Eight elements, of which often none is among the last: `mask` says which are, as far as is known.
block:
  %t = phi i64 [ 0, %entry ], [ 0, %again ], [ %t.next, %skip ], [ %t.next, %next ]
  %i = phi i64 [ %start, %entry ], [ %start, %again ], [ %i.next, %skip ], [ %i.next, %next ]
  %list = phi <16 x i64> [ zeroinitializer, %entry ], [ %seeds, %again ], [ %list, %skip ], [ %list.new, %next ]
  %from = phi <16 x i64> [ zeroinitializer, %entry ], [ zeroinitializer, %again ], [ %from, %skip ], [ %from.new, %next ]
  %samples = phi i1 [ %is.long, %entry ], [ false, %again ], [ %samples, %skip ], [ %samples, %next ]
  %far = select i1 %samples, i64 %apart, i64 8
  %stride = mul i64 %step, %far
  %t.next = add i64 %t, %far
  %i.next = add i64 %i, %stride
  %at = sub i64 %i, %back
  %t.end = add i64 %t, 8
  %is.whole = icmp sle i64 %t.end, %n
  br i1 %is.whole, label %look, label %tail
tail:
  %left = sub i64 %n, %t
  %beyond = sub i64 8, %left
  %ahead.of = select i1 %is.first, i64 %beyond, i64 0
  %unit = shl i64 1, %left
  %ones = add i64 %unit, -1
  %those = shl i64 %ones, %ahead.of
  br label %some
look:
  %w8 = call <8 x i64> @eight_words(ptr %x, i64 %at)
  %v8 = xor <8 x i64> %w8, %flips
  %leasts = shufflevector <16 x i64> %list, <16 x i64> zeroinitializer, <8 x i32> zeroinitializer
  %enter8 = icmp uge <8 x i64> %v8, %leasts
  %entering = bitcast <8 x i1> %enter8 to i8
  %has.none = icmp eq i8 %entering, 0
  %which = zext i8 %entering to i64
  br i1 %has.none, label %skip, label %some
skip:
  %goes.on = icmp slt i64 %t.next, %n
  br i1 %goes.on, label %block, label %ended
some:
  %known = phi i64 [ %those, %tail ], [ %which, %look ]
  br label %insert
insert:
  %mask = phi i64 [ %known, %some ], [ %mask.next, %insert ]
  %list.now = phi <16 x i64> [ %list, %some ], [ %list.new, %insert ]
  %from.now = phi <16 x i64> [ %from, %some ], [ %from.new, %insert ]
  %low = call i64 @llvm.cttz.i64(i64 %mask, i1 true)
  %leading = call i64 @llvm.ctlz.i64(i64 %mask, i1 true)
  %high = sub i64 63, %leading
  %lane = select i1 %is.first, i64 %high, i64 %low
  %p = add i64 %at, %lane
  %w = call i64 @word(ptr %x, i64 %p)
  %even = call i64 @even(i64 %w)
  %v = xor i64 %even, %flip
  %v.0 = insertelement <16 x i64> zeroinitializer, i64 %v, i64 0
  %vs = shufflevector <16 x i64> %v.0, <16 x i64> zeroinitializer, <16 x i32> zeroinitializer
  %i.0 = insertelement <16 x i64> zeroinitializer, i64 %p, i64 0
  %is = shufflevector <16 x i64> %i.0, <16 x i64> zeroinitializer, <16 x i32> zeroinitializer
  %above = shufflevector <16 x i64> %list.now, <16 x i64> zeroinitializer, <16 x i32> ABOVE
  %from.above = shufflevector <16 x i64> %from.now, <16 x i64> zeroinitializer, <16 x i32> ABOVE
  %is.past = icmp ule <16 x i64> %above, %vs
  %falls = and <16 x i1> %is.past, %is.below
  %is.reached = icmp ule <16 x i64> %list.now, %vs
  %takes = and <16 x i1> %is.reached, %is.held
  %list.taken = select <16 x i1> %takes, <16 x i64> %vs, <16 x i64> %list.now
  %list.new = select <16 x i1> %falls, <16 x i64> %above, <16 x i64> %list.taken
  %from.taken = select <16 x i1> %takes, <16 x i64> %is, <16 x i64> %from.now
  %from.new = select <16 x i1> %falls, <16 x i64> %from.above, <16 x i64> %from.taken
  %lane.bit = shl i64 1, %lane
  %mask.next = xor i64 %mask, %lane.bit
  %more = icmp ne i64 %mask.next, 0
  br i1 %more, label %insert, label %next
next:
  %is.left = icmp slt i64 %t.next, %n
  br i1 %is.left, label %block, label %ended
ended:
  %list.last = phi <16 x i64> [ %list, %skip ], [ %list.new, %next ]
  %from.last = phi <16 x i64> [ %from, %skip ], [ %from.new, %next ]
  br i1 %samples, label %again, label %found
again:
  %least = extractelement <16 x i64> %list.last, i64 0
  %is.lowest = icmp eq i64 %least, 0
  %before = add i64 %least, -1
  %seed = select i1 %is.lowest, i64 0, i64 %before
  %seed.0 = insertelement <16 x i64> zeroinitializer, i64 %seed, i64 0
  %seed.all = shufflevector <16 x i64> %seed.0, <16 x i64> zeroinitializer, <16 x i32> zeroinitializer
  %seeds = select <16 x i1> %is.held, <16 x i64> %seed.all, <16 x i64> zeroinitializer
  br label %block
found:
  store <16 x i64> %list.last, ptr %words
  store <16 x i64> %from.last, ptr %places
  br label %check
check:
  %first = load i64, ptr %words
  %second.slot = getelementptr i64, ptr %words, i64 1
  %second = load i64, ptr %second.slot
  %is.open = icmp eq i64 %first, %second
  br i1 %is.open, label %number, label %write
number:
  %q = phi i64 [ 0, %check ], [ %q.next, %number ]
  %q.slot = getelementptr i64, ptr %positions, i64 %q
  store i64 %q, ptr %q.slot
  %q.next = add i64 %q, 1
  %numbering = icmp slt i64 %q.next, %n
  br i1 %numbering, label %number, label %plain
plain:
  %status = call i32 @numpy_argsort(ptr %x, ptr %positions, i64 %n, ptr null)
  ret i32 %status
write:
  %o = phi i64 [ 0, %check ], [ %o.next, %write ]
  %o.next = add i64 %o, 1
  %place.slot = getelementptr i64, ptr %places, i64 %o.next
  %place = load i64, ptr %place.slot
  %rest = sub i64 %n, %count
  %behind = add i64 %rest, %o
  %ahead = sub i64 %count, %o.next
  %goal = select i1 %is.first, i64 %ahead, i64 %behind
  %dest = getelementptr i64, ptr %positions, i64 %goal
  store i64 %place, ptr %dest
  %writing = icmp slt i64 %o.next, %count
  br i1 %writing, label %write, label %done
done:
  ret i32 0
}
"""


def ends_ir(dtype: DType) -> str:
    """`jitml_argsort_places`, which calls NumPy's `numpy_argsort`."""
    lanes = ", ".join(f"i64 {lane}" for lane in range(MOST + 1))
    above = ", ".join(f"i32 {lane + 1}" for lane in range(MOST))
    text = _ENDS.replace("LANES", f"<{lanes}>").replace("ABOVE", f"<{above}, i32 0>")
    return with_radix(text, dtype)
