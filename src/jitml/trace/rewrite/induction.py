"""Induction variables: which ints does a loop's body count with?  It binds them by `i += 1` and the like, and by nothing else."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from jitml.trace.rewrite.syntax import within

Directions = tuple[tuple[str, int], ...]  # names, and 1 for those that grow, -1 for those that shrink

_LARGEST_STEP = 1 << 20  # with which no loop gets so far in a life


def counters(body: Iterable[ast.AST], bound: Iterable[str], names: frozenset[str]) -> Directions:
    """Which of the names a body counts with; `bound`: how often it binds which name."""
    steps: dict[str, list[int]] = {}
    for node in within(body):
        found = _step(node)
        if found is not None:
            steps.setdefault(found[0], []).append(found[1])
    count = list(bound)
    counting = {name: all_of for name, all_of in steps.items() if name in names and count.count(name) == len(all_of)}
    signs = {name: {step > 0 for step in all_of} for name, all_of in counting.items()}
    return tuple((name, 1 if True in sign else -1) for name, sign in sorted(signs.items()) if len(sign) == 1)


def _step(node: ast.AST) -> tuple[str, int] | None:
    """`i += 1`, `i -= 1`, `i = i + 1`"""
    match node:
        case ast.AugAssign(target=ast.Name(id=name), op=ast.Add() | ast.Sub() as op, value=ast.Constant(value=step)):
            pass
        case ast.Assign(
            targets=[ast.Name(id=name)],
            value=ast.BinOp(left=ast.Name(id=other), op=ast.Add() | ast.Sub() as op, right=ast.Constant(value=step)),
        ) if other == name:
            pass
        case _:
            return None
    if type(step) is not int or not 0 < abs(step) <= _LARGEST_STEP:
        return None
    return name, step if isinstance(op, ast.Add) else -step


__all__ = ["Directions", "counters"]
