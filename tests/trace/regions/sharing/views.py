"""Through views and functions that may give the array itself."""

# ruff: noqa  # code as people write it, odd code too
# mypy: ignore-errors

from __future__ import annotations

import numpy as np
from tests.trace.regions.sharing.rows import row

# Through views and functions that may give the array itself.


@row
def the_array_itself(x, y, n):
    return (
        np.asarray(x),
        np.atleast_1d(x),
        np.atleast_2d(x),
        np.ascontiguousarray(x),
        np.squeeze(x),
        x.squeeze(),
        x.real,
        x.astype(x.dtype, copy=False),
    )


@row
def views(x, y, n):
    return (
        np.squeeze(x[:1]),
        np.ravel(x),
        x.ravel(),
        np.reshape(x, -1),
        x[None],
        x[:, None],
        x.T,
        x.swapaxes(0, 1),
        np.moveaxis(x, 0, 1),
    )


@row
def more_views(x, y, n):
    return (
        x.diagonal(),
        np.diag(x),
        np.flip(x),
        np.rot90(x),
        x.view(),
        x[...],
        x[:],
        np.broadcast_to(x[0], (2, 4)),
        np.expand_dims(x, 0),
        np.atleast_3d(x),
    )


@row
def copies(x, y, n):
    return (
        x.copy(),
        np.array(x),
        x[[0, 1]],
        x[x > 0],
        x + 0,
        x.flatten(),
        np.copy(x),
        x.T.ravel(),
        x.T.reshape(-1),
        np.roll(x, 1),
        np.where(True, x, y),
    )


@row
def views_of_what_was_made(x, y, n):
    a = x * 2
    return a[1:], a[:2], a.T, a


@row
def views_of_views(x, y, n):
    a = (x * 2)[:, 1:]
    return a[1:], a[:2, 1:], x[1:][1:]


@row
def split(x, y, n):
    return np.split(x, 3), np.hsplit(x, 2), np.array_split(x * 2, 2)


@row
def out_is_the_argument(x, y, n):
    return np.add(x, y, out=x), np.negative(y, out=y), np.cumsum(x, axis=0, out=x)


@row
def augmented(x, y, n):
    z = x
    z += 1
    w = y[1:]
    w *= 2
    return z, w


@row
def the_same_twice(x, y, n):
    a = x * 2
    return a, a, [a, (a,)]


@row
def a_view_twice(x, y, n):
    v = x[1:]
    return v, [v], v[:1], x[1:]


@row
def a_part_of_what_was_made_twice(x, y, n):
    v = (x * 2)[1:]
    return v, v


@row
def a_view_twice_out_of_a_branch(x, y, n):
    if x.sum() > n:
        v = x[1:]
        w = v
    else:
        v = y[1:]
        w = v
    return v, w, x, y


@row
def two_views_twice_out_of_a_branch(x, y, n):
    if x.sum() > n:
        v, w = x[1:], x[1:]
    else:
        v, w = y[1:], y[1:]
    return v, w


@row
def two_views_of_what_a_branch_made(x, y, n):
    if x.sum() > n:
        u = x * 2
        v, w = u[1:], u[1:]
    else:
        u = y * 2
        v, w = u[1:], u[1:]
    return v, w


@row
def made_by_columns_or_something_else(x, y, n):
    u = np.asfortranarray(x) * 2
    v = u if x.sum() > n else y * 3
    return v, u, u[...], v


@row
def a_view_twice_out_of_a_loop(x, y, n):
    for i in range(n):
        v = (x * i)[1:]
        w = v
    return v, w


@row
def a_view_that_becomes_the_argument(x, y, n):
    v = x[...]
    for _ in range(n):
        v = x
    return v


@row
def a_view_taken_again_by_a_while(x, y, n):
    v = w = x[1:]
    k = x[0, 0]
    while k > 0:
        v = x[1:]
        k = k - 1
    return v, w


@row
def a_view_taken_again_in_some_iterations(x, y, n):
    u = x * 2
    v = w = u[1:]
    for i in range(n):
        if x[i, 0] > 0:
            v = u[1:]
    return v, w


@row
def a_view_or_the_argument(x, y, n):
    v = x[...]
    if y.sum() > n:
        v = x
    return v, x


@row
def a_row_and_the_last_that_was_kept(x, y, n):
    for v in x:
        if y.any():
            kept = v
    return kept, v


@row
def a_row_of_what_was_made_and_the_last_that_was_kept(x, y, n):
    z = x * 2
    for v in z:
        if y.any():
            kept = v
    return kept, v


@row
def unpacked(x, y, n):
    _, b, c = x
    return b, c


@row
def listed(x, y, n):
    return [v for v in x if len(v)]


@row
def list_of_rows(x, y, n):
    rows = []
    for v in x:
        rows.append(v)
    return rows


@row
def rows_in_a_dict(x, y, n):
    return {"a": x[0], "b": list(x), "c": {"d": x}}


@row
def read_only(x, y, n):
    z = x[1:]
    z.flags.writeable = False
    return z, np.broadcast_to(y, (2, 3, 4))


# Views of all of an array: other objects on its memory.


@row
def all_of_an_argument_in_a_loop(x, y, n):
    for _ in range(2):
        x = x[0:]
    return x


@row
def all_of_it_as_often_as_not(x, y, n):
    k = 0
    while k < x[0, 0]:
        x = x.view()
        k = k + 1
    return x, y


@row
def names_of_it_in_turn(x, y, n):
    z = x
    for _ in range(n):
        z, x = x[:], z
    return z, x, z is x


@row
def one_view_of_it_by_two_names(x, y, n):
    z = x
    for _ in range(2):
        z = x[:]
        x = z
    return z, x
