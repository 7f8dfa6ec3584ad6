"""Library calls: how are library calls written?

Products go to BLAS (`blas.py`), or to a nest of our own where a call is not worth it.

Sorts (`sorting.py`) and random numbers (`random.py`) go to functions that the runtime supplies, host calls to Python (`host.py`).
Copies, products that are too small for a call, outer products and empty sums are ordinary kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from jitml.codegen.llvm.calls.blas import emit_blas
from jitml.codegen.llvm.calls.host import emit_host
from jitml.codegen.llvm.calls.random import emit_random
from jitml.codegen.llvm.calls.sorting import emit_sort
from jitml.codegen.llvm.calls.syrk import emit_gram, is_gram
from jitml.codegen.llvm.ir.translation_unit import Unit
from jitml.codegen.llvm.loops.kernel import emit_kernel
from jitml.codegen.llvm.schedule.calls import scheduled_fill, scheduled_product
from jitml.codegen.product import Product
from jitml.errors import UnsupportedError
from jitml.fusion.lower.nests import nested
from jitml.kernels.ir import Buffer, Const, Expr, Kernel, Load, Stmt, Store, Var
from jitml.kernels.program import Call, KernelProgram, seen_as
from jitml.kernels.sizes import with_sizes
from jitml.memory.aliasing import BufferStorage


def emit_call(
    unit: Unit, call: Call, symbol: str, program: KernelProgram, places: Mapping[str, BufferStorage]
) -> tuple[str, list[str]]:
    """Append the function of a library call, `i64 @symbol(ptr error, ptr buffer...)`.

    Returns:
        its name, and its buffers' in order.
    """
    buffers = program.buffers
    match call.name:
        case "copy":
            kernel = scheduled_fill(copy_kernel(call, program), buffers[call.writes[0]])
        case "zeros":
            kernel = scheduled_fill(zeros_kernel(call, program), buffers[call.writes[0]])
        case "gemm":
            product = Product.of(call, buffers)
            if product.wants_blas:
                if is_gram(product):
                    emit_gram(unit, product, symbol)
                else:
                    emit_blas(unit, product, symbol)
                names = [product.x.buffer.name, product.y.buffer.name, product.z.buffer.name]
                return symbol, names if product.values is None else [*names, product.values]
            kernel = scheduled_product(product.kernel(buffers))
        case "sort" | "argsort":
            return symbol, emit_sort(unit, call, symbol, buffers, places)
        case "random":
            return symbol, emit_random(unit, call, symbol)
        case "host":
            return symbol, emit_host(unit, call, symbol, buffers)
        case _:
            raise UnsupportedError(f"no library function is named {call.name}")
    return emit_kernel(unit, kernel, symbol, places), [b.name for b in kernel.params]


def copy_kernel(call: Call, program: KernelProgram) -> Kernel:
    """writes[0] = reads[0]."""
    target = program.buffers[call.writes[0]]
    source = seen_as(program.buffers[call.reads[0]], target.shape)
    known = program.extents.get(call.reads[0]) if source is program.buffers[call.reads[0]] else None
    extents = known or program.extents.get(target.name, tuple(map(Const, target.shape)))
    body = _nest(target, extents, lambda at: Load(source.name, at, source.dtype))
    body, params = with_sizes(body, (source, target), program.sizes)
    return Kernel("copy", params, body, sources=call.sources)


def zeros_kernel(call: Call, program: KernelProgram) -> Kernel:
    """writes[0] = 0, for memory that is not the program's own."""
    target = program.buffers[call.writes[0]]
    body = _nest(target, tuple(map(Const, target.shape)), lambda at: Const(0, target.dtype))
    return Kernel("zeros", (target,), body, sources=call.sources)


def _nest(target: Buffer, extents: Sequence[Expr], value: Callable[[tuple[Expr, ...]], Expr]) -> tuple[Stmt, ...]:
    """A nest that fills a buffer, in the order of its memory, with what `value` gives for an index."""
    order = sorted(range(len(target.shape)), key=lambda axis: -abs(target.element_strides[axis]))
    at = tuple(Var(f"i{axis}") for axis in range(len(target.shape)))
    return nested({at[axis].name: extents[axis] for axis in order}, (Store(target.name, at, value(at)),))
