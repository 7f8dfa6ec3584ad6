"""Out of loops."""

# ruff: noqa  # code as people write it, odd code too
# mypy: ignore-errors

from __future__ import annotations

from tests.trace.regions.sharing.rows import first, row

# Out of loops.


@row
def last_row(x, y, n):
    for v in x:  # noqa: B007
        pass
    return v, x


@row
def last_row_by_another_name(x, y, n):
    for v in x:
        w = v
    return w, x


@row
def row_by_index(x, y, n):
    for i in range(len(x)):
        v = x[i]
    return v


@row
def row_by_index_is_written(x, y, n):
    for i in range(len(x)):
        v = x[i]
    v[1] = 77
    return v.sum()


@row
def last_row_of_several(x, y, n):
    for v, w in zip(x, y):
        u, v = v, w
    return u, v, x


@row
def previous_row(x, y, n):
    previous = x[0]
    for v in x:
        w = previous + v
        previous = v
    return previous, w


@row
def row_before(x, y, n):
    v = y[0]
    for i in range(n):
        v = x[i % 2]
    return v, y


@row
def nested_rows(x, y, n):
    for v in x:
        for w in y:
            v, w = w, v
    return v, w


@row
def column_and_more(x, y, n):
    for i in range(3):
        v = x[:, i][:, None]
    return v


@row
def reshaped_row(x, y, n):
    for i in range(3):
        v = x[i].reshape(2, 2).T
    return v


@row
def row_in_a_branch(x, y, n):
    for i in range(3):
        if x[i, 0] > 0:
            v = x[i]
        else:
            v = y[i]
    return v


@row
def row_that_a_branch_keeps(x, y, n):
    best = x[0]
    for i in range(3):
        if x[i, 0] > best[0]:
            best = x[i]
    return best


@row
def whole_in_a_loop(x, y, n):
    for _ in range(n):
        v = x
    return v


@row
def view_in_a_loop(x, y, n):
    for _ in range(n):
        v = x[1:]
    return v


@row
def choice_in_a_loop(x, y, n):
    for i in range(3):
        v = first(x, x[i, 0] > 0)
    return v, x


@row
def choice_of_a_view_in_a_loop(x, y, n):
    for i in range(3):
        v = first(x[1:], x[i, 0] > 0)
    return v


@row
def while_none(x, y, n):
    while x[0, 0] > 0 and n > 0:
        x = x - 3
        n -= 1
    return x


@row
def while_with_history(x, y, n):
    v = y
    while x[0, 0] > 0:
        v = x
        x = x - 3
    return x, v


@row
def while_kept_by_a_branch(x, y, n):
    k = 0
    while x[k, 1] > 0 and k < 2:
        if x[k, 2] > 0:
            y = y * 2
        k += 1
    return y


@row
def loop_kept_by_a_branch(x, y, n):
    for i in range(3):
        if x[i, 2] > 0:
            y = y * 2
    return y, x


@row
def loop_ends_early(x, y, n):
    for i in range(3):
        if x[i, 0] > 0:
            break
        y = y + 1
    return y


@row
def return_from_a_loop(x, y, n):
    for i in range(3):
        if x[i, 0] > 0:
            return x[i]
    return y


@row
def return_of_one_from_a_loop(x, y, n):
    for i in range(3):
        if x[i, 0] > 0:
            return x
        x = x + 1
    return y


@row
def exchange_with_history(x, y, n):
    for _ in range(n):
        v, x = x, x + 1
    return v, x


@row
def exchange_with_history_is_written(x, y, n):
    z = x
    for _ in range(n):
        v, x = x, x + 1
    v[0] = 5
    return v, z


@row
def exchange_once(x, y, n):
    for _ in range(n):
        x, y = y, x
    return x, y


@row
def two_names_in_a_loop(x, y, n):
    for i in range(3):
        a = x + i
        b = a
    return a, b


@row
def flips_in_a_loop(x, y, n):
    for _ in range(n):
        x = x[::-1]
    return x


@row
def maybe_no_iteration(x, y, n):
    for _ in range(int(x[0, 0] > 0) * 2):
        y = y + 1
    return y


@row
def maybe_no_iteration_of_a_view(x, y, n):
    z = y[1:]
    for _ in range(int(x[0, 0] > 0) * 2):
        z = z + 1
    return z, y


# The first iteration, traced apart, makes an array that a later one writes by another name.


def by_another_name(first, other):
    """The rows differ in what else holds the array, and in which of its names the iterations bind anew."""

    def name_is_rebound(x, y, n):
        total = 0
        for i in range(4):
            if i == 0:
                z = x.copy()
                w = first(z)
            else:
                z += 1
                total = total + other(w).sum()
                z = z * 2
        return total, z, other(w)

    def other_is_rebound(x, y, n):
        total = 0
        for i in range(4):
            if i == 0:
                z = x.copy()
                w = first(z)
            else:
                z += 1
                total = total + other(w).sum()
                w = first(other(w) * 2)
        return total, z, other(w)

    return name_is_rebound, other_is_rebound


for held, first_of, other_of in (
    ("itself", lambda z: z, lambda w: w),
    ("a_view", lambda z: z[1:], lambda w: w),
    ("a_list", lambda z: [z], lambda w: w[0]),
):
    for made in by_another_name(first_of, other_of):
        made.__name__ = f"{held}_{made.__name__}"
        row(made)


@row
def list_of_before_gets_what_is_written(x, y, n):
    total, kept = 0, []
    for i in range(4):
        if i == 0:
            z = x.copy()
            kept.append(z)
        else:
            z += 1
            total = total + kept[0].sum()
            z = z * 2
    return total, z, kept
