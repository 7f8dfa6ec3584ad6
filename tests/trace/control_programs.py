"""Functions full of control flow, on plain numbers and lists: the rows of `test_control.py`.

Each takes a list of ints and an int. They are pure, so that a body may be run twice.
"""

# ruff: noqa  # code as people write it, odd code too
# mypy: ignore-errors

from __future__ import annotations

import contextlib
from typing import Any

Xs = list[int]
PROGRAMS: list[Any] = []


def program(function: Any) -> Any:
    PROGRAMS.append(function)
    return function


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
def ands_and_ors(xs: Xs, n: int) -> Any:
    return n and xs, n or xs, (n and xs and n - 2) or "x", (n > 1 and n < 4) or not xs, not n, not (n and xs)


@program
def short_circuit(xs: Xs, n: int) -> Any:
    return n < len(xs) and xs[n] > 1, n >= len(xs) or xs[n]


@program
def chains(xs: Xs, n: int) -> Any:
    return 0 < n < 3, 0 < n < xs[0] < 100, n == n != 2, -1 <= n <= n + 1 > 3


@program
def chain_evaluates_once(xs: Xs, n: int) -> Any:
    calls = [0]

    def middle() -> int:
        calls[0] += 1
        return n

    return 0 < middle() < 4, calls[0]


@program
def chain_stops_early(xs: Xs, n: int) -> Any:
    return 3 < n < xs[n]


@program
def ternaries(xs: Xs, n: int) -> Any:
    y = xs[0] if xs else None
    return (n if n > 3 else -n) if n > 1 else y, [x if x > n else 0 for x in xs]


@program
def ternary_takes_one(xs: Xs, n: int) -> Any:
    return xs[n] if n < len(xs) else n


@program
def walrus_in_operand(xs: Xs, n: int) -> Any:
    if n > 1 and (y := n * 2) > 4:
        return y
    return (z := n) or z, (a := n) < (b := a + 1) < 4


@program
def if_walrus(xs: Xs, n: int) -> Any:
    if (half := n // 2) > 1:
        return half
    return -half


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
def asserts(xs: Xs, n: int) -> Any:
    assert n != 3, f"not {n}"
    assert xs
    return n


@program
def raises_in_branch(xs: Xs, n: int) -> Any:
    if n == 2:
        raise ValueError(f"two {n}")
    for x in xs:
        if x > n + 4:
            raise KeyError(x)
    return n


@program
def raises_from(xs: Xs, n: int) -> Any:
    try:
        if n > 1:
            xs[100]
        else:
            {}[n]
    except IndexError as error:
        if n > 2:
            raise RuntimeError("far") from error
        return str(error)
    except KeyError:
        raise
    return n


@program
def index_error_in_loop(xs: Xs, n: int) -> Any:
    total = 0
    for i in range(n + 2):
        total += xs[i]
    return total


@program
def error_in_condition(xs: Xs, n: int) -> Any:
    k = 0
    while xs[k] != n:
        k += 1
    return k


@program
def error_in_operand(xs: Xs, n: int) -> Any:
    return n > 1 and xs[n + 3] > 0 and 1 // (n - 3)


@program
def error_in_chain(xs: Xs, n: int) -> Any:
    return 0 <= n < "a" if n > 2 else n < n + 1 < None


@program
def error_in_iterable(xs: Xs, n: int) -> Any:
    for x in n if n > 2 else xs:
        n += x
    return n


@program
def error_in_unpacking(xs: Xs, n: int) -> Any:
    for a, b in [(1, 2), xs]:
        n += a + b
    return n


@program
def try_in_loop(xs: Xs, n: int) -> Any:
    total = 0
    for i in range(n + 3):
        try:
            total += xs[i]
        except IndexError:
            break
        else:
            if i == 4:
                continue
            total += 10
        finally:
            total += 100
    return total, i


@program
def return_through_finally(xs: Xs, n: int) -> Any:
    log = []
    try:
        for x in xs:
            try:
                if x == n:
                    return x, log
            finally:
                log.append(x)
        log.append("end")
    finally:
        log.append("finally")
    return log


@program
def return_in_finally(xs: Xs, n: int) -> Any:
    try:
        if n > 2:
            raise ValueError
        return "try"
    finally:
        if n != 1:
            return "finally"


@program
def break_in_finally(xs: Xs, n: int) -> Any:
    for x in xs:
        try:
            if x == n:
                raise ValueError
        finally:
            if x == 2 or x == n:
                break
    return x


@program
def loop_in_finally(xs: Xs, n: int) -> Any:
    total = 0
    try:
        total += xs[n]
    except IndexError:
        total = -1
    finally:
        for x in xs:
            if x > n:
                break
            total += x
    return total


@program
def return_in_handler(xs: Xs, n: int) -> Any:
    for x in xs:
        try:
            y = 1 // (x - n)
        except ZeroDivisionError as error:
            if n > 1:
                return str(error)
            y = 0
        n += y
    return n


@program
def handler_name_is_unbound(xs: Xs, n: int) -> Any:
    try:
        xs[n + 2]
    except IndexError as error:
        if n > 3:
            pass
    return error


@program
def with_blocks(xs: Xs, n: int) -> Any:
    log = []

    @contextlib.contextmanager
    def note(name: str) -> Any:
        log.append(name)
        try:
            yield name
        finally:
            log.append(f"end {name}")

    with note("outer") as outer, note("second"):
        for x in xs:
            with note(str(x)):
                if x == n:
                    continue
                if x > n + 2:
                    return log, outer
    return log


@program
def with_swallows(xs: Xs, n: int) -> Any:
    y = 0
    for x in xs:
        with contextlib.suppress(ZeroDivisionError):
            y = x
            y += 10 // (x - n)
            if y > 8:
                break
    return y


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
def sort_by_hand(xs: Xs, n: int) -> Any:
    ys = xs
    swapped = True
    while swapped:
        swapped = False
        for i in range(len(ys) - 1):
            if ys[i] > ys[i + 1]:
                ys = [*ys[:i], ys[i + 1], ys[i], *ys[i + 2 :]]
                swapped = True
    return ys


@program
def sieve(xs: Xs, n: int) -> Any:
    primes = []
    for k in range(2, 10 * n):
        for p in primes:
            if k % p == 0:
                break
            if p * p > k:
                primes = [*primes, k]
                break
        else:
            primes = [*primes, k]
    return primes


@program
def deep(xs: Xs, n: int) -> Any:
    r = 0
    for a in range(2):
        for b in range(2):
            if a <= b:
                for c in range(2):
                    if c or a:
                        while r < 50:
                            if r % 7 == n:
                                for d in xs:
                                    if d > n:
                                        if d % 2:
                                            r += d
                                            if r > 30:
                                                break
                                        elif r > 20:
                                            return r
                                else:
                                    r += 2
                                    continue
                            r += 3
                        r -= 40
    return r


@program
def deeper_than_python_allows(xs: Xs, n: int) -> Any:
    if n > -1:
        if n > -2:
            if n > -3:
                if n > -4:
                    if n > -5:
                        if n > -6:
                            if n > -7:
                                if n > -8:
                                    if n > -9:
                                        if n > -10:
                                            if n > -11:
                                                if n > -12:
                                                    if n > -13:
                                                        if n > -14:
                                                            if n > -15:
                                                                if n > -16:
                                                                    if n > -17:
                                                                        for x in xs:
                                                                            if x == n:
                                                                                return x
                                                                            if n > 4:
                                                                                break
    return 0


@program
def long_elif(xs: Xs, n: int) -> Any:
    if n == 10:
        r = 10
    elif n == 11:
        r = 11
    elif n == 12:
        r = 12
    elif n == 13:
        r = 13
    elif n == 14:
        r = 14
    elif n == 15:
        r = 15
    elif n == 16:
        r = 16
    elif n == 17:
        r = 17
    elif n == 18:
        r = 18
    elif n == 19:
        r = 19
    elif n == 20:
        r = 20
    elif n == 21:
        r = 21
    elif n == 22:
        r = 22
    elif n == 23:
        r = 23
    elif n == 24:
        r = 24
    elif n == 25:
        r = 25
    elif n == 26:
        r = 26
    elif n == 27:
        r = 27
    elif n == 28:
        r = 28
    elif n == 29:
        r = 29
    elif n == 30:
        r = 30
    elif n == 4:
        return 4
    else:
        r = n
    return -r


@program
def code_that_is_not_reached(xs: Xs, n: int) -> Any:
    if n == 1:
        return y
    for x in xs:
        if x == n:
            break
            y = 4
        continue
        y = 5
    return x
    y = 3


@program
def nested_class(xs: Xs, n: int) -> Any:
    class Counter:
        kinds = [x for x in (1, 2) if x > 1 or not x]
        if n > 2:
            size = "big"
        else:
            size = "small"

        def count(self) -> Any:
            total = 0
            for x in xs:
                if x > n and x:
                    total += 1
                elif not x:
                    return None
            return total

    return Counter().count(), Counter.size, Counter.kinds


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
def asks_for_locals(xs: Xs, n: int) -> Any:
    for x in xs:
        y = x
        if x == n:
            break
    return sorted(locals())


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


@program
def only_flags(xs: Xs, n: int) -> Any:
    found = False
    for x in xs:
        if x == n:
            found = True
        if found and x > 3:
            return x
    return found
