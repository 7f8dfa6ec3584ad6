"""Host calls: how does compiled code call Python?

Through `i64 @jitml_host(ptr calls, i64 number, ptr buffers)`, which the runtime supplies.

`@jitml_host_calls` is the program's own object to be called, and `number` the call's position in `Module.hosts`; the buffers are
those it reads, then those it writes. The result is 0 if all went well; else the thread has an exception, and the program ends.

Floating-point errors of before are kept over the call: NumPy clears them, and those that Python leaves are its own. So is the
thread's arena (`void @jitml_arena_put_aside(ptr kept)`): whatever runs as soon as Python does, a signal's handler or a finalizer
too, may call another program.
"""

from __future__ import annotations

from collections.abc import Mapping

from jitml.codegen.llvm.ir.conventions import ASIDE, CALLS, RAISED, HostStep
from jitml.codegen.llvm.ir.support_functions import need
from jitml.codegen.llvm.ir.translation_unit import Unit
from jitml.ir.ops.host import HostFunction
from jitml.kernels.ir import Buffer
from jitml.kernels.program import Call, seen_as


def emit_host(unit: Unit, call: Call, symbol: str, buffers: Mapping[str, Buffer]) -> list[str]:
    """Append `i64 @symbol(ptr error, ptr buffer...)`; returns the buffers' names in order."""
    function: HostFunction = call.params["function"]
    reads = [seen_as(buffers[name], shape) for name, shape in zip(call.reads, call.params["shapes"], strict=True)]
    writes = [buffers[name] for name in call.writes]
    number = len(unit.hosts)
    need(unit.declarations, "take_flags", "raise_flags")
    unit.hosts.append(HostStep(function, tuple(reads), tuple(writes), call.sources[0] if call.sources else None))
    unit.declarations.declare("i64 @jitml_host(ptr, i64, ptr)")
    unit.declarations.declare_object(CALLS)
    for name in ASIDE:
        unit.declarations.declare(f"void @{name}(ptr)")
    count = len(reads) + len(writes)
    parameters = "".join(f", ptr %b{n}" for n in range(count))
    lines = ["entry:", f"  %buffers = alloca [{count} x ptr]", "  %kept = alloca { ptr, i64 }"]
    for n in range(count):
        lines.append(f"  %slot{n} = getelementptr ptr, ptr %buffers, i64 {n}")
        lines.append(f"  store ptr %b{n}, ptr %slot{n}")
    lines.append("  %flags = call i64 @take_flags()")
    lines.append(f"  call void @{ASIDE[0]}(ptr %kept)")
    lines.append(f"  %code = call i64 @jitml_host(ptr @{CALLS}, i64 {number}, ptr %buffers)")
    lines.append(f"  call void @{ASIDE[1]}(ptr %kept)")
    lines.append("  call i64 @take_flags()")
    lines.append("  call void @raise_flags(i64 %flags)")
    lines.append("  %failed = icmp ne i64 %code, 0")
    lines.append(f"  %status = select i1 %failed, i64 {RAISED}, i64 0")
    unit.add(f"i64 @{symbol}(ptr %error{parameters})", "\n".join([*lines, "  ret i64 %status"]))
    return [*call.reads, *call.writes]
