"""Radix sorts, as native code: words whose order is that of the elements, by which rows are sorted and selected from.

A word has 64 bits. Of those that differ at all, the 32 highest are sorted by, a byte at a time, and what they leave open is put
right by insertion: numbers drawn at random are in order by then. Where that takes long, words are sorted by all their bits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from itertools import count

from jitml.ir.types import DType

LEAST = 2048  # elements, up to which NumPy's sorts are as fast

_SIGN = -(1 << 63)
_NAN = {4: (0x7F800000, 0x7FC00000), 8: (0x7FF0000000000000, 0x7FF8000000000000)}  # infinity, and NumPy's nan

_INTEGER = """
define internal i64 @word(ptr %x, i64 %i) alwaysinline {{
  %e = getelementptr {i}, ptr %x, i64 %i
  %bits = load {i}, ptr %e, align 1
  %key = xor {i} %bits, {sign}
  {widen}
  ret i64 %word
}}

define internal void @put(ptr %x, i64 %i, i64 %word) alwaysinline {{
  {narrow}
  %bits = xor {i} %key, {sign}
  %e = getelementptr {i}, ptr %x, i64 %i
  store {i} %bits, ptr %e, align 1
  ret void
}}

define internal i1 @is_ambiguous(ptr %x, i64 %n) {{
  ret i1 false
}}
"""

# The bits of a number that is not negative grow with it, those of the others fall; nan, whatever its sign, is behind all.
_FLOAT = """
define internal i64 @word(ptr %x, i64 %i) alwaysinline {{
  %e = getelementptr {i}, ptr %x, i64 %i
  %raw = load {i}, ptr %e, align 1
  %size = and {i} %raw, {magnitude}
  %is.nan = icmp ugt {i} %size, {infinity}
  %bits = select i1 %is.nan, {i} {nan}, {i} %raw
  %negative = ashr {i} %bits, {last}
  %flipped = or {i} %negative, {sign}
  %key = xor {i} %bits, %flipped
  {widen}
  ret i64 %word
}}

define internal void @put(ptr %x, i64 %i, i64 %word) alwaysinline {{
  {narrow}
  %unset = xor {i} %key, -1
  %negative = ashr {i} %unset, {last}
  %flipped = or {i} %negative, {sign}
  %bits = xor {i} %key, %flipped
  %e = getelementptr {i}, ptr %x, i64 %i
  store {i} %bits, ptr %e, align 1
  ret void
}}

; Whether there are zeros of both signs, or nan that is not NumPy's: of these a sort may make what it likes.
define internal i1 @is_ambiguous(ptr %x, i64 %n) {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %plus = phi i1 [ false, %entry ], [ %plus.now, %loop ]
  %minus = phi i1 [ false, %entry ], [ %minus.now, %loop ]
  %odd = phi i1 [ false, %entry ], [ %odd.now, %loop ]
  %e = getelementptr {i}, ptr %x, i64 %i
  %raw = load {i}, ptr %e, align 1
  %is.plus = icmp eq {i} %raw, 0
  %is.minus = icmp eq {i} %raw, {sign}
  %plus.now = or i1 %plus, %is.plus
  %minus.now = or i1 %minus, %is.minus
  %size = and {i} %raw, {magnitude}
  %is.nan = icmp ugt {i} %size, {infinity}
  %is.other = icmp ne {i} %raw, {nan}
  %is.odd = and i1 %is.nan, %is.other
  %odd.now = or i1 %odd, %is.odd
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  %both = and i1 %plus.now, %minus.now
  %either = or i1 %both, %odd.now
  ret i1 %either
}}
"""

_COMMON = """
declare ptr @malloc(i64)
declare void @free(ptr)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare i64 @llvm.ctlz.i64(i64, i1)
declare i64 @llvm.ctpop.i64(i64)
declare i64 @llvm.smax.i64(i64, i64)

; The word of both zeros, of either.
define internal i64 @even(i64 %word) alwaysinline {
  %is.minus = icmp eq i64 %word, MINUS_ZERO
  %even = select i1 %is.minus, i64 SIGN, i64 %word
  ret i64 %even
}

; The words of a row, those of zeros alike if `evens`; and the bits in which they differ.
define internal i64 @fill(ptr %x, i64 %n, ptr %words, i1 %evens) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %some = phi i64 [ 0, %entry ], [ %some.now, %loop ]
  %all = phi i64 [ -1, %entry ], [ %all.now, %loop ]
  %own = call i64 @word(ptr %x, i64 %i)
  %even = call i64 @even(i64 %own)
  %w = select i1 %evens, i64 %even, i64 %own
  %p = getelementptr i64, ptr %words, i64 %i
  store i64 %w, ptr %p
  %some.now = or i64 %some, %w
  %all.now = and i64 %all, %w
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  %varying = xor i64 %some.now, %all.now
  ret i64 %varying
}

; The bits in which the words of a row differ.
define internal i64 @differ(ptr %x, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %some = phi i64 [ 0, %entry ], [ %some.now, %loop ]
  %all = phi i64 [ -1, %entry ], [ %all.now, %loop ]
  %w = call i64 @word(ptr %x, i64 %i)
  %some.now = or i64 %some, %w
  %all.now = and i64 %all, %w
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  %varying = xor i64 %some.now, %all.now
  ret i64 %varying
}

; How far to the right the 32 highest of these bits are to be moved to be the lowest.
define internal i64 @low_end(i64 %varying, i64 %width) alwaysinline {
  %unused = call i64 @llvm.ctlz.i64(i64 %varying, i1 false)
  %used = sub i64 64, %unused
  %rest = sub i64 %used, %width
  %shift = call i64 @llvm.smax.i64(i64 %rest, i64 0)
  ret i64 %shift
}

; Words in the order of the 32 bits from `shift` on; equal ones as they were. The result is where they are in the end: a or b.
define internal ptr @passes(ptr %a, ptr %b, i64 %n, i64 %shift) {
entry:
  %counts = alloca [4 x [256 x i64]], align 64
  call void @llvm.memset.p0.i64(ptr %counts, i8 0, i64 8192, i1 false)
  br label %count
count:
  %i = phi i64 [ 0, %entry ], [ %i.next, %count ]
  %p = getelementptr i64, ptr %a, i64 %i
  %w = load i64, ptr %p
  %v = lshr i64 %w, %shift
COUNTED
  %i.next = add i64 %i, 1
  %counting = icmp slt i64 %i.next, %n
  br i1 %counting, label %count, label %digits
digits:
  %d = phi i64 [ 0, %count ], [ %d.next, %advance ]
  %from = phi ptr [ %a, %count ], [ %from.next, %advance ]
  %to = phi ptr [ %b, %count ], [ %to.next, %advance ]
  %own = getelementptr [256 x i64], ptr %counts, i64 %d
  %bit = shl i64 %d, 3
  %down = add i64 %bit, %shift
  %first = load i64, ptr %from
  %first.down = lshr i64 %first, %down
  %first.digit = and i64 %first.down, 255
  %first.slot = getelementptr i64, ptr %own, i64 %first.digit
  %first.count = load i64, ptr %first.slot
  %is.same = icmp eq i64 %first.count, %n
  br i1 %is.same, label %advance, label %starts
starts:
  %k = phi i64 [ 0, %digits ], [ %k.next, %starts ]
  %start = phi i64 [ 0, %digits ], [ %start.next, %starts ]
  %slot = getelementptr i64, ptr %own, i64 %k
  %count.k = load i64, ptr %slot
  store i64 %start, ptr %slot
  %start.next = add i64 %start, %count.k
  %k.next = add i64 %k, 1
  %starting = icmp slt i64 %k.next, 256
  br i1 %starting, label %starts, label %move
move:
  %j = phi i64 [ 0, %starts ], [ %j.next, %move ]
  %q = getelementptr i64, ptr %from, i64 %j
  %u = load i64, ptr %q
  %u.down = lshr i64 %u, %down
  %digit = and i64 %u.down, 255
  %place.slot = getelementptr i64, ptr %own, i64 %digit
  %place = load i64, ptr %place.slot
  %place.next = add i64 %place, 1
  store i64 %place.next, ptr %place.slot
  %target = getelementptr i64, ptr %to, i64 %place
  store i64 %u, ptr %target
  %j.next = add i64 %j, 1
  %moving = icmp slt i64 %j.next, %n
  br i1 %moving, label %move, label %advance
advance:
  %from.next = phi ptr [ %from, %digits ], [ %to, %move ]
  %to.next = phi ptr [ %to, %digits ], [ %from, %move ]
  %d.next = add i64 %d, 1
  %is.last = icmp eq i64 %d.next, 4
  br i1 %is.last, label %done, label %digits
done:
  ret ptr %from.next
}

; Insertion; false, with the words in some order, if that takes long.
define internal i1 @insert(ptr %w, i64 %n) {
entry:
  %patience = shl i64 %n, 2
  br label %loop
loop:
  %i = phi i64 [ 1, %entry ], [ %next, %placed ]
  %left = phi i64 [ %patience, %entry ], [ %left.now, %placed ]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %look, label %good
look:
  %p = getelementptr i64, ptr %w, i64 %i
  %x = load i64, ptr %p
  %before = add i64 %i, -1
  %bp = getelementptr i64, ptr %w, i64 %before
  %b = load i64, ptr %bp
  %wrong = icmp ugt i64 %b, %x
  br i1 %wrong, label %shift, label %placed
shift:
  %j = phi i64 [ %i, %look ], [ %j.next, %again ]
  %y = phi i64 [ %b, %look ], [ %c, %again ]
  %spent = phi i64 [ %left, %look ], [ %spent.next, %again ]
  %to = getelementptr i64, ptr %w, i64 %j
  store i64 %y, ptr %to
  %j.next = add i64 %j, -1
  %spent.next = add i64 %spent, -1
  %is.first = icmp eq i64 %j.next, 0
  br i1 %is.first, label %here, label %again
again:
  %jp = add i64 %j.next, -1
  %cp = getelementptr i64, ptr %w, i64 %jp
  %c = load i64, ptr %cp
  %still = icmp ugt i64 %c, %x
  br i1 %still, label %shift, label %here
here:
  %hole = getelementptr i64, ptr %w, i64 %j.next
  store i64 %x, ptr %hole
  br label %placed
placed:
  %left.now = phi i64 [ %left, %look ], [ %spent.next, %here ]
  %next = add i64 %i, 1
  %gives.up = icmp slt i64 %left.now, 0
  br i1 %gives.up, label %bad, label %loop
good:
  ret i1 true
bad:
  ret i1 false
}

; Words in order, of which b is as large a scratch; the result is where they are.
define internal ptr @order(ptr %a, ptr %b, i64 %n, i64 %varying) {
entry:
  %shift = call i64 @low_end(i64 %varying, i64 32)
  %r = call ptr @passes(ptr %a, ptr %b, i64 %n, i64 %shift)
  %unit = shl i64 1, %shift
  %mask = add i64 %unit, -1
  %open = and i64 %varying, %mask
  %is.done = icmp eq i64 %open, 0
  br i1 %is.done, label %done, label %check
check:
  %good = call i1 @insert(ptr %r, i64 %n)
  br i1 %good, label %done, label %all
all:
  %is.a = icmp eq ptr %r, %a
  %other = select i1 %is.a, ptr %b, ptr %a
  %low = call ptr @passes(ptr %r, ptr %other, i64 %n, i64 0)
  %is.a.now = icmp eq ptr %low, %a
  %other.now = select i1 %is.a.now, ptr %b, ptr %a
  %high = call ptr @passes(ptr %low, ptr %other.now, i64 %n, i64 %shift)
  ret ptr %high
done:
  ret ptr %r
}
"""

_COUNTED = """  %v{d} = lshr i64 %v, {bit}
  %digit{d} = and i64 %v{d}, 255
  %slot{d} = getelementptr [4 x [256 x i64]], ptr %counts, i64 0, i64 {d}, i64 %digit{d}
  %old{d} = load i64, ptr %slot{d}
  %new{d} = add i64 %old{d}, 1
  store i64 %new{d}, ptr %slot{d}"""


def has_words(dtype: DType) -> bool:
    """Whether rows of a dtype are sorted so: numbers of 4 and 8 bytes."""
    return dtype.kind in "iuf" and dtype.itemsize >= 4


def _words(dtype: DType) -> str:
    """The functions that make words of elements and elements of words."""
    bits = 8 * dtype.itemsize
    i, wide = f"i{bits}", bits == 64
    common = {
        "i": i,
        "widen": "%word = or i64 %key, 0" if wide else f"%wide = zext {i} %key to i64\n  %word = shl i64 %wide, {64 - bits}",
        "narrow": f"%key = or {i} %word, 0" if wide else f"%far = lshr i64 %word, {64 - bits}\n  %key = trunc i64 %far to {i}",
        "sign": 0 if dtype.kind == "u" else -(1 << (bits - 1)),
    }
    if dtype.kind != "f":
        return _INTEGER.format(**common)
    infinity, nan = _NAN[dtype.itemsize]
    return _FLOAT.format(**common, magnitude=(1 << (bits - 1)) - 1, infinity=infinity, nan=nan, last=bits - 1)


def _eight_words(dtype: DType) -> str:
    """`@eight_words(ptr x, i64 at)`: the words of x from `at` on, those of zeros alike."""
    bits = 8 * dtype.itemsize
    v = f"<8 x i{bits}>"

    def each(value: int, of: int = bits) -> str:
        return f"splat (i{of} {value})"

    sign = -(1 << (bits - 1))
    lines = [
        "define internal <8 x i64> @eight_words(ptr %x, i64 %at) alwaysinline {",
        f"%e8 = getelementptr i{bits}, ptr %x, i64 %at",
        f"%raw8 = load {v}, ptr %e8, align 1",
    ]
    if dtype.kind == "f":
        infinity, nan = _NAN[dtype.itemsize]
        lines += [
            f"%size8 = and {v} %raw8, {each((1 << (bits - 1)) - 1)}",
            f"%nan8 = icmp ugt {v} %size8, {each(infinity)}",
            f"%number8 = select <8 x i1> %nan8, {v} {each(nan)}, {v} %raw8",
            f"%zero8 = icmp eq {v} %raw8, {each(sign)}",
            f"%bits8 = select <8 x i1> %zero8, {v} zeroinitializer, {v} %number8",
            f"%negative8 = ashr {v} %bits8, {each(bits - 1)}",
            f"%flipped8 = or {v} %negative8, {each(sign)}",
            f"%key8 = xor {v} %bits8, %flipped8",
        ]
    else:
        lines += [f"%key8 = xor {v} %raw8, {each(0 if dtype.kind == 'u' else sign)}"]
    if bits == 64:
        lines += [f"%w8 = or {v} %key8, zeroinitializer"]
    else:
        lines += [f"%wide8 = zext {v} %key8 to <8 x i64>", f"%w8 = shl <8 x i64> %wide8, {each(64 - bits, 64)}"]
    return "\n  ".join([*lines, "ret <8 x i64> %w8"]) + "\n}\n"


def with_radix(text: str, dtype: DType) -> str:
    """A text, and the functions that it calls, for elements of a dtype.

    It may mention SIGN and NAN_WORD, the words of zero and of nan, LEAST, ITEMSIZE and BITS.
    """
    bits = 8 * dtype.itemsize
    nan = _NAN[dtype.itemsize][1] << (64 - bits) | _SIGN if dtype.kind == "f" else -1
    minus_zero = ((1 << (bits - 1)) - 1) << (64 - bits) if dtype.kind == "f" else _SIGN
    counted = "\n".join(_COUNTED.format(d=d, bit=8 * d) for d in range(4))
    words = {"MINUS_ZERO": minus_zero, "NAN_WORD": nan, "SIGN": _SIGN}
    values = {
        "COUNTED": counted,
        **words,
        "LEAST": LEAST,
        "ITEMSIZE": dtype.itemsize,
        "BITS": bits,
    }
    text = _words(dtype) + _eight_words(dtype) + _COMMON + text
    for name, value in values.items():
        text = text.replace(name, str(value))
    return inlined(text)


_INLINED = re.compile(r"define internal ([^@\n]+) @(\w+)\(([^)]*)\) alwaysinline \{\n(.*?)\n  ret (.*?)\n\}\n", re.DOTALL)


def inlined(text: str) -> str:
    """IR in which the bodies of `alwaysinline` functions, of one block each, stand for their calls: LLVM's own pass takes longer.

    >>> print(inlined(
    ...     "define internal i64 @two(i64 %x) alwaysinline {\\n  %y = add i64 %x, %x\\n  ret i64 %y\\n}\\n"
    ...     "  %z = call i64 @two(i64 %k)"
    ... ))
      %two0.y = add i64 %k, %k
      %z = or i64 %two0.y, 0
    """
    numbers = count()
    while (found := _INLINED.search(text)) is not None:
        kind, name, *_ = found.groups()
        call = rf"  (?:(%[\w.]+) = )?call {re.escape(kind)} @{name}\(([^)]*)\)"
        text = text[: found.start()] + text[found.end() :]
        text = re.sub(call, partial(_body_of, found, numbers), text)
    return text


def _body_of(function: re.Match[str], numbers: Iterator[int], call: re.Match[str]) -> str:
    kind, name, head, body, returned = function.groups()
    given = dict(zip(re.findall(r"%[\w.]+", head), re.findall(r"\w+ ([%\w.-]+)", call[2]), strict=True))
    own = f"%{name}{next(numbers)}."
    lines = re.sub(r"%([\w.]+)", lambda local: given.get(local[0], own + local[1]), f"{body}\n{returned}")
    inner, _, value = lines.rpartition("\n")
    zero = {"i1": "false", "i64": "0"}.get(kind, "zeroinitializer")
    return inner if call[1] is None else f"{inner}\n  {call[1]} = or {value}, {zero}"
