"""Other expressions in the place of variables and loads, and new names."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count

from jitml.kernels.ir import (
    Apply,
    Cell,
    Check,
    Draw,
    Expr,
    If,
    Let,
    Load,
    Loop,
    Observe,
    Stmt,
    Store,
    Update,
    Var,
    While,
    add,
    mul,
    sub,
    walk,
    with_blocks,
)

_FOLDED = {"add": add, "sub": sub, "mul": mul}


def new_names(body: Sequence[Stmt], prefix: str) -> Iterator[str]:
    """`v0`, `v1`, ...: names that no statement has given yet."""
    taken = {s.index if isinstance(s, Loop) else s.name for s in walk(body) if isinstance(s, (Cell, Draw, Let, Loop))}
    return (name for n in count() if (name := f"{prefix}{n}") not in taken)


def another(name: str, taken: Container[str]) -> str:
    """A name like another one."""
    while name in taken:
        name += "b"
    return name


def substituted(expr: Expr, values: Mapping[str, Expr]) -> Expr:
    """The expression with other expressions for its variables."""
    match expr:
        case Var(name):
            return values.get(name, expr)
        case Apply(fn, args):
            parts = tuple(substituted(a, values) for a in args)
            if fn in _FOLDED and expr.dtype == parts[0].dtype and expr.dtype.kind == "i" and expr.dtype.itemsize == 8:
                return _FOLDED[fn](*parts)
            return replace(expr, args=parts)
        case Load():
            return replace(expr, at=tuple(substituted(e, values) for e in expr.at))
    return expr


def with_loads(expr: Expr, change: Callable[[Load], Expr]) -> Expr:
    """The expression with other ones for its loads."""
    match expr:
        case Apply(_, args):
            return replace(expr, args=tuple(with_loads(a, change) for a in args))
        case Load(_, at):
            return change(replace(expr, at=tuple(with_loads(e, change) for e in at)))
    return expr


def with_expressions(body: Sequence[Stmt], change: Callable[[Expr], Expr]) -> tuple[Stmt, ...]:
    """Statements with other expressions, also in the blocks that they hold."""
    made: list[Stmt] = []
    for stmt in body:
        match stmt:
            case Let(_, value) | Update(_, value) | Observe(value):
                stmt = replace(stmt, value=change(value))
            case Store(_, at, value):
                stmt = replace(stmt, at=tuple(map(change, at)), value=change(value))
            case Cell(_, init):
                stmt = replace(stmt, init=change(init))
            case Draw(args=args):
                stmt = replace(stmt, args=tuple(map(change, args)))
            case Loop(_, start, stop):
                stmt = replace(stmt, start=change(start), stop=change(stop))
            case If(condition) | While(condition=condition):
                stmt = replace(stmt, condition=change(condition))
            case Check(condition, values=values):
                stmt = replace(stmt, condition=change(condition), values=tuple(map(change, values)))
        made.append(with_blocks(stmt, lambda block, _: with_expressions(block, change)))
    return tuple(made)
