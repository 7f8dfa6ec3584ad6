"""How does a result get into the caller's array?  By a copy of what changed, and of no more.

`u[1:-1] = f(u)` reads neighbours, so the new elements are computed elsewhere and written back when all is read and
checked. Only the elements that the kernel stores have changed: the write-back runs over the kernel's own store loops.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from jitml.fusion.loops import (
    Alloc,
    Buffer,
    Expr,
    If,
    Kernel,
    Let,
    Load,
    Loop,
    Stmt,
    Store,
    Var,
    expressions,
    walk,
    walk_expression,
    walk_expressions,
)
from jitml.ir.types import I64


def write_back(kernel: Kernel, output: str, target: Buffer) -> Kernel | None:
    """The kernel that stores to `target` each element of `output` that `kernel` stores.

    Args:
        kernel: updates a copy of the target, without reading what it has stored.
        target: the caller's array, under the shape that `output` has in the kernel.

    Returns:
        None if the elements depend on more than loops and the numbers that the kernel starts with: on data.
    """
    source = next(b for b in kernel.params if b.name == output)
    if any(isinstance(e, Load) and e.buffer == output for e in walk_expressions(kernel.body)):
        return None
    lets = [s for s in kernel.body if isinstance(s, Let) and s.value.dtype == I64]
    stores = _stores_only(kernel.body, output, target, frozenset(let.name for let in lets))
    if not stores:
        return None
    used = _names([e for s in walk(stores) for e in expressions(s)])
    for let in reversed(lets):  # one may use those before it
        if let.name in used:
            used |= _names((let.value,))
            stores = (let, *stores)
    loads = {e.buffer for s in stores if isinstance(s, Let) for e in walk_expression(s.value) if isinstance(e, Load)}
    params = (source, target, *(b for b in kernel.params if b.name in loads))
    return Kernel(f"{kernel.name}_back", params, stores, sources=kernel.sources)


def renamed(kernel: Kernel, written: str, name: str) -> Kernel:
    """The kernel that stores to `name` what `kernel` stores to `written`; nothing else is there."""
    params = tuple(replace(b, name=name) if b.name == written else b for b in kernel.params)
    updates = {buffer: base for buffer, base in kernel.updates.items() if buffer != written}
    return replace(kernel, params=params, body=_storing_to(kernel.body, written, name), updates=updates)


def _storing_to(body: Sequence[Stmt], written: str, name: str) -> tuple[Stmt, ...]:
    def change(stmt: Stmt) -> Stmt:
        match stmt:
            case Store() if stmt.buffer == written:
                return replace(stmt, buffer=name)
            case Loop() | Alloc():
                return replace(stmt, body=_storing_to(stmt.body, written, name))
            case If():
                return replace(stmt, then=_storing_to(stmt.then, written, name), orelse=_storing_to(stmt.orelse, written, name))
        return stmt

    return tuple(map(change, body))


def _stores_only(body: Sequence[Stmt], output: str, target: Buffer, indices: frozenset[str]) -> tuple[Stmt, ...] | None:
    """The loops around stores to `output`, with copies in their place."""
    kept: list[Stmt] = []
    for stmt in body:
        if not any(isinstance(s, Store) and s.buffer == output for s in walk((stmt,))):
            continue
        match stmt:
            case Loop(index, start, stop) if _names((start, stop)) <= indices:
                inner = _stores_only(stmt.body, output, target, indices | {index})
                if inner is None:
                    return None
                kept.append(replace(stmt, body=inner))
            case Store(_, at, value, None) if _names(at) <= indices:
                kept.append(Store(target.name, at, Load(output, at, value.dtype)))
            case _:
                return None
    return tuple(kept)


def _names(exprs: Sequence[Expr]) -> frozenset[str]:
    """Variables of expressions; a load counts as one that is never in scope."""
    parts = [e for expr in exprs for e in walk_expression(expr)]
    return frozenset(e.name if isinstance(e, Var) else "" for e in parts if isinstance(e, (Var, Load)))
