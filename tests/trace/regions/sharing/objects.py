"""One object, or two that show the same."""

# ruff: noqa  # code as people write it, odd code too
# mypy: ignore-errors

from __future__ import annotations

import numpy as np
from tests.trace.regions.sharing.rows import row

GRID = np.arange(12.0).reshape(3, 4)


@row
def view_of_a_global_by_two_names(x, y, n):
    k = 0
    while k < n:
        k += 1
        if x[0, 0] != 0:
            a = GRID[::-1]
            b = a
    return b, a


@row
def view_of_an_argument_by_two_names(x, y, n):
    a = b = None
    for k in range(n):
        if x[k, 0] > 0:
            a = x[::-1]
            b = a
    return a, b


@row
def view_of_a_later_iteration(x, y, n):
    b = GRID[::-1]
    for k in range(n):
        if x[k, 0] > 0:
            c = GRID[::-1]
            b = c
    return b, c


@row
def global_or_a_view_of_it(x, y, n):
    for k in range(3):
        b = GRID
        if x[k, 0] > 0:
            b = GRID[:]
    return b, b is GRID


@row
def whole_view_of_what_the_body_makes(x, y, n):
    for k in range(n):
        a = x * k
        b = a[:]
    return a, b


@row
def whole_view_of_what_the_body_makes_if_it_runs(x, y, n):
    a = b = x * 1
    for k in range(int(x[0, 0] > 0)):
        a = x * k
        b = a[:]
    return a, b


@row
def whole_view_of_what_was_there(x, y, n):
    c = x.copy()
    for k in range(n):
        if x[k, 0] > 0:
            b = c
            a = b
            b = a[:]
    return b, c


@row
def two_views_that_become_one(x, y, n):
    b = GRID[::-1]
    c = GRID[::-1]
    for k in range(n):
        if x[k, 0] > 0:
            break
        c = b = x[::-1]
    return b, c


@row
def view_that_a_break_leaves(x, y, n):
    for k in range(3):
        b = GRID[::-1]
        if x[k, 0] > 0:
            break
        c = b
    return b, c


@row
def view_of_a_view_or_that(x, y, n):
    a = x
    for k in range(3):
        if x[k, 0] > 1:
            b = x[::-1]
        else:
            a = c = a[:]
            b = a
        if x[k, 0] > 0:
            a = GRID
    return a, b


@row
def what_one_branch_binds_twice(x, y, n):
    b = x.copy()
    c = GRID
    for k in range(3):
        if x[k, 0] > 0:
            b = c = x.copy()
    return b, c


@row
def view_that_two_branches_keep(x, y, n):
    a, b = x * 2, x * 3
    if x[0, 0] > 0:
        a = GRID[::-1]
        b = a
    if x[1, 0] > 0:
        a = x * 4
    return a, b


@row
def global_or_a_view_of_what_was_it(x, y, n):
    a = GRID
    for k in range(n):
        if x[k, 0] > 0:
            c = b = GRID
            if x[k, 0] > 0:
                break
        b = a[:]
    return a, b, b


@row
def view_that_a_later_iteration_takes_again(x, y, n):
    c = x[::-1]
    for k in range(3):
        if x[k, 0] > -1:
            b = c
            if x[k, 0] > 1:
                c = x[::-1]
    return b, c


@row
def one_of_two_that_have_no_name_left(x, y, n):
    s, t = x * 1, x * 2
    a, b = x * 3, x * 4
    if x[0, 0] > 0:
        a = s
    if x[0, 1] > 0:
        b = s
    if x[0, 2] > 0:
        a = t
    del s, t
    if x[0, 3] > 0:
        a = x * 7
    return a, b


@row
def what_the_last_iteration_makes_by_a_name_of_the_body(x, y, n):
    a = x
    for k in range(n):
        old = a
        a = a * 2
        if x[k, 1] > 0:
            old = a
    return a, old


# What nobody has bound is not None.


@row
def name_of_what_may_be_none_yet(x, y, n):
    a = None
    for k in range(3):
        if x[k, 0] > 1:
            b = a
        a = x * 2
    return b


@row
def name_of_what_may_be_none_yet_after_a_break(x, y, n):
    a = None
    for k in range(n):
        if x[k, 0] > 0:
            if x[k, 1] > 0:
                break
            b = a
        a = y[::-1]
    return a, b


@row
def name_of_a_number_that_may_be_none_yet(x, y, n):
    a = None
    for k in range(3):
        if x[k, 0] > 1:
            b = a
        a = 1.0
    return b


@row
def name_of_a_tuple_of_what_may_be_none_yet(x, y, n):
    a = (None, 1)
    for k in range(3):
        if x[k, 0] > 1:
            b = a
        a = (x[0, 0] * 1.0, 2)
    return b
