"""Random draws: how are random numbers drawn?  By functions that the runtime supplies, a number or an array at a time.

`double @jitml_uniform_f64(i64 generator)`, `i64 @jitml_integers_i64(i64 generator, i64 low, i64 high)` and so on give one number,
`void @jitml_uniform_f64_fill(i64 generator, ..., i64 count, ptr numbers)` as many as are wanted, one after the other.
"""

from __future__ import annotations

from jitml.codegen.llvm.ir.translation_unit import Unit
from jitml.kernels.program import Call


def emit_random(unit: Unit, call: Call, symbol: str) -> list[str]:
    """Append `i64 @symbol(ptr error, ptr buffer...)`; returns the buffers' names in order."""
    names = [*call.reads, *call.writes]
    passed = [f"i64 %v{n}" for n in range(len(call.reads))]
    if (count := call.params["count"]) is not None:
        passed.append(f"i64 {count}")
    unit.declarations.declare(f"void @{call.params['routine']}_fill({', '.join(['i64'] * len(passed))}, ptr)")
    parameters = "".join(f", ptr %b{n}" for n in range(len(names)))
    lines = ["entry:", *(f"  %v{n} = load i64, ptr %b{n}" for n in range(len(call.reads)))]
    lines.append(f"  call void @{call.params['routine']}_fill({', '.join(passed)}, ptr %b{len(names) - 1})")
    lines.append(f"  store i64 %v0, ptr %b{len(names) - 2}")
    unit.add(f"i64 @{symbol}(ptr %error{parameters})", "\n".join([*lines, "  ret i64 0"]))
    return names
