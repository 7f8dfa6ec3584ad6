"""Floating-point flags: which floating-point errors have come up?

The processor's sticky flags, in the bits of `ir/analysis/fp_errors.py`.

The text below goes into the native functions that run programs and their threads, and beside programs that look themselves
(`support_functions.py`). Elsewhere than on x86-64 and AArch64 nothing is seen.
"""

from __future__ import annotations

from jitml.codegen.llvm.ir.cpu import Cpu

_X86 = """
declare void @llvm.x86.sse.stmxcsr(ptr)
declare void @llvm.x86.sse.ldmxcsr(ptr)

define internal i64 @read_flags() {
  %place = alloca i32
  call void @llvm.x86.sse.stmxcsr(ptr %place)
  %state = load i32, ptr %place
  %wide = zext i32 %state to i64
  ret i64 %wide
}

define internal void @write_flags(i64 %wide) {
  %place = alloca i32
  %state = trunc i64 %wide to i32
  store i32 %state, ptr %place
  call void @llvm.x86.sse.ldmxcsr(ptr %place)
  ret void
}
"""

_AARCH64 = """
declare i64 @llvm.aarch64.get.fpsr()
declare void @llvm.aarch64.set.fpsr(i64)

define internal i64 @read_flags() {
  %state = call i64 @llvm.aarch64.get.fpsr()
  ret i64 %state
}

define internal void @write_flags(i64 %state) {
  call void @llvm.aarch64.set.fpsr(i64 %state)
  ret void
}
"""

_OTHER = """
define internal i64 @read_flags() {
  ret i64 0
}

define internal void @write_flags(i64 %state) {
  ret void
}
"""

# Where the hardware keeps divide, overflow, underflow and invalid.
_PLACES = {"x86_64": (2, 3, 4, 0), "aarch64": (1, 2, 3, 0)}


def flags_ir(cpu: Cpu, *, linkage: str = "internal") -> str:
    """`i64 @take_flags()`, which clears them, and `void @raise_flags(i64)`; `linkage` is theirs."""
    places = _PLACES.get(cpu.arch)
    if places is None:
        return _OTHER + _take_flags_text((0, 0, 0, 0), linkage)
    return (_X86 if cpu.is_x86 else _AARCH64) + _take_flags_text(places, linkage)


_MODE_X86 = """
define internal i64 @read_mode() {
  %state = call i64 @read_flags()
  %mode = and i64 %state, 65472     ; all but the six sticky flags: rounding, subnormal numbers, what traps
  ret i64 %mode
}

define internal void @take_mode(i64 %mode) {
  %state = call i64 @read_flags()
  %flags = and i64 %state, 63
  %wanted = or i64 %flags, %mode
  %same = icmp eq i64 %wanted, %state
  br i1 %same, label %out, label %change
change:
  call void @write_flags(i64 %wanted)
  br label %out
out:
  ret void
}
"""

_MODE_AARCH64 = """
declare i64 @llvm.aarch64.get.fpcr()
declare void @llvm.aarch64.set.fpcr(i64)

define internal i64 @read_mode() {
  %mode = call i64 @llvm.aarch64.get.fpcr()
  ret i64 %mode
}

define internal void @take_mode(i64 %mode) {
  %now = call i64 @llvm.aarch64.get.fpcr()
  %same = icmp eq i64 %mode, %now
  br i1 %same, label %out, label %change
change:
  call void @llvm.aarch64.set.fpcr(i64 %mode)
  br label %out
out:
  ret void
}
"""

_MODE_OTHER = """
define internal i64 @read_mode() {
  ret i64 0
}

define internal void @take_mode(i64 %mode) {
  ret void
}
"""


def mode_ir(cpu: Cpu) -> str:
    """`i64 @read_mode()` and `void @take_mode(i64)`: how this thread rounds, and treats subnormal numbers; beside `flags_ir`."""
    if cpu.arch not in _PLACES:
        return _MODE_OTHER
    return _MODE_X86 if cpu.is_x86 else _MODE_AARCH64


def _take_flags_text(places: tuple[int, int, int, int], linkage: str) -> str:
    mask = sum({1 << place for place in places})
    gather, scatter = ["  %got0 = add i64 0, 0"], ["  %set0 = add i64 %state, 0"]
    for n, place in enumerate(places):
        gather.append(f"  %down{n} = lshr i64 %state, {place}")
        gather.append(f"  %bit{n} = and i64 %down{n}, 1")
        gather.append(f"  %up{n} = shl i64 %bit{n}, {n}")
        gather.append(f"  %got{n + 1} = or i64 %got{n}, %up{n}")
        scatter.append(f"  %down{n} = lshr i64 %flags, {n}")
        scatter.append(f"  %bit{n} = and i64 %down{n}, 1")
        scatter.append(f"  %up{n} = shl i64 %bit{n}, {place}")
        scatter.append(f"  %set{n + 1} = or i64 %set{n}, %up{n}")
    lines = [
        f"define {linkage} i64 @take_flags() {{",
        "  %state = call i64 @read_flags()",
        f"  %some = and i64 %state, {mask}",
        "  %none = icmp eq i64 %some, 0",
        "  br i1 %none, label %out, label %clear",
        "clear:",  # to write the register costs several times as much as to read it
        f"  %cleared = and i64 %state, {~mask}",
        "  call void @write_flags(i64 %cleared)",
        "  br label %out",
        "out:",
        *gather,
        f"  ret i64 %got{len(places)}",
        "}",
        "",
        f"define {linkage} void @raise_flags(i64 %flags) {{",
        "  %state = call i64 @read_flags()",
        *scatter,
        f"  call void @write_flags(i64 %set{len(places)})",
        "  ret void",
        "}",
    ]
    return "\n".join(lines)
