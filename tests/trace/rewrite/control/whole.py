"""Short whole programs, and deep and long code."""

# ruff: noqa  # code as people write it, odd code too
# mypy: ignore-errors

from __future__ import annotations

from typing import Any

from tests.trace.rewrite.control.rows import Xs, program


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
