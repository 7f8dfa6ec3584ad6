"""Sorts of long rows and selection from them, as native code: radix sorts, where the answer is the same whichever way one sorts.

Where it is not, NumPy's own function is called: for equal elements if `argsort` is not stable, zeros of both signs, nan of other
kinds.
"""

from __future__ import annotations

from jitml.codegen.llvm.ir.radix_sort import with_radix
from jitml.ir.types import DType

MOST = 15  # places of `argsort` that are found by insertion: with one more, they fill two registers

_SORT = """
declare i32 @numpy_sort(ptr, i64, ptr)

define i32 @jitml_sort_long(ptr %x, i64 %n, ptr %unused) {
entry:
  %is.long = icmp sge i64 %n, LEAST
  br i1 %is.long, label %look, label %plain
look:
  %mixed = call i1 @is_ambiguous(ptr %x, i64 %n)
  br i1 %mixed, label %plain, label %reserve
reserve:
  %bytes = shl i64 %n, 4
  %a = call ptr @malloc(i64 %bytes)
  %lacks = icmp eq ptr %a, null
  br i1 %lacks, label %plain, label %sort
sort:
  %b = getelementptr i64, ptr %a, i64 %n
  %varying = call i64 @fill(ptr %x, i64 %n, ptr %a, i1 false)
  %r = call ptr @order(ptr %a, ptr %b, i64 %n, i64 %varying)
  br label %write
write:
  %i = phi i64 [ 0, %sort ], [ %next, %write ]
  %p = getelementptr i64, ptr %r, i64 %i
  %w = load i64, ptr %p
  call void @put(ptr %x, i64 %i, i64 %w)
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %write, label %done
done:
  call void @free(ptr %a)
  ret i32 0
plain:
  %status = call i32 @numpy_sort(ptr %x, i64 %n, ptr null)
  ret i32 %status
}

; out[place] = what is there in the row x in order, for places that rise. Both may be the same memory.
define i32 @jitml_sort_places(ptr %x, ptr %out, i64 %n, ptr %places, i64 %count) {
entry:
  %is.long = icmp sge i64 %n, LEAST
  %is.short = icmp slt i64 %n, 4294967296
  %suits = and i1 %is.long, %is.short
  br i1 %suits, label %reserve, label %plain
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
  %m = phi i64 [ 0, %whole ], [ %m.next, %pick ]
  %m.slot = getelementptr i64, ptr %places, i64 %m
  %m.place = load i64, ptr %m.slot
  %source = getelementptr iBITS, ptr %copy, i64 %m.place
  %e = load iBITS, ptr %source, align 1
  %dest = getelementptr iBITS, ptr %out, i64 %m.place
  store iBITS %e, ptr %dest, align 1
  %m.next = add i64 %m, 1
  %picking = icmp slt i64 %m.next, %count
  br i1 %picking, label %pick, label %end
end:
  call void @free(ptr %copy)
  ret i32 %status
failed:
  ret i32 1
}
"""

_ARGSORT = """
declare i32 @numpy_argsort(ptr, ptr, i64, ptr)
declare i64 @llvm.cttz.i64(i64, i1)

; The 32 bits that are sorted by, then the position. Words that agree in them are compared as a whole; two of them that are
; equal stay as they were, or are left to NumPy: which of the two is STABLE. If some are likely equal, since there are few bits,
; all are left to it at once.
define i32 @jitml_argsort_long(ptr %x, ptr %positions, i64 %n, ptr %unused) {
entry:
  %is.long = icmp sge i64 %n, LEAST
  %is.short = icmp slt i64 %n, 4294967296
  %suits = and i1 %is.long, %is.short
  br i1 %suits, label %reserve, label %plain
reserve:
  %bytes = shl i64 %n, 4
  %a = call ptr @malloc(i64 %bytes)
  %lacks = icmp eq ptr %a, null
  br i1 %lacks, label %plain, label %words
words:
  %b = getelementptr i64, ptr %a, i64 %n
  %varying = call i64 @fill(ptr %x, i64 %n, ptr %a, i1 true)
  %shift = call i64 @low_end(i64 %varying, i64 32)
  %bits = call i64 @llvm.ctpop.i64(i64 %varying)
  %is.narrow = icmp ult i64 %bits, 63
  %amount = and i64 %bits, 63
  %kinds = shl i64 2, %amount
  %pairs = mul i64 %n, %n
  %is.less = icmp ult i64 %kinds, %pairs
  %repeats = and i1 %is.narrow, %is.less
  %hopeless = select i1 STABLE, i1 false, i1 %repeats
  br i1 %hopeless, label %leave, label %pack
pack:
  %i = phi i64 [ 0, %words ], [ %i.next, %pack ]
  %p = getelementptr i64, ptr %a, i64 %i
  %w = load i64, ptr %p
  %v = lshr i64 %w, %shift
  %high = shl i64 %v, 32
  %packed = or i64 %high, %i
  store i64 %packed, ptr %p
  %i.next = add i64 %i, 1
  %packing = icmp slt i64 %i.next, %n
  br i1 %packing, label %pack, label %sort
sort:
  %r = call ptr @passes(ptr %a, ptr %b, i64 %n, i64 32)
  %patience = shl i64 %n, 2
  br label %loop
loop:
  %k = phi i64 [ 1, %sort ], [ %k.next, %placed ]
  %left = phi i64 [ %patience, %sort ], [ %left.now, %placed ]
  %more = icmp slt i64 %k, %n
  br i1 %more, label %look, label %write
look:
  %kp = getelementptr i64, ptr %r, i64 %k
  %own = load i64, ptr %kp
  %before = add i64 %k, -1
  %bp = getelementptr i64, ptr %r, i64 %before
  %prior = load i64, ptr %bp
  %open = call i1 @agree(i64 %own, i64 %prior)
  br i1 %open, label %compare, label %placed
compare:
  %own.word = call i64 @packed_word(ptr %x, i64 %own)
  %prior.word = call i64 @packed_word(ptr %x, i64 %prior)
  %wrong = icmp ugt i64 %prior.word, %own.word
  br i1 %wrong, label %move, label %right
right:
  %is.tie = icmp eq i64 %prior.word, %own.word
  %gives.up = select i1 STABLE, i1 false, i1 %is.tie
  br i1 %gives.up, label %leave, label %placed
move:
  %j = phi i64 [ %k, %compare ], [ %j.next, %further ]
  %y = phi i64 [ %prior, %compare ], [ %c, %further ]
  %spent = phi i64 [ %left, %compare ], [ %spent.next, %further ]
  %to = getelementptr i64, ptr %r, i64 %j
  store i64 %y, ptr %to
  %j.next = add i64 %j, -1
  %spent.next = add i64 %spent, -1
  %is.first = icmp eq i64 %j.next, 0
  br i1 %is.first, label %here, label %again
again:
  %jp = add i64 %j.next, -1
  %cp = getelementptr i64, ptr %r, i64 %jp
  %c = load i64, ptr %cp
  %c.open = call i1 @agree(i64 %own, i64 %c)
  br i1 %c.open, label %another, label %here
another:
  %c.word = call i64 @packed_word(ptr %x, i64 %c)
  %still = icmp ugt i64 %c.word, %own.word
  br i1 %still, label %further, label %stop
further:
  br label %move
stop:
  %c.tie = icmp eq i64 %c.word, %own.word
  %c.gives.up = select i1 STABLE, i1 false, i1 %c.tie
  br i1 %c.gives.up, label %leave, label %here
here:
  %hole = getelementptr i64, ptr %r, i64 %j.next
  store i64 %own, ptr %hole
  br label %placed
placed:
  %left.now = phi i64 [ %left, %look ], [ %left, %right ], [ %spent.next, %here ]
  %k.next = add i64 %k, 1
  %is.long.way = icmp slt i64 %left.now, 0
  br i1 %is.long.way, label %leave, label %loop
write:
  %o = phi i64 [ 0, %loop ], [ %o.next, %write ]
  %op = getelementptr i64, ptr %r, i64 %o
  %ow = load i64, ptr %op
  %position = and i64 %ow, 4294967295
  %dest = getelementptr i64, ptr %positions, i64 %o
  store i64 %position, ptr %dest
  %o.next = add i64 %o, 1
  %writing = icmp slt i64 %o.next, %n
  br i1 %writing, label %write, label %done
done:
  call void @free(ptr %a)
  ret i32 0
leave:
  call void @free(ptr %a)
  br label %plain
plain:
  %status = call i32 @numpy_argsort(ptr %x, ptr %positions, i64 %n, ptr null)
  ret i32 %status
}

; Where the first or the last `count` of a row stand: inserted into a list of one more, which lies in registers. For the first it
; is filled from behind, with words upside down. If the one more is equal to the next one, NumPy tells which of them it is to be.
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
  %stride = shl i64 %step, 3
  br label %block
; Eight elements, of which often none is among the last: `mask` says which are, as far as is known.
block:
  %t = phi i64 [ 0, %entry ], [ %t.next, %skip ], [ %t.next, %next ]
  %i = phi i64 [ %start, %entry ], [ %i.next, %skip ], [ %i.next, %next ]
  %list = phi <16 x i64> [ zeroinitializer, %entry ], [ %list, %skip ], [ %list.new, %next ]
  %from = phi <16 x i64> [ zeroinitializer, %entry ], [ %from, %skip ], [ %from.new, %next ]
  %t.next = add i64 %t, 8
  %i.next = add i64 %i, %stride
  %at = sub i64 %i, %back
  %is.whole = icmp sle i64 %t.next, %n
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
  EIGHT_WORDS
  %v8 = xor <8 x i64> %w8, %flips
  %leasts = shufflevector <16 x i64> %list, <16 x i64> zeroinitializer, <8 x i32> zeroinitializer
  %enter8 = icmp uge <8 x i64> %v8, %leasts
  %entering = bitcast <8 x i1> %enter8 to i8
  %has.none = icmp eq i8 %entering, 0
  %which = zext i8 %entering to i64
  br i1 %has.none, label %skip, label %some
skip:
  %goes.on = icmp slt i64 %t.next, %n
  br i1 %goes.on, label %block, label %found
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
  br i1 %is.left, label %block, label %found
found:
  %list.last = phi <16 x i64> [ %list, %skip ], [ %list.new, %next ]
  %from.last = phi <16 x i64> [ %from, %skip ], [ %from.new, %next ]
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

define internal i1 @agree(i64 %x, i64 %y) alwaysinline {
  %differ = xor i64 %x, %y
  %agree = icmp ult i64 %differ, 4294967296
  ret i1 %agree
}

define internal i64 @packed_word(ptr %x, i64 %packed) alwaysinline {
  %position = and i64 %packed, 4294967295
  %word = call i64 @word(ptr %x, i64 %position)
  %even = call i64 @even(i64 %word)
  ret i64 %even
}
"""


def long_sort_ir(dtype: DType) -> str:
    """`jitml_sort_long` and `jitml_sort_places`, which call NumPy's `numpy_sort`."""
    return with_radix(_SORT, dtype)


def long_argsort_ir(dtype: DType, *, stable: bool) -> str:
    """`jitml_argsort_long`, which calls NumPy's `numpy_argsort`, and `jitml_argsort_places`."""
    lanes = ", ".join(f"i64 {lane}" for lane in range(MOST + 1))
    above = ", ".join(f"i32 {lane + 1}" for lane in range(MOST))
    text = _ARGSORT.replace("STABLE", str(stable).lower()).replace("LANES", f"<{lanes}>").replace("ABOVE", f"<{above}, i32 0>")
    return with_radix(text, dtype)
