"""Matrix products: what is a matrix product?  Stacks of matrices by offset and strides, and the product as a nest of our own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from jitml.fusion.lower.layouts import Digits
from jitml.fusion.lower.nests import nested
from jitml.ir.types import I64
from jitml.kernels.ir import Apply, Buffer, Cell, Const, Expr, Kernel, Let, Load, Loop, Stmt, Store, Update, Var
from jitml.kernels.program import Call
from jitml.records import dataclass, replace

SMALL = 8  # a product with no extent above this is faster inline than through BLAS


@dataclass(frozen=True, slots=True)
class Matrix:
    """A stack of matrices in a buffer: element (b, i, j) lies at offset + sum(b * batch) + i * row + j * col.

    Args:
        start: the place, among the values that only the run knows, of what is added to the offset.
        digits: of rows and of columns, where these are not all equally far apart: then `row` and `col` say nothing.
    """

    buffer: Buffer
    offset: int
    batch: tuple[int, ...]
    row: int
    col: int
    start: int | None = None
    digits: tuple[Digits, Digits] | None = None

    @property
    def transposed(self) -> Matrix:
        return replace(self, row=self.col, col=self.row, digits=self.digits and self.digits[::-1])

    def is_blas_matrix(self, rows: int, columns: int) -> bool:
        """Whether rows or columns are dense, and do not overlap."""
        return self.digits is None and ((self.col == 1 and self.row >= columns) or (self.row == 1 and self.col >= rows))

    def at(self, batch: Sequence[Expr], i: Expr, j: Expr) -> tuple[Expr, ...]:
        place = i * self.row + j * self.col + self.offset
        for b, step in zip(batch, self.batch, strict=True):
            place = b * step + place
        return (place if self.start is None else place + Var(f"start{self.start}"),)


@dataclass(frozen=True, slots=True)
class Product:
    """z[b] = x[b] @ y[b], or z[b] += that, of extents m x k and k x n, with z's columns dense (or one column).

    What only the run knows is in an array whose name is `values`: the starts of matrices, and at the places `sizes` m, n and k,
    if these are the largest ones.
    """

    batch: tuple[int, ...]
    m: int
    n: int
    k: int
    x: Matrix
    y: Matrix
    z: Matrix
    values: str | None = None
    sizes: tuple[int, int, int] | None = None
    adds: bool = False

    @staticmethod
    def of(call: Call, buffers: Mapping[str, Buffer]) -> Product:
        """The product of a `gemm` call, turned so that its result has dense rows, or is a column."""
        p = call.params
        sizes = (0, 1, 2) if "sized" in p else None
        has_values = sizes is not None or any(f"{a}_start" in p for a in "abc")
        matrices, values = (call.reads[:-1], call.reads[-1]) if has_values else (call.reads, None)
        names = (matrices[0], matrices[-1], call.writes[0])  # a matrix times itself is read once
        x, y, z = (
            Matrix(buffers[name], p[f"{a}_offset"], p[f"{a}_batch"], p[f"{a}_row"], p[f"{a}_col"], p.get(f"{a}_start"))
            for name, a in zip(names, "abc", strict=True)
        )
        product = Product(p["batch"], p["m"], p["n"], p["k"], x, y, z, values, sizes, "adds" in p)
        is_turned = product.n > 1 and (product.m == 1 or z.col != 1)
        return product.transposed if is_turned else product

    @property
    def transposed(self) -> Product:
        x, y, z = (matrix.transposed for matrix in (self.y, self.x, self.z))
        sizes = None if self.sizes is None else (self.sizes[1], self.sizes[0], self.sizes[2])
        return Product(self.batch, self.n, self.m, self.k, x, y, z, self.values, sizes, self.adds)

    @property
    def stacks(self) -> int:
        """How many products it is."""
        return prod(self.batch)

    @property
    def wants_blas(self) -> bool:
        """Whether BLAS can do it, and is worth calling."""
        m, n, k = self.m, self.n, self.k
        if 0 in (self.stacks, m, n) or k < 2 or max(m, n, k) <= SMALL:
            return False
        if m == n == 1:
            return self.x.col > 0 and self.y.row > 0
        if n == 1:
            return self.x.is_blas_matrix(m, k) and self.y.row > 0 and self.z.row > 0
        return self.x.is_blas_matrix(m, k) and self.y.is_blas_matrix(k, n) and self.z.col == 1 and self.z.row >= n

    def kernel(self, buffers: Mapping[str, Buffer]) -> Kernel:
        """The product as a nest: rows, columns, and for each element the sum over k in a register."""
        p = self.transposed if self.n == 1 else self
        i, j, k = (Var(name) for name in "ijk")
        b = tuple(Var(f"b{level}") for level in range(len(p.batch)))
        dtype = p.z.buffer.dtype
        factors = (Load(p.x.buffer.name, p.x.at(b, i, k), dtype), Load(p.y.buffer.name, p.y.at(b, k, j), dtype))
        element = (
            Cell("s", Const(-0.0 if p.k else 0.0, dtype)),
            Loop("k", Const(0), Const(p.k), 1, "serial", (Update("s", Apply("mul", factors, dtype), "add"),)),
            Store(p.z.buffer.name, p.z.at(b, i, j), Var("s", dtype), "add" if p.adds else None),
        )
        nest = nested({**{v.name: Const(n) for v, n in zip(b, p.batch)}, "i": Const(p.m), "j": Const(p.n)}, element)
        params = {matrix.buffer.name: _flat(matrix.buffer) for matrix in (p.x, p.y, p.z)}
        starts: tuple[Stmt, ...] = ()
        if p.values is not None:
            places = sorted({matrix.start for matrix in (p.x, p.y, p.z) if matrix.start is not None})
            starts = tuple(Let(f"start{place}", Load(p.values, (Const(place),), I64)) for place in places)
            params[p.values] = buffers[p.values]
        return Kernel("product", tuple(params.values()), (*starts, *nest))


def _flat(buffer: Buffer) -> Buffer:
    """The buffer's memory as one axis, for offsets that the strides of a `Matrix` have made."""
    span = sum((n - 1) * s for n, s in zip(buffer.shape, buffer.element_strides, strict=True) if s > 0) + 1
    return Buffer(buffer.name, buffer.dtype, (max(span, prod(buffer.shape)),))
