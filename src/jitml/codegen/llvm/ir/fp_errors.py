"""Floating-point exceptions of special cases.

How does a function whose special values are put in by select raise floating-point errors?  By an operation that does.

One branch that is almost never taken guards it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jitml.codegen.llvm.ir.operand import Operand
from jitml.ir.types import F64

if TYPE_CHECKING:
    from jitml.codegen.llvm.ir.builder import Builder

# What each error comes from: an operation on two numbers.
ERRORS = {
    "divide": ("fdiv", 1.0, 0.0),
    "overflow": ("fmul", 1e300, 1e300),
    "underflow": ("fmul", 1e-300, 1e-300),
    "invalid": ("fdiv", 0.0, 0.0),
}


def raise_errors(b: Builder, **masks: Operand) -> None:
    """Raise the errors named (`divide=`, `overflow=`, ...) if any lane of their mask is set."""
    weights = b.module.metadata('!{!"branch_weights", i32 1, i32 100000}')
    for error, mask in masks.items():
        cold, done = b.fresh("error"), b.fresh("common")
        b.emit(f"br i1 {b.any(mask).names[0]}, label %{cold}, label %{done}, !prof {weights}")
        b.start_block(cold)
        operation, x, y = ERRORS[error]
        with b.strict():
            getattr(b, operation)(b.const(x, F64), y)
        b.emit(f"br label %{done}")
        b.start_block(done)
