"""Symmetric rank-k products: how is `x.T @ x` done?

Half of it by BLAS's syrk, as NumPy does it, and then mirrored. Threads share it in one of two ways, which the extents choose.
A tall matrix (covariances, normal equations) is cut along its long axis: the result is small, so that a copy of it per piece
costs little, and these are added up in order. Any other is cut along the rows of the result: syrk makes the part at the
diagonal, gemm the one beside it.
"""

from __future__ import annotations

from math import isqrt

from jitml.codegen.llvm.calls.blas import LEAST_ROWS, LONGEST_PIECE, MOST_WORK_ALONE, PIECE_WORK, POLL, Arguments
from jitml.codegen.llvm.ir.builder import llvm_type
from jitml.codegen.llvm.ir.conventions import LOOK, NO_MEMORY, RAISED
from jitml.codegen.llvm.ir.translation_unit import Unit
from jitml.codegen.llvm.loops.kernel import emit_kernel
from jitml.codegen.llvm.loops.safepoints import find_word, leave_if_stopped, parallel_for
from jitml.codegen.llvm.schedule.calls import scheduled_mirror, scheduled_sums
from jitml.codegen.product import Product
from jitml.ir.types import F64, I64
from jitml.kernels.ir import Apply, Buffer, Cell, Const, Kernel, Load, Loop, Store, Update, Var
from jitml.memory.aliasing import BufferStorage

WIDEST = 256  # columns of a matrix that counts as tall
TALL_WORK = 4_000_000  # multiply-adds worth a piece of a tall one: the result is written once for each
MOST_PIECES = 8
MIRRORED = 16  # rows that are mirrored at once: as many streams are read


def is_gram(p: Product) -> bool:
    """Whether the product is of a matrix's transpose with itself, and nothing is added to it."""
    same = (p.x.buffer, p.x.offset, p.x.row, p.x.col) == (p.y.buffer, p.y.offset, p.y.col, p.y.row)
    return same and p.stacks == 1 and p.m == p.n > 1 and p.values is None and not p.adds


def emit_gram(unit: Unit, p: Product, symbol: str) -> None:
    """Append `i64 @symbol(ptr error, ptr x, ptr y, ptr z)` and what it calls."""
    work = p.m * p.m * p.k
    if p.m <= WIDEST and p.k >= 4 * p.m and (pieces := min(MOST_PIECES, work // TALL_WORK)) > 1:
        _emit_tall(unit, p, symbol, pieces)
    else:
        wanted = max(min(unit.threads, work // 2 // PIECE_WORK), work // 2 // LONGEST_PIECE)
        _emit_square(unit, p, symbol, _bounds(p.m, max(1, min(wanted, p.m // LEAST_ROWS))))


def _bounds(m: int, pieces: int) -> list[int]:
    """Where pieces of the rows of a triangle begin and end that have about as many elements each: rows become shorter."""
    from_end = [isqrt(m * m * (pieces - piece) // pieces) for piece in range(pieces)]
    return [0, *(-(-(m - n) // 16) * 16 for n in from_end[1:]), m]


def _emit_square(unit: Unit, p: Product, symbol: str, bounds: list[int]) -> None:
    """Pieces of the result's rows: those of its upper triangle, which Fortran sees as the lower one of its columns."""
    dtype, count, declarations = p.z.buffer.dtype, len(bounds) - 1, unit.declarations
    mirror = emit_kernel(
        unit, scheduled_mirror(_mirror(p), MIRRORED * p.m), f"{symbol}.mirror", {p.z.buffer.name: BufferStorage(p.z.buffer.name)}
    )
    args = Arguments(unit, dtype)
    letter, is_row_major = "d" if dtype == F64 else "s", p.x.col == 1
    scalar, turn = llvm_type(dtype), args.character("T" if is_row_major else "N")
    leading, one, zero, k = args.size(p.x.row if is_row_major else p.x.col), args.number(1.0), args.number(0.0), args.size(p.k)
    row = args.size(p.z.row)
    texts = {
        "scalar": scalar,
        "rows": declarations.constant(f"[{count + 1} x i64] [{', '.join(f'i64 {n}' for n in bounds)}]"),
        "m": p.m,
        "x_row": p.x.row,
        "x_offset": p.x.offset,
        "z_row": p.z.row,
        "z_offset": p.z.offset,
        "syrk": f"@{letter}syrk_({args.character('L')}, {turn}, ptr %count, {k}, {one}, "
        f"ptr %x.rows, {leading}, {zero}, ptr %z.rows, {row})",
        "gemm": f"@{letter}gemm_({turn}, {args.character('N' if is_row_major else 'T')}, ptr %rest, ptr %count, {k}, {one}, "
        f"ptr %x.rest, {leading}, ptr %x.rows, {leading}, {zero}, ptr %z.rest, {row})",
        "head": "",
        "poll": "",
    }
    for name, length in (("syrk", 10), ("gemm", 13)):
        declarations.declare(f"void @{letter}{name}_({', '.join(['ptr'] * length)})")
    if unit.is_long:
        declarations.declare(f"i64 @{LOOK}(ptr)")
        lines = ["  %slot.error = getelementptr ptr, ptr %matrices, i64 2", "  %error = load ptr, ptr %slot.error", *find_word()]
        texts |= {"head": "\n".join(lines), "poll": POLL}
    unit.add(f"void @{symbol}.pieces(ptr %matrices, i64 %begin, i64 %end)", _ROWS.format(**texts))
    run = f"call void @{symbol}.pieces(ptr %matrices, i64 0, i64 {count})"
    if count > 1:
        run = parallel_for(declarations, f"ptr @{symbol}.pieces, ptr %matrices, i64 0, i64 {count}, i64 1", watched=unit.is_long)
    lines = ["entry:", "  %matrices = alloca [3 x ptr]"]
    for slot, name in enumerate(("x", "z", "error")):
        lines += [f"  %slot{slot} = getelementptr ptr, ptr %matrices, i64 {slot}", f"  store ptr %{name}, ptr %slot{slot}"]
    if p.m * p.m * p.k > MOST_WORK_ALONE:
        for name in ("jitml_blas_enter", "jitml_blas_leave"):
            declarations.declare(f"void @{name}()")
        run = f"call void @jitml_blas_enter()\n  {run}\n  call void @jitml_blas_leave()"
    lines += [f"  {run}", *(leave_if_stopped(str(RAISED)) if unit.is_long else [])]
    lines += [f"  %code = call i64 @{mirror}(ptr %error, ptr %z)", "  ret i64 %code"]
    unit.add(f"i64 @{symbol}(ptr %error, ptr %x, ptr %y, ptr %z)", "\n".join(lines))


def _mirror(p: Product) -> Kernel:
    """What is above the diagonal, copied below it: some rows at once, whose columns are read together."""
    i, j, first = Var("i"), Var("j"), Var("first")
    dtype = p.z.buffer.dtype
    name = p.z.buffer.name
    copy = Store(name, p.z.at((), j, i), Load(name, p.z.at((), i, j), dtype))
    last = Apply("minimum", (first + MIRRORED, j), I64)
    columns = Loop("j", first + 1, Const(p.m), 1, "serial", (Loop("i", first, last, 1, "serial", (copy,)),))
    rows = Loop("first", Const(0), Const(p.m), MIRRORED, "serial", (columns,))
    span = p.z.offset + (p.m - 1) * (p.z.row + p.z.col) + 1
    return Kernel("mirror", (Buffer(name, dtype, (span,)),), (rows,))


def _emit_tall(unit: Unit, p: Product, symbol: str, pieces: int) -> None:
    """Pieces of the long axis, each of which has a result of its own."""
    m, dtype = p.m, p.z.buffer.dtype
    length = -(-p.k // pieces)
    pieces = -(-p.k // length)
    parts = Buffer("parts", dtype, (pieces, m, m))
    places = {name: BufferStorage(name) for name in ("parts", p.z.buffer.name)}
    total = emit_kernel(unit, scheduled_sums(_sum_kernel(p, parts)), f"{symbol}.sum", places)
    constant, declare = unit.declarations.constant, unit.declarations.declare
    declare("noalias ptr @aligned_alloc(i64, i64)")
    declare("void @free(ptr)")
    declare("void @jitml_parallel_for(ptr, ptr, i64, i64, i64)")
    declare("void @jitml_blas_enter()")
    declare("void @jitml_blas_leave()")
    declare("i64 @llvm.smin.i64(i64, i64)")
    function = f"@{'d' if dtype == F64 else 's'}syrk_"
    declare(f"void {function}({', '.join(['ptr'] * 10)})")
    # Fortran sees dense rows of length k as columns: x is then the transpose of what it takes the product of.
    is_row_major = p.x.col == 1
    scalar, turn = llvm_type(dtype), "T" if is_row_major else "N"
    texts = {
        "symbol": symbol,
        "total": total,
        "scalar": scalar,
        "syrk": function,
        "bytes": -(-parts.nbytes // 64) * 64,
        "pieces": pieces,
        "length": length,
        "k": p.k,
        "offset": p.x.offset,
        "step": p.x.col,
        "square": m * m,
        "shape": ", ".join(f"ptr {constant(text)}" for text in (f"i8 {ord('L')}", f"i8 {ord(turn)}", f"i64 {m}")),
        "m": constant(f"i64 {m}"),
        "leading": constant(f"i64 {p.x.row if is_row_major else p.x.col}"),
        "no_memory": NO_MEMORY,
        "one": constant(f"{scalar} 1.0"),
        "zero": constant(f"{scalar} 0.0"),
    }
    unit.add(f"void @{symbol}.pieces(ptr %matrices, i64 %begin, i64 %end)", _PIECES.format(**texts))
    unit.add(f"i64 @{symbol}(ptr %error, ptr %x, ptr %y, ptr %z)", _ALL.format(**texts))


def _sum_kernel(p: Product, parts: Buffer) -> Kernel:
    """The parts added up; each has the triangle on and above the diagonal (Fortran's lower one)."""
    i, j, piece = Var("i"), Var("j"), Var("piece")
    dtype = parts.dtype
    total = Var("s", dtype)
    body = (
        Cell("s", Const(-0.0, dtype)),
        Loop("piece", Const(0), Const(parts.shape[0]), 1, "serial", (Update("s", Load("parts", (piece, i, j), dtype), "add"),)),
        Store(p.z.buffer.name, p.z.at((), i, j), total),
        Store(p.z.buffer.name, p.z.at((), j, i), total),
    )
    rows = Loop("i", Const(0), Const(p.m), 1, "serial", (Loop("j", i, Const(p.m), 1, "serial", body),))
    span = p.z.offset + (p.m - 1) * (p.z.row + p.z.col) + 1
    return Kernel("gram", (parts, Buffer(p.z.buffer.name, dtype, (span,))), (rows,))


_ROWS = """entry:
  %count = alloca i64
  %rest = alloca i64
  %x = load ptr, ptr %matrices
  %slot = getelementptr ptr, ptr %matrices, i64 1
  %z = load ptr, ptr %slot
{head}
  br label %loop
loop:
  %piece = phi i64 [ %begin, %entry ], [ %next, %turn ]
{poll}  br label %work
work:
  %next = add i64 %piece, 1
  %first.at = getelementptr i64, ptr {rows}, i64 %piece
  %last.at = getelementptr i64, ptr {rows}, i64 %next
  %first = load i64, ptr %first.at
  %last = load i64, ptr %last.at
  %rows = sub i64 %last, %first
  %columns = sub i64 {m}, %last
  store i64 %rows, ptr %count
  store i64 %columns, ptr %rest
  %x.down = mul i64 %first, {x_row}
  %x.start = add i64 %x.down, {x_offset}
  %x.rows = getelementptr {scalar}, ptr %x, i64 %x.start
  %z.down = mul i64 %first, {z_row}
  %z.start = add i64 %z.down, {z_offset}
  %z.first = getelementptr {scalar}, ptr %z, i64 %z.start
  %z.rows = getelementptr {scalar}, ptr %z.first, i64 %first
  call void {syrk}
  %more.columns = icmp sgt i64 %columns, 0
  br i1 %more.columns, label %beside, label %turn
beside:
  %x.further = mul i64 %last, {x_row}
  %x.end = add i64 %x.further, {x_offset}
  %x.rest = getelementptr {scalar}, ptr %x, i64 %x.end
  %z.rest = getelementptr {scalar}, ptr %z.first, i64 %last
  call void {gemm}
  br label %turn
turn:
  %more = icmp slt i64 %next, %end
  br i1 %more, label %loop, label %done
done:
  ret void"""

_PIECES = """entry:
  %extent = alloca i64
  %x = load ptr, ptr %matrices
  %slot = getelementptr ptr, ptr %matrices, i64 1
  %parts = load ptr, ptr %slot
  br label %loop
loop:
  %piece = phi i64 [ %begin, %entry ], [ %next, %loop ]
  %first = mul i64 %piece, {length}
  %left = sub i64 {k}, %first
  %count = call i64 @llvm.smin.i64(i64 %left, i64 {length})
  store i64 %count, ptr %extent
  %along = mul i64 %first, {step}
  %start = add i64 %along, {offset}
  %matrix = getelementptr {scalar}, ptr %x, i64 %start
  %place = mul i64 %piece, {square}
  %part = getelementptr {scalar}, ptr %parts, i64 %place
  call void {syrk}({shape}, ptr %extent, ptr {one}, ptr %matrix, ptr {leading}, ptr {zero}, ptr %part, ptr {m})
  %next = add i64 %piece, 1
  %more = icmp slt i64 %next, %end
  br i1 %more, label %loop, label %done
done:
  ret void"""

_ALL = """entry:
  %matrices = alloca [2 x ptr]
  %parts = call ptr @aligned_alloc(i64 64, i64 {bytes})
  %there = icmp ne ptr %parts, null
  br i1 %there, label %start, label %no.memory
no.memory:
  ret i64 {no_memory}
start:
  %slot = getelementptr ptr, ptr %matrices, i64 1
  store ptr %x, ptr %matrices
  store ptr %parts, ptr %slot
  call void @jitml_blas_enter()
  call void @jitml_parallel_for(ptr @{symbol}.pieces, ptr %matrices, i64 0, i64 {pieces}, i64 1)
  call void @jitml_blas_leave()
  %code = call i64 @{total}(ptr %error, ptr %parts, ptr %z)
  call void @free(ptr %parts)
  ret i64 %code"""
