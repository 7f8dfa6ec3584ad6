"""Matrix products: how is a product done on a GPU?

In tiles whose sums stay in registers (`gemm.cuh`). With a vector it is as fast as the matrix can be read, by one warp or block a
row, or by threads that are neighbours along the dense rows (`products.cuh`); very small ones are done an element a thread.

Factors of float16, and of float32 that may be rounded to TF32 or bfloat16, go to tensor cores (`mma.cuh`).

Where tiles are too few to keep the device busy, the sum is cut into parts, which a second function adds up in order. All of this
depends on the extents alone, so that a program gives the same bits each time. Multiply-adds are fused, as they are in BLAS. Where
cuBLASLt is installed, it does what it takes (`libraries/cublaslt.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from jitml.codegen.cuda.calls.plan import MOST_BLOCKS, CallPlan, LibraryWork, Means, blocks_for
from jitml.codegen.cuda.calls.strided import digits_text
from jitml.codegen.cuda.calls.text import entry, number_type, read, template
from jitml.codegen.cuda.libraries.cublaslt import library_product
from jitml.codegen.cuda.module import Launch
from jitml.codegen.cuda.target import PROCESSORS, THREADS
from jitml.codegen.product import Matrix, Product
from jitml.ir.types import F16
from jitml.kernels.ir import Buffer
from jitml.kernels.program import Call, KernelProgram
from jitml.records import dataclass, replace

_SMALL = 16  # rows and columns up to which a product is done an element a thread
_BUSY = PROCESSORS * 2  # blocks that keep a device busy
_LEAST_PART = 512  # of a sum that is cut
# What tensor cores multiply by how factors are rounded, in C++.
_BY_TENSOR_CORES = {"": "unsigned short", "tf32": "float", "bf16": "ji_bf16"}
_WIDTHS = {"f32": (128, 64, 32), "f64": (64, 32)}  # of tiles

_Operand: TypeAlias = tuple[str, str, int]  # a parameter's declaration, the buffer that it points into, and bytes to there


@dataclass(frozen=True, slots=True)
class _Shares:
    """How a product is shared out.

    Args:
        rows, columns: of a tile.
        parts: of the sum.
        deep: what the length of a part is a multiple of.
    """

    rows: int
    columns: int
    parts: int
    deep: int

    @staticmethod
    def of(p: Product, rows: int, columns: int, deep: int) -> _Shares:
        tiles = p.stacks * -(-p.m // rows) * -(-p.n // columns)
        parts = min(_BUSY // tiles, p.k // max(_LEAST_PART, deep)) if tiles <= _BUSY // 2 else 1
        return _Shares(rows, columns, max(1, parts), deep)

    def tiles(self, p: Product) -> int:
        return p.stacks * self.parts * -(-p.m // self.rows) * -(-p.n // self.columns)


@dataclass(frozen=True, slots=True)
class Ending:
    """What becomes of each sum.

    Args:
        parameters: declarations of pointers, by the buffers that they point to; they may share names with the product's.
        lines: statements that store `sum`, which is element (i, j) of the product's matrix `b`.
        is_plain: whether they are the same for products of all extents.
    """

    parameters: Sequence[tuple[str, str]]
    lines: Sequence[str]
    is_plain: bool = False

    @staticmethod
    def stored(p: Product) -> Ending:
        """It is a product's result."""
        kind = number_type(p.z.buffer.dtype)
        at = f"{kind}* const at = z + {stack_start(p.z, p.batch)} + i * z_row + j * z_col;"
        return Ending([(f"{kind}* z", p.z.buffer.name)], [at, f"*at = {'*at + ' if p.adds else ''}sum;"], is_plain=True)

    def text(self, p: Product) -> list[str]:
        """As a function `put(b, i, j, sum)`."""
        kind = number_type(p.z.buffer.dtype)
        head = f"const auto put = [=](long long b, long long i, long long j, {kind} sum) {{"
        return [head, *(f"  {line}" for line in self.lines), "};"]


def plan_gemm(call: Call, program: KernelProgram, name: str, means: Means) -> CallPlan:
    """The product of a `gemm` call by functions of our own."""
    p = Product.of(call, program.buffers)
    library = library_product(p)
    rounding = means.rounding(p.x.buffer.dtype)
    if library is not None:
        library = library.rounded_to(rounding)
    comment = f"{p.z.buffer.name} {'+' if p.adds else ''}= {p.x.buffer.name} @ {p.y.buffer.name}, {p.m} x {p.k} x {p.n}"
    plan = plan_product(p, Ending.stored(p), name, comment, rounding)
    return plan if library is None else replace(plan, library=LibraryWork((library,)))


def plan_product(p: Product, ending: Ending, name: str, comment: str, rounding: str = "") -> CallPlan:
    """A product, and what becomes of it. Of halves, sums are f32: z's buffer is.

    Args:
        rounding: of factors, as `Means.rounding` gives it.
    """
    if 0 in (p.stacks, p.m, p.n):
        return CallPlan()
    factors = (("x", p.x), ("y", p.y))
    reads = [(read(number_type(m.buffer.dtype), a), m.buffer.name, m.offset * m.buffer.dtype.itemsize) for a, m in factors]
    p = replace(p, x=replace(p.x, offset=0), y=replace(p.y, offset=0))
    is_half = p.x.buffer.dtype == F16
    on_tensor_cores = is_half or bool(rounding)
    is_tiled = False
    wants_tiles = is_half or p.x.digits is not None or p.y.digits is not None
    if not wants_tiles and p.m <= _SMALL and p.n <= _SMALL and (p.k <= 64 or p.stacks * p.m * p.n >= _BUSY * THREADS):
        cut, body = _Shares(1, 1, 1, 1), _by_element(p)
        blocks = blocks_for(p.stacks * p.m * p.n)
    elif p.n == 1 and not wants_tiles:
        cut, body = _by_vector(p)
        blocks = min(cut.tiles(p), MOST_BLOCKS)
    else:
        is_tiled = True
        cut, body = _by_tile(p, _BY_TENSOR_CORES[rounding] if on_tensor_cores else "")
        blocks = cut.tiles(p)
    kind, values = number_type(p.z.buffer.dtype), [(read("long long", "values"), p.values, 0)] if p.values is not None else []
    has_error, resident = p.values is not None, 2 if on_tensor_cores else 1
    templates = (*(template(t) for t in ("common", "gemm", "products")), *([template("mma")] if on_tensor_cores else []))

    def function(symbol: str, ending: Ending, operands: Sequence[_Operand], body: Sequence[str], blocks: int) -> None:
        pointers = [*((d, buffer, 0) for d, buffer in ending.parameters), *operands, *values]
        declared, buffers, starts = zip(*pointers)
        steps, numbers = _steps(p), list[tuple[str, int]]()
        if ending.is_plain and is_tiled and p.sizes is None:  # such products share a function
            numbers = [("m", p.m), ("n", p.n), ("k", p.k), *((step, n) for step, n in steps.items() if n not in (0, 1))]
            steps = {step: n for step, n in steps.items() if n in (0, 1)}
        declared += tuple(f"const long long {number}" for number, _ in numbers)
        constants = [f"const long long {', '.join(f'{step} = {n}' for step, n in steps.items())};"] if steps else []
        lines = [*([] if numbers else _extents(p)), *constants, *ending.text(p), *body]
        note = comment if symbol == name else ""
        texts.append(entry(symbol, declared, lines, note, has_error=has_error, resident=resident))
        work.append(Launch(symbol, blocks, THREADS, 0, buffers, has_error, starts, tuple(n for _, n in numbers)))

    texts, work = list[str](), list[Launch]()
    if cut.parts == 1:
        function(name, ending, reads, body, blocks)
        return CallPlan(texts[0], templates, tuple(work))
    stride, row = ("m * n", "n") if p.sizes is None else (f"{p.m * p.n}LL", f"{p.n}LL")
    scratch = Buffer(f"{name}_parts", p.z.buffer.dtype, (cut.parts, p.stacks, p.m, p.n))
    part = Ending([(f"{kind}* parts", scratch.name)], [f"parts[b * {stride} + i * {row} + j] = sum;"], is_plain=True)
    function(name, part, reads, body, blocks)
    function(f"{name}_sum", ending, [(read(kind, "parts"), scratch.name, 0)], _summing(p, cut), blocks_for(p.stacks * p.m * p.n))
    return CallPlan("".join(texts), templates, tuple(work), (scratch,))


def _extents(p: Product) -> list[str]:
    """m, n and k, and the starts of matrices."""
    if p.sizes is None:
        lines = [f"const long long m = {p.m}, n = {p.n}, k = {p.k};"]
    else:
        limits = zip("mnk", p.sizes, (p.m, p.n, p.k))
        lines = [f"const long long {name} = ji_clamped(values[{place}], 0, {most});" for name, place, most in limits]
    return lines


def _steps(p: Product) -> dict[str, int]:
    """From element to element of each matrix."""
    matrices = [(name, matrix) for name, matrix in (("x", p.x), ("y", p.y), ("z", p.z)) if matrix.digits is None]
    return {f"{a}_{along}": step for a, x in matrices for along, step in (("row", x.row), ("col", x.col))}


def stack_start(matrix: Matrix, batch: Sequence[int], b: str = "b") -> str:
    """Where a matrix of the stack begins."""
    terms, rest = [], b
    for k in reversed(range(len(batch))):
        at = rest if k == 0 else f"{rest} % {batch[k]}"
        if matrix.batch[k] and batch[k] > 1:
            terms.append(f"({at}) * {matrix.batch[k]}LL")
        rest = f"{rest} / {batch[k]}"
    start = [f"values[{matrix.start}]"] if matrix.start is not None else []
    return " + ".join([f"{matrix.offset}LL", *start, *terms])


def is_aligned(matrix: Matrix, name: str, along: bool, batch: Sequence[int]) -> str:
    """Whether neighbours of a matrix of which each row, or column, is dense can be read 16 bytes at a time."""
    lanes = 16 // matrix.buffer.dtype.itemsize
    if matrix.digits is not None:
        return _are_windows_aligned(matrix, name, along, lanes)
    dense, other = (matrix.col, matrix.row) if along else (matrix.row, matrix.col)
    steps = [step for step, n in zip(matrix.batch, batch, strict=True) if n > 1]
    if dense != 1 or any(step % lanes for step in (other, matrix.offset, *steps)):
        return "false"
    start = "" if matrix.start is None else f" + values[{matrix.start}]"
    return f"((unsigned long long)({name}{start}) % 16) == 0"


def _are_windows_aligned(matrix: Matrix, name: str, along: bool, lanes: int) -> str:
    assert matrix.digits is not None and matrix.start is None
    *outer, (neighbours, dense) = matrix.digits[along]
    steps = [*matrix.batch, matrix.offset, *(step for _, step in (*outer, *matrix.digits[not along]))]
    if dense != 1 or neighbours % lanes or any(step % lanes for step in steps):
        return "false"
    return f"((unsigned long long){name} % 16) == 0"


def is_along(matrix: Matrix, rows: int, deep: int) -> bool:
    """Whether the elements of a row, of an operand whose columns go along the sum, are closer than those of a column."""
    if 1 in (rows, deep):
        return rows == 1
    if matrix.digits is not None:
        row, column = (abs(digits[-1][1]) for digits in matrix.digits)
        return column < row
    return abs(matrix.col) < abs(matrix.row)


def _bounds(parts: int, deep: int) -> list[str]:
    """Where part `part` of the sum begins and ends."""
    if parts == 1:
        return ["const long long begin = 0, end = k;"]
    return [
        f"const long long length = (k + {parts * deep - 1}) / {parts * deep} * {deep};",
        "const long long begin = part * length < k ? part * length : k, end = begin + length < k ? begin + length : k;",
    ]


def _whose(p: Product, parts: int) -> str:
    """The matrix that `put` is told of: of the result, or of parts of it."""
    return "b" if parts == 1 else f"part * {p.stacks} + b"


def _by_tile(p: Product, multiplied: str) -> tuple[_Shares, list[str]]:
    """
    Args:
        multiplied: what tensor cores multiply, if they do it.
    """
    kind, result = number_type(p.x.buffer.dtype), number_type(p.z.buffer.dtype)
    widths = (128, 64) if multiplied else _WIDTHS["f32" if kind == "float" else "f64"]
    fitting = [w for w in widths if p.stacks * -(-p.m // w) * -(-p.n // w) >= _BUSY and min(p.m, p.n) > w // 2]
    width = fitting[0] if fitting else widths[-1] if min(p.m, p.n) <= 32 else widths[-2]
    width = widths[-1] if multiplied and not fitting else width
    y = p.y.transposed  # its rows are columns of the result
    x_along, y_along = is_along(p.x, p.m, p.k), is_along(y, p.n, p.k)
    aligned = [is_aligned(*each, p.batch) for each in ((p.x, "x", x_along), (y, "y", y_along))]
    if multiplied and any(matrix.digits is not None and a == "false" for matrix, a in zip((p.x, y), aligned)):
        width = widths[-1]  # each element has a place of its own, which takes registers
    deep = 64 // p.x.buffer.dtype.itemsize if multiplied else THREADS * (16 // p.x.buffer.dtype.itemsize) // width
    cut = _Shares.of(p, width, width, deep)
    flags = f"{multiplied or kind}, {width}, {str(x_along).lower()}, {str(y_along).lower()}"
    if multiplied:
        sizes = [f"2 * ji_factor<{multiplied}, {width}, {str(along).lower()}>::SIZE" for along in (x_along, y_along)]
        shared = f"alignas(16) __shared__ {multiplied} xs[{sizes[0]}], ys[{sizes[1]}];"
    else:
        shared = f"alignas(16) __shared__ {kind} xs[{2 * deep}][{width + 4}], ys[{2 * deep}][{width + 4}];"
    return cut, [
        shared,
        f"const bool x_aligned = {aligned[0]}, y_aligned = {aligned[1]};",
        f"const long long down = (m + {width - 1}) / {width}, across = (n + {width - 1}) / {width}, tiles = down * across;",
        f"for (long long t = blockIdx.x; t < tiles * {p.stacks * cut.parts}; t += gridDim.x) {{",
        f"  const long long b = t / tiles / {cut.parts}, part = t / tiles % {cut.parts};",
        "  long long i, j;",
        "  ji_gemm_place(t % tiles, down, across, &i, &j);",
        *(f"  {line}" for line in _bounds(cut.parts, cut.deep)),
        *(f"  {line}" for line in _operand(p.x, "const auto left", "x", ("row", "col"), p.batch)),
        *(f"  {line}" for line in _operand(y, "const auto right", "y", ("col", "row"), p.batch)),
        f"  ji_{'mma' if multiplied else 'gemm'}_tile<{flags}>(xs, ys, left, right,",
        f"      i * {width}, j * {width}, m, n, begin, end,",
        f"      [=](long long i, long long j, {result} sum) {{ put({_whose(p, cut.parts)}, i, j, sum); }});",
        "}",
    ]


def _operand(matrix: Matrix, declared: str, word: str, steps: tuple[str, str], batch: Sequence[int]) -> list[str]:
    """The declaration of what tiles of a factor are read from; the columns of the matrix go along the sum."""
    start = f"{word} + {stack_start(matrix, batch)}"
    if matrix.digits is None:
        kind, (row, deep) = number_type(matrix.buffer.dtype), steps
        return [f"{declared} = ji_operand<{kind}>{{{start}, {word}_{row}, {word}_{deep}, {word}_aligned}};"]
    rows, depths = (digits_text(digits, matrix.buffer.reach) for digits in matrix.digits)
    return [f"{declared} = ji_windows_of({start}, {word}_aligned,", f"    {rows},", f"    {depths});"]


def _by_vector(p: Product) -> tuple[_Shares, list[str]]:
    """z[i] = x[i] @ y."""
    kind, lanes = number_type(p.z.buffer.dtype), 16 // p.z.buffer.dtype.itemsize
    along = is_along(p.x, p.m, p.k)
    y = p.y.transposed
    group = 32 if along and p.k < 4096 else THREADS
    rows = THREADS // group if along else 32 * lanes
    cut = _Shares.of(p, rows, 1, group * lanes if along else 8)
    x_aligned, y_aligned = is_aligned(p.x, "x", along, p.batch), is_aligned(y, "y", True, p.batch)
    lines = [
        f"const bool x_aligned = {x_aligned}, y_aligned = {y_aligned};",
        f"const long long tiles = (m + {rows - 1}) / {rows};",
        f"for (long long t = blockIdx.x; t < tiles * {p.stacks * cut.parts}; t += gridDim.x) {{",
        f"  const long long b = t / tiles / {cut.parts}, part = t / tiles % {cut.parts};",
        *(f"  {line}" for line in _bounds(cut.parts, cut.deep)),
        f"  const {kind} *left = x + {stack_start(p.x, p.batch)}, *right = y + {stack_start(y, p.batch)};",
    ]
    if along:
        lines += [
            f"  const long long i = t % tiles * {rows} + threadIdx.x / {group};",
            f"  const {kind} sum = ji_dot<{kind}, {group}>(shared, left + (i < m ? i : 0) * x_row, right, x_col, "
            f"y_row, x_aligned, y_aligned, begin, i < m ? end : begin);",
            f"  if (threadIdx.x % {group} == 0 && i < m) put({_whose(p, cut.parts)}, i, 0, sum);",
        ]
        return cut, [f"__shared__ {kind} shared[{THREADS // 32}];", *lines, "}"]
    lines += [
        f"  ji_columns<{kind}>(shared, left, right, x_row, x_col, y_row, x_aligned, t % tiles * {rows}, m,",
        f"      begin, end, [=](long long i, {kind} sum) {{ put({_whose(p, cut.parts)}, i, 0, sum); }});",
    ]
    return cut, [f"__shared__ {kind} shared[8][{rows}];", *lines, "}"]


def _by_element(p: Product) -> list[str]:
    kind = number_type(p.z.buffer.dtype)
    return [
        f"for (long long t = blockIdx.x * {THREADS}LL + threadIdx.x; t < m * n * {p.stacks}; t += gridDim.x * {THREADS}LL) {{",
        "  const long long b = t / (m * n), i = t / n % m, j = t % n;",
        f"  const {kind} sum = ji_short_dot(x + {stack_start(p.x, p.batch)} + i * x_row,",
        f"      y + {stack_start(p.y, p.batch)} + j * y_col,",
        "      x_col, y_row, k);",
        "  put(b, i, j, sum);",
        "}",
    ]


def _summing(p: Product, cut: _Shares) -> list[str]:
    """The parts of each sum, added up in their order."""
    kind = number_type(p.z.buffer.dtype)
    return [
        f"for (long long t = blockIdx.x * {THREADS}LL + threadIdx.x; t < m * n * {p.stacks}; t += gridDim.x * {THREADS}LL) {{",
        "  const long long b = t / (m * n), i = t / n % m, j = t % n;",
        f"  const {kind}* from = parts + b * {p.m * p.n}LL + i * {p.n} + j;",
        f"  {kind} sum = from[0];",
        f"  for (int part = 1; part < {cut.parts}; part++) sum += from[part * {p.stacks * p.m * p.n}LL];",
        "  put(b, i, j, sum);",
        "}",
    ]
