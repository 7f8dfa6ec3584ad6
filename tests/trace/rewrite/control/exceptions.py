"""What is raised, caught, and done in any case."""

# ruff: noqa  # code as people write it, odd code too
# mypy: ignore-errors

from __future__ import annotations

import contextlib
from typing import Any

from tests.trace.rewrite.control.rows import Xs, program


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
