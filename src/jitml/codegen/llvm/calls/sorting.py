"""Sorts: how are rows sorted?  By functions that the runtime supplies, one row after the other, many rows by several threads.

`i32 @jitml_sort_f64_quicksort(ptr row, i64 n, ptr null)` sorts in place, `i32 @jitml_argsort_f64_stable(ptr row,
ptr positions, i64 n, ptr null)` reorders the positions; both return 0 unless memory ran out. (The last argument is for the
dtypes that jitml does not have.) Rows that may be long have functions of their own, `jitml_sort_long_f64_quicksort`. If few
places are asked for, `i32 @jitml_sort_places_f64_quicksort(ptr row, ptr sorted, i64 n, ptr places, i64 count)` fills in these.
`i32 @jitml_argsort_places_f64_quicksort(ptr row, ptr positions, i64 n, i64 count, i1 first)` finds a row's first or last few.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jitml.codegen.llvm.ir.translation_unit import Unit
from jitml.codegen.llvm.sorts.ends import MOST
from jitml.codegen.llvm.sorts.radix_sort import LEAST, has_words
from jitml.ir.types import BOOL, dtype_name
from jitml.kernels.ir import Buffer, Check, Const
from jitml.kernels.program import Call
from jitml.memory.aliasing import BufferStorage

ALONE = 1 << 13  # elements that one thread sorts in some 50 us
GRAIN = 1 << 12


def emit_sort(
    unit: Unit, call: Call, symbol: str, buffers: Mapping[str, Buffer], places: Mapping[str, BufferStorage]
) -> list[str]:
    """Append `i64 @symbol(ptr error, ptr x, ptr y)`, and the body that fills and sorts some of y's rows.

    Where only the running program knows how many elements and rows count, the third argument holds both.

    Returns:
        the names of the buffers that it takes.
    """
    x, y, lengths = buffers[call.reads[0]], buffers[call.writes[0]], call.reads[1:]
    n = y.shape[call.params["axis"]]
    rows = y.size // n
    count, total, parameter, keep, fetch = str(n), str(rows), "", "", ""
    if lengths:
        count, total, parameter, keep, fetch = "%n", "%total", ", ptr %lengths", _KEEP_LENGTHS, _FETCH_LENGTHS
    run = f"call void @{symbol}.rows(ptr %context, i64 0, i64 {total})"
    if rows > 1 and y.size >= ALONE:
        unit.declarations.declare("void @jitml_parallel_for(ptr, ptr, i64, i64, i64)")
        run = f"call void @jitml_parallel_for(ptr @{symbol}.rows, ptr %context, i64 0, i64 {total}, i64 {max(1, GRAIN // n)})"
    failure = Check(Const(False, BOOL), "MemoryError", f"no memory for what {call.name} needs besides its result")
    status = 1 + unit.check_number(failure)

    x_step, y_step = n * x.dtype.itemsize, n * y.dtype.itemsize
    fill, parameters, operands = "  br label %sort", "ptr, i64, ptr", f"ptr %y.row, i64 {count}, ptr null"
    if call.name == "argsort":
        fill, parameters, operands = _POSITIONS.format(n=count), f"ptr, {parameters}", f"ptr %x.row, {operands}"
    elif places[x.name].group != places[y.name].group:
        unit.declarations.declare("void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)")
        fill = _COPY.format(n=count, itemsize=y.dtype.itemsize)
    size = "long_" if n >= LEAST and has_words(x.dtype) else ""
    kind, wanted = call.params["kind"], call.params.get("places")
    if kind == "introselect":  # `argpartition`: equal elements in any order
        kind = "quicksort"
        if wanted is not None and len(wanted) <= MOST and has_words(x.dtype) and (at_end := _is_at_end(wanted, n)) is not None:
            size, fill, parameters = "places_", "  br label %sort", "ptr, ptr, i64, i64, i1"
            operands = f"ptr %x.row, ptr %y.row, i64 {count}, i64 {len(wanted)}, i1 {'false' if at_end else 'true'}"
    elif size and wanted is not None:
        table = unit.declarations.constant(f"[{len(wanted)} x i64] [{', '.join(f'i64 {place}' for place in wanted)}]")
        size, fill, parameters = "places_", "  br label %sort", "ptr, ptr, i64, ptr, i64"
        operands = f"ptr %x.row, ptr %y.row, i64 {count}, ptr {table}, i64 {len(wanted)}"
    function = f"@jitml_{call.name}_{size}{dtype_name(x.dtype)}_{kind}"
    unit.declarations.declare(f"i32 {function}({parameters})")
    sort = f"call i32 {function}({operands})"
    body = _ROWS.format(x_step=x_step, y_step=y_step, fill=fill, sort=sort, fetch=fetch)
    unit.add(f"void @{symbol}.rows(ptr %context, i64 %begin, i64 %end)", body, "usual")
    unit.add(f"i64 @{symbol}(ptr %error, ptr %x, ptr %y{parameter})", _ALL.format(run=run, status=status, keep=keep, total=total))
    return [x.name, y.name, *lengths]


def _is_at_end(places: Sequence[int], n: int) -> bool | None:
    """Whether these are the last places of a row, not the first ones; None if they are neither."""
    if places[-1] - places[0] + 1 != len(places):
        return None
    return True if places[-1] == n - 1 else False if places[0] == 0 else None


_ALL = """entry:
  %context = alloca {{ ptr, ptr, i32, ptr }}
  %slot.y = getelementptr {{ ptr, ptr, i32, ptr }}, ptr %context, i64 0, i32 1
  %slot.failed = getelementptr {{ ptr, ptr, i32, ptr }}, ptr %context, i64 0, i32 2
  store ptr %x, ptr %context
  store ptr %y, ptr %slot.y
  store i32 0, ptr %slot.failed
{keep}  %has_rows = icmp sgt i64 {total}, 0
  br i1 %has_rows, label %run, label %end
run:
  {run}
  br label %end
end:
  %failed = load i32, ptr %slot.failed
  %has_failed = icmp ne i32 %failed, 0
  %status = select i1 %has_failed, i64 {status}, i64 0
  ret i64 %status"""

_KEEP_LENGTHS = """  %slot.lengths = getelementptr { ptr, ptr, i32, ptr }, ptr %context, i64 0, i32 3
  store ptr %lengths, ptr %slot.lengths
  %slot.total = getelementptr i64, ptr %lengths, i64 1
  %total = load i64, ptr %slot.total
"""

_FETCH_LENGTHS = """  %slot.lengths = getelementptr { ptr, ptr, i32, ptr }, ptr %context, i64 0, i32 3
  %lengths = load ptr, ptr %slot.lengths
  %n = load i64, ptr %lengths
"""

_ROWS = """entry:
  %slot.y = getelementptr {{ ptr, ptr, i32, ptr }}, ptr %context, i64 0, i32 1
  %slot.failed = getelementptr {{ ptr, ptr, i32, ptr }}, ptr %context, i64 0, i32 2
  %x = load ptr, ptr %context
  %y = load ptr, ptr %slot.y
{fetch}  br label %loop
loop:
  %row = phi i64 [ %begin, %entry ], [ %next, %continue ]
  %x.first = mul i64 %row, {x_step}
  %y.first = mul i64 %row, {y_step}
  %x.row = getelementptr i8, ptr %x, i64 %x.first
  %y.row = getelementptr i8, ptr %y, i64 %y.first
{fill}
sort:
  %code = {sort}
  %fails = icmp ne i32 %code, 0
  br i1 %fails, label %fail, label %continue
fail:
  store atomic i32 1, ptr %slot.failed monotonic, align 4
  br label %continue
continue:
  %next = add i64 %row, 1
  %more = icmp slt i64 %next, %end
  br i1 %more, label %loop, label %done
done:
  ret void"""

_COPY = """  %bytes = mul i64 {n}, {itemsize}
  call void @llvm.memcpy.p0.p0.i64(ptr %y.row, ptr %x.row, i64 %bytes, i1 false)
  br label %sort"""

_POSITIONS = """  br label %fill
fill:
  %k = phi i64 [ 0, %loop ], [ %k.next, %fill ]
  %slot = getelementptr i64, ptr %y.row, i64 %k
  store i64 %k, ptr %slot
  %k.next = add i64 %k, 1
  %filling = icmp slt i64 %k.next, {n}
  br i1 %filling, label %fill, label %sort"""
