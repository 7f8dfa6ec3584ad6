"""Polynomials with whole coefficients: sums of products of sizes and counts, and when such a sum is never negative."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from itertools import product
from typing import Any, TypeAlias

from jitml.kernels.ir import Apply, Const, Expr, Var, mul

Poly: TypeAlias = Mapping[tuple[Any, ...], int]  # product of variables, sorted -> coefficient; () is the constant

MOST_TERMS = 64
_NOTHING: Poly = {}


def constant(value: int) -> Poly:
    return {(): value} if value else _NOTHING


def variable(name: Any) -> Poly:
    return {(name,): 1}


def plus(a: Poly, b: Poly, factor: int = 1) -> Poly:
    """a + factor * b"""
    total = dict(a)
    for monomial, c in b.items():
        total[monomial] = total.get(monomial, 0) + factor * c
    return {monomial: c for monomial, c in total.items() if c}


def times(a: Poly, b: Poly) -> Poly:
    total: dict[tuple[Any, ...], int] = {}
    for (m, c), (n, d) in product(a.items(), b.items()):
        monomial = tuple(sorted(m + n))
        total[monomial] = total.get(monomial, 0) + c * d
    return {monomial: c for monomial, c in total.items() if c}


def divided(a: Poly, divisor: int) -> Poly | None:
    """a / divisor, if all coefficients are multiples of it."""
    if any(c % divisor for c in a.values()):
        return None
    return {monomial: c // divisor for monomial, c in a.items()}


def polynomial(expr: Expr) -> Poly | None:
    """The view of an i64 expression as a polynomial over its names; None if it is not one, or a long one."""
    match expr:
        case Const(value):
            return constant(int(value))
        case Var(name):
            return variable(name)
        case Apply("add" | "sub" | "mul" as fn, (x, y)):
            a, b = polynomial(x), polynomial(y)
            if a is None or b is None or len(a) * len(b) > MOST_TERMS:
                return None
            return times(a, b) if fn == "mul" else plus(a, b, 1 if fn == "add" else -1)
    return None


def linear_in(a: Poly, names: Container[str]) -> dict[str, Poly] | None:
    """The polynomial as a sum over some of its names: name -> factor, "" -> what has none of them; None if two are multiplied."""
    found: dict[str, dict[tuple[str, ...], int]] = {"": {}}
    for monomial, c in a.items():
        here = [name for name in monomial if name in names]
        if len(here) > 1:
            return None
        rest = tuple(name for name in monomial if name not in here)
        found.setdefault(here[0] if here else "", {})[rest] = c
    return {**found}


def expression(a: Poly) -> Expr:
    """A polynomial over names as an expression."""
    total: Expr = Const(0)
    for monomial, c in sorted(a.items(), key=lambda term: term[1] < 0):  # 9 - n, not -n + 9
        term: Expr = Const(1)
        for name in monomial:
            term = mul(term, Var(name))
        total = total + mul(term, c) if c > 0 else total - mul(term, -c)
    return total


def variables(a: Poly) -> frozenset[Any]:
    return frozenset(name for monomial in a for name in monomial)


def never_negative(a: Poly, least: Mapping[Any, int]) -> bool:
    """Whether a >= 0, whatever the variables are from their least values on.

    Each is written as its least value and what it exceeds that by; then no coefficient may be negative. A variable without a
    least value may be anything.
    """
    if not variables(a) <= least.keys():
        return False
    moved: Poly = _NOTHING
    for monomial, c in a.items():
        term = constant(c)
        for name in monomial:
            term = times(term, plus(variable(name), constant(least[name])))
        moved = plus(moved, term)
    return all(c > 0 for c in moved.values())


def magnitude(a: Poly, most: Mapping[Any, int]) -> int | None:
    """A bound of |a|, given bounds of the variables' absolute values; None where one has none."""
    total = 0
    for monomial, c in a.items():
        term = abs(c)
        for name in monomial:
            if name not in most:
                return None
            term *= most[name]
        total += term
    return total


def raised(least: Mapping[Any, int], positive: Iterable[Poly]) -> dict[Any, int]:
    """The least values of variables, given polynomials that are at least 1: `n - 1` says n >= 2, `m * n` that both are 1."""
    found = dict(least)
    for a in positive:
        products = [monomial for monomial in a if monomial]
        if len(products) != 1 or a[products[0]] < 1:
            continue
        (monomial,), offset = products, a.get((), 0)
        if any(found.get(name, -1) < 0 for name in monomial):
            continue
        wanted = -(-(1 - offset) // a[monomial])  # the least value of the product
        if len(monomial) == 1:
            found[monomial[0]] = max(found[monomial[0]], wanted)
        elif wanted > 0:
            found |= {name: max(found[name], 1) for name in monomial}
    return found
