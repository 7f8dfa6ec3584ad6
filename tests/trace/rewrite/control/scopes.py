"""Functions, classes and comprehensions inside; locals and imports."""

# ruff: noqa  # code as people write it, odd code too
# mypy: ignore-errors

from __future__ import annotations

from typing import Any

from tests.trace.rewrite.control.rows import Xs, program


@program
def comprehensions(xs: Xs, n: int) -> Any:
    pairs = [(x, y) for x in xs if x > n for y in xs if x < y < 9 and not x == 5]
    table = {x: (x and n) or 7 for x in xs if x != n or x == 3}
    some = any(x > n and x < 2 * n for x in (xs if n else []))
    return pairs, table, some, {x if x else n for x in [y or 1 for y in xs]}


@program
def generator_expression_runs_late(xs: Xs, n: int) -> Any:
    lazy = (x and n for x in xs)
    return (next(lazy) if n else 3) if n < 4 and next(lazy, 1) else next(lazy, 9) or n


@program
def lambdas(xs: Xs, n: int) -> Any:
    pick = lambda x: x if x > n else n and -x
    order = sorted(xs, key=lambda x: (x % 2 and x, not x))
    return [pick(x) for x in xs], order


@program
def inner_function_loops(xs: Xs, n: int) -> Any:
    def find(y: int) -> Any:
        for i, x in enumerate(xs):
            if x == y:
                return i
        return None

    result = [find(x) for x in xs] + [find(n)]
    for x in xs:

        def shifted(y: int, x: int = x) -> int:
            if y > 2:
                return y + x
            return x

        result = [*result, shifted(n)]
    return result


@program
def closures_see_the_loop(xs: Xs, n: int) -> Any:
    made = []
    for x in xs:
        made = [*made, lambda: x]
    if n > 2:
        x = 99
    return [f() for f in made]


@program
def nonlocal_in_helper(xs: Xs, n: int) -> Any:
    count = [0]

    def bump() -> int:
        for x in xs:
            if x > n:
                count[0] += 1
        return count[0]

    bump()
    return count


@program
def recursion(xs: Xs, n: int) -> Any:
    def power(k: int) -> int:
        if k == 0:
            return 1
        half = power(k // 2)
        if k % 2:
            return half * half * 3
        return half * half

    return power(n)


@program
def inner_generator(xs: Xs, n: int) -> Any:
    def some() -> Any:
        for x in xs:
            if x == n:
                return
            if x > 1 and x < 9:
                yield x if x != 3 else -x

    return list(some())


@program
def not_pythons_own(xs: Xs, n: int) -> Any:
    dir = list
    return dir(), dir(xs)


@program
def imports_in_branch(xs: Xs, n: int) -> Any:
    if n > 1:
        from math import floor as f
    else:
        import math

        f = math.ceil
    return f(n + 0.5)


@program
def annotated_and_starred(xs: Xs, n: int) -> Any:
    total: int = 0
    first: Any
    for first, *rest in [xs, xs[::-1]]:
        total += first
        while rest:
            *rest, last = rest
            total += last * n
            if total > 60:
                break
    return total, first, rest
