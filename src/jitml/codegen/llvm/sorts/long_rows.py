"""Sorts of long rows, as native code: whichever way is the fastest, where the answer is the same.

Where it is not, NumPy's own function is called: for equal elements if `argsort` is not stable, zeros of both signs, nan of other
kinds.
"""

from __future__ import annotations

from jitml.codegen.llvm.sorts.courses import COURSE, REPEATS
from jitml.codegen.llvm.sorts.radix_sort import with_radix
from jitml.ir.types import DType

_SORT = """
declare i32 @numpy_sort(ptr, i64, ptr)

declare i32 @numpy_stable(ptr, i64, ptr)
declare i32 @numpy_quick(ptr, i64, ptr)

@is.by.radix = internal global i8 1

define void @jitml_choose(i1 %is.by.radix) {
entry:
  %flag = zext i1 %is.by.radix to i8
  store i8 %flag, ptr @is.by.radix
  ret void
}

define i32 @jitml_sort_long(ptr %x, i64 %n, ptr %unused) {
entry:
  %is.long = icmp sge i64 %n, LEAST
  br i1 %is.long, label %look, label %plain
look:
  %course = call i64 @course(ptr %x, i64 %n, i64 8, i1 false)
  %chosen = load i8, ptr @is.by.radix
  %is.quick = icmp eq i8 %chosen, 0
  %turns = icmp eq i64 %course, 3
  %is.calm = icmp ult i64 %course, 3
  %is.quick.one = and i1 %is.quick, IS_QUICKSORT
  %is.numpy = and i1 %turns, %is.quick.one
  %is.kept = and i1 %is.calm, IS_STABLE
  %is.left = or i1 %is.numpy, %is.kept
  br i1 %is.left, label %left, label %ask
left:
  %is.ordered = icmp ult i64 %course, 2
  br i1 %is.ordered, label %ordered, label %plain
ask:
  %mixed = call i1 @is_ambiguous(ptr %x, i64 %n)
  br i1 %mixed, label %plain, label %known
known:
  switch i64 %course, label %ordered [ i64 2, label %runs
                                       i64 3, label %many ]
ordered:
  ret i32 0
runs:
  %merged = call i32 @numpy_stable(ptr %x, i64 %n, ptr null)
  ret i32 %merged
many:
  br i1 %is.quick, label %quick, label %radix
quick:
  %sorted = call i32 @numpy_quick(ptr %x, i64 %n, ptr null)
  ret i32 %sorted
radix:
  %done = call i1 @jitml_radix_sort(ptr %x, i64 %n)
  br i1 %done, label %end, label %plain
end:
  ret i32 0
plain:
  %status = call i32 @numpy_sort(ptr %x, i64 %n, ptr null)
  ret i32 %status
}

; A row that is not ambiguous in order; false if there is no memory for that.
define i1 @jitml_radix_sort(ptr %x, i64 %n) {
entry:
  %bytes = shl i64 %n, 4
  %a = call ptr @malloc(i64 %bytes)
  %lacks = icmp eq ptr %a, null
  br i1 %lacks, label %none, label %sort
none:
  ret i1 false
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
  ret i1 true
}
"""

_ARGSORT = """
declare i32 @numpy_argsort(ptr, ptr, i64, ptr)

; How many rows are left to NumPy without a look, and how many were after the last one that had equal elements: 1, 3, 7 ... 63.
@waits = internal global i64 0
@penalty = internal global i64 0

; The 32 bits that are sorted by, then the position. Words that agree in them are compared as a whole; two of them that are
; equal stay as they were, or are left to NumPy: which of the two is STABLE. If some are likely equal, all are left to it at once.
define i32 @jitml_argsort_long(ptr %x, ptr %positions, i64 %n, ptr %unused) {
entry:
  %is.long = icmp sge i64 %n, LEAST
  %is.short = icmp slt i64 %n, 4294967296
  %suits = and i1 %is.long, %is.short
  br i1 %suits, label %survey, label %plain
survey:
  %part = lshr i64 %n, 6
  %some = call i64 @llvm.smax.i64(i64 %part, i64 8)
  %course = call i64 @course(ptr %x, i64 %n, i64 %some, i1 IS_QUICK)
  %restless = icmp eq i64 %course, 3
  br i1 %restless, label %sample, label %calm
calm:
  %ordered = icmp eq i64 %course, HIGHEST_ORDERED
  %rising = icmp eq i64 %course, 0
  %in.order = or i1 %ordered, %rising
  br i1 %in.order, label %nothing, label %plain
nothing:
  ret i32 0
sample:
  br i1 STABLE, label %reserve, label %remember
remember:
  %waits = load atomic i64, ptr @waits monotonic, align 8
  %has.to = icmp ne i64 %waits, 0
  br i1 %has.to, label %wait, label %try
wait:
  %fewer = add i64 %waits, -1
  store atomic i64 %fewer, ptr @waits monotonic, align 8
  br label %plain
try:
  %repeats = call i1 @repeats(ptr %x, i64 %n)
  br i1 %repeats, label %plain, label %reserve
reserve:
  %bytes = shl i64 %n, 4
  %a = call ptr @malloc(i64 %bytes)
  %lacks = icmp eq ptr %a, null
  br i1 %lacks, label %plain, label %words
words:
  %b = getelementptr i64, ptr %a, i64 %n
  %varying = call i64 @fill(ptr %x, i64 %n, ptr %a, i1 true)
  %shift = call i64 @low_end(i64 %varying, i64 32)
  br label %pack
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
  store atomic i64 0, ptr @penalty monotonic, align 8
  call void @free(ptr %a)
  ret i32 0
leave:
  %penalty = load atomic i64, ptr @penalty monotonic, align 8
  %twice = shl i64 %penalty, 1
  %longer = or i64 %twice, 1
  %bounded = and i64 %longer, 63
  store atomic i64 %bounded, ptr @penalty monotonic, align 8
  store atomic i64 %bounded, ptr @waits monotonic, align 8
  call void @free(ptr %a)
  br label %plain
plain:
  %status = call i32 @numpy_argsort(ptr %x, ptr %positions, i64 %n, ptr null)
  ret i32 %status
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


def long_sort_ir(dtype: DType, kind: str) -> str:
    """`jitml_sort_long`, which calls NumPy's `numpy_sort`, `numpy_quick` and `numpy_stable`.

    The first is the one whose results it has. `jitml_choose` says whether `jitml_radix_sort` does what the second could do, too.
    """
    text = _SORT.replace("IS_STABLE", str(kind == "stable").lower()).replace("IS_QUICKSORT", str(kind == "quicksort").lower())
    return with_radix(COURSE + text, dtype)


def long_argsort_ir(dtype: DType, *, stable: bool) -> str:
    """`jitml_argsort_long`, which calls NumPy's `numpy_argsort`."""
    text = _ARGSORT.replace("STABLE", str(stable).lower()).replace("IS_QUICK", str(not stable).lower())
    text = text.replace("HIGHEST_ORDERED", "1" if stable else "0")
    return with_radix(COURSE + REPEATS + text, dtype)
