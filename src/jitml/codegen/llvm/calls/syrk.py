"""Symmetric rank-k products: how is `x.T @ x` done?

Half of it by BLAS's syrk, in pieces along the long axis that threads share, and then mirrored.

Only tall matrices come here (covariances, normal equations): their result is small, so that a copy of it per piece costs
little. The number of pieces depends on the extents alone, and they are added up in order.
"""

from __future__ import annotations

from jitml.codegen.llvm.ir.builder import llvm_type
from jitml.codegen.llvm.ir.conventions import NO_MEMORY
from jitml.codegen.llvm.ir.translation_unit import Unit
from jitml.codegen.llvm.loops.kernel import emit_kernel
from jitml.codegen.llvm.schedule.calls import scheduled_sums
from jitml.codegen.product import Product
from jitml.ir.types import F64
from jitml.kernels.ir import Buffer, Cell, Const, Kernel, Load, Loop, Store, Update, Var
from jitml.memory.aliasing import BufferStorage

WIDEST = 256  # columns of a matrix that counts as tall
PIECE_WORK = 4_000_000  # multiply-adds worth a piece: the result is written once for each
MOST_PIECES = 8


def is_gram(p: Product) -> bool:
    """Whether the product is of a tall matrix's transpose with itself."""
    same = (p.x.buffer, p.x.offset, p.x.row, p.x.col) == (p.y.buffer, p.y.offset, p.y.col, p.y.row)
    return same and p.stacks == 1 and p.m <= WIDEST and p.k >= 4 * p.m and p.m * p.m * p.k >= PIECE_WORK


def emit_gram(unit: Unit, p: Product, symbol: str) -> None:
    """Append `i64 @symbol(ptr error, ptr x, ptr y, ptr z)` and what it calls."""
    m, dtype = p.m, p.z.buffer.dtype
    pieces = min(MOST_PIECES, m * m * p.k // PIECE_WORK)
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
        "shape": ", ".join(f"ptr {constant(text)}" for text in (f"i8 {ord('L')}", f"i8 {ord(turn)}", f"i32 {m}")),
        "m": constant(f"i32 {m}"),
        "leading": constant(f"i32 {p.x.row if is_row_major else p.x.col}"),
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


_PIECES = """entry:
  %extent = alloca i32
  %x = load ptr, ptr %matrices
  %slot = getelementptr ptr, ptr %matrices, i64 1
  %parts = load ptr, ptr %slot
  br label %loop
loop:
  %piece = phi i64 [ %begin, %entry ], [ %next, %loop ]
  %first = mul i64 %piece, {length}
  %left = sub i64 {k}, %first
  %count = call i64 @llvm.smin.i64(i64 %left, i64 {length})
  %narrow = trunc i64 %count to i32
  store i32 %narrow, ptr %extent
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
