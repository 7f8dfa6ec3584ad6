"""Products of half precision: where does a product in f32 stand for one of f16?

NumPy multiplies f16 in f32, and so do programs: kernels widen the factors and narrow the result. TF32 holds every f16, so that
tensor cores may do such a product without a loss of digits in the factors. What their sums lose is far below the last digit of
f16.
"""

from __future__ import annotations

from collections.abc import Iterator

from jitml.ir.types import F16, F32
from jitml.kernels.ir import Apply, Expr, Kernel, Let, Load, Store, Var, walk, walk_expressions
from jitml.kernels.program import Call, KernelProgram


def is_half_product(call: Call, program: KernelProgram) -> bool:
    """Whether all that a `gemm` reads has been f16, and all that it gives becomes f16."""
    (result,) = call.writes
    if program.buffers[result].dtype != F32:
        return False
    return all(_was_half(name, program) for name in call.reads[:2]) and _becomes_half(result, call, program)


def _was_half(name: str, program: KernelProgram) -> bool:
    """Whether one kernel has written all of it, by widening."""
    writers = [step for step in program.steps if name in step.writes]
    if len(writers) != 1 or not isinstance(writers[0], Kernel) or name in writers[0].updates:
        return False
    kernel = writers[0]
    named = {s.name: s.value for s in walk(kernel.body) if isinstance(s, Let)}
    stores = [s for s in walk(kernel.body) if isinstance(s, Store) and s.buffer == name]
    written = [s for s in stores if s.combine is None and _is_conversion(_meant(s.value, named), named)]
    return bool(stores) and len(written) == len(stores)


def _meant(expr: Expr, named: dict[str, Expr]) -> Expr:
    """What a name stands for."""
    while isinstance(expr, Var) and expr.name in named:
        expr = named[expr.name]
    return expr


def _is_conversion(expr: Expr, named: dict[str, Expr]) -> bool:
    """Whether it is an f16, as f32."""
    if not (isinstance(expr, Apply) and expr.fn == "convert" and expr.dtype == F32):
        return False
    given = _meant(expr.args[0], named)
    return isinstance(given, Load | Apply) and given.dtype == F16


def _becomes_half(name: str, call: Call, program: KernelProgram) -> bool:
    """Whether nothing but narrowing reads it."""
    if name in program.outputs:
        return False
    for step in program.steps:
        if step is call or name not in step.reads:
            continue
        if not isinstance(step, Kernel) or name in step.updates.values():
            return False
        found = [*walk_expressions(step.body)]
        loads = [e for e in found if isinstance(e, Load) and e.buffer == name]
        if len(loads) != len([*_narrowed(found, name)]):
            return False
    return True


def _narrowed(found: list[Expr], name: str) -> Iterator[Expr]:
    for expr in found:
        if isinstance(expr, Apply) and expr.fn == "convert" and expr.dtype == F16:
            (given,) = expr.args
            if isinstance(given, Load) and given.buffer == name:
                yield expr
