"""Statements as people write them: match, named expressions, try, errstate."""

# ruff: noqa  # code as people write it
# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from programs.everyday.table import rows

ROWS, calls, _ = rows()

X = np.linspace(-1.0, 2.0, 7)
Y = np.linspace(3.0, 1.0, 7)


@calls((X, "mean"), (Y, "max"), (X, "none"), as_python="patterns are matched")
def match_on_strings(x, how):
    match how:
        case "mean":
            return x.mean()
        case "max" | "min":
            return getattr(np, how)(x)
        case _:
            return x.sum()


@calls((X,), (X.reshape(1, 7),), (Y[:1],), as_python="patterns are matched")
def match_on_shapes(x):
    match x.shape:
        case (1,):
            return x[0] * 10
        case (n,):
            return x.sum() / n
        case (rows, columns):
            return x * columns + rows


@calls((X, ("add", 1.0)), (Y, ("scale", 2.0)), (X[:3], ("clip", 0.0, 1.0)), as_python="patterns are matched")
def match_on_commands(x, command):
    match command:
        case ("add", a):
            return x + a
        case ("scale", a):
            return x * a
        case ("clip", low, high):
            return np.clip(x, low, high)


@calls((X, 0.1), (Y, 0.4), (X[:3], 2.0))
def walrus_in_a_while(x, tol):
    n = 0
    while (size := np.abs(x).max()) > tol:
        x = x / 2
        n += 1
    return x, n, size


@calls((X, 1.0), (Y, 2.0), (X[:3], 0.0))
def walrus_in_a_comprehension(x, a):
    return [y for v in x if (y := v * 2) > a]


@calls((X, 0.5), (Y, -1.0), (np.zeros(3), 1.0), as_python="exceptions may be handled")
def try_except_finally(x, a):
    log = []
    try:
        if a < 0:
            raise ValueError("negative")
        y = np.sqrt(x * x + a)
    except ValueError as error:
        log.append(str(error))
        y = x
    else:
        log.append("fine")
    finally:
        log.append("done")
    return y, log


@calls((np.eye(3), X[:3]), (np.zeros((3, 3)), X[:3]), (np.eye(2), Y[:2]), as_python="exceptions may be handled")
def try_a_singular_solve(a, b):
    try:
        return np.linalg.solve(a, b)
    except np.linalg.LinAlgError:
        return np.full_like(b, np.nan)


@calls((X, 10), (Y, 3), (X[:3], 1), as_python="exceptions may be handled")
def try_an_index(x, i):
    try:
        return x[i]
    except IndexError:
        return x[-1]


@calls((X,), (np.zeros(3),), (Y,))
def errstate_around_a_division(x):
    with np.errstate(divide="ignore", invalid="ignore"):
        y = 1 / x
        z = x / x
    y[~np.isfinite(y)] = 0
    return y, np.nan_to_num(z)


@calls((X,), (np.zeros(3),), (Y,), as_python="exceptions may be handled")
def errstate_that_raises(x):
    try:
        with np.errstate(divide="raise"):
            return 1 / x
    except FloatingPointError:
        return np.zeros_like(x)
