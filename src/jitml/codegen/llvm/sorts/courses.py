"""The course of a row, as native code: is it in order as it is, or almost?  Are elements likely equal?

Where a row is in order there is nothing to do, and NumPy's stable sort merges a few runs faster than anything sorts all.
"""

from __future__ import annotations

COURSE = """
declare i8 @llvm.ctpop.i8(i8)

; 0: each element is above the one before it, 1: none is below, 2: it turns now and then, `most` times or so, 3: more often.
; Takes n > 8. Eight pairs at a time; the last eight may have been seen before, which makes no difference but to `most`. If equal
; elements settle the matter, the answer is 1 as soon as some stand side by side, whatever else there is.
define internal i64 @course(ptr %x, i64 %n, i64 %most, i1 %is.settled) {
entry:
  %last = sub i64 %n, 9
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %again ]
  %turns = phi i64 [ 0, %entry ], [ %turns.now, %again ]
  %before = phi i8 [ -1, %entry ], [ %ups, %again ]
  %all = phi i8 [ -1, %entry ], [ %all.now, %again ]
  %strict = phi i8 [ -1, %entry ], [ %strict.now, %again ]
  %w = call <8 x i64> @eight_words(ptr %x, i64 %i)
  %j = add i64 %i, 1
  %v = call <8 x i64> @eight_words(ptr %x, i64 %j)
  %up = icmp uge <8 x i64> %v, %w
  %above = icmp ugt <8 x i64> %v, %w
  %ups = bitcast <8 x i1> %up to i8
  %rises = bitcast <8 x i1> %above to i8
  %all.now = and i8 %all, %ups
  %strict.now = and i8 %strict, %rises
  %carried = lshr i8 %before, 7
  %shifted = shl i8 %ups, 1
  %prior = or i8 %shifted, %carried
  %differ = xor i8 %ups, %prior
  %number = call i8 @llvm.ctpop.i8(i8 %differ)
  %more.turns = zext i8 %number to i64
  %turns.now = add i64 %turns, %more.turns
  %is.restless = icmp sgt i64 %turns.now, %most
  br i1 %is.restless, label %restless, label %compare
compare:
  %has.equal = icmp ne i8 %ups, %rises
  %is.over = and i1 %has.equal, %is.settled
  br i1 %is.over, label %equal, label %step
equal:
  ret i64 1
step:
  %is.end = icmp eq i64 %i, %last
  br i1 %is.end, label %done, label %again
again:
  %far = add i64 %i, 8
  %is.beyond = icmp sgt i64 %far, %last
  %next = select i1 %is.beyond, i64 %last, i64 %far
  br label %loop
restless:
  ret i64 3
done:
  %is.rising = icmp eq i8 %strict.now, -1
  %is.ordered = icmp eq i8 %all.now, -1
  %ordered = select i1 %is.ordered, i64 1, i64 2
  %course = select i1 %is.rising, i64 0, i64 %ordered
  ret i64 %course
}
"""

# A sample of one in 32, up to 1024, by a table of hashes. If words differ in few bits, two of a long row are equal.
REPEATS = """
; Whether two elements are likely equal.
define internal i1 @repeats(ptr %x, i64 %n) {
entry:
  %table = alloca [4096 x i16], align 64
  %sample = alloca [1025 x i64], align 64
  call void @llvm.memset.p0.i64(ptr %table, i8 0, i64 8192, i1 false)
  %part = lshr i64 %n, 5
  %is.large = icmp ugt i64 %part, 1024
  %size = select i1 %is.large, i64 1024, i64 %part
  %stride = udiv i64 %n, %size
  br label %loop
loop:
  %k = phi i64 [ 1, %entry ], [ %k.next, %fresh ]
  %i = phi i64 [ 0, %entry ], [ %i.next, %fresh ]
  %some = phi i64 [ 0, %entry ], [ %some.now, %fresh ]
  %all = phi i64 [ -1, %entry ], [ %all.now, %fresh ]
  %raw = call i64 @word(ptr %x, i64 %i)
  %w = call i64 @even(i64 %raw)
  %some.now = or i64 %some, %w
  %all.now = and i64 %all, %w
  %product = mul i64 %w, -7046029254386353131
  %hash = lshr i64 %product, 52
  %slot = getelementptr i16, ptr %table, i64 %hash
  %narrow = load i16, ptr %slot
  %other = zext i16 %narrow to i64
  %other.slot = getelementptr i64, ptr %sample, i64 %other
  %other.word = load i64, ptr %other.slot
  %is.taken = icmp ne i64 %other, 0
  %is.same = icmp eq i64 %other.word, %w
  %is.twice = and i1 %is.taken, %is.same
  br i1 %is.twice, label %twice, label %fresh
fresh:
  %own = trunc i64 %k to i16
  store i16 %own, ptr %slot
  %own.slot = getelementptr i64, ptr %sample, i64 %k
  store i64 %w, ptr %own.slot
  %k.next = add i64 %k, 1
  %i.next = add i64 %i, %stride
  %more = icmp ule i64 %k.next, %size
  br i1 %more, label %loop, label %bits
bits:
  %varying = xor i64 %some.now, %all.now
  %number = call i64 @llvm.ctpop.i64(i64 %varying)
  %is.narrow = icmp ult i64 %number, 63
  %amount = and i64 %number, 63
  %kinds = shl i64 2, %amount
  %pairs = mul i64 %n, %n
  %is.less = icmp ult i64 %kinds, %pairs
  %few = and i1 %is.narrow, %is.less
  ret i1 %few
twice:
  ret i1 true
}
"""
