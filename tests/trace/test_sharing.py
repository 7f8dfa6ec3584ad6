"""Which results are arguments, parts of them, or parts of each other?  As in NumPy: out of branches, of loops, through views."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.trace.context import Trace, activate
from jitml.trace.names import kind_of
from jitml.trace.sharing import Output
from jitml.trace.tracers import lift
from programs.comparing import difference

Array = np.ndarray[Any, Any]
ROWS: list[Callable[..., Any]] = []


def row(function: Callable[..., Any]) -> Callable[..., Any]:
    ROWS.append(function)
    return function


def first(a, w):
    return a if w else a.copy()


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


def arguments(call: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(call)
    return rng.integers(-4, 5, (3, 4)) + 0.0, rng.integers(-4, 5, (3, 4)) + 0.0, (1, 3, 2)[call % 3]


def arrays(x: Any) -> list[Any]:
    if isinstance(x, dict):
        x = list(x.values())
    if isinstance(x, (tuple, list)):
        return [a for item in x for a in arrays(item)]
    return [x] if isinstance(x, np.ndarray) else []


def sharing(result: Any, given: tuple[Any, ...]) -> Any:
    found = [*arrays(result), *arrays(given)]
    return (
        [[bool(np.shares_memory(a, b)) for b in found] for a in found],
        [[a is b for b in found] for a in found],
        [a.flags.writeable for a in found],
    )


@pytest.mark.filterwarnings("error::jitml.errors.UncompiledWarning")
@pytest.mark.parametrize("function", ROWS, ids=lambda f: f.__name__)
def test_sharing(function: Callable[..., Any]) -> None:
    compiled = jitml.jit(function)
    for call in range(8):
        eager, jitted = arguments(call), arguments(call)
        try:
            want = function(*eager)
        except Exception as error:
            with pytest.raises(type(error)):
                compiled(*jitted)
            continue
        got = compiled(*jitted)
        assert not difference((arrays(got), jitted), (arrays(want), eager), np.array_equal)
        assert sharing(got, jitted) == sharing(want, eager)


def test_a_result_of_a_branch_takes_no_array_of_another_shape() -> None:
    """What one branch returns was one result with a name that is another array there, and both were of one shape (60000:443)."""
    with activate(Trace()):
        x, y, z = lift(np.zeros(3)), lift(np.zeros(4)), lift(np.ones(4))
        assert not Output(kind_of(y), (None, y)).takes(x, y)
        assert Output(kind_of(y), (None, y)).takes(z, y)


@pytest.mark.parametrize("n", [2, 3])
def test_a_smaller_view_out_of_two_loops_is_a_view(n: int) -> None:
    """That the inner loop's array may be a part of the outer one's was forgotten for being that array, perhaps (150000:2728)."""

    def program(x: Array, n: int) -> Array:
        for j in range(n):
            k = 0
            while k < 2:
                k += 1
                x = x[j:]
        return x

    compiled = jitml.jit(program)
    for size in (9, 8, 7, 6):
        x = np.arange(float(size))
        got = compiled(x, n)
        np.testing.assert_array_equal(got, program(x, n))
        assert np.shares_memory(got, x) == np.shares_memory(program(x, n), x)
