"""Result shapes: how large are results whose shape follows from the inputs?

A function that says so before their memory is taken.

`void @jitml_shapes(ptr table, ptr shapes)` finds the inputs' addresses in `table`, as the entry does, and writes the shapes of
the program's `exact` outputs one after the other.
"""

from __future__ import annotations

from jitml.codegen.llvm.ir.conventions import SHAPES
from jitml.codegen.llvm.ir.translation_unit import Unit
from jitml.codegen.llvm.loops.kernel import emit_kernel
from jitml.ir.types import I64
from jitml.kernels.ir import Buffer, Const, Kernel, Stmt, Store
from jitml.kernels.program import KernelProgram
from jitml.kernels.sizes import with_sizes
from jitml.memory.aliasing import BufferStorage


def write_shapes(unit: Unit, program: KernelProgram) -> None:
    """Append the function."""
    extents = [e for shape in program.exact.values() for e in shape]
    out = Buffer("shapes", I64, (len(extents),))
    stores: tuple[Stmt, ...] = tuple(Store(out.name, (Const(k),), e) for k, e in enumerate(extents))
    body, params = with_sizes(stores, (out,), program.sizes)
    symbol = emit_kernel(
        unit, Kernel("shapes", params, body), f"{SHAPES}.kernel", {b.name: BufferStorage(b.name) for b in params}
    )
    lines, pointers, table = [], ["ptr null", "ptr %shapes"], program.table()
    for number, buffer in enumerate(params[1:]):
        lines.append(f"  %slot{number} = getelementptr ptr, ptr %table, i64 {table[buffer.name][0]}")
        lines.append(f"  %size{number} = load ptr, ptr %slot{number}")
        pointers.append(f"ptr %size{number}")
    call = f"  %code = call i64 @{symbol}({', '.join(pointers)})"
    unit.add(f"void @{SHAPES}(ptr %table, ptr %shapes)", "\n".join(["entry:", *lines, call, "  ret void"]))
