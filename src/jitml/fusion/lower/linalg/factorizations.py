"""Factorizations: loops for small matrices, else NumPy's own routines. (Of complex numbers: `fusion/complex/host.py`.)"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from jitml.fusion.lower.host import call_python
from jitml.fusion.lower.nests import NestSite, nests
from jitml.fusion.lower.points import Index
from jitml.fusion.lower.scalars import Scalar
from jitml.imports.late import late
from jitml.ir import ops
from jitml.ir.graph import Node, Value
from jitml.ir.op import OPS, Op
from jitml.ir.ops.host import HostFunction, function_of
from jitml.ir.types import I64
from jitml.kernels.ir import Const, Store
from jitml.kernels.target import Target

if TYPE_CHECKING:
    from jitml.fusion.lower import statement_writer
    from jitml.fusion.lower.linalg import small_matrices
    from jitml.fusion.lower.linalg.small_matrices import SmallMatrix
    from jitml.fusion.lower.statement_writer import StatementWriter
else:
    small_matrices = late("jitml.fusion.lower.linalg.small_matrices")
    statement_writer = late("jitml.fusion.lower.statement_writer")

Array = np.ndarray[Any, Any]
Read: TypeAlias = Callable[[int, Index], Scalar]  # an operand's element
Write: TypeAlias = Callable[[int, Index, Scalar], None]  # a result's

MOST_COLUMNS = 16  # of right sides: of more, the library makes good use
OPERATION_NS = 1.0


@nests.rule(*(op for op in OPS.values() if op.family == "linalg"))
def lower_linalg(site: NestSite) -> None:
    if is_small(site.node, site.target):
        _lower_small(site)
        return
    function = function_of(site.node)
    if site.node.inputs[0].aval.is_static:
        call_python(site, function)
        return
    count = site.new_buffer(I64, ())
    site.emit((Store(count.name, (), site.extent(0, 0)),), count)
    call_python(site, _of_the_first(function), count)


def _of_the_first(function: HostFunction) -> HostFunction:
    """A function of as many matrices as its last argument says: there is memory for more."""

    def call(*arrays: Array, out: tuple[Array, ...]) -> tuple[Array, ...]:
        *stacks, count = arrays
        for whole, result in zip(out, function.call(*(x[:count] for x in stacks)), strict=True):
            whole[:count] = result
        return out

    return HostFunction(function.name, call, function.results, fills=True)


# --------------------------------------------------------------------------------------------------- small matrices


def is_small(node: Node, target: Target) -> bool:
    """Whether loops are faster than a call. On processors with blocks of threads, a call gives each matrix a block."""
    if node.op not in SMALL or "block" in target.kinds or not all(v.aval.is_static for v in node.inputs):
        return False
    sizes = [n for v in node.inputs for n in v.aval.bounds[-2:]]
    return 0 < sizes[0] <= small_matrices.LARGEST and 0 < sizes[-1] <= MOST_COLUMNS


def write_small(w: StatementWriter, node: Node, at: Index, read: Read, write: Write) -> None:
    """The statements for one matrix of a stack.

    Args:
        at: its place in the stack.
    """
    a, *others = node.inputs
    matrix = small_matrices.SmallMatrix(w, a.aval.bounds[-1], a.dtype, lambda i, j: read(0, (*at, i, j)), node.source)
    SMALL[node.op](matrix, others, at, read, write)


def _solve(matrix: SmallMatrix, others: Sequence[Value], at: Index, read: Read, write: Write) -> None:
    (b,) = others
    columns = b.aval.bounds[-1]
    matrix.solve(lambda i, c: read(1, (*at, i, c)), columns, lambda i, c, value: write(0, (*at, i, c), value))


def _cholesky(matrix: SmallMatrix, others: Sequence[Value], at: Index, read: Read, write: Write) -> None:
    matrix.cholesky(lambda i, j, value: write(0, (*at, i, j), value))


def _det(matrix: SmallMatrix, others: Sequence[Value], at: Index, read: Read, write: Write) -> None:
    write(0, at, matrix.det())


def _slogdet(matrix: SmallMatrix, others: Sequence[Value], at: Index, read: Read, write: Write) -> None:
    for k, value in enumerate(matrix.slogdet()):
        write(k, at, value)


SMALL: Mapping[Op, Callable[[SmallMatrix, Sequence[Value], Index, Read, Write], None]] = {
    ops.solve: _solve,
    ops.solve_again: _solve,
    ops.cholesky: _cholesky,
    ops.det: _det,
    ops.slogdet: _slogdet,
}


def _lower_small(site: NestSite) -> None:
    w = statement_writer.StatementWriter(b.name for b in (*site.reads, *site.writes))

    def read(operand: int, index: Index) -> Scalar:
        buffer = site.reads[operand]
        return w.b.load(buffer.name, index, buffer.dtype)

    def write(result: int, index: Index, value: Scalar) -> None:
        w.store(site.writes[result].name, index, w.expr(value))

    stack = site.node.inputs[0].aval.bounds[:-2]
    with ExitStack() as loops:
        at = tuple(loops.enter_context(w.loop(Const(n))) for n in stack)
        write_small(w, site.node, at, read, write)
    n = site.reads[0].shape[-1]
    ns = OPERATION_NS * sum(n * b.size for b in site.reads)
    site.emit(w.finish(), *site.reads, *site.writes, ns=ns, optimize=True)
