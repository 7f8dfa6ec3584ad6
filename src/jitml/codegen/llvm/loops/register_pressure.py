"""Register pressure: how many lanes?  What a loop body computes with, and an estimate of the registers that it needs.

Working on several vectors at once hides the latency of a chain of operations, as long as all of them stay in registers
(measured: a 1000-op chain runs 3.5 times faster with four vectors than with one; with spills it gains nothing).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from jitml.ir.types import I64, DType
from jitml.kernels.ir import (
    Apply,
    Cell,
    Const,
    Draw,
    Expr,
    If,
    Let,
    Load,
    Loop,
    Stmt,
    Update,
    Var,
    affine,
    expressions,
    variables_of,
    walk,
    walk_expression,
    walk_expressions,
)

# Functions that are one instruction or a few on values that die at once.
_PLAIN = frozenset(("add", "sub", "mul", "div", "neg", "abs", "sqrt", "floor", "ceil", "trunc", "rint", "convert", "select"))
_PLAIN |= {"eq", "ne", "lt", "le", "gt", "ge", "bit_and", "bit_or", "bit_xor", "bit_not", "count_bits", "maximum", "minimum"}
_PLAIN |= {"add_overflows", "sub_overflows", "mul_overflows"}
# What an inlined polynomial counts as where its operations matter.
POLYNOMIAL = 20
# What an inlined polynomial holds beyond its argument.
_TEMPORARIES = 4
_LOADED_INDEX = 4  # what it counts as: two vectors of indices for one of elements are fine


def registers_needed(body: Sequence[Stmt]) -> int:
    """Vector registers that one lane group of the body holds at its busiest point."""
    statements = list(walk(body))
    last_use: dict[str, int] = {}
    for position, stmt in enumerate(statements):
        for name in variables_of(*expressions(stmt)):
            last_use[name] = position
        if isinstance(stmt, Update):
            last_use[stmt.cell] = len(statements)  # carried round the loop
    own = {stmt.name for stmt in statements if isinstance(stmt, (Let, Draw, Cell))}
    alive = {stmt.cell for stmt in statements if isinstance(stmt, Update)} - own  # accumulators from outside
    busiest, ends = 1, defaultdict[int, list[str]](list)
    for name, position in last_use.items():
        ends[position].append(name)
    for position, stmt in enumerate(statements):
        busiest = max(busiest, len(alive) + max(map(_need, expressions(stmt)), default=0))
        if isinstance(stmt, (Let, Draw, Cell)) and last_use.get(stmt.name, -1) > position:
            alive.add(stmt.name)
        alive.difference_update(ends.get(position, ()))
    return busiest


def _need(expr: Expr) -> int:
    """Registers to evaluate an expression, the neediest operand first (Sethi and Ullman 1970)."""
    match expr:
        case Const() | Var():
            return 0
        case Load():
            return 1
        case Apply(fn, args):
            needs = sorted((_need(x) for x in args), reverse=True)
            own = max((need + held for held, need in enumerate(needs) if need), default=0)
            return max(own, 1) + (_TEMPORARIES if fn not in _PLAIN else 0)
    raise TypeError(type(expr).__name__)


def operations(body: Sequence[Stmt], *, polynomial: int = 1) -> int:
    """Scalar functions in the body, index arithmetic included; `polynomial` is what one of many instructions counts as."""
    return sum(1 if e.fn in _PLAIN else polynomial for e in walk_expressions(body) if isinstance(e, Apply))


def vector_operations(body: Sequence[Stmt], lanes: int, *, vector_bytes: int, polynomial: int) -> int:
    """What `operations` of that many lanes are when each works on one register, indices that are no sums included.

    Sums of indices are one number for all lanes, a base; what divides an index, or bounds it, has one in each: 64 bytes are one
    register, and the indices of as many elements are eight.
    """
    return sum(
        max(1, _size(e.dtype) * lanes // vector_bytes) * (1 if e.fn in _PLAIN else polynomial)
        for stmt in walk(body)
        for root in expressions(stmt)
        for e in _in_each_lane(root)
    )


def _in_each_lane(expr: Expr) -> Iterator[Apply]:
    if isinstance(expr, Apply) and not (expr.dtype == I64 and affine(expr) is not None):
        yield expr
    for part in getattr(expr, "args", getattr(expr, "at", ())):
        yield from _in_each_lane(part)


def widest_element(loop: Loop) -> int:
    """Bytes of the widest element that the lanes compute with; float16 is computed as float32.

    Indices do not count unless they are loaded, a vector of them for the lanes: beside bytes, those would be eight.
    """
    sizes = {1}
    for stmt in walk(loop.body):
        if isinstance(stmt, Loop) or (isinstance(stmt, Let) and getattr(stmt.value, "dtype", None) == I64):
            if isinstance(stmt, Let) and any(isinstance(e, Load) for e in walk_expression(stmt.value)):
                sizes.add(_LOADED_INDEX)
            continue
        roots: list[Expr] = [stmt.condition] if isinstance(stmt, If) else []
        roots += [value for field in ("value", "init") if (value := getattr(stmt, field, None)) is not None]
        for root in roots:
            sizes |= {_size(e.dtype) for e in _computed(root)}
    return max(sizes)


def _size(dtype: DType) -> int:
    return 4 if dtype.kind == "f" and dtype.itemsize == 2 else dtype.itemsize


def _computed(expr: Expr) -> list[Expr]:
    found = [expr]
    for e in found:
        found += getattr(e, "args", ())
    return found
