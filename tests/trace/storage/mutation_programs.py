"""Functions that write into arrays and make views of them, with the memory that they get: rows of `test_mutation.py`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]


class Place(NamedTuple):
    array: Array
    index: int


def a46() -> Array:
    return np.arange(24.0).reshape(4, 6)


def fortran() -> Array:
    return np.asfortranarray(a46())


def read_only() -> Array:
    x = a46()
    x.flags.writeable = False
    return x


ROWS: list[tuple[str, Callable[[], Sequence[Array]], Callable[..., Any]]] = []


def row(*arguments: Callable[[], Any], name: str = "") -> Callable[[Any], Any]:
    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        for make in arguments or (a46,):
            ROWS.append((f"{function.__name__}-{make.__name__}", make, function))
        return function

    return add


def overlapping() -> list[Array]:
    a = np.arange(10.0)
    return [a[1:], a[:-1]]


def reversed_too() -> list[Array]:
    a = np.arange(10.0)
    return [a[::-1], a]


def transposed_too() -> list[Array]:
    b = np.arange(16.0).reshape(4, 4)
    return [b.T, b]


def every_other() -> list[Array]:
    a = np.arange(16.0)
    return [a[1:12:2], a[5:11]]


def blocks() -> list[Array]:
    b = np.arange(36).reshape(6, 6)
    return [b[1:4, 2:5], b[:3, :3]]


def twice() -> list[Array]:
    a = a46()
    return [a, a]


def two_views() -> list[Array]:
    a = a46()
    return [a[1:], a[1:]]


def with_a_stranger() -> list[Array]:
    a = np.arange(9.0)
    return [a[2:], a[:-2][::1]]


def one_element() -> list[Array]:
    a = np.arange(1.0)
    return [a, a[::-1]]


def every_other_row() -> list[Array]:
    """In memory whose size is no multiple of the distance of rows."""
    a = np.arange(36.0).reshape(3, 3, 4)[::2]
    return [a, a[:, ::-1]]


def flat_memory() -> list[Array]:
    """Rows of memory that knows of none, and has more elements."""
    a = np.arange(19.0)
    return [a[2:18].reshape(4, 4)[::-1], a[2:18].reshape(4, 4)]


def from_a_buffer() -> list[Array]:
    a = np.frombuffer(bytearray(np.arange(12.0).tobytes()))
    return [a[:-2], a[2:]]


@row(overlapping, reversed_too, every_other, transposed_too, blocks, twice, two_views, with_a_stranger)
@row(one_element, every_other_row, flat_memory, from_a_buffer)
def both_written(x: Array, y: Array) -> Any:
    x += 1
    y *= 2
    x[...] = y + x
    return x, y, x[1:], y.sum()


@row(overlapping, transposed_too, twice, flat_memory, from_a_buffer)
def one_written(x: Array, y: Array) -> Any:
    x -= y
    return y * 2, x.T


@row(a46, fortran)
def whole_array_functions(x: Array) -> Any:
    np.copyto(x, -x, where=x > 3)
    np.fill_diagonal(x, 3.0)
    np.fill_diagonal(x[1:, 2:], [1.0, 2.0])
    np.put(x, [1, 2, 5, 7], [5.0, 6.0])
    x.put([1, -2], 9.0)
    np.put(x, [30, -40], [7.5], mode="wrap")
    np.place(x, x > 4, [1.0, 2.0, 8.0])
    np.putmask(x, x > 1, [1.0, 2.0, 7.0])
    np.put_along_axis(x, np.array([[0], [1], [2], [3]]), 7.0, axis=1)
    x[-1].fill(0.5)
    return x


@row(fortran)
def fills(x: Array) -> Any:
    x.fill(3)
    np.copyto(x[1], 2.0)
    return x.sum()


@row(a46, fortran)
def ufunc_at(x: Array) -> Any:
    np.add.at(x, [0, 0, 1], 1.0)
    np.add.at(x, (slice(None), [0, 0, 1]), 1.0)
    np.multiply.at(x, ([0, 0], [1, 1]), 2.0)
    np.maximum.at(x, [0, 2], np.ones(6) * 5)
    n = np.arange(5, dtype=np.uint8)
    np.add.at(n, [0, 0, 4], x[0, 0] * 0 + 1.75)
    np.subtract.at(n, np.array([[1, 1], [2, 3]]), 0.5)
    x[0, :5] += n
    np.subtract.at(x, (1, [0, 0]), 3.0)
    return x


@row(a46, fortran)
def sorts(x: Array) -> None:
    x[:] = x * 7 % 5
    x.sort()
    x.sort(axis=0)
    x[1].sort()
    x[:, 2].sort()
    x[2:4][::-1].sort(0)


@row(a46, fortran)
def flat_access(x: Array) -> Any:
    x.flat[3] = 9
    x.flat[::5] = -1
    x.flat[[1, 2]] = [7, 8]
    x.T.flat[4:9] = [1, 2]
    x.flat[x > 20] = 0.25
    return x.flat[2:5], x.flat[4], [v * 2 for v in x.flat], len(x.flat), x.flat.copy()


@row(a46, fortran)
def flat_augmented(x: Array) -> Any:
    x.flat[1:9:2] *= 3
    x.T.flat[[0, 7]] += x.flat[1:3]
    places = x.flat
    places[3] -= 1
    places[20:] **= 2
    return x


@row(a46, fortran)
def flat_assigned(x: Array) -> Any:
    x.flat = np.arange(5.0)
    return x


@row(a46, fortran)
def reshaped_in_place(x: Array) -> Any:
    y = x[...]
    y.shape = (4, 2, 3)
    y[1] = 0
    z = x * 2
    z.shape = (4, 3, 2)
    return y, z


@row(a46, fortran)
def incompatible_shape(x: Array) -> Any:
    y = x[:, :4]
    y.shape = (16,)
    return y


@row()
def resized(x: Array) -> Any:
    y = np.arange(6.0)
    y.resize((2, 5))
    z = np.ones((2, 3))
    z.resize(4)
    return y, z


@row()
def resized_view(x: Array) -> Any:
    x[1:].resize((3, 3))


@row()
def resized_argument(x: Array) -> Any:
    x.resize((3, 3))


@row(a46, fortran)
def reshape_is_view_or_copy(x: Array) -> Any:
    a, b, c, d = x.reshape(-1), x.ravel(), x.T.reshape(-1), x.reshape(2, 2, 6)
    a[2:5] = 0
    b[0] = 5
    c[7] = 6
    d[1, 0][::2] = 8
    e = x.reshape((6, 4), order="F")
    e[0] = -1
    return x.T[::-1], a, b, c, d, e, x.ravel("K"), x.ravel("F"), x.flatten()


@row(a46, fortran)
def chains(x: Array) -> Any:
    x[2:4].T[1:] = 7
    x.swapaxes(0, 1).reshape(6, 2, 2)[:, 1] = 4
    x[::-1, 1::2].T[:, ::-2] += 5
    x[None, 1, :, None][0, 2:4] = 1
    return x[1:, ::2][::-1].T, x[..., None], x[1][2:]


@row(a46, fortran)
def diagonals(x: Array) -> Any:
    square = x[:4, 1:5]
    seen = square.diagonal(1)
    square[0, 1] = 77
    np.einsum("ii->i", square)[1:] += 10
    np.einsum("ij->ji", square)[0] = 3
    return seen, np.diag(square), np.diagonal(x, -1), square.diagonal().copy(), np.einsum("ii->i", square)


@row(a46, fortran)
def overlapping_assignments(x: Array) -> Any:
    x[1:] += x[:-1]
    x[1:, 2:] = x[:-1, :-2]
    np.add(x[1:], x[:-1], out=x[1:])
    x[:] = x[::-1]
    x[:, 1:] = x[:, :-1]
    x[0], x[1] = x[1], x[0]
    x[2], x[3] = x[3].copy(), x[2].copy()
    x[:4, :4] += x[:4, :4].T
    return x


@row(a46, fortran)
def out_arguments(x: Array) -> Any:
    first = np.add(x, 1, out=x)
    np.multiply(x, 2, out=x, where=x > 3)
    np.sqrt(np.abs(x), out=x[:, ::-1])
    y = np.zeros(6)
    np.sum(x, axis=0, out=y)
    x.mean(0, out=y)
    np.cumsum(x, axis=0, out=x)
    np.clip(x, 1, 50, out=x)
    x.clip(2, 40, out=x)
    x.round(1, out=x)
    np.take(x, [1, 0], axis=0, out=x[:2])
    z = np.zeros((4, 4))
    np.matmul(x, x.T, out=z)
    np.negative(x[0], x[1])
    q, r = np.divmod(x, 5, out=(x, np.zeros((4, 6))))
    return first, y, z, q, r


@row(a46, fortran)
def views_of_arguments(x: Array) -> Any:
    return (
        np.swapaxes(x, 0, 1), np.moveaxis(x, 0, 1), x[None], np.expand_dims(x, 1), np.squeeze(x), np.atleast_3d(x), x[...],
        np.rot90(x), np.flip(x), np.broadcast_to(x, (2, 4, 6)), np.split(x, 2), np.hsplit(x, 2), x.view(), x.real, x.conj(),
        np.asarray(x), x.astype(float, copy=False), np.ascontiguousarray(x), np.asfortranarray(x), x.squeeze(), x.imag,
    )  # fmt: skip


@row(a46, fortran)
def results_in_memory_order(x: Array) -> Any:
    y = x * 2
    return (
        y, x.copy(), x.copy("K"), np.copy(x), np.zeros_like(x), x.astype("f4"), x + x.T.T, np.array(x), x.flatten(), x.sum(0),
        -x[:, ::2], (x + 1).T, np.sin(x).T.copy("F"), x.reshape(2, 2, 6).transpose(2, 0, 1) + 1, y.T, np.where(x > 0, x, 0),
    )  # fmt: skip


@row(read_only)
def reads_only(x: Array) -> Any:
    return x[1:], x, x.T, x.reshape(-1), x * 2, x.view(), x.flags.writeable


@row(read_only)
def writes_read_only(x: Array) -> Any:
    y = x * 2
    x[0] += 1
    return y


@row(read_only)
def out_is_read_only(x: Array) -> Any:
    np.add(x, 1, out=x)


@row()
def locked_in_place(x: Array) -> Any:
    y = x * 1
    y.flags.writeable = False
    z = x[1:]
    z.setflags(write=False)
    return y, z, y.flags.c_contiguous, x.T.flags["F"], y.flags["WRITEABLE"], z.flags.owndata


@row()
def locked_and_written(x: Array) -> Any:
    y = x * 1
    y.flags.writeable = False
    y[0] = 1


@row(lambda: a46().astype(">f8"))
def byte_swapped(x: Array) -> Any:
    y = x + 1
    x += 1
    x[0] = 5
    return y, x, x[1:], x.T, -x, x.copy() * 2


@row(a46, fortran)
def methods_by_class(x: Array) -> Any:
    np.ndarray.fill(x[0], 3)
    np.ndarray.sort(x)
    x.__setitem__((1, 2), 4)
    return np.ndarray.sum(x), x.__getitem__(0)


@row()
def target_first(x: Array) -> Any:
    box = [1.0]

    def change() -> float:
        box[0] = 100.0
        x[0, 0] = 50.0
        return 1.0

    box[0] += change()
    x[0, 0] += change()
    x[0] += change()
    return box, x


@row()
def scalar_takes_no_items(x: Array) -> Any:
    v = x[0, 0]
    v[...] += 1


@row()
def tuple_takes_no_items(x: Array) -> Any:
    pair = (x, 1)
    pair[0] += 1  # type: ignore[index]  # the array has changed by then


@row()
def namedtuple_takes_no_values(x: Array) -> Any:
    place = Place(x, 1)
    place.array += 1  # type: ignore[misc]
