"""How does a program become one LLVM module?  A function per kernel and library call, and an entry that runs them.

The entry is `i64 @jitml_run(ptr table, ptr arena, ptr error)`. `table` holds the data pointers of inputs, outputs and
constants, in this order; a buffer of the arena lies at its offset. It returns 0, 1 + an index into `Module.checks`,
or -1 where memory for scratch could not be had.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from jitml.codegen.llvm.calls import emit_call
from jitml.codegen.llvm.kernel import Unit, emit_kernel
from jitml.codegen.llvm.nest import identifier
from jitml.codegen.target import Target
from jitml.errors import LoweringError
from jitml.fusion.loops import Check, Kernel
from jitml.fusion.program import Region
from jitml.memory.liveness import sizes_of
from jitml.memory.program import Place, Program

ENTRY = "jitml_run"
# About half of a usual last-level cache: from here on an ordinary store only reads memory that it overwrites
# (measured: x * 2 + z runs 1.5 times faster with streamed stores at 16 MB, and slower at 4 MB).
STREAMED_BYTES = 16 << 20
LONG_BLOCK = 1000  # instructions
FLAGS = ("nnan", "ninf", "nsz", "arcp", "contract", "afn", "reassoc")


@dataclass(frozen=True, slots=True)
class Module:
    """LLVM IR of a whole program.

    Args:
        text: the IR.
        checks: what the entry's non-zero results stand for.
        externals: functions that the runtime must supply.
        level: LLVM's effort in code generation that pays for this program, 0 to 3.
    """

    text: str
    checks: tuple[Check, ...]
    externals: tuple[str, ...]
    level: int = 2


def emit_program(program: Program, *, cpu: Target, fastmath: frozenset[str] = frozenset()) -> Module:
    """Write a program as LLVM IR.

    Args:
        cpu: the processor to write for; nothing of the running one is used.
        fastmath: LLVM's flags for floating-point arithmetic, of `FLAGS`; none for IEEE results.

    Raises:
        ValueError: a flag that LLVM does not know.
    """
    if unknown := fastmath - set(FLAGS):
        raise ValueError(f"fastmath: {', '.join(sorted(unknown))} is not one of {', '.join(FLAGS)}")
    unit = Unit(cpu, " ".join(flag for flag in FLAGS if flag in fastmath))
    # Elsewhere the hint would not be enough: LLVM writes such stores element by element.
    streamed = streamed_buffers(program) if cpu.is_x86 else frozenset()
    calls = []
    for number, step in enumerate(program.kernels.steps):
        symbol = f"{identifier(step.name)}.{number}"
        if isinstance(step, Kernel):
            groups = storage_groups(program, [b.name for b in step.params])
            emit_kernel(unit, step, symbol, groups, streamed)
            calls.append((symbol, [b.name for b in step.params]))
        elif isinstance(step, Region):
            raise LoweringError(f"the LLVM emitter cannot write {step.name}: regions run by the interpreter only")
        else:
            touched = (*step.reads, *step.writes)
            groups = storage_groups(program, dict.fromkeys((*touched, *sizes_of(touched, program.kernels))))
            calls.append((symbol, emit_call(unit, step, symbol, program.kernels, groups)))
    unit.functions.append(_entry(program, calls))
    text = "\n\n".join(
        [f'target triple = "{cpu.triple}"', *unit.functions, f"attributes #0 = {{ {attributes(cpu)} }}", unit.declarations.text]
    )
    return Module(text + "\n", tuple(unit.checks), unit.declarations.symbols, _level(unit.functions))


def _level(functions: Iterable[str]) -> int:
    """Little for very long straight code: scheduling and allocating it takes most of the time, and gains nothing there.

    Loops with accumulators or short bodies run up to 4 times as long without (bench/results/code_generation.md).
    """
    longest = 0
    for text in functions:
        block = 0
        for line in text.splitlines():
            block = block + 1 if line.startswith("  ") else 0
            longest = max(longest, block)
    return 0 if longest >= LONG_BLOCK else 2


def attributes(cpu: Target) -> str:
    """The attribute group of every function."""
    parts = ["nounwind", f'"target-cpu"="{cpu.cpu}"', f'"prefer-vector-width"="{8 * cpu.vector_bytes}"']
    if cpu.features:
        parts.append(f'"target-features"="{cpu.features}"')
    return " ".join(parts)


def streamed_buffers(program: Program) -> frozenset[str]:
    """Buffers to store past the caches: new outputs that are too large for them and read by no step."""
    read = {name for step in program.kernels.steps for name in step.reads}
    own = [name for name in program.kernels.outputs if program.places[name].space == "output"]
    return frozenset(n for n in own if program.kernels.buffers[n].nbytes >= STREAMED_BYTES and n not in read)


def storage_groups(program: Program, names: Iterable[str]) -> dict[str, str]:
    """Of each buffer, the first one that it shares bytes with: itself, or the one that it updates in place."""
    groups: dict[str, str] = {}
    seen: list[tuple[Place, int, str]] = []
    for name in names:
        place, size = program.places[name], program.kernels.buffers[name].nbytes
        group = next((owner for other, length, owner in seen if _overlap(place, size, other, length)), name)
        groups[name] = group
        seen.append((place, size, group))
    return groups


def _overlap(a: Place, size: int, b: Place, length: int) -> bool:
    if a.space != b.space or a.space != "arena":
        return (a.space, a.index) == (b.space, b.index)
    return a.offset < b.offset + length and b.offset < a.offset + size


def _entry(program: Program, calls: list[tuple[str, list[str]]]) -> str:
    """Fetch every pointer, run the steps, leave after the first that reports a failed check."""
    lines = [f"define i64 @{ENTRY}(ptr %table, ptr %arena, ptr %error) #0 {{", "entry:"]
    pointers: dict[str, str] = {}
    for name in dict.fromkeys(name for _, names in calls for name in names):
        pointers[name] = f"%{identifier(name)}.p"
        lines += _fetch(pointers[name], program.places[name], _table_starts(program))
    for number, (symbol, names) in enumerate(calls):
        args = ", ".join(["ptr %error", *(f"ptr {pointers[name]}" for name in names)])
        lines.append(f"  %code{number} = call i64 @{symbol}({args})")
        lines.append(f"  %failed{number} = icmp ne i64 %code{number}, 0")
        lines.append(f"  br i1 %failed{number}, label %fail{number}, label %step{number}")
        lines += [f"fail{number}:", f"  ret i64 %code{number}", f"step{number}:"]
    return "\n".join([*lines, "  ret i64 0", "}"])


def _table_starts(program: Program) -> Mapping[str, int]:
    inputs, outputs = len(program.kernels.inputs), len(program.kernels.outputs)
    return {"input": 0, "output": inputs, "constant": inputs + outputs}


def _fetch(pointer: str, place: Place, starts: Mapping[str, int]) -> list[str]:
    if place.space == "arena":
        return [f"  {pointer} = getelementptr i8, ptr %arena, i64 {place.offset}"]
    slot = starts[place.space] + place.index
    return [f"  {pointer}.slot = getelementptr ptr, ptr %table, i64 {slot}", f"  {pointer} = load ptr, ptr {pointer}.slot"]
