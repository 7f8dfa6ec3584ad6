"""Support functions: what do programs call that is the same for all of them?

A few functions, compiled once in a process and linked beside each.

A function takes LLVM some 0.4 ms however short it is: as much as a program's own where that is small.
"""

from __future__ import annotations

from jitml.codegen.llvm.ir.buffer_exchange import EXCHANGE
from jitml.codegen.llvm.ir.cpu import Cpu
from jitml.codegen.llvm.ir.declarations import Declarations
from jitml.codegen.llvm.ir.flags import flags_ir

SUPPORT = {
    "take_flags": "hidden i64 @take_flags()",
    "raise_flags": "hidden void @raise_flags(i64)",
    "exchange": "hidden void @exchange(ptr, ptr, i64)",
}


def need(declarations: Declarations, *names: str) -> None:
    """Declare functions of `SUPPORT`."""
    for name in names:
        declarations.declare(SUPPORT[name])


def support_ir(cpu: Cpu) -> str:
    """A module of all of them."""
    return "\n".join([f'target triple = "{cpu.triple}"', flags_ir(cpu, linkage="hidden"), EXCHANGE, ""])
