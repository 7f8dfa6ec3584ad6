"""C library calls: where is the C library called?

Lane by lane, for functions without a rule of their own, and for rare lanes of others.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from jitml.codegen.llvm.ir.operand import Operand, llvm_type
from jitml.ir.types import BOOL, F32, DType

if TYPE_CHECKING:
    from jitml.codegen.llvm.ir.builder import Builder


# But for floating-point errors, which LLVM must not lose: it knows functions of these names, and what they give.
_PURE = "nounwind willreturn nobuiltin memory(inaccessiblemem: readwrite)"


def _symbol(b: Builder, function: str, dtype: DType, arity: int) -> str:
    symbol = f"@{function}{'f' if dtype == F32 else ''}"
    scalar = llvm_type(dtype)
    b.module.declare(f"{scalar} {symbol}({', '.join([scalar] * arity)}) {_PURE}")
    return symbol


def call(b: Builder, function: str, xs: list[Operand]) -> Operand:
    """`function` of float32 or float64 operands of equal lanes."""
    lanes, dtype = xs[0].lanes, xs[0].dtype
    symbol, scalar = _symbol(b, function, dtype, len(xs)), llvm_type(dtype)
    if lanes == 1:
        names = ", ".join(f"{scalar} {{{k}}}" for k in range(len(xs)))
        return b.each(xs, dtype, f"call {scalar} {symbol}({names})")
    results = []
    for k in range(max(len(x.names) for x in xs)):
        vector = "poison"
        for lane in range(lanes):
            parts = [b.define(f"extractelement {x.type} {x.names[k % len(x.names)]}, i64 {lane}") for x in xs]
            value = b.define(f"call {scalar} {symbol}({', '.join(f'{scalar} {p}' for p in parts)})")
            vector = b.define(f"insertelement {xs[0].type} {vector}, {scalar} {value}, i64 {lane}")
        results.append(vector)
    return Operand(dtype, lanes, tuple(results))


def repair(b: Builder, mask: Operand, fast: Operand, function: str, xs: list[Operand]) -> Operand:
    """`fast`, with `function(*xs)` in the lanes of `mask`.

    One branch that is almost never taken guards all copies; the cold side goes from one lane to the next, in a function of its
    own: what a body holds beyond a few blocks takes LLVM's register allocator most of its time.
    """
    weights = b.module.metadata('!{!"branch_weights", i32 1, i32 100000}')
    cold, done, start = b.fresh("rare"), b.fresh("common"), b.label
    b.emit(f"br i1 {b.any(mask).names[0]}, label %{cold}, label %{done}, !prof {weights}")
    b.start_block(cold)
    repaired = []
    for k, name in enumerate(fast.names):
        pick = [x.names[k if len(x.names) > 1 else 0] for x in xs]
        repaired.append(_repaired(b, mask.names[k if len(mask.names) > 1 else 0], fast, name, function, pick))
    b.emit(f"br label %{done}")
    b.start_block(done)
    merged = [
        b.define(f"phi {fast.type} [ {name}, %{start} ], [ {other}, %{cold} ]")
        for name, other in zip(fast.names, repaired, strict=True)
    ]
    return replace(fast, names=tuple(merged))


def _repaired(b: Builder, mask: str, fast: Operand, name: str, function: str, args: list[str]) -> str:
    """One vector with the library's results in the lanes that are in `mask`."""
    scalar, vector, bits = llvm_type(fast.dtype), fast.type, f"i{fast.lanes}"
    symbol, xs = _symbol(b, function, fast.dtype, len(args)), "xy"[: len(args)]
    if fast.lanes > 1:
        b.module.declare(f"{bits} @llvm.cttz.{bits}({bits}, i1)")
        mask = b.define(f"bitcast {llvm_type(BOOL, fast.lanes)} {mask} to {bits}")
        stored = "\n".join(f"  %{x}.all = alloca {vector}\n  store {vector} %{x}, ptr %{x}.all" for x in xs)
        picked = "\n".join(
            f"  %{x}.from = getelementptr {scalar}, ptr %{x}.all, i64 %lane\n  %{x}.at = load {scalar}, ptr %{x}.from" for x in xs
        )
        called = f"{symbol}({', '.join(f'{scalar} %{x}.at' for x in xs)})"
        cast = "zext" if fast.lanes < 64 else "trunc"
        lane = f"{cast} {bits} %bit to i64" if fast.lanes != 64 else "add i64 %bit, 0"  # LLVM has no cast to the same type
        body = _LANES.format(scalar=scalar, vector=vector, bits=bits, stored=stored, picked=picked, called=called, lane=lane)
    else:
        body = _LANE.format(scalar=scalar, called=f"{symbol}({', '.join(f'{scalar} %{x}' for x in xs)})")
    parameters = ", ".join(f"{vector} %{x}" for x in ("fast", *xs))
    helper = b.module.function(f"{vector} {symbol}.rare.{fast.lanes}({bits} %todo, {parameters})", body)
    return b.define(f"call {vector} {helper}({bits} {mask}, {', '.join(f'{vector} {x}' for x in (name, *args))})")


# The library's results for the lanes that are in a mask, from one set bit to the next; in memory, where a lane has an address.
_LANES = """\
entry:
  %result = alloca {vector}
  store {vector} %fast, ptr %result
{stored}
  br label %head
head:
  %left = phi {bits} [ %todo, %entry ], [ %rest, %call ]
  %more = icmp ne {bits} %left, 0
  br i1 %more, label %call, label %end
call:
  %bit = call {bits} @llvm.cttz.{bits}({bits} %left, i1 true)
  %lane = {lane}
{picked}
  %value = call {scalar} {called}
  %to = getelementptr {scalar}, ptr %result, i64 %lane
  store {scalar} %value, ptr %to
  %less = sub {bits} %left, 1
  %rest = and {bits} %left, %less
  br label %head
end:
  %all = load {vector}, ptr %result
  ret {vector} %all"""
_LANE = """\
entry:
  br i1 %todo, label %call, label %end
call:
  %value = call {scalar} {called}
  ret {scalar} %value
end:
  ret {scalar} %fast"""
