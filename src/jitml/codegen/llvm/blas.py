"""How is a product handed to BLAS?  In pieces of its own rows or columns, which threads of our pool share.

BLAS speaks column-major Fortran: every argument by pointer, sizes in 32 bits, a leading dimension per matrix. A row-major
product is the column-major product of the transposes in the other order.

BLAS itself runs on one thread meanwhile (`jitml_blas_enter`, `jitml_blas_leave`): its threads wait for each other by
spinning, which costs a factor of ten and more as soon as one core is taken away, while our pieces wait for nobody. Pieces
depend on the extents alone, so that results do not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jitml.codegen.llvm.builder import Builder, llvm_type
from jitml.codegen.llvm.kernel import Unit
from jitml.codegen.llvm.product import Matrix, Product
from jitml.errors import UnsupportedError
from jitml.ir.types import F64, DType

INT32 = 2**31 - 1
PIECE_WORK = 1_000_000  # multiply-adds worth a piece of their own: some 30 us
MOST_ROWS = 256  # of a piece: beyond, the packing of the other operand is paid for
MOST_WORK_ALONE = 200_000  # BLAS uses one thread up to 64**3 multiply-adds anyway


@dataclass(frozen=True, slots=True)
class Pieces:
    """A product cut along its rows or columns: `count` pieces of `length`, the last one shorter, for each of the batch."""

    axis: str  # "m" or "n"
    length: int
    count: int

    @staticmethod
    def of(p: Product) -> Pieces:
        """As few as keep eight threads busy if there is work for them, and wide enough to pay for packing."""
        work = p.m * p.n * p.k
        if p.n == 1:
            # A column: rows of x are independent; of a transposed x, short pieces would share its cache lines.
            least = 64 if p.x.col == 1 else 512
            return _cut("m", p.m, min(work * 8 // PIECE_WORK, p.m // least))
        axis, n = ("m", p.m) if p.m >= p.n else ("n", p.n)
        wanted = max(min(8, work // PIECE_WORK) // min(p.stacks, 8), n // MOST_ROWS if work > PIECE_WORK else 1)
        return _cut(axis, n, min(wanted, n // 48))


def _cut(axis: str, n: int, count: int) -> Pieces:
    length = -(-n // max(1, count))
    if count > 1:
        length = -(-length // 16) * 16
    return Pieces(axis, length, -(-n // length))


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


def emit_blas(unit: Unit, product: Product, symbol: str) -> None:
    """Append `i64 @symbol(ptr error, ptr x, ptr y, ptr z)`, and the body that runs some of its pieces."""
    pieces = Pieces.of(product)
    _emit_pieces(unit, product, pieces, f"{symbol}.pieces")
    work = product.m * product.n * product.k
    is_alone = work // pieces.count <= MOST_WORK_ALONE
    is_shared = product.stacks * pieces.count > 1 and product.stacks * work >= 2 * MOST_WORK_ALONE
    values = "" if product.values is None else ", ptr %values"
    lines = [
        f"define internal i64 @{symbol}(ptr %error, ptr %x, ptr %y, ptr %z{values}) #0 {{",
        "entry:",
        "  %matrices = alloca [4 x ptr]",
    ]
    for slot, name in enumerate(["x", "y", "z", *(["values"] if values else [])]):
        lines += [f"  %slot{slot} = getelementptr ptr, ptr %matrices, i64 {slot}", f"  store ptr %{name}, ptr %slot{slot}"]
    total = str(product.stacks * pieces.count)
    if product.sizes is not None:
        total = "%total"
        lines += [*_count(product.sizes, pieces), f"  %total = mul i64 %count, {product.stacks}"]
    run = f"call void @{symbol}.pieces(ptr %matrices, i64 0, i64 {total})"
    if is_shared:
        unit.declarations.declare("void @jitml_parallel_for(ptr, ptr, i64, i64, i64)")
        grain = max(1, MOST_WORK_ALONE * pieces.count // work)
        run = f"call void @jitml_parallel_for(ptr @{symbol}.pieces, ptr %matrices, i64 0, i64 {total}, i64 {grain})"
    if not is_alone:
        for name in ("jitml_blas_enter", "jitml_blas_leave"):
            unit.declarations.declare(f"void @{name}()")
        lines += ["  call void @jitml_blas_enter()", f"  {run}", "  call void @jitml_blas_leave()"]
    else:
        lines.append(f"  {run}")
    unit.functions.append("\n".join([*lines, "  ret i64 0", "}"]))


def _emit_pieces(unit: Unit, product: Product, pieces: Pieces, symbol: str) -> None:
    """`void @symbol(ptr matrices, i64 begin, i64 end)`: one call of BLAS per piece, numbered through the batch."""
    p, args = product, _Arguments(unit, product.z.buffer.dtype)
    letter = "d" if p.z.buffer.dtype == F64 else "s"
    b = unit.builder()
    head, count, extent = [], str(pieces.count), str(p.m if pieces.axis == "m" else p.n)
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
        count, extent = "%count", f"%{pieces.axis}"
        m, n, k = (f"ptr %{name}.place" for name in "mnk")
    stack = _places(b, b.define(f"udiv i64 %piece, {count}"), p.batch)
    within = b.define(f"urem i64 %piece, {count}")
    first = b.define(f"mul i64 {within}, {pieces.length}")
    steps = {"x": p.x.row if pieces.axis == "m" else 0, "y": p.y.col if pieces.axis == "n" else 0}
    steps["z"] = p.z.row if pieces.axis == "m" else p.z.col
    x, y, z = (f"ptr {_pointer(b, name, m, stack, first, steps[name])}" for name, m in (("x", p.x), ("y", p.y), ("z", p.z)))
    if pieces.count > 1:
        left = b.define(f"sub i64 {extent}, {first}")
        unit.declarations.declare("i64 @llvm.smin.i64(i64, i64)")
        length = b.define(f"call i64 @llvm.smin.i64(i64 {left}, i64 {pieces.length})")
        b.emit(f"store i32 {b.define(f'trunc i64 {length} to i32')}, ptr %extent")
        m, n = ("ptr %extent", n) if pieces.axis == "m" else (m, "ptr %extent")
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
    unit.functions.append(_BODY.format(symbol=symbol, head="\n".join(head), lines="\n".join(b.lines)))


def _load_sizes(sizes: tuple[int, int, int]) -> list[str]:
    """`%m`, `%n` and `%k` of this run, and where BLAS finds them."""
    lines: list[str] = []
    for name, place in zip("mnk", sizes):
        lines += [
            f"  %{name}.slot = getelementptr i64, ptr %values, i64 {place}",
            f"  %{name} = load i64, ptr %{name}.slot",
            f"  %{name}.place = alloca i32",
            f"  %{name}.narrow = trunc i64 %{name} to i32",
            f"  store i32 %{name}.narrow, ptr %{name}.place",
        ]
    return lines


def _count(sizes: tuple[int, int, int], pieces: Pieces) -> list[str]:
    """`%count`, of pieces in this run."""
    return [
        f"  %cut.slot = getelementptr i64, ptr %values, i64 {sizes['mn'.index(pieces.axis)]}",
        "  %cut = load i64, ptr %cut.slot",
        f"  %padded = add i64 %cut, {pieces.length - 1}",
        f"  %count = udiv i64 %padded, {pieces.length}",
    ]


def _places(b: Builder, stack: str, batch: tuple[int, ...]) -> list[str]:
    """Along each axis of the batch, given how many products come before."""
    places: list[str] = []
    for n in reversed(batch[1:]):
        places.append(b.define(f"urem i64 {stack}, {n}"))
        stack = b.define(f"udiv i64 {stack}, {n}")
    return [stack, *reversed(places)][: len(batch)]


def _pointer(b: Builder, name: str, matrix: Matrix, stack: Sequence[str], first: str, step: int) -> str:
    """Where a piece of a matrix begins."""
    offset = b.define(f"mul i64 {first}, {step}")
    for place, stride in zip(stack, matrix.batch, strict=True):
        offset = b.define(f"add i64 {offset}, {b.define(f'mul i64 {place}, {stride}')}")
    offset = b.define(f"add i64 {offset}, {matrix.offset}")
    if matrix.start is not None:
        offset = b.define(f"add i64 {offset}, %start{matrix.start}")
    return b.define(f"getelementptr {llvm_type(matrix.buffer.dtype)}, ptr %{name}, i64 {offset}")


_BODY = """define internal void @{symbol}(ptr %matrices, i64 %begin, i64 %end) #0 {{
entry:
  %extent = alloca i32
  %x = load ptr, ptr %matrices
  %slot.y = getelementptr ptr, ptr %matrices, i64 1
  %y = load ptr, ptr %slot.y
  %slot.z = getelementptr ptr, ptr %matrices, i64 2
  %z = load ptr, ptr %slot.z
{head}
  %some = icmp slt i64 %begin, %end
  br i1 %some, label %loop, label %done
loop:
  %piece = phi i64 [ %begin, %entry ], [ %next, %loop ]
{lines}
  %next = add i64 %piece, 1
  %more = icmp slt i64 %next, %end
  br i1 %more, label %loop, label %done
done:
  ret void
}}"""
