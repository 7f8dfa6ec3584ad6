"""cuBLASLt: how is a product handed to NVIDIA's library?  By its own names for things, through ctypes.

It speaks column-major: a row-major product is the column-major product of the transposes in the other order. f32 is computed in
f32, and in TF32 or bfloat16 where the user asks for it; f16 is added up in f32. What is made of the result it may do
too (`epilogues.py`).
The algorithm is chosen once for each product and alignment, and the workspace is ours, so that calls can be recorded in graphs.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import byref, c_float, c_int, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p, sizeof
from functools import cache
from typing import Any

from jitml.codegen.cuda.libraries.library import Library, LibraryError, installed, opened
from jitml.codegen.product import Matrix, Product
from jitml.errors import DeviceFault
from jitml.ir.types import F32, F64
from jitml.records import dataclass, field, replace

WORKSPACE = 32 << 20
LEAST_WORK = 1 << 18  # multiply-adds of one matrix that are worth a call

# Values of the header's enumerations.
# CUBLAS_COMPUTE_32F and 64F; CUDA_R_16F, 32F and 64F; by bytes of an element. Halves are added up in f32.
_COMPUTE, _TYPE, _SCALE = {2: 68, 4: 68, 8: 70}, {2: 2, 4: 0, 8: 1}, {2: 0, 4: 0, 8: 1}
_COMPUTE_ROUNDED = {"tf32": 77, "bf16": 75}  # CUBLAS_COMPUTE_32F_FAST_TF32 and FAST_16BF
_TRANSPOSED = {"a": 3, "b": 4}  # CUBLASLT_MATMUL_DESC_TRANSA and TRANSB
_EPILOGUE, _BIAS = 7, 8  # CUBLASLT_MATMUL_DESC_EPILOGUE and BIAS_POINTER
_NO_EPILOGUE = 1
_WORDS = {4: "bias", 2: "relu", 32: "gelu"}  # by the bits of an epilogue
_BATCH_COUNT, _BATCH_STEP = 5, 6  # CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT and STRIDED_BATCH_OFFSET
_MOST_WORKSPACE, _LEAST_ALIGNMENT = 1, (5, 6, 7, 8)  # CUBLASLT_MATMUL_PREF_...: of A, B, C and D
_WIDE = 16  # bytes: an alignment that all fast algorithms are content with


class Algorithm(ctypes.Structure):
    """cublasLtMatmulAlgo_t."""

    _fields_ = (("data", c_uint64 * 8),)


class Heuristic(ctypes.Structure):
    """cublasLtMatmulHeuristicResult_t."""

    _fields_ = (
        ("algorithm", Algorithm),
        ("workspace", c_size_t),
        ("state", c_int),
        ("waves", c_float),
        ("reserved", c_int * 4),
    )


@dataclass(frozen=True, slots=True)
class ColumnMajor:
    """A stack of matrices as the library sees it.

    Args:
        rows, columns: as they are stored, whether the product takes them transposed or not.
        leading: elements from one column to the next.
        step: elements from one matrix to the next.
        first: of the buffer, the element where they begin.
    """

    rows: int
    columns: int
    leading: int
    step: int
    first: int
    is_transposed: bool = False

    @staticmethod
    def of_transpose(matrix: Matrix, rows: int, columns: int, step: int) -> ColumnMajor:
        """The transpose of a matrix of so many rows and columns, whose rows or columns are dense."""
        if matrix.col == 1 or columns == 1:
            return ColumnMajor(columns, rows, max(matrix.row, columns), step, matrix.offset)
        return ColumnMajor(rows, columns, matrix.col, step, matrix.offset, is_transposed=True)


def library_product(p: Product) -> LibraryProduct | None:
    """A product as a call of the library, if that takes it and is worth calling."""
    steps = [_batch_step(matrix, p.batch) for matrix in (p.x, p.y, p.z)]
    if p.values is not None or 1 in (p.m, p.n) or p.m * p.n * p.k < LEAST_WORK or None in steps:
        return None
    is_dense = p.x.is_blas_matrix(p.m, p.k) and p.y.is_blas_matrix(p.k, p.n) and p.z.col == 1 and p.z.row >= p.n
    if not is_dense or max(p.m, p.n, p.k) >= 1 << 31:
        return None
    x_step, y_step, z_step = (step or 0 for step in steps)
    return LibraryProduct(
        (p.z.buffer.name, p.x.buffer.name, p.y.buffer.name),
        p.x.buffer.dtype.itemsize,
        p.stacks,
        ColumnMajor.of_transpose(p.y, p.k, p.n, y_step),
        ColumnMajor.of_transpose(p.x, p.m, p.k, x_step),
        ColumnMajor.of_transpose(p.z, p.m, p.n, z_step),
        p.adds,
    )


def _batch_step(matrix: Matrix, batch: Sequence[int]) -> int | None:
    """The one step of a stack of several axes; None if it has several."""
    axes = [(n, step) for n, step in zip(batch, matrix.batch, strict=True) if n > 1]
    if not axes:
        return 0
    (_, last), size = axes[-1], 1
    for n, step in reversed(axes):
        if step != last * size:
            return None
        size *= n
    return last


@dataclass(eq=False)
class LibraryProduct:
    """c = a @ b, or c += that; all column-major.

    Args:
        rounding: to what factors of f32 may be rounded: "tf32" (11 bits), "bf16" (8 bits), or "".
        epilogue: what is done to c, in the header's numbers. A bias, a number for each of c's rows, is the last of `buffers`.
    """

    buffers: tuple[str, ...]  # c, b, a: as a row-major product has them
    itemsize: int
    count: int
    a: ColumnMajor
    b: ColumnMajor
    c: ColumnMajor
    adds: bool
    rounding: str = ""
    epilogue: int = _NO_EPILOGUE
    library = "cublasLt"
    workspace = WORKSPACE
    can_record = True
    _chosen: dict[int, Any] = field(default_factory=dict, repr=False, init=False)

    def rounded_to(self, rounding: str) -> LibraryProduct:
        """The same product, whose factors are rounded if they are f32."""
        return replace(self, rounding=rounding if self.itemsize == F32.itemsize else "")

    def with_epilogue(self, epilogue: int, bias: str | None) -> LibraryProduct:
        """The same product, of which something is made."""
        return replace(self, epilogue=epilogue, buffers=(*self.buffers, *([bias] if bias is not None else [])))

    @property
    def mode(self) -> str:
        """What it does beside a product in full precision: `in TF32, with bias and relu`."""
        extras = [word for bit, word in _WORDS.items() if self.epilogue & bit and self.epilogue != _NO_EPILOGUE]
        words = [{2: "in f16"}.get(self.itemsize, f"in {self.rounding.upper()}" if self.rounding else "")]
        return ", ".join(filter(None, [*words, f"with {' and '.join(extras)}" if extras else ""]))

    def own_bytes(self) -> int:
        return 0

    def is_ready(self) -> bool:
        """Whether the library is there and has an algorithm. The GPU's context has to be the thread's."""
        try:
            return cublaslt() is not None and self._plan(self.itemsize) is not None and self._plan(_WIDE) is not None
        except LibraryError:
            return False

    def __call__(self, stream: int, addresses: Sequence[int]) -> None:
        """
        Raises:
            DeviceFault: the library refuses.
        """
        (z, x, y), workspace = addresses[:3], addresses[-1]
        bias = addresses[3] if len(self.buffers) > 3 else 0
        firsts = [at + m.first * self.itemsize for at, m in ((y, self.a), (x, self.b), (z, self.c))]
        steps = [m.step * self.itemsize for m in (self.a, self.b, self.c)]
        is_wide = all(n % _WIDE == 0 for n in (*firsts, *steps))
        library, plan = cublaslt(), self._plan(_WIDE if is_wide else self.itemsize)
        assert library is not None and plan is not None
        try:
            library.multiply(plan, firsts, workspace, stream, bias)
        except LibraryError as error:
            raise DeviceFault(str(error)) from None

    def _plan(self, alignment: int) -> MatmulPlan | None:
        if alignment not in self._chosen:
            library = cublaslt()
            assert library is not None
            self._chosen[alignment] = library.plan(self, alignment)
        plan: MatmulPlan | None = self._chosen[alignment]
        return plan


@dataclass(frozen=True, slots=True)
class MatmulPlan:
    """Descriptors, which live as long as the process, and an algorithm; `scalars` are alpha and beta."""

    operation: c_void_p
    layouts: tuple[c_void_p, ...]
    algorithm: Algorithm
    scalars: tuple[Any, Any]


class CublasLt(Library):
    """The library. Descriptors can be made with no GPU, a handle cannot."""

    name, create = "cuBLASLt", "cublasLtCreate"

    def operation(self, product: LibraryProduct) -> c_void_p:
        made = c_void_p()
        compute, scale = _COMPUTE_ROUNDED.get(product.rounding, _COMPUTE[product.itemsize]), _SCALE[product.itemsize]
        self._call("cublasLtMatmulDescCreate", byref(made), c_int(compute), c_int(scale))
        self._describe(made, _TRANSPOSED["a"], c_int32(product.a.is_transposed))
        self._describe(made, _TRANSPOSED["b"], c_int32(product.b.is_transposed))
        if product.epilogue != _NO_EPILOGUE:
            self._describe(made, _EPILOGUE, c_int32(product.epilogue))
        return made

    def _describe(self, operation: c_void_p, attribute: int, value: Any) -> None:
        self._call("cublasLtMatmulDescSetAttribute", operation, c_int(attribute), byref(value), c_size_t(sizeof(value)))

    def layout(self, product: LibraryProduct, matrix: ColumnMajor) -> c_void_p:
        made = c_void_p()
        extents = (c_uint64(matrix.rows), c_uint64(matrix.columns), c_int64(matrix.leading))
        self._call("cublasLtMatrixLayoutCreate", byref(made), c_int(_TYPE[product.itemsize]), *extents)
        if product.count > 1:
            for attribute, value in ((_BATCH_COUNT, c_int32(product.count)), (_BATCH_STEP, c_int64(matrix.step))):
                size = c_size_t(sizeof(value))
                self._call("cublasLtMatrixLayoutSetAttribute", made, c_int(attribute), byref(value), size)
        return made

    def preference(self, alignment: int) -> c_void_p:
        made = c_void_p()
        self._call("cublasLtMatmulPreferenceCreate", byref(made))
        wanted: list[tuple[int, Any]] = [(_MOST_WORKSPACE, c_uint64(WORKSPACE))]
        wanted += [(attribute, c_uint32(alignment)) for attribute in _LEAST_ALIGNMENT]
        for attribute, value in wanted:
            size = c_size_t(sizeof(value))
            self._call("cublasLtMatmulPreferenceSetAttribute", made, c_int(attribute), byref(value), size)
        return made

    def plan(self, product: LibraryProduct, alignment: int) -> MatmulPlan | None:
        """How a product is done; None if the library has no algorithm."""
        with self._lock:
            operation = self.operation(product)
            layouts = tuple(self.layout(product, matrix) for matrix in (product.a, product.b, product.c))
            preference, found, count = self.preference(alignment), Heuristic(), c_int()
            matrices = (*layouts, layouts[2])
            result = (c_int(1), byref(found), byref(count))
            self._call("cublasLtMatmulAlgoGetHeuristic", self._handle, operation, *matrices, preference, *result)
            self._call("cublasLtMatmulPreferenceDestroy", preference)
        if not count.value or found.state:
            return None
        scalar = ctypes.c_double if product.itemsize == F64.itemsize else c_float  # as _SCALE says
        return MatmulPlan(operation, layouts, found.algorithm, (scalar(1.0), scalar(float(product.adds))))

    def multiply(self, plan: MatmulPlan, addresses: Sequence[int], workspace: int, stream: int, bias: int = 0) -> None:
        """
        Args:
            addresses: of a, b and c.
            bias: the address of what is added to each column of c; 0 for none.
        """
        alpha, beta = plan.scalars
        a, b, c = plan.layouts
        at_a, at_b, at_c = map(c_void_p, addresses)
        operands = (byref(alpha), at_a, a, at_b, b, byref(beta), at_c, c, at_c, c)
        space = (c_void_p(workspace), c_size_t(WORKSPACE))
        with self._lock:  # the place of a bias is a part of the description
            if bias:
                self._describe(plan.operation, _BIAS, c_void_p(bias))
            self._call("cublasLtMatmul", self._handle, plan.operation, *operands, byref(plan.algorithm), *space, c_void_p(stream))


def find_cublaslt() -> CublasLt | None:
    """The library, if it is installed."""
    return installed("cublasLt", CublasLt)


@cache
def cublaslt() -> CublasLt | None:
    """The library with a handle; None where it is not installed, or there is no GPU."""
    return opened(find_cublaslt())
