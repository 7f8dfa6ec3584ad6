"""Python's own functions, unpacking and itertools over arrays and their rows."""

# ruff: noqa  # code as people write it
# mypy: ignore-errors

from __future__ import annotations

import hashlib
import itertools
import math
import operator
import statistics
import zlib
from functools import reduce

import numpy as np

from programs.everyday.table import rows

ROWS, calls, session = rows()

X = np.linspace(-1.0, 2.0, 7)
Y = np.linspace(3.0, 1.0, 7)
A = np.arange(6.0).reshape(2, 3)
THREE = ((X,), (Y,), (X[:4],))


@calls((np.array([1.0, 2.0]),), (np.array([3.0, 5.0]),), (np.array([1, 2]),))
def unpacking_two(x):
    a, b = x
    return a * b, b - a


@calls(*THREE)
def unpacking_with_a_star(x):
    first, *middle, last = x
    return first, middle, last, len(middle)


@calls((A,), (A[::-1],), (A * 2,))
def unpacking_rows_and_columns(a):
    (x, y, z), second = a
    u, v, w = a.T
    return x + y * z, second, u * v - w


@calls(*THREE)
def sums_and_extremes(x):
    return sum(x), min(x), max(x), any(x > 1), all(x > -2), sum(x > 0), min(x, default=0), max(abs(v) for v in x)


@calls((A,), (-A,), (np.ones((3, 1)),))
def sums_over_rows(a):
    return sum(a), sum(a, np.ones(a.shape[1])), [sum(row) for row in a], max(a[:, 0]), max(map(sum, a))


@calls(*THREE)
def sorting_an_array(x):
    return sorted(x), sorted(x, reverse=True), list(reversed(x))


@calls(*THREE)
def sorting_by_a_key(x):
    order = sorted(range(len(x)), key=lambda i: -abs(x[i]))
    return order, x[order]


@calls((A,), (-A,), (np.ones((2, 1)),))
def sorting_rows_by_a_key(a):
    return sorted(a.tolist(), key=lambda row: -row[0]), min(a, key=lambda row: row.sum()), max(a, key=np.sum)


@calls(*THREE)
def mapping_and_filtering(x):
    return list(map(abs, x)), list(filter(lambda v: v > 0.5, x)), list(map(lambda a, b: a * b, x, x[::-1]))


@calls(*THREE)
def zips_and_enumerates(x):
    return [i * v for i, v in enumerate(x, 1)], [a - b for a, b in zip(x, x[1:])], list(zip(x, range(3)))


@calls(*THREE)
def itertools_over_elements(x):
    pairs = [a * b for a, b in itertools.combinations(x, 2)]
    running = list(itertools.accumulate(x))
    return sum(pairs), running, list(itertools.chain(x[:1], x[-1:])), list(itertools.islice(x, 2))


@calls((X[:3], Y[:2]), (Y[:3], X[:2]), (X[:1], X[:2]))
def itertools_product(x, y):
    return np.array([a + b for a, b in itertools.product(x, y)]), [list(p) for p in itertools.pairwise(y)]


@calls(*THREE)
def reducing(x):
    return reduce(operator.mul, x), reduce(lambda a, v: a * 0.5 + v, x, 0.0)


@calls(*THREE, host=True)
def numbers_of_an_array(x):
    n = x.size
    return (
        float(x[0]),
        int(x[-1] * 10),
        bool(x[0]),
        round(x[0], 2),
        round(float(x[1]), 1),
        math.floor(x[2]),
        abs(x[0]),
        divmod(x[2], 2),
        n,
    )


@calls(*THREE, host=True)
def math_functions_of_elements(x):
    return math.sqrt(abs(x[0])), math.exp(x[1]), math.hypot(x[0], x[1]), math.isclose(x[0], x[1]), math.fsum(x), math.prod(x)


@calls(*THREE)
def lists_and_tuples_of_arrays(x):
    return list(x), tuple(x[:2]), x.tolist(), [*x, 1.0], (*x[:1], "end")


@calls((np.array([1, 2, 2]),), (np.array([3, 2, 2]),), (np.array([3]),))
def a_set_of_values(x):
    return len(set(x.tolist())), sorted(set(x))


@calls((A,), (A * 2,), (np.ones((3, 2)),))
def items_of_an_array(a):
    return a.item(1), a.item(1, 0), a.item((0, 1)), a[0, 0].item()


@calls((A,), (A * 2,), (np.ones((3, 2)),))
def ndenumerate_and_ndindex(a):
    out = np.zeros_like(a)
    for (i, j), v in np.ndenumerate(a):
        out[i, j] = v * i + j
    for index in np.ndindex(a.shape):
        out[index] += 1
    for i, j in np.ndindex(*a.shape):
        out[i, j] *= 2
    return out


@calls((A,), (A * 2,), (np.ones((3, 2)),), (np.ones((2, 0)),), (np.ones((40, 50)),))
def products_of_ranges(a):
    out, last = np.zeros_like(a), None
    for row, (i, j) in enumerate(itertools.product(range(a.shape[0]), range(a.shape[1]))):
        out[i, j] = a[i, j] * row + i - 2 * j
    for i, j, k in itertools.product(range(1, 7, 2), range(len(a) - 1, -1, -1), range(2)):
        if k > i or j == 5:
            continue
        if i + j > 9:
            break
        last = i, j, k
    else:
        out += 100.0
    return out, row if a.size else -1, i, j, k, last


@calls((A,), (A * 2,), (np.ones((3, 2)),))
def products_that_are_no_loops(a):
    some = itertools.product(range(2), range(3))
    first, rest = next(some), list(some)
    pairs = dict(itertools.product(range(2), repeat=2))
    mixed = [(x, n) for x, n in itertools.product(a[0], range(2))]
    total = 0.0
    for x, n in itertools.product(a[0], range(2)):  # which has its elements from the start
        a[0] += 1.0
        total += x * n
    return first, rest, pairs, mixed, total, max(itertools.product(range(2), range(3))), [*itertools.product()], [*some]


@calls((A,), (A * 2,), (np.ones((3, 2)),), as_python="`with` enters a")
def nditer_reads_and_writes(a):
    total = 0.0
    for v in np.nditer(a):
        total += v * 2
    with np.nditer(a, op_flags=["readwrite"]) as it:
        for v in it:
            v[...] = v * 2
    return total


@calls((A,), (A * 2,), (np.ones((3, 2)),))
def nditer_reads(a):
    total = 0.0
    for v in np.nditer(a):
        total += v * 2
    return total


@calls((A,), (A * 2,), (np.ones((3, 2)),))
def the_flat_iterator(a):
    b = a * 1
    b.flat[1] = 7
    b.flat[::2] = 0
    return [v for v in a.flat], a.flat[2], a.flat[1:3], a.flat[[0, 2]], b, len(a.flat), sum(a.flat), np.array(list(a.flat))


@calls((A,), (A * 2,), (np.ones((3, 2)),))
def a_loop_over_flat_values(a):
    total = 0.0
    for k, v in enumerate(a.flat):
        total += k * v
    return total


@calls((A,), (A * 2,), (np.ones((3, 2)),), refused="tobytes")
def bytes_of_an_array(a):
    return (a + 1).tobytes()


@calls((A,), (A * 2,), (np.ones((3, 2)),), refused="tobytes")
def pythons_bytes_of_an_array(a):
    return bytes(a[0] > 0)


@calls((A,), (A * 2,), (np.ones((3, 2)),), refused="memory itself")
def the_memory_of_an_array(a):
    return len(memoryview(a))


@calls((A,), (A * 2,), (np.ones((3, 2)),), refused="memory itself")
def bytes_of_arrays_joined(a):
    return b"".join([a, a + 1])


@calls((A,), (A * 2,), (np.ones((3, 2)),), refused="memory itself")
def bytes_of_scalars_joined(a):
    return bytearray(b"-").join(v for v in (a[0, 0], a[1, 0]))


@calls((A,), (A * 2,), (np.ones((3, 2)),), refused="memory itself")
def the_checksum_of_an_array(a):
    return zlib.crc32(a) + 1


@calls((A,), (A * 2,), (np.ones((3, 2)),), refused="memory itself")
def the_hash_of_an_array(a):
    return hashlib.sha256(a + 1).hexdigest()


@calls((A,), (A * 2,), (np.ones((3, 2)),), refused="tofile")
def an_array_to_a_file(a):
    a.tofile("/dev/null")
    return a


@calls(*THREE)
def string_building(x):
    return ", ".join(f"{v:.2f}" for v in x), str(x.shape), "%d values" % len(x), "{} rows".format(x.ndim)


@calls(*THREE)
def a_while_over_a_python_list(x):
    queue = [0]
    seen = []
    while queue:
        i = queue.pop(0)
        seen.append(x[i])
        if i + 1 < len(x):
            queue.append(i + 1)
    return seen


@calls(*THREE)
def comparisons_and_ternaries(x):
    label = "up" if len(x) > 5 else "down"
    value = x[0] if x[0] > x[-1] else x[-1]
    return label, value, 0 < x[1] < 1, x[0] == x[0], not x[0], x[0] and x[1], x[0] or 3.0


@calls(*THREE)
def statistics_of_lists(x):
    return statistics.mean([1.0, 2.0]) * x, np.mean([v for v in x]), np.array([[v, v * 2] for v in x])


@calls(*THREE)
def isinstance_and_types(x):
    return (
        isinstance(x, np.ndarray),
        isinstance(x[0], float),
        isinstance(x[0], np.floating),
        type(x) is np.ndarray,
        type(x[0]).__name__,
        np.isscalar(x[0]),
        callable(x.sum),
    )


@calls((3, X), (4, Y), (5, X))
def integers_and_shifts(n, x):
    return x * (n << 1), x * (n % 2), x * -n // 2, n**2, f"{n:03d}", n.bit_length()


@calls(*THREE)
def slices_as_objects(x):
    s = slice(1, None, 2)
    window = np.s_[:-1]
    return x[s], x[window], x[::-1][s], x[slice(None)], x[..., None], x[None, :2]
