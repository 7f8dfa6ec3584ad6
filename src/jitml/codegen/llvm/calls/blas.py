"""BLAS calls: how is a product handed to BLAS?  In pieces of its own rows and columns, which threads of our pool share.

BLAS speaks column-major Fortran: every argument by pointer, a leading dimension per matrix. A row-major
product is the column-major product of the transposes in the other order.

BLAS itself runs on one thread meanwhile (`jitml_blas_enter`, `jitml_blas_leave`): its threads wait for each other by
spinning, which costs a factor of ten and more as soon as one core is taken away, while our pieces wait for nobody. Pieces
depend on the extents and on how many threads there may be, not on how many come: a program gives the same bits each time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from jitml.codegen.llvm.ir.builder import Builder, llvm_type
from jitml.codegen.llvm.ir.conventions import LOOK, RAISED
from jitml.codegen.llvm.ir.translation_unit import Unit
from jitml.codegen.llvm.loops.safepoints import find_word, leave_if_stopped, parallel_for
from jitml.codegen.product import Matrix, Product
from jitml.errors import UnsupportedError
from jitml.ir.types import F64, DType
from jitml.records import dataclass

INT32 = 2**31 - 1
PIECE_WORK = 1_000_000  # multiply-adds worth a piece of their own: some 30 us
LONGEST_PIECE = 1 << 31  # multiply-adds: some 100 ms
LEAST_ROWS = 48  # or columns, of a piece
MOST_WORK_ALONE = 200_000  # BLAS uses one thread up to 64**3 multiply-adds anyway


@dataclass(frozen=True, slots=True)
class Cut:
    """An axis in `count` parts of `length`, the last one shorter."""

    length: int
    count: int

    @staticmethod
    def of(n: int, count: int) -> Cut:
        length = -(-n // max(1, count))
        if count > 1:
            length = -(-length // 16) * 16
        return Cut(length, -(-n // length))


@dataclass(frozen=True, slots=True)
class ProductPieces:
    """A product cut along its rows and columns, for each of the batch."""

    rows: Cut
    columns: Cut

    @property
    def count(self) -> int:
        return self.rows.count * self.columns.count

    @staticmethod
    def of(p: Product, threads: int) -> ProductPieces:
        """One for each thread, if there is so much work, and more of long ones; cut where packing costs least.

        More would even out a core that is taken away, but gain nothing, even on busy machines: each packs its operands.
        """
        work = p.m * p.n * p.k
        if p.n == 1:
            # A column: rows of x are independent; of a transposed x, short pieces would share its cache lines.
            least = 64 if p.x.col == 1 else 512
            return ProductPieces(Cut.of(p.m, min(work * 8 // PIECE_WORK, p.m // least)), Cut(1, 1))
        longest = max(p.m, p.n)
        # Beyond that, packing is nothing beside the work, and a program that is to end need not wait for it.
        wanted = max(work // LONGEST_PIECE, min(threads, work // PIECE_WORK) // min(p.stacks, threads))
        wanted = max(1, min(wanted, longest // LEAST_ROWS))
        most_rows, most_columns = max(1, p.m // LEAST_ROWS), max(1, p.n // LEAST_ROWS)
        grids = [(rows, min(most_columns, wanted // rows)) for rows in range(1, min(most_rows, wanted) + 1)]
        rows, columns = min(grids, key=lambda grid: (-grid[0] * grid[1], _packing(p, *grid), grid[1]))
        return ProductPieces(Cut.of(p.m, rows), Cut.of(p.n, columns))


def _packing(p: Product, rows: int, columns: int) -> float:
    """What bringing operands into its own order costs BLAS, in ns: each piece does so with its rows of x and its columns of y.

    Measured with OpenBLAS on Zen 4. Those that have to be turned cost most; the microkernel reads rows of y as they are.
    """
    return p.k * (columns * p.m * (0.3 if p.x.col == 1 else 0.5) + rows * p.n * (0.05 if p.y.col == 1 else 0.6))


class Arguments:
    """Arguments of a Fortran routine: constants that live in the module, and pointers into the matrices."""

    def __init__(self, unit: Unit, dtype: DType) -> None:
        self.unit, self.dtype = unit, dtype

    def size(self, n: int) -> str:
        """An extent or a stride as BLAS takes it: the address of a constant, of which some libraries read half.

        Raises:
            UnsupportedError: it does not fit.
        """
        if not 0 < n <= INT32:
            raise UnsupportedError(
                f"a matrix product with an extent or stride of {n} does not fit BLAS, which counts in 32 bits",
                remedy="Split the product along its longest axis.",
            )
        return f"ptr {self.unit.declarations.constant(f'i64 {n}')}"

    def number(self, x: float) -> str:
        return f"ptr {self.unit.declarations.constant(f'{llvm_type(self.dtype)} {x}')}"

    def character(self, c: str) -> str:
        return f"ptr {self.unit.declarations.constant(f'i8 {ord(c)}')}"

    def matrix(self, matrix: Matrix) -> tuple[str, str]:
        """(transposition, leading dimension) for the transpose of a matrix: dense rows are Fortran's columns as they are."""
        is_row_major = matrix.col == 1
        return "N" if is_row_major else "T", self.size(matrix.row if is_row_major else matrix.col)


def emit_blas(unit: Unit, product: Product, symbol: str) -> None:
    """Append `i64 @symbol(ptr error, ptr x, ptr y, ptr z)`, and the body that runs some of its pieces."""
    pieces = ProductPieces.of(product, unit.threads)
    _emit_pieces(unit, product, pieces, f"{symbol}.pieces")
    work = product.m * product.n * product.k
    is_alone = work // pieces.count <= MOST_WORK_ALONE
    is_shared = product.stacks * pieces.count > 1 and product.stacks * work >= 2 * MOST_WORK_ALONE
    values = "" if product.values is None else ", ptr %values"
    stopped = leave_if_stopped(str(RAISED)) if unit.is_long else []
    lines = ["entry:", "  %matrices = alloca [5 x ptr]"]
    for slot, name in [*enumerate(["x", "y", "z", *(["values"] if values else [])]), (4, "error")]:
        lines += [f"  %slot{slot} = getelementptr ptr, ptr %matrices, i64 {slot}", f"  store ptr %{name}, ptr %slot{slot}"]
    total = str(product.stacks * pieces.count)
    if product.sizes is not None:
        total = "%total"
        lines += [*_count(product.sizes, pieces), f"  %total = mul i64 %count, {product.stacks}"]
    run = f"call void @{symbol}.pieces(ptr %matrices, i64 0, i64 {total})"
    if is_shared:
        grain = max(1, MOST_WORK_ALONE * pieces.count // work)
        arguments = f"ptr @{symbol}.pieces, ptr %matrices, i64 0, i64 {total}, i64 {grain}"
        run = parallel_for(unit.declarations, arguments, watched=unit.is_long)
    if not is_alone:
        for name in ("jitml_blas_enter", "jitml_blas_leave"):
            unit.declarations.declare(f"void @{name}()")
        lines += ["  call void @jitml_blas_enter()", f"  {run}", "  call void @jitml_blas_leave()"]
    else:
        lines.append(f"  {run}")
    unit.add(f"i64 @{symbol}(ptr %error, ptr %x, ptr %y, ptr %z{values})", "\n".join([*lines, *stopped, "  ret i64 0"]))


def _emit_pieces(unit: Unit, product: Product, pieces: ProductPieces, symbol: str) -> None:
    """`void @symbol(ptr matrices, i64 begin, i64 end)`: one call of BLAS per piece, numbered through the batch."""
    p, args = product, Arguments(unit, product.z.buffer.dtype)
    letter = "d" if p.z.buffer.dtype == F64 else "s"
    b = unit.builder()
    head, count, across = [], str(pieces.count), str(pieces.columns.count)
    m, n, k = (args.size(size) for size in (p.m, p.n, p.k))
    if p.values is not None:
        head = ["  %slot.values = getelementptr ptr, ptr %matrices, i64 3", "  %values = load ptr, ptr %slot.values"]
        for start in sorted({matrix.start for matrix in (p.x, p.y, p.z) if matrix.start is not None}):
            head += [
                f"  %start{start}.slot = getelementptr i64, ptr %values, i64 {start}",
                f"  %start{start} = load i64, ptr %start{start}.slot",
            ]
    if p.sizes is not None:
        head += [*_load_sizes(p.sizes), *_count(p.sizes, pieces)]
        count, across = "%count", "%n.count"
        m, n, k = (f"ptr %{name}.place" for name in "mnk")
    stack = _places(b, b.define(f"udiv i64 %piece, {count}"), p.batch)
    within = b.define(f"urem i64 %piece, {count}")
    row, column = b.define(f"udiv i64 {within}, {across}"), b.define(f"urem i64 {within}, {across}")
    first = {"m": b.define(f"mul i64 {row}, {pieces.rows.length}"), "n": b.define(f"mul i64 {column}, {pieces.columns.length}")}
    begins = {"x": [(first["m"], p.x.row)], "y": [(first["n"], p.y.col)], "z": [(first["m"], p.z.row), (first["n"], p.z.col)]}
    x, y, z = (f"ptr {_pointer(b, name, m, stack, begins[name])}" for name, m in (("x", p.x), ("y", p.y), ("z", p.z)))
    if pieces.rows.count > 1:
        m = _length(unit, b, "m", "%m" if p.sizes else str(p.m), first["m"], pieces.rows)
    if pieces.columns.count > 1:
        n = _length(unit, b, "n", "%n" if p.sizes else str(p.n), first["n"], pieces.columns)
    one, before = args.number(1.0), args.number(1.0 if p.adds else 0.0)
    if p.n == 1 and p.m == 1:
        routine, passed = "dot", [k, x, args.size(p.x.col), y, args.size(p.y.row)]
    elif p.n == 1:
        seen, leading = args.matrix(p.x)
        # Fortran sees dense rows as the k x m transpose, which it must turn back.
        extents = (k, m) if seen == "N" else (m, k)
        turned = args.character("T" if seen == "N" else "N")
        routine = "gemv"
        passed = [turned, *extents, one, x, leading, y, args.size(p.y.row), before, z, args.size(p.z.row)]
    else:
        (turn_x, step_x), (turn_y, step_y) = args.matrix(p.x), args.matrix(p.y)
        routine, turns = "gemm", [args.character(turn_y), args.character(turn_x)]
        passed = [*turns, n, m, k, one, y, step_y, x, step_x, before, z, args.size(p.z.row)]
    kind = llvm_type(p.z.buffer.dtype) if routine == "dot" else "void"
    function = f"@{letter}{routine}_"
    unit.declarations.declare(f"{kind} {function}({', '.join(['ptr'] * len(passed))})")
    if routine == "dot":
        total = b.define(f"call {kind} {function}({', '.join(passed)})")
        if p.adds:
            total = b.define(f"fadd {kind} {b.define(f'load {kind}, {z}')}, {total}")
        b.emit(f"store {kind} {total}, {z}")
    else:
        b.emit(f"call void {function}({', '.join(passed)})")
    if unit.is_long:
        unit.declarations.declare(f"i64 @{LOOK}(ptr)")
        head += ["  %slot.error = getelementptr ptr, ptr %matrices, i64 4", "  %error = load ptr, ptr %slot.error", *find_word()]
    body = _BODY.format(head="\n".join(head), poll=POLL if unit.is_long else "", lines="\n".join(b.lines))
    is_one = p.sizes is None and p.stacks * pieces.count == 1
    unit.add(f"void @{symbol}(ptr %matrices, i64 %begin, i64 %end)", body, None if is_one else "usual")


def _length(unit: Unit, b: Builder, axis: str, extent: str, first: str, cut: Cut) -> str:
    """How much of an axis a piece has, where BLAS finds it."""
    unit.declarations.declare("i64 @llvm.smin.i64(i64, i64)")
    left = b.define(f"sub i64 {extent}, {first}")
    length = b.define(f"call i64 @llvm.smin.i64(i64 {left}, i64 {cut.length})")
    b.emit(f"store i64 {length}, ptr %{axis}.length")
    return f"ptr %{axis}.length"


def _load_sizes(sizes: tuple[int, int, int]) -> list[str]:
    """`%m`, `%n` and `%k` of this run, and where BLAS finds them."""
    lines: list[str] = []
    for name, place in zip("mnk", sizes):
        lines += [
            f"  %{name}.slot = getelementptr i64, ptr %values, i64 {place}",
            f"  %{name} = load i64, ptr %{name}.slot",
            f"  %{name}.place = alloca i64",
            f"  store i64 %{name}, ptr %{name}.place",
        ]
    return lines


def _count(sizes: tuple[int, int, int], pieces: ProductPieces) -> list[str]:
    """`%count`, of pieces in this run, and `%n.count`, of those side by side."""
    lines: list[str] = []
    for axis, place, cut in zip("mn", sizes, (pieces.rows, pieces.columns)):
        lines += [
            f"  %{axis}.cut.slot = getelementptr i64, ptr %values, i64 {place}",
            f"  %{axis}.cut = load i64, ptr %{axis}.cut.slot",
            f"  %{axis}.padded = add i64 %{axis}.cut, {cut.length - 1}",
            f"  %{axis}.count = udiv i64 %{axis}.padded, {cut.length}",
        ]
    return [*lines, "  %count = mul i64 %m.count, %n.count"]


def _places(b: Builder, stack: str, batch: tuple[int, ...]) -> list[str]:
    """Along each axis of the batch, given how many products come before."""
    places: list[str] = []
    for n in reversed(batch[1:]):
        places.append(b.define(f"urem i64 {stack}, {n}"))
        stack = b.define(f"udiv i64 {stack}, {n}")
    return [stack, *reversed(places)][: len(batch)]


def _pointer(b: Builder, name: str, matrix: Matrix, stack: Sequence[str], begins: Iterable[tuple[str, int]]) -> str:
    """Where a piece of a matrix begins."""
    offset = str(matrix.offset)
    for place, stride in (*begins, *zip(stack, matrix.batch, strict=True)):
        offset = b.define(f"add i64 {offset}, {b.define(f'mul i64 {place}, {stride}')}")
    if matrix.start is not None:
        offset = b.define(f"add i64 {offset}, %start{matrix.start}")
    return b.define(f"getelementptr {llvm_type(matrix.buffer.dtype)}, ptr %{name}, i64 {offset}")


_BODY = """entry:
  %m.length = alloca i64
  %n.length = alloca i64
  %x = load ptr, ptr %matrices
  %slot.y = getelementptr ptr, ptr %matrices, i64 1
  %y = load ptr, ptr %slot.y
  %slot.z = getelementptr ptr, ptr %matrices, i64 2
  %z = load ptr, ptr %slot.z
{head}
  %some = icmp slt i64 %begin, %end
  br i1 %some, label %loop, label %done
loop:
  %piece = phi i64 [ %begin, %entry ], [ %next, %work ]
{poll}  br label %work
work:
{lines}
  %next = add i64 %piece, 1
  %more = icmp slt i64 %next, %end
  br i1 %more, label %loop, label %done
done:
  ret void"""

POLL = """  %is.due = load atomic i64, ptr %due monotonic, align 8
  %time = icmp ne i64 %is.due, 0
  br i1 %time, label %look, label %go
look:
  %told = call i64 @jitml_look(ptr %error)
  %over = icmp ne i64 %told, 0
  br i1 %over, label %done, label %go
go:
"""
