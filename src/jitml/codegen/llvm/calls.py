"""How are library calls written?  Products go to BLAS, or to a nest of our own where BLAS is not worth calling.

BLAS speaks column-major Fortran: every argument by pointer, sizes in 32 bits, a leading dimension per matrix. A row-major
product is the column-major product of the transposes in the other order, so the operands are swapped until the result
has dense rows. Products that are too small for a call, outer products and empty sums are ordinary kernels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod

from jitml.codegen.llvm.builder import llvm_type
from jitml.codegen.llvm.kernel import Unit, emit_kernel
from jitml.errors import UnsupportedError
from jitml.fusion.loops import Apply, Buffer, Cell, Const, Expr, Kernel, Kind, Load, Loop, Stmt, Store, Update, Var
from jitml.fusion.program import Call
from jitml.ir.types import F64, DType

SMALL = 8  # a product with no extent above this is faster inline than through BLAS
PARALLEL_BYTES = 1 << 20  # copies from this size on are shared among threads
PARALLEL_WORK = 100_000  # multiply-adds that are worth a thread
INT32 = 2**31 - 1


def emit_call(unit: Unit, call: Call, symbol: str, buffers: Mapping[str, Buffer], groups: Mapping[str, str]) -> list[str]:
    """Append the function of a library call, `i64 @symbol(ptr error, ptr buffer...)`; returns the buffers' names in order."""
    match call.name:
        case "copy":
            kernel = copy_kernel(call, buffers)
        case "gemm":
            product = Product.of(call, buffers)
            if product.wants_blas:
                _emit_blas(unit, product, symbol, groups)
                return [product.x.buffer.name, product.y.buffer.name, product.z.buffer.name]
            kernel = product.kernel(call)
        case _:
            raise UnsupportedError(f"no library function is named {call.name}")
    emit_kernel(unit, kernel, symbol, groups)
    return [b.name for b in kernel.params]


# ------------------------------------------------------------------------------------------------------------ copies


def copy_kernel(call: Call, buffers: Mapping[str, Buffer]) -> Kernel:
    """writes[0] = reads[0] as a nest in the order of the written memory, the densest axis as vectors."""
    source, target = buffers[call.reads[0]], buffers[call.writes[0]]
    order = sorted(range(len(target.shape)), key=lambda axis: -abs(target.element_strides[axis]))
    names = [f"i{axis}" for axis in range(len(target.shape))]
    at = tuple(Var(name) for name in names)
    body: tuple[Stmt, ...] = (Store(target.name, at, Load(source.name, at, source.dtype)),)
    is_large = target.nbytes >= PARALLEL_BYTES
    for depth, axis in reversed(list(enumerate(order))):
        n = target.shape[axis]
        kind: Kind = "vector" if depth == len(order) - 1 else "parallel" if depth == 0 and is_large else "serial"
        if kind == "vector" and depth == 0 and is_large:
            return Kernel("copy", (source, target), _chunks(names[axis], n, target.dtype, body), sources=call.sources)
        rows = max(1, PARALLEL_BYTES // 4 // max(1, target.nbytes // max(n, 1)))
        body = (Loop(names[axis], Const(0), Const(n), 1, kind, body, grain=rows if kind == "parallel" else 1),)
    return Kernel("copy", (source, target), body, sources=call.sources)


def _chunks(index: str, n: int, dtype: DType, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """One long vector loop, cut for threads."""
    chunk = PARALLEL_BYTES // 4 // dtype.itemsize
    start = Var("chunk") * chunk
    stop = Apply("minimum", (start + chunk, Const(n)))
    return (Loop("chunk", Const(0), Const(-(-n // chunk)), 1, "parallel", (Loop(index, start, stop, 1, "vector", body),)),)


# ---------------------------------------------------------------------------------------------------------- products


@dataclass(frozen=True, slots=True)
class Matrix:
    """A stack of matrices in a buffer: element (b, i, j) lies at offset + b * batch + i * row + j * col."""

    buffer: Buffer
    offset: int
    batch: int
    row: int
    col: int

    @property
    def transposed(self) -> Matrix:
        return Matrix(self.buffer, self.offset, self.batch, self.col, self.row)

    def is_blas_matrix(self, rows: int, columns: int) -> bool:
        """Whether rows or columns are dense, and do not overlap."""
        return (self.col == 1 and self.row >= columns) or (self.row == 1 and self.col >= rows)

    def at(self, b: Expr, i: Expr, j: Expr) -> tuple[Expr, ...]:
        return (b * self.batch + i * self.row + j * self.col + self.offset,)


@dataclass(frozen=True, slots=True)
class Product:
    """z[b] = x[b] @ y[b], of extents m x k and k x n, with z's columns dense (or one column)."""

    batch: int
    m: int
    n: int
    k: int
    x: Matrix
    y: Matrix
    z: Matrix

    @staticmethod
    def of(call: Call, buffers: Mapping[str, Buffer]) -> Product:
        """The product of a `gemm` call, turned so that its result has dense rows, or is a column."""
        p = call.params
        names = (call.reads[0], call.reads[-1], call.writes[0])  # a matrix times itself is read once
        x, y, z = (
            Matrix(buffers[name], p[f"{a}_offset"], p[f"{a}_batch"], p[f"{a}_row"], p[f"{a}_col"])
            for name, a in zip(names, "abc", strict=True)
        )
        product = Product(p["batch"], p["m"], p["n"], p["k"], x, y, z)
        is_turned = product.n > 1 and (product.m == 1 or z.col != 1)
        return product.transposed if is_turned else product

    @property
    def transposed(self) -> Product:
        return Product(self.batch, self.n, self.m, self.k, self.y.transposed, self.x.transposed, self.z.transposed)

    @property
    def wants_blas(self) -> bool:
        """Whether BLAS can do it, and is worth calling."""
        m, n, k = self.m, self.n, self.k
        if 0 in (self.batch, m, n) or k < 2 or max(m, n, k) <= SMALL:
            return False
        if m == n == 1:
            return self.x.col > 0 and self.y.row > 0
        if n == 1:
            return self.x.is_blas_matrix(m, k) and self.y.row > 0 and self.z.row > 0
        return self.x.is_blas_matrix(m, k) and self.y.is_blas_matrix(k, n) and self.z.col == 1 and self.z.row >= n

    def kernel(self, call: Call) -> Kernel:
        """The product as a nest: columns as vectors, the sum over k in registers."""
        p = self.transposed if self.n == 1 else self
        b, i, j, k = (Var(name) for name in "bijk")
        dtype = p.z.buffer.dtype
        factors = (Load(p.x.buffer.name, p.x.at(b, i, k), dtype), Load(p.y.buffer.name, p.y.at(b, k, j), dtype))
        element = (
            Cell("s", Const(-0.0 if p.k else 0.0, dtype)),
            Loop("k", Const(0), Const(p.k), 1, "unroll" if p.k <= SMALL else "serial", (_plus("s", factors, dtype),)),
            Store(p.z.buffer.name, p.z.at(b, i, j), Var("s", dtype)),
        )
        work = max(1, p.n * max(p.k, 1))
        columns = Loop("j", Const(0), Const(p.n), 1, "vector", element)
        rows = Loop("i", Const(0), Const(p.m), 1, "parallel" if p.batch == 1 else "serial", (columns,), grain=_grain(work))
        batches = Loop("b", Const(0), Const(p.batch), 1, "parallel", (rows,), grain=_grain(work * p.m))
        params = {matrix.buffer.name: _flat(matrix.buffer) for matrix in (p.x, p.y, p.z)}
        return Kernel("product", tuple(params.values()), (batches if p.batch > 1 else replace(batches, kind="serial"),))


def _plus(cell: str, factors: tuple[Expr, Expr], dtype: DType) -> Stmt:
    return Update(cell, Apply("mul", factors, dtype), "add")


def _grain(work: int) -> int:
    """Iterations worth handing to a thread, of `work` multiply-adds each."""
    return max(1, PARALLEL_WORK // work)


def _flat(buffer: Buffer) -> Buffer:
    """The buffer's memory as one axis, for offsets that the strides of a `Matrix` have made."""
    span = sum((n - 1) * s for n, s in zip(buffer.shape, buffer.element_strides, strict=True) if s > 0) + 1
    return Buffer(buffer.name, buffer.dtype, (max(span, prod(buffer.shape)),))


class _Arguments:
    """Arguments of a Fortran routine: constants that live in the module, and pointers into the matrices."""

    def __init__(self, unit: Unit, dtype: DType) -> None:
        self.unit, self.dtype = unit, dtype

    def size(self, n: int) -> str:
        if not 0 < n <= INT32:
            raise UnsupportedError(
                f"a matrix product with an extent or stride of {n} does not fit BLAS, which counts in 32 bits",
                remedy="Split the product along its longest axis.",
            )
        return f"ptr {self.unit.declarations.constant(f'i32 {n}')}"

    def number(self, x: float) -> str:
        return f"ptr {self.unit.declarations.constant(f'{llvm_type(self.dtype)} {x}')}"

    def character(self, c: str) -> str:
        return f"ptr {self.unit.declarations.constant(f'i8 {ord(c)}')}"

    def matrix(self, matrix: Matrix) -> tuple[str, str]:
        """(transposition, leading dimension) for the transpose of a matrix: dense rows are Fortran's columns as they are."""
        is_row_major = matrix.col == 1
        return "N" if is_row_major else "T", self.size(matrix.row if is_row_major else matrix.col)


def _emit_blas(unit: Unit, product: Product, symbol: str, groups: Mapping[str, str]) -> None:
    """A loop over the batch around one call."""
    p, args = product, _Arguments(unit, product.z.buffer.dtype)
    letter = "d" if p.z.buffer.dtype == F64 else "s"
    b = unit.builder()
    pointers = {}
    for name, matrix in (("x", p.x), ("y", p.y), ("z", p.z)):
        step = b.define(f"mul i64 %b, {matrix.batch}")
        offset = b.define(f"add i64 {step}, {matrix.offset}")
        pointers[name] = b.define(f"getelementptr {llvm_type(matrix.buffer.dtype)}, ptr %{name}, i64 {offset}")
    x, y, z = (f"ptr {pointers[name]}" for name in "xyz")
    one, zero = args.number(1.0), args.number(0.0)
    if p.n == 1 and p.m == 1:
        routine, passed = "dot", [args.size(p.k), x, args.size(p.x.col), y, args.size(p.y.row)]
    elif p.n == 1:
        seen, leading = args.matrix(p.x)
        # Fortran sees dense rows as the k x m transpose, which it must turn back.
        extents = (p.k, p.m) if seen == "N" else (p.m, p.k)
        turned = args.character("T" if seen == "N" else "N")
        routine, steps = "gemv", (args.size(p.y.row), args.size(p.z.row))
        passed = [turned, *map(args.size, extents), one, x, leading, y, steps[0], zero, z, steps[1]]
    else:
        (turn_x, step_x), (turn_y, step_y) = args.matrix(p.x), args.matrix(p.y)
        routine, turns = "gemm", [args.character(turn_y), args.character(turn_x)]
        passed = [*turns, *map(args.size, (p.n, p.m, p.k)), one, y, step_y, x, step_x, zero, z, args.size(p.z.row)]
    kind = llvm_type(p.z.buffer.dtype) if routine == "dot" else "void"
    function = f"@{letter}{routine}_"
    unit.declarations.declare(f"{kind} {function}({', '.join(['ptr'] * len(passed))})")
    if routine == "dot":
        total = b.define(f"call {kind} {function}({', '.join(passed)})")
        b.emit(f"store {kind} {total}, {z}")
    else:
        b.emit(f"call void {function}({', '.join(passed)})")
    unit.functions.append(
        "\n".join(
            [
                f"define internal i64 @{symbol}(ptr %error, ptr %x, ptr %y, ptr %z) #0 {{",
                "entry:",
                "  br label %loop",
                "loop:",
                "  %b = phi i64 [ 0, %entry ], [ %next, %loop ]",
                *b.lines,
                "  %next = add i64 %b, 1",
                f"  %more = icmp slt i64 %next, {p.batch}",
                "  br i1 %more, label %loop, label %done",
                "done:",
                "  ret i64 0",
                "}",
            ]
        )
    )
