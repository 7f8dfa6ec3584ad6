"""Write-back: how does a result get into the caller's array?  By a copy of what changed, and of no more.

`u[1:-1] = f(u)` reads neighbours, so the new elements are computed elsewhere and written back when all is read and
checked. Only the elements that the kernel stores have changed: the write-back runs over the kernel's own store loops.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from jitml.ir.types import I64
from jitml.kernels.ir import (
    Buffer,
    Expr,
    Kernel,
    Let,
    Load,
    Loop,
    Stmt,
    Store,
    Var,
    expressions,
    loaded_by,
    walk,
    walk_expression,
    walk_expressions,
    with_blocks,
)


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
    names = frozenset(s.name for s in _numbers(kernel))
    stores = stores_only(kernel.body, output, names, lambda at: Store(target.name, at, Load(output, at, source.dtype)))
    if not stores:
        return None
    lets, loaded = numbers_for(kernel, stores)
    return Kernel(f"{kernel.name}_back", (source, target, *loaded), (*lets, *stores), sources=kernel.sources)


def _numbers(kernel: Kernel) -> list[Let]:
    """What a kernel begins with: integers that its loops and places are made of."""
    return [s for s in kernel.body if isinstance(s, Let) and s.value.dtype == I64]


def numbers_for(kernel: Kernel, body: Sequence[Stmt]) -> tuple[tuple[Let, ...], tuple[Buffer, ...]]:
    """Those of the kernel's integers that some of its loops need, and the buffers that these are loaded from."""
    used, lets = _names([e for s in walk(body) for e in expressions(s)]), list[Let]()
    for let in reversed(_numbers(kernel)):  # one may use those before it
        if let.name in used:
            used |= _names((let.value,))
            lets.insert(0, let)
    loads = loaded_by(*(let.value for let in lets))
    return tuple(lets), tuple(b for b in kernel.params if b.name in loads)


def renamed(kernel: Kernel, written: str, name: str) -> Kernel:
    """The kernel that stores to `name` what `kernel` stores to `written`; nothing else is there."""
    params = tuple(replace(b, name=name) if b.name == written else b for b in kernel.params)
    updates = {buffer: base for buffer, base in kernel.updates.items() if buffer != written}
    return replace(kernel, params=params, body=storing(kernel.body, written, lambda at: (name, at)), updates=updates)


def storing(
    body: Sequence[Stmt], written: str, where: Callable[[tuple[Expr, ...]], tuple[str, tuple[Expr, ...]]]
) -> tuple[Stmt, ...]:
    """The same statements, but what they store to `written` goes elsewhere."""

    def change(stmt: Stmt) -> Stmt:
        if isinstance(stmt, Store) and stmt.buffer == written:
            name, at = where(stmt.at)
            return replace(stmt, buffer=name, at=at)
        return with_blocks(stmt, lambda block, _: storing(block, written, where))

    return tuple(map(change, body))


def stores_only(
    body: Sequence[Stmt], output: str, indices: frozenset[str], copy: Callable[[tuple[Expr, ...]], Store]
) -> tuple[Stmt, ...] | None:
    """The loops around stores to `output`, with copies in their place.

    Args:
        indices: the variables that stand for the same wherever the loops may be.

    Returns:
        None if the elements depend on more than those.
    """
    kept: list[Stmt] = []
    for stmt in body:
        if not any(isinstance(s, Store) and s.buffer == output for s in walk((stmt,))):
            continue
        match stmt:
            case Loop(index, start, stop) if _names((start, stop)) <= indices:
                inner = stores_only(stmt.body, output, indices | {index}, copy)
                if inner is None:
                    return None
                kept.append(replace(stmt, body=inner))
            case Store(_, at, _, None) if _names(at) <= indices:
                kept.append(copy(at))
            case _:
                return None
    return tuple(kept)


def _names(exprs: Sequence[Expr]) -> frozenset[str]:
    """Variables of expressions; a load counts as one that is never in scope."""
    parts = [e for expr in exprs for e in walk_expression(expr)]
    return frozenset(e.name if isinstance(e, Var) else "" for e in parts if isinstance(e, (Var, Load)))
