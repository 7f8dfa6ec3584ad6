"""Branches, loops and what leaves them."""

# ruff: noqa  # code as people write it, odd code too
# mypy: ignore-errors

from __future__ import annotations

from typing import Any

from tests.trace.rewrite.control.rows import Xs, program


@program
def if_else(xs: Xs, n: int) -> Any:
    if n > 2:
        y = 1
    else:
        y = 2
    return y


@program
def if_only(xs: Xs, n: int) -> Any:
    y = 0
    if n > 2:
        y = xs[0]
    return y


@program
def elif_chain(xs: Xs, n: int) -> Any:
    if n == 0:
        r = "zero"
    elif n == 1:
        r = "one"
    elif n == 2:
        r = "two"
    elif n < 0:
        r = "negative"
    else:
        r = "many"
    return r


@program
def early_return(xs: Xs, n: int) -> Any:
    if n == 0:
        return "none"
    y = n * 2
    if y > 4:
        return y
    return -y


@program
def return_in_else(xs: Xs, n: int) -> Any:
    if n:
        y = 3
    else:
        return None
    return y


@program
def return_from_some_branches(xs: Xs, n: int) -> Any:
    if n > 0:
        if n > 2:
            return "big"
        y = 1
    else:
        y = 2
    return y


@program
def falls_off(xs: Xs, n: int) -> Any:
    if n == 3:
        return 1


@program
def bare_return(xs: Xs, n: int) -> Any:
    for x in xs:
        if x == n:
            return
    return "absent"


@program
def many_guards(xs: Xs, n: int) -> Any:
    if n == 0:
        return 0
    if n == 1:
        return 10
    if n == 2:
        return 20
    if n == 3:
        return 30
    if n == 4:
        return 40
    if n == 5:
        return 50
    if n == 6:
        return 60
    if n == 7:
        return 70
    return 80


@program
def unbound_after_if(xs: Xs, n: int) -> Any:
    if n > 2:
        y = 1
    return y


@program
def unbound_after_loop(xs: Xs, n: int) -> Any:
    for x in xs[:n]:
        y = x
    return x, y


@program
def unbound_in_first_iteration(xs: Xs, n: int) -> Any:
    for x in xs:
        if x > n:
            t = t + x
        else:
            t = 0
    return t


@program
def deleted(xs: Xs, n: int) -> Any:
    y = 1
    if n > 2:
        del y
    return y


@program
def deleted_in_loop(xs: Xs, n: int) -> Any:
    for x in xs:
        y = x
        if x > n:
            del y
            continue
        del y
    return x


@program
def for_break(xs: Xs, n: int) -> Any:
    total = 0
    for x in xs:
        if x == n:
            break
        total += x
    return total, x


@program
def for_continue(xs: Xs, n: int) -> Any:
    total = 0
    for x in xs:
        if x == n:
            continue
        total += x
    return total


@program
def for_else(xs: Xs, n: int) -> Any:
    for i, x in enumerate(xs):
        if x == n:
            found = i
            break
    else:
        found = -1
    return found


@program
def for_else_without_break(xs: Xs, n: int) -> Any:
    for x in xs:
        n += x
    n *= 2
    return n


@program
def break_and_continue(xs: Xs, n: int) -> Any:
    kept = []
    for x in xs:
        if x < n:
            continue
        if x > n + 3:
            break
        kept = [*kept, x]
    return kept


@program
def break_after_work(xs: Xs, n: int) -> Any:
    total = 0
    for x in xs:
        total += x
        if total > n:
            if x == 2:
                total += 100
            else:
                break
            total += 1000
        total += 1
    return total


@program
def return_in_nested_loops(xs: Xs, n: int) -> Any:
    for x in xs:
        for y in xs:
            if x * y == n:
                return x, y
        if x > n:
            break
    else:
        return "exhausted"
    return "broken"


@program
def nested_breaks(xs: Xs, n: int) -> Any:
    seen = []
    for x in xs:
        for y in xs:
            if y > n:
                break
            if y == x:
                continue
            seen = [*seen, (x, y)]
        else:
            seen = [*seen, x]
            continue
        seen = [*seen, "broke"]
        if x > 3:
            break
    return seen, x, y


@program
def break_in_else_belongs_outside(xs: Xs, n: int) -> Any:
    for x in xs:
        for y in xs:
            if y == n:
                break
        else:
            break
        x += 10
    return x, y


@program
def while_simple(xs: Xs, n: int) -> Any:
    k = 0
    while k < n:
        k += 1
    return k


@program
def while_else(xs: Xs, n: int) -> Any:
    k = 0
    while k < len(xs):
        if xs[k] == n:
            break
        k += 1
    else:
        k = "absent"
    return k


@program
def while_true(xs: Xs, n: int) -> Any:
    k = 0
    while True:
        k += 1
        if k > n:
            break
        if k == 3:
            return "three"
    return k


@program
def while_walrus(xs: Xs, n: int) -> Any:
    k = 0
    seen = []
    while (m := k * 2) < n:
        seen = [*seen, m]
        k += 1
    return k, m, seen


@program
def while_walrus_else(xs: Xs, n: int) -> Any:
    k = 0
    while (m := k * 2) < n:
        if m == 4:
            break
        k += 1
    else:
        k = "end"
    return k, m


@program
def while_walrus_else_returns(xs: Xs, n: int) -> Any:
    k = 0
    while (m := k * 2) < n:
        if m == 4:
            break
        k += 1
    else:
        return m
    return k


@program
def while_continue(xs: Xs, n: int) -> Any:
    k, odd = 0, 0
    while k < n:
        k += 1
        if k % 2 == 0:
            continue
        odd += k
    return odd


@program
def collatz(xs: Xs, n: int) -> Any:
    n, steps = n + 1, 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


@program
def matches(xs: Xs, n: int) -> Any:
    for x in [*xs, "s", (1, n), {"k": n}]:
        match x:
            case int() if x > n and x < 5:
                y = "between"
            case 3 | 4:
                continue
            case str(y):
                pass
            case (1, z) if z or not xs:
                return z, y
            case {"k": 0, **rest}:
                y = rest
            case _:
                y = None
        n = n if y is None else n + 1
    return y, n


@program
def loop_variable_afterwards(xs: Xs, n: int) -> Any:
    i = "before"
    for i in range(n - 2):
        pass
    for i, (a, b) in enumerate(zip(xs, xs[1:])):
        i *= 2
    return i, a, b


@program
def target_in_container(xs: Xs, n: int) -> Any:
    box = [0, 0]
    for box[n % 2] in xs:
        if box[0] > 3:
            break
    return box


@program
def augmented(xs: Xs, n: int) -> Any:
    ys = list(xs)
    for i in range(len(ys)):
        ys[i] += n if i % 2 else -n
        if ys[i] > 4:
            ys[i] **= 2
    return ys


@program
def swap(xs: Xs, n: int) -> Any:
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a, b


@program
def only_flags(xs: Xs, n: int) -> Any:
    found = False
    for x in xs:
        if x == n:
            found = True
        if found and x > 3:
            return x
    return found
