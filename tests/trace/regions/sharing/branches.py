"""Out of branches: one or the other."""

# ruff: noqa  # code as people write it, odd code too
# mypy: ignore-errors

from __future__ import annotations

from tests.trace.regions.sharing.rows import first, row

# Out of branches: one or the other.


@row
def argument_or_copy(x, y, n):
    return first(x, x[0, 0] > 0)


@row
def argument_or_other(x, y, n):
    z = x if x.sum() > n else y
    return z, x


@row
def view_of_either(x, y, n):
    z = x if x.sum() > n else y
    return z[1:], z.T, z[...]


@row
def parts_that_overlap_or_are_one(x, y, n):
    if x.sum() > n:
        t = x * 2
        a, b = t[1:], t[:-1]
    else:
        a = b = y[1:]
    return a, b


@row
def parts_that_overlap_of_one_array_or_another(x, y, n):
    if x.sum() > n:
        t = x * 2
        a, b = t[1:], t[:-1]
    else:
        a, b = y[1:], y[:-1]
    return a, b


@row
def one_of_three(x, y, n):
    if x[0, 0] > n:
        z = x if x[0, 1] > 0 else y
    else:
        z = x * 2
    return z, y


@row
def choice_of_a_choice(x, y, n):
    a = first(x, x[0, 0] > 0)
    b = first(a, x[0, 1] > 0)
    return a, b, x


@row
def choice_of_what_was_made(x, y, n):
    made = x * 2
    a = made if x[0, 0] > 0 else made.copy()
    return a, made


@row
def choice_alone(x, y, n):
    made = x * 2
    made = made if x[0, 0] > 0 else y
    return made


@row
def early_return(x, y, n):
    if x[0, 0] > 0:
        return x
    y = y + 1
    if x[0, 1] > 0:
        return y
    return x[1:]


@row
def early_return_of_a_pair(x, y, n):
    if x[0, 0] > 0:
        return x, y
    return y, x


@row
def branch_shares(x, y, n):
    if x[0, 0] > 0:
        a = x * 2
        b = a
    else:
        a = x * 3
        b = a
    return a, b


@row
def branch_shares_once(x, y, n):
    if x[0, 0] > 0:
        a = x * 2
        b = a
    else:
        a = x * 3
        b = a * 2
    return a, b


@row
def branch_shares_and_is_written(x, y, n):
    if x[0, 0] > 0:
        a = x * 2
        b = a
    else:
        a = x * 3
        b = a
    b[0] = 7
    return a


@row
def branch_shares_once_and_is_written(x, y, n):
    if x[0, 0] > 0:
        a = x * 2
        b = a
    else:
        a = x * 3
        b = a * 2
    b[0] = 7
    return a, b


@row
def branch_makes_a_view(x, y, n):
    if x[0, 0] > 0:
        a = x * 2
        b = a[1:]
    else:
        a = x * 3
        b = a[1:]
    b[0] = 7
    return a, b


@row
def branch_makes_views(x, y, n):
    if x[0, 0] > 0:
        t = x * 2
        a, b = t[1:], t[:-1]
    else:
        t = x * 3
        a, b = t[1:], t[:-1]
    b[1] = 7
    return a, b


@row
def branch_exchanges(x, y, n):
    if x[0, 0] > 0:
        x, y = y, x
    return x, y


@row
def rows_by_a_branch(x, y, n):
    return x[0] if x[0, 0] > 0 else x[1]


@row
def row_by_a_number(x, y, n):
    k = int(x[0, 0] > 0)
    return x[k], x[: k + 1], x


# What may be written depends on the branch, too.


@row
def read_only_or_rows_that_are_picked(x, y, n):
    z = x * 2
    z.flags.writeable = False
    if y[0, 0] > 0:
        z = x[x[:, 0] > 0]
    return z


@row
def rows_that_are_picked_or_read_only(x, y, n):
    z = x[x[:, 0] > -2]
    for k in range(3):
        if y[0, k] > 1:
            z = z[:2] * 2
            z.flags.writeable = False
    return z
