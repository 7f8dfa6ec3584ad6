"""Matrix products: how is a product done on a GPU?

In tiles whose sums stay in registers (`gemm.cuh`). With a vector it is as fast as the matrix can be read, by one warp or block a
row, or by threads that are neighbours along the dense rows (`products.cuh`); very small ones are done an element a thread.

Where tiles are too few to keep the device busy, the sum is cut into parts, which a second function adds up in order. All of this
depends on the extents alone, so that a program gives the same bits each time. Multiply-adds are fused, as they are in BLAS. Where
cuBLASLt is installed, it does what it takes (`cublaslt.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

from jitml.codegen.cuda.calls.cublaslt import library_product
from jitml.codegen.cuda.calls.plan import MOST_BLOCKS, CallPlan, blocks_for
from jitml.codegen.cuda.calls.text import entry, number_type, read, template
from jitml.codegen.cuda.module import Launch
from jitml.codegen.cuda.target import PROCESSORS, THREADS
from jitml.codegen.product import Matrix, Product
from jitml.kernels.ir import Buffer
from jitml.kernels.program import Call, KernelProgram
from jitml.records import dataclass

_SMALL = 16  # rows and columns up to which a product is done an element a thread
_BUSY = PROCESSORS * 2  # blocks that keep a device busy
_LEAST_PART = 512  # of a sum that is cut
_WIDTHS = {"f32": (128, 64, 32), "f64": (64, 32)}  # of tiles


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


def plan_gemm(call: Call, program: KernelProgram, name: str) -> CallPlan:
    """The product of a `gemm` call by functions of our own."""
    p = Product.of(call, program.buffers)
    if 0 in (p.stacks, p.m, p.n):
        return CallPlan()
    if p.m <= _SMALL and p.n <= _SMALL and (p.k <= 64 or p.stacks * p.m * p.n >= _BUSY * THREADS):
        cut, body = _Shares(1, 1, 1, 1), _by_element(p)
        blocks = blocks_for(p.stacks * p.m * p.n)
    elif p.n == 1:
        cut, body = _by_vector(p)
        blocks = min(cut.tiles(p), MOST_BLOCKS)
    else:
        cut, body = _by_tile(p)
        blocks = cut.tiles(p)
    kind, z = number_type(p.z.buffer.dtype), p.z.buffer.name
    reads = [p.x.buffer.name, p.y.buffer.name, *([p.values] if p.values is not None else [])]
    parameters = [f"{kind}* z", read(kind, "x"), read(kind, "y"), *([read("long long", "values")] if p.values else [])]
    has_error = p.values is not None
    comment = f"{z} {'+' if p.adds else ''}= {p.x.buffer.name} @ {p.y.buffer.name}, {p.m} x {p.k} x {p.n}"
    if cut.parts == 1:
        text = entry(name, parameters, [*_extents(p), *body], comment, has_error=has_error)
        launch = Launch(name, blocks, THREADS, 0, (z, *reads), has_error)
        return CallPlan(text, _templates(), (launch,), library=library_product(p))
    scratch = Buffer(f"{name}_parts", p.z.buffer.dtype, (cut.parts, p.stacks, p.m, p.n))
    sums = entry(name, [f"{kind}* parts", *parameters[1:]], [*_extents(p), *body], comment, has_error=has_error)
    sums += entry(
        f"{name}_sum",
        [*parameters[:1], read(kind, "parts"), *parameters[3:]],
        [*_extents(p), *_summing(p, cut)],
        has_error=has_error,
    )
    work = (
        Launch(name, blocks, THREADS, 0, (scratch.name, *reads), has_error),
        Launch(f"{name}_sum", blocks_for(p.stacks * p.m * p.n), THREADS, 0, (z, scratch.name, *reads[2:]), has_error),
    )
    return CallPlan(sums, _templates(), work, (scratch,), library_product(p))


def _templates() -> tuple[str, ...]:
    return template("common"), template("gemm"), template("products")


def _extents(p: Product) -> list[str]:
    """m, n and k, and the starts of matrices."""
    if p.sizes is None:
        lines = [f"const long long m = {p.m}, n = {p.n}, k = {p.k};"]
    else:
        limits = zip("mnk", p.sizes, (p.m, p.n, p.k))
        lines = [f"const long long {name} = ji_clamped(values[{place}], 0, {most});" for name, place, most in limits]
    return lines


def _stack(matrix: Matrix, p: Product, b: str = "b") -> str:
    """Where a matrix of the stack begins."""
    terms, rest = [], b
    for k in reversed(range(len(p.batch))):
        at = rest if k == 0 else f"{rest} % {p.batch[k]}"
        if matrix.batch[k] and p.batch[k] > 1:
            terms.append(f"({at}) * {matrix.batch[k]}LL")
        rest = f"{rest} / {p.batch[k]}"
    start = [f"values[{matrix.start}]"] if matrix.start is not None else []
    return " + ".join([f"{matrix.offset}LL", *start, *terms])


def _aligned(matrix: Matrix, name: str, along: bool, p: Product) -> str:
    """Whether neighbours of a matrix of which each row, or column, is dense can be read 16 bytes at a time."""
    lanes = 16 // matrix.buffer.dtype.itemsize
    dense, other = (matrix.col, matrix.row) if along else (matrix.row, matrix.col)
    steps = [step for step, n in zip(matrix.batch, p.batch, strict=True) if n > 1]
    if dense != 1 or any(step % lanes for step in (other, matrix.offset, *steps)):
        return "false"
    start = "" if matrix.start is None else f" + values[{matrix.start}]"
    return f"((unsigned long long)({name}{start}) % 16) == 0"


def _is_along(matrix: Matrix, rows: int, deep: int) -> bool:
    """Whether the elements of a row, of an operand whose columns go along the sum, are closer than those of a column."""
    if 1 in (rows, deep):
        return rows == 1
    return abs(matrix.col) < abs(matrix.row)


def _bounds(parts: int, deep: int) -> list[str]:
    """Where part `part` of the sum begins and ends."""
    if parts == 1:
        return ["const long long begin = 0, end = k;"]
    return [
        f"const long long length = (k + {parts * deep - 1}) / {parts * deep} * {deep};",
        "const long long begin = part * length < k ? part * length : k, end = begin + length < k ? begin + length : k;",
    ]


def _target(p: Product, parts: int) -> tuple[str, str, str]:
    """(the first element of a matrix of the result, or of a part of it, its row step, its column step)."""
    if parts == 1:
        return f"z + {_stack(p.z, p)}", f"{p.z.row}LL", f"{p.z.col}LL"
    return f"parts + (part * {p.stacks} + b) * {p.m * p.n}LL", f"{p.n}LL", "1LL"


def _by_tile(p: Product) -> tuple[_Shares, list[str]]:
    kind = number_type(p.z.buffer.dtype)
    widths = _WIDTHS["f32" if kind == "float" else "f64"]
    fitting = [w for w in widths if p.stacks * -(-p.m // w) * -(-p.n // w) >= _BUSY and min(p.m, p.n) > w // 2]
    width = fitting[0] if fitting else widths[-1] if min(p.m, p.n) <= 32 else widths[-2]
    deep = THREADS * (16 // p.z.buffer.dtype.itemsize) // width
    cut = _Shares.of(p, width, width, deep)
    y = p.y.transposed  # its rows are columns of the result
    x_along, y_along = _is_along(p.x, p.m, p.k), _is_along(y, p.n, p.k)
    first, row, col = _target(p, cut.parts)
    adds = p.adds and cut.parts == 1
    flags = ", ".join(str(flag).lower() for flag in (x_along, y_along, adds))
    return cut, [
        f"alignas(16) __shared__ {kind} xs[{2 * deep}][{width + 4}], ys[{2 * deep}][{width + 4}];",
        f"const bool x_aligned = {_aligned(p.x, 'x', x_along, p)}, y_aligned = {_aligned(y, 'y', y_along, p)};",
        f"const long long down = (m + {width - 1}) / {width}, across = (n + {width - 1}) / {width}, tiles = down * across;",
        f"for (long long t = blockIdx.x; t < tiles * {p.stacks * cut.parts}; t += gridDim.x) {{",
        f"  const long long b = t / tiles / {cut.parts}, part = t / tiles % {cut.parts};",
        "  long long i, j;",
        "  ji_gemm_place(t % tiles, down, across, &i, &j);",
        *(f"  {line}" for line in _bounds(cut.parts, cut.deep)),
        f"  const ji_operand<{kind}> left = {{x + {_stack(p.x, p)}, {p.x.row}LL, {p.x.col}LL, x_aligned}};",
        f"  const ji_operand<{kind}> right = {{y + {_stack(y, p)}, {y.row}LL, {y.col}LL, y_aligned}};",
        f"  ji_gemm_tile<{kind}, {width}, {flags}>(xs, ys, {first}, {row}, {col}, left, right,",
        f"      i * {width}, j * {width}, m, n, begin, end);",
        "}",
    ]


def _by_vector(p: Product) -> tuple[_Shares, list[str]]:
    """z[i] = x[i] @ y."""
    kind, lanes = number_type(p.z.buffer.dtype), 16 // p.z.buffer.dtype.itemsize
    along = _is_along(p.x, p.m, p.k)
    y = p.y.transposed
    group = 32 if along and p.k < 4096 else THREADS
    rows = THREADS // group if along else 32 * lanes
    cut = _Shares.of(p, rows, 1, group * lanes if along else 8)
    first, row, _ = _target(p, cut.parts)
    store = f"*at = {'*at + ' if p.adds and cut.parts == 1 else ''}sum;"
    x_aligned, y_aligned = _aligned(p.x, "x", along, p), _aligned(y, "y", True, p)
    lines = [
        f"const bool x_aligned = {x_aligned}, y_aligned = {y_aligned};",
        f"const long long tiles = (m + {rows - 1}) / {rows};",
        f"for (long long t = blockIdx.x; t < tiles * {p.stacks * cut.parts}; t += gridDim.x) {{",
        f"  const long long b = t / tiles / {cut.parts}, part = t / tiles % {cut.parts};",
        *(f"  {line}" for line in _bounds(cut.parts, cut.deep)),
        f"  const {kind} *left = x + {_stack(p.x, p)}, *right = y + {_stack(y, p)};",
        f"  {kind}* const to = {first};",
    ]
    if along:
        lines += [
            f"  const long long i = t % tiles * {rows} + threadIdx.x / {group};",
            f"  const {kind} sum = ji_dot<{kind}, {group}>(shared, left + (i < m ? i : 0) * {p.x.row}LL, right, {p.x.col}LL, "
            f"{y.col}LL, x_aligned, y_aligned, begin, i < m ? end : begin);",
            f"  {kind}* const at = to + i * {row};",
            f"  if (threadIdx.x % {group} == 0 && i < m) {store}",
        ]
        return cut, [f"__shared__ {kind} shared[{THREADS // 32}];", *lines, "}"]
    lines += [
        f"  ji_columns<{kind}>(shared, left, right, {p.x.row}LL, {p.x.col}LL, {y.col}LL, x_aligned, t % tiles * {rows}, m,",
        f"      begin, end, [=](long long i, {kind} sum) {{ {kind}* const at = to + i * {row}; {store} }});",
    ]
    return cut, [f"__shared__ {kind} shared[8][{rows}];", *lines, "}"]


def _by_element(p: Product) -> list[str]:
    kind = number_type(p.z.buffer.dtype)
    return [
        f"for (long long t = blockIdx.x * {THREADS}LL + threadIdx.x; t < m * n * {p.stacks}; t += gridDim.x * {THREADS}LL) {{",
        "  const long long b = t / (m * n), i = t / n % m, j = t % n;",
        f"  const {kind} sum = ji_short_dot(x + {_stack(p.x, p)} + i * {p.x.row}LL, y + {_stack(p.y, p)} + j * {p.y.col}LL,",
        f"      {p.x.col}LL, {p.y.row}LL, k);",
        *_put(p),
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
        *_put(p),
        "}",
    ]


def _put(p: Product) -> Sequence[str]:
    return (
        f"  {number_type(p.z.buffer.dtype)}* const at = z + {_stack(p.z, p)} + i * {p.z.row}LL + j * {p.z.col}LL;",
        f"  *at = {'*at + ' if p.adds else ''}sum;",
    )
