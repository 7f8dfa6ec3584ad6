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

    One branch that is almost never taken guards all copies; the cold side loops over the lanes, which is small.
    """
    weights = b.module.metadata('!{!"branch_weights", i32 1, i32 100000}')
    cold, done, start = b.fresh("rare"), b.fresh("common"), b.label
    b.emit(f"br i1 {b.any(mask).names[0]}, label %{cold}, label %{done}, !prof {weights}")
    b.start_block(cold)
    repaired = []
    for k, name in enumerate(fast.names):
        pick = [x.names[k if len(x.names) > 1 else 0] for x in xs]
        repaired.append(_repair_vector(b, mask.names[k if len(mask.names) > 1 else 0], fast, name, function, pick))
    last = b.label
    b.emit(f"br label %{done}")
    b.start_block(done)
    merged = [
        b.define(f"phi {fast.type} [ {name}, %{start} ], [ {other}, %{last} ]")
        for name, other in zip(fast.names, repaired, strict=True)
    ]
    return replace(fast, names=tuple(merged))


def _repair_vector(b: Builder, mask: str, fast: Operand, name: str, function: str, args: list[str]) -> str:
    """Call the library for the lanes of one vector that are in `mask`, from one set bit to the next."""
    scalar, vector, bits = llvm_type(fast.dtype), fast.type, f"i{fast.lanes}"
    symbol = _symbol(b, function, fast.dtype, len(args))
    head, call, end = (b.fresh(stem) for stem in ("lane", "call", "end"))
    left, rest, current = (f"%{b.fresh()}" for _ in range(3))
    is_wide = fast.lanes > 1
    todo = b.define(f"bitcast {llvm_type(BOOL, fast.lanes)} {mask} to {bits}") if is_wide else mask
    before = b.label
    b.emit(f"br label %{head}")
    b.start_block(head)
    phis = len(b.lines)  # written once the values from the end of the loop have their names
    more = b.define(f"icmp ne {bits} {left}, 0")
    b.emit(f"br i1 {more}, label %{call}, label %{end}")
    b.start_block(call)
    if is_wide:
        b.module.declare(f"{bits} @llvm.cttz.{bits}({bits}, i1)")
        lane = b.define(f"call {bits} @llvm.cttz.{bits}({bits} {left}, i1 true)")
        args = [b.define(f"extractelement {vector} {x}, {bits} {lane}") for x in args]
    value = b.define(f"call {scalar} {symbol}({', '.join(f'{scalar} {x}' for x in args)})")
    if is_wide:
        value = b.define(f"insertelement {vector} {current}, {scalar} {value}, {bits} {lane}")
    less = b.define(f"sub {bits} {left}, 1")
    b.emit(f"{rest} = and {bits} {left}, {less}")
    b.emit(f"br label %{head}")
    b.lines[phis:phis] = [
        f"  {left} = phi {bits} [ {todo}, %{before} ], [ {rest}, %{call} ]",
        f"  {current} = phi {vector} [ {name}, %{before} ], [ {value}, %{call} ]",
    ]
    b.start_block(end)
    return current
