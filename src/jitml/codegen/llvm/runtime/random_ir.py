"""The native code that draws random numbers, as text: templates by kind of routine, and PCG64 four steps at a time."""

from __future__ import annotations

NUMBER = """
define {kind} @{name}(i64 %generator) {{
  %place = add i64 %generator, {bitgen}
  %bitgen = inttoptr i64 %place to ptr
  %x = tail call {kind} @{function}(ptr %bitgen)
  ret {kind} %x
}}

define void @{name}_fill(i64 %generator, i64 %n, ptr %numbers) {{
  %place = add i64 %generator, {bitgen}
  %bitgen = inttoptr i64 %place to ptr
  tail call void @{fill}(ptr %bitgen, i64 %n, ptr %numbers)
  ret void
}}
"""

# A uniform double is one call of the bit generator's own `next_double`; many of PCG64's are had four at a time.
DOUBLE = """
define double @{name}(i64 %generator) {{
  %place = add i64 %generator, {bitgen}
  %bitgen = inttoptr i64 %place to ptr
  %state = load ptr, ptr %bitgen
  %slot = getelementptr ptr, ptr %bitgen, i64 3
  %next = load ptr, ptr %slot
  %x = tail call double %next(ptr %state)
  ret double %x
}}

define void @{name}_fill(i64 %generator, i64 %n, ptr %numbers) {{
  %place = add i64 %generator, {bitgen}
  %bitgen = inttoptr i64 %place to ptr
  %slot = getelementptr ptr, ptr %bitgen, i64 1
  %next = load ptr, ptr %slot
  %address = ptrtoint ptr %next to i64
  %is.known = icmp eq i64 %address, {pcg64}
  %many = icmp sge i64 %n, 8
  %own = and i1 %is.known, %many
  br i1 %own, label %fast, label %plain
fast:
  %state = load ptr, ptr %bitgen
  tail call void @pcg64_fill(ptr %state, i64 %n, ptr %numbers)
  ret void
plain:
  tail call void @{fill}(ptr %bitgen, i64 %n, ptr %numbers)
  ret void
}}
"""

# NumPy takes the least number and how far above it the largest lies, in the type of the numbers.
INTEGERS = """
define {kind} @{name}(i64 %generator, i64 %low, i64 %high) {{
  %number = alloca {kind}
  call void @{name}_fill(i64 %generator, i64 %low, i64 %high, i64 1, ptr %number)
  %x = load {kind}, ptr %number
  ret {kind} %x
}}

define void @{name}_fill(i64 %generator, i64 %low, i64 %high, i64 %n, ptr %numbers) {{
  %place = add i64 %generator, {bitgen}
  %bitgen = inttoptr i64 %place to ptr
  %span = sub i64 %high, %low
  {narrow}
  call void @{function}(ptr %bitgen, {kind} {extend} %o, {kind} {extend} %s, i64 %n, i1 zeroext {masked}, ptr %numbers)
  ret void
}}
"""

# NumPy's polar method (Marsaglia and Bray 1964) as RandomState has it: of two numbers, one is kept for the next call.
LEGACY_NORMAL = """
declare double @log(double)
declare double @llvm.sqrt.f64(double)

define double @{name}(i64 %generator) {{
entry:
  %place = add i64 %generator, {bitgen}
  %bitgen = inttoptr i64 %place to ptr
  %kept.place = add i64 %generator, {kept}
  %has = inttoptr i64 %kept.place to ptr
  %kept = getelementptr double, ptr %has, i64 1
  %old = load i32, ptr %has
  %is.kept = icmp ne i32 %old, 0
  br i1 %is.kept, label %second, label %draw
second:
  %y = load double, ptr %kept
  store i32 0, ptr %has
  store double 0.0, ptr %kept
  ret double %y
draw:
  %state = load ptr, ptr %bitgen
  %slot = getelementptr ptr, ptr %bitgen, i64 3
  %next = load ptr, ptr %slot
  %u1 = call double %next(ptr %state)
  %u2 = call double %next(ptr %state)
  %d1 = fmul double %u1, 2.0
  %d2 = fmul double %u2, 2.0
  %x1 = fsub double %d1, 1.0
  %x2 = fsub double %d2, 1.0
  %s1 = fmul double %x1, %x1
  %s2 = fmul double %x2, %x2
  %r2 = fadd double %s1, %s2
  %far = fcmp oge double %r2, 1.0
  %zero = fcmp oeq double %r2, 0.0
  %again = or i1 %far, %zero
  br i1 %again, label %draw, label %first
first:
  %log = call double @log(double %r2)
  %twice = fmul double %log, -2.0
  %ratio = fdiv double %twice, %r2
  %f = call double @llvm.sqrt.f64(double %ratio)
  %later = fmul double %f, %x1
  store double %later, ptr %kept
  store i32 1, ptr %has
  %now = fmul double %f, %x2
  ret double %now
}}

define void @{name}_fill(i64 %generator, i64 %n, ptr %numbers) {{
entry:
  %some = icmp sgt i64 %n, 0
  br i1 %some, label %loop, label %done
loop:
  %k = phi i64 [ 0, %entry ], [ %next, %loop ]
  %x = call double @{name}(i64 %generator)
  %place = getelementptr double, ptr %numbers, i64 %k
  store double %x, ptr %place
  %next = add i64 %k, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}}
"""

_MULTIPLIER = 0x2360ED051FC65DA44385DF649FCCF645


def pcg64_ir() -> str:
    """`void @pcg64_fill(ptr state, i64 n, ptr numbers)` for n >= 4: uniform doubles of PCG64 (O'Neill 2014), in NumPy's order.

    The state is a 128-bit number, and the next one s * a + c. A multiplication waits for the one before; that of the state four
    steps further, s * a**4 + c * (a**3 + a**2 + a + 1), waits for none of the three between.
    """
    a, whole = _MULTIPLIER, 1 << 128
    lines = [
        "declare i64 @llvm.fshr.i64(i64, i64, i64)",
        "define internal void @pcg64_fill(ptr %state, i64 %n, ptr %numbers) {",
        "entry:",
        "  %place = load ptr, ptr %state",
        "  %start = load i128, ptr %place, align 8",
        "  %slot = getelementptr i128, ptr %place, i64 1",
        "  %c = load i128, ptr %slot, align 8",
        f"  %c4 = mul i128 %c, {(a**3 + a**2 + a + 1) % whole}",
    ]
    for k in range(4):
        lines += [f"  %m{k} = mul i128 {f'%f{k - 1}' if k else '%start'}, {a}", f"  %f{k} = add i128 %m{k}, %c"]
    lines += ["  %groups = and i64 %n, -4", "  br label %loop", "loop:", "  %i = phi i64 [ 0, %entry ], [ %next, %loop ]"]
    lines += [f"  %s{k} = phi i128 [ %f{k}, %entry ], [ %t{k}, %loop ]" for k in range(4)]
    for k in range(4):
        lines += [
            *_double(f"%s{k}", f"{k}"),
            f"  %at{k} = add i64 %i, {k}",
            f"  %p{k} = getelementptr double, ptr %numbers, i64 %at{k}",
            f"  store double %x{k}, ptr %p{k}",
            f"  %w{k} = mul i128 %s{k}, {pow(a, 4, whole)}",
            f"  %t{k} = add i128 %w{k}, %c4",
        ]
    lines += [
        "  %next = add i64 %i, 4",
        "  %more = icmp slt i64 %next, %groups",
        "  br i1 %more, label %loop, label %last",
        "last:",
        "  %j = phi i64 [ %groups, %loop ], [ %j.next, %single ]",
        "  %s = phi i128 [ %s3, %loop ], [ %t, %single ]",
        "  %left = icmp slt i64 %j, %n",
        "  br i1 %left, label %single, label %done",
        "single:",
        f"  %w = mul i128 %s, {a}",
        "  %t = add i128 %w, %c",
        *_double("%t", ""),
        "  %p = getelementptr double, ptr %numbers, i64 %j",
        "  store double %x, ptr %p",
        "  %j.next = add i64 %j, 1",
        "  br label %last",
        "done:",
        "  store i128 %s, ptr %place, align 8",
        "  ret void",
        "}",
    ]
    return "\n".join(lines)


def _double(state: str, name: str) -> list[str]:
    """`%x`, with that behind its name: a uniform double of a state, whose halves are mixed and turned by its highest bits."""
    return [
        f"  %low{name} = trunc i128 {state} to i64",
        f"  %shifted{name} = lshr i128 {state}, 64",
        f"  %high{name} = trunc i128 %shifted{name} to i64",
        f"  %mixed{name} = xor i64 %high{name}, %low{name}",
        f"  %turn{name} = lshr i64 %high{name}, 58",
        f"  %turned{name} = call i64 @llvm.fshr.i64(i64 %mixed{name}, i64 %mixed{name}, i64 %turn{name})",
        f"  %bits{name} = lshr i64 %turned{name}, 11",
        f"  %whole{name} = sitofp i64 %bits{name} to double",
        f"  %x{name} = fmul double %whole{name}, 0x3CA0000000000000",
    ]
