"""Users' functions: how does a kernel compute one in many lanes?  It calls a function of vectors.

That goes from lane to lane, and holds the user's function inline: LLVM makes vector instructions of it where it can. It is a
module of its own, which all programs share that call it: kernels keep their light treatment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jitml.codegen.llvm.ir.operand import Operand, c_type, llvm_type
from jitml.ir.op import ScalarCode, is_total
from jitml.ir.types import BOOL, DType

if TYPE_CHECKING:
    from jitml.codegen.llvm.ir.builder import Builder


def call(b: Builder, name: str, code: ScalarCode, xs: list[Operand]) -> Operand:
    """`code` of operands of equal lanes."""
    lanes = xs[0].lanes
    symbol = f"@{name}.{lanes}"
    head = f"{llvm_type(code.result, lanes)} {symbol}({', '.join(x.type for x in xs)})"
    attributes = "nounwind memory(none) willreturn" if is_total(name) else "nounwind memory(none)"
    b.module.module(f"{head} {attributes}", _of_vectors(symbol, code, lanes))
    names = ", ".join(f"{x.type} {{{k}}}" for k, x in enumerate(xs))
    return b.each(xs, code.result, f"call {llvm_type(code.result, lanes)} {symbol}({names})")


def _of_vectors(symbol: str, code: ScalarCode, lanes: int) -> str:
    result = llvm_type(code.result, lanes)
    parameters = ", ".join(f"{llvm_type(dtype, lanes)} %x{k}" for k, dtype in enumerate(code.operands))
    body = _ONE if lanes == 1 else _LANES
    before = "\n".join(_spread(f"x{k}", dtype, lanes) for k, dtype in enumerate(code.operands))
    if lanes == 1:
        names = [f"{c_type(dtype)} %x{k}.c" for k, dtype in enumerate(code.operands)]
    else:
        names = [f"{c_type(dtype)} %x{k}.at" for k, dtype in enumerate(code.operands)]
    loads = "\n".join(
        f"  %x{k}.from = getelementptr {c_type(dtype)}, ptr %x{k}.all, i64 %lane\n"
        f"  %x{k}.at = load {c_type(dtype)}, ptr %x{k}.from"
        for k, dtype in enumerate(code.operands)
    )
    wide = _c_vector(code.result, lanes)
    text = body.format(
        before=before, loads=loads, lanes=lanes, scalar=c_type(code.result), vector=wide,
        called=f"@{code.entry}({', '.join(names)})",
        narrowed=f"icmp ne {wide} %all, zeroinitializer" if code.result == BOOL else f"freeze {wide} %all",
        result=result,
    )  # fmt: skip
    return f"{code.text}\n\ndefine hidden {result} {symbol}({parameters}) #0 {{\n{text}\n}}"


def _c_vector(dtype: DType, lanes: int) -> str:
    return c_type(dtype) if lanes == 1 else f"<{lanes} x {c_type(dtype)}>"


def _spread(x: str, dtype: DType, lanes: int) -> str:
    """An operand as C has it, in memory where it has lanes."""
    wide, given = _c_vector(dtype, lanes), llvm_type(dtype, lanes)
    cast = f"  %{x}.c = zext {given} %{x} to {wide}" if dtype == BOOL else f"  %{x}.c = freeze {given} %{x}"
    if lanes == 1:
        return cast
    return f"{cast}\n  %{x}.all = alloca {wide}\n  store {wide} %{x}.c, ptr %{x}.all"


_ONE = """\
entry:
{before}
  %all = call {scalar} {called}
  %result = {narrowed}
  ret {result} %result"""
_LANES = """\
entry:
  %results = alloca {vector}
{before}
  br label %call
call:
  %lane = phi i64 [ 0, %entry ], [ %next, %call ]
{loads}
  %value = call {scalar} {called}
  %to = getelementptr {scalar}, ptr %results, i64 %lane
  store {scalar} %value, ptr %to
  %next = add i64 %lane, 1
  %more = icmp ult i64 %next, {lanes}
  br i1 %more, label %call, label %end
end:
  %all = load {vector}, ptr %results
  %result = {narrowed}
  ret {result} %result"""
