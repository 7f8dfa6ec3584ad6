"""The text form of kernels and kernel programs, written: one statement a line. `parser.py` reads it back.

kernel axpy(a: f64[8], b: f64[8], y: f64[8]) {
  for i in 0:8 vector {
    let x: f64 = a[i]
    y[i] = x * b[i] + x
  }
}

Constants are i64, f64 or bool (`true`) as they stand; any other dtype is a suffix (`1.5_f32`). A conversion is a call of
the dtype's name, `f32(x)`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from jitml.errors import LoweringError
from jitml.ir.graph import Graph
from jitml.ir.printer import show_number, show_param, show_params
from jitml.ir.types import BOOL, F64, I64, DType, dtype_name
from jitml.kernels.ir import (
    INFIX,
    Alloc,
    Apply,
    Buffer,
    Cell,
    Check,
    Const,
    Draw,
    Expr,
    If,
    Kernel,
    Let,
    Load,
    Loop,
    Observe,
    Stmt,
    Store,
    Update,
    Var,
    While,
)
from jitml.kernels.program import Call, KernelProgram, Region, Step

_COMPARISON = 1


def show_const(value: bool | int | float, dtype: DType) -> str:
    if dtype == BOOL:
        return "true" if value else "false"
    text = show_number(float(value)) if dtype.kind == "f" else str(int(value))
    return text if dtype in (I64, F64) else f"{text}_{dtype_name(dtype)}"


def show_expr(expr: Expr, strength: int = 0) -> str:
    """An expression; in parentheses if it binds less than `strength`."""
    match expr:
        case Const(value, dtype):
            return show_const(value, dtype)
        case Var(name):
            return name
        case Load(buffer, at):
            return f"{buffer}[{_list(at)}]"
        case Apply("convert", (x,), dtype):
            return f"{dtype_name(dtype)}({show_expr(x)})"
        case Apply(fn, (x, y)) if fn in INFIX:
            symbol, own = INFIX[fn]
            left = own + 1 if own == _COMPARISON else own  # comparisons do not chain
            text = f"{show_expr(x, left)} {symbol} {show_expr(y, own + 1)}"
            return f"({text})" if own < strength else text
        case Apply(fn, args):
            return f"{fn}({_list(args)})"
    raise LoweringError(f"the kernel printer cannot write {type(expr).__name__}")


def _list(exprs: Sequence[Expr]) -> str:
    return ", ".join(map(show_expr, exprs))


def show_buffer(buffer: Buffer) -> str:
    """`a: f64[4, 5]`, with `strides(1, 4)` where they are not those of C order."""
    shape = ", ".join(map(str, buffer.shape))
    strides = "" if buffer.strides is None else f" strides({', '.join(map(str, buffer.strides))})"
    return f"{buffer.name}: {dtype_name(buffer.dtype)}[{shape}]{strides}"


def _show_body(body: Sequence[Stmt], indent: str) -> Iterator[str]:
    for stmt in body:
        yield from _show_stmt(stmt, indent)


def _show_stmt(stmt: Stmt, indent: str) -> Iterator[str]:
    inner = indent + "  "
    match stmt:
        case Loop(index, start, stop, step, kind, body, grain):
            limits = f"{show_expr(start)}:{show_expr(stop)}" + (f":{step}" if step != 1 else "")
            marks = ("" if kind == "serial" else f" {kind}") + (f" grain {grain}" if grain != 1 else "")
            yield f"{indent}for {index} in {limits}{marks} {{"
            yield from _show_body(body, inner)
            yield indent + "}"
        case If(condition, then, orelse):
            yield f"{indent}if {show_expr(condition)} {{"
            yield from _show_body(then, inner)
            if orelse:
                yield indent + "} else {"
                yield from _show_body(orelse, inner)
            yield indent + "}"
        case While(test, condition, body):
            yield f"{indent}while {{" if test else f"{indent}while {show_expr(condition)} {{"
            if test:
                yield from _show_body(test, inner)
                yield f"{indent}}} {show_expr(condition)} {{"
            yield from _show_body(body, inner)
            yield indent + "}"
        case Alloc(buffer, body):
            yield f"{indent}alloc {show_buffer(buffer)} {{"
            yield from _show_body(body, inner)
            yield indent + "}"
        case _:
            yield indent + _show_line(stmt)


def _show_line(stmt: Stmt) -> str:
    match stmt:
        case Store(buffer, at, value, combine):
            return f"{buffer}[{_list(at)}] {combine or ''}= {show_expr(value)}"
        case Let(name, value):
            return f"let {name}: {dtype_name(value.dtype)} = {show_expr(value)}"
        case Draw(name, routine, args, dtype):
            return f"draw {name}: {dtype_name(dtype)} = {routine}({_list(args)})"
        case Cell(name, init):
            return f"cell {name}: {dtype_name(init.dtype)} = {show_expr(init)}"
        case Update(cell, value, combine):
            return f"{cell} {combine or ''}= {show_expr(value)}"
        case Observe(value):
            return f"observe {show_expr(value)}"
        case Check(condition, error, message, values):
            tail = "".join(f", {show_expr(v)}" for v in values)
            return f"check {show_expr(condition)}, {error}, {message!r}{tail}"
    raise LoweringError(f"the kernel printer cannot write {type(stmt).__name__}")


def show(kernel: Kernel, *, sources: bool = False, indent: str = "") -> str:
    """The canonical text of a kernel.

    Args:
        sources: open with the lines of the user's code that it computes, as comments.
    """
    head = f"kernel {kernel.name}({', '.join(map(show_buffer, kernel.params))})" + _show_updates(kernel.updates)
    head += " optimize" if kernel.optimize else ""
    lines = [f"{indent}{head} {{"]
    if sources:
        lines += [f"{indent}  # {source}: {source.text}" for source in dict.fromkeys(kernel.sources)]
    lines += _show_body(kernel.body, indent + "  ")
    return "\n".join([*lines, indent + "}"])


def show_call(call: Call, *, indent: str = "") -> str:
    """`gemm(a, b) -> (c) {batch=1, ...}`; a graph of what it does comes last."""
    head = f"{call.name}({', '.join(call.reads)}) -> ({', '.join(call.writes)})"
    graphs = {name: x for name, x in call.params.items() if isinstance(x, Graph)}
    text = f"{head}{_show_updates(call.updates)}{show_params({k: x for k, x in call.params.items() if k not in graphs})}"
    for name, graph in graphs.items():
        text += f" {name} = " + str(graph).replace("\n", "\n" + indent)
    return indent + text


def _show_updates(updates: Mapping[str, str]) -> str:
    return f" updates({', '.join(f'{written}={read}' for written, read in updates.items())})" if updates else ""


def show_region(region: Region, *, sources: bool = False, indent: str = "") -> str:
    """`region r0 loop n index i updates(b=a) { run(i, b) -> (b) program(a, b) -> (c) { ... } }`"""
    marks = f" index {region.index}" if region.index is not None else ""
    marks += _show_updates(region.updates) + (f" scratch {region.scratch}" if region.scratch is not None else "")
    lines = [f"{indent}region {region.name} {region.kind} {region.control}{marks} {{"]
    for body, arguments, results in zip(region.bodies, region.arguments, region.results):
        text = show_program(body, sources=sources, indent=indent + "  ")
        lines.append(f"{indent}  run({', '.join(arguments)}) -> ({', '.join(results)}) {text.lstrip()}")
    return "\n".join([*lines, indent + "}"])


def show_step(step: Step, *, sources: bool = False, indent: str = "") -> str:
    match step:
        case Kernel():
            return show(step, sources=sources, indent=indent)
        case Call():
            return show_call(step, indent=indent)
        case Region():
            return show_region(step, sources=sources, indent=indent)


def show_program(
    program: KernelProgram, *, notes: Mapping[str, str] | None = None, sources: bool = False, indent: str = ""
) -> str:
    """The canonical text of a kernel program.

    Args:
        notes: a comment per buffer, such as the place that memory planning gave it.
        sources: see `show`.
    """
    notes = notes or {}
    lines = [f"program({', '.join(program.inputs)}) -> ({', '.join(program.outputs)}) {{"]
    for name, buffer in program.buffers.items():
        comment = f"  # {notes[name]}" if name in notes else ""
        if name in program.constants:
            lines.append(f"  constant {show_buffer(buffer)} = {show_param(program.constants[name])}{comment}")
        else:
            lines.append(f"  buffer {show_buffer(buffer)}{comment}")
    lines += [f"  alias {output} = {source}" for output, source in program.aliases.items()]
    lines += [f"  size {name} = {s.buffer} in {s.low}:{s.high}" for name, s in program.sizes.items()]
    lines += [f"  extent {name} = [{_list(extents)}]" for name, extents in program.extents.items()]
    lines += [f"  exact {name} = [{_list(extents)}]" for name, extents in program.exact.items()]
    for name, places in program.measured.items():
        lines.append(f"  measured {name} = [{', '.join('_' if k is None else str(k) for k in places)}]")
    lines += [f"  joined {name}" for name in program.buffers if name in program.joined]
    lines += [f"  packed {name}" for name in program.buffers if name in program.packed]
    lines = [indent + line for line in lines]
    lines += [show_step(step, sources=sources, indent=indent + "  ") for step in program.steps]
    return "\n".join([*lines, indent + "}"])
