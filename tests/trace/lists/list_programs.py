"""Lists that loops append to: how many items they get may depend on data."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from tests.trace.regions.region_programs import Array, program_list, vector

PROGRAMS: list[Any] = []
program = program_list(PROGRAMS)


@program(vector, "w")
def while_a_test_holds(x: Array) -> Any:
    ys = []
    i = 0
    while i < len(x) and x[i] > 0.2:
        ys.append(x[i] * 2)
        i += 1
    return np.array(ys, dtype=float)


@program(vector, "l")
def under_a_condition(x: Array) -> Any:
    ys = []
    for v in x:
        if v > 0.5:
            ys.append(v)
    return np.array(ys), len(ys), ys


@program(vector, "l")
def of_arrays_whose_size_the_data_decide(x: Array) -> Any:
    v = x[x > 0.1]
    total = 0.0
    for _ in range(3):
        ys = []
        for i in range(len(v)):
            ys.append(v * i)
        total += np.array(ys).sum() if len(v) else 0.0
    return total, len(ys), ys


@program(vector, "l")
def made_anew_in_each_iteration(x: Array) -> Any:
    for j in range(3):
        ys = [x * i for i in range(4)]
        zs = [v for v in x if v > j * 0.1]
    ys.append(x)
    return ys, len(ys), zs, np.array(zs)


@program(vector, "l")
def from_the_last_item(x: Array) -> Any:
    ys = [x[0]]
    for i in range(20):
        ys.append(ys[-1] * 0.5 + x[i % 3])
    return np.array(ys)


@program(vector, "w")
def until_a_break(x: Array) -> Any:
    rows = []
    for _ in range(50):
        x = x * 0.9
        if x.max() < 0.1:
            break
        rows.append(x)
    return np.stack(rows), sum(rows), rows[-1], rows[0]


@program(vector, "w")
def a_path(x: Array) -> Any:
    path = []
    k = 0
    while True:
        path.append(k)
        k = k + 1
        if k == 9 or x[k] < 0.3:
            break
    return path, np.array(path), path[-1]


@program(vector, "l")
def pairs_of_two_loops(x: Array) -> Any:
    out = []
    for i in range(3):
        for j in range(i, 4):
            if x[i * 2 + j] > 0.2:
                out.append((i, x[j]))
    total = 0.0
    for i, v in out:
        total += i * v
    return total, len(out)


@program(vector, "l")
def lists_of_lists(x: Array) -> Any:
    out = []
    for i in range(4):
        row = []
        for j in range(5):
            row.append(x[i] * j)
        out.append(row)
    return np.array(out)


@program(vector, None)
def changed_after_it_was_appended(x: Array) -> Any:
    rows = []
    for i in range(5):
        row = np.zeros(3)
        rows.append(row)
        row[:] = x[i]
    return np.concatenate(rows), np.mean(rows)


@program(vector, None)
def the_same_array_again(x: Array) -> Any:
    rows = []
    for _ in range(4):
        rows.append(x)
        x *= 2
    return rows[0], np.array(rows)


@program(vector, None)
def changed_in_the_next_iteration(x: Array) -> Any:
    rows = []
    y = x + 1
    for _ in range(4):
        y *= 2
        rows.append(y)
        y = y + 1
        rows.append(y)
    return np.array(rows)


@program(vector, None)
def changed_after_the_loop(x: Array) -> Any:
    rows = []
    for _ in range(4):
        x = x * 2
        rows.append(x)
    x += 1
    return rows[-1], x


@program(vector, "w")
def several_lists(x: Array) -> Any:
    t, times, states = 0.0, [], []
    while t < 1:
        x = x + 0.1 * np.sin(x)
        t += 0.1
        times.append(t)
        states.append(x)
    return np.array(times), states, max(times), min(times)


@program(vector, "w")
def as_long_as_it_is_short(x: Array) -> Any:
    errors = []
    while len(errors) < 10:
        x = x / 2
        errors.append(np.abs(x).max())
        if errors[-1] < 1e-2:
            break
    return errors[-1], len(errors), errors


@program(vector, None)
def items_of_two_types(x: Array) -> Any:
    out: list[Any] = []
    for i in range(4):
        if i == 2:
            out.append(x)
        else:
            out.append(x[i])
    return out


@program(vector, "l")
def indices(x: Array) -> Any:
    even = []
    for i in range(10):
        if i % 2 == 0:
            even.append(i)
    return x[even], even


# Comprehensions.


@program(vector, None)
def filtered(x: Array) -> Any:
    return [v for v in x if v > 0.5], np.array([v * 2 for v in x if v > 0.3]), np.array([v + 1 for v in x])


@program(vector, None)
def generators(x: Array) -> Any:
    return any(v > 0.99 for v in x), all(v >= 0 for v in x), sum(v * v for v in x if v > 0.2), sum((1 for v in x if v > 0.5), 3)


@program(vector, "l")
def nested_comprehensions(x: Array) -> Any:
    k = 3
    return np.array([[v * i + k for i in range(k)] for v in x])


@program(vector, "l")
def over_many_steps(x: Array) -> Any:
    return np.stack([x * i for i in range(3000)]).sum(axis=0), np.mean([x[i : i + 3].sum() for i in range(8)])


@program(vector, "l")
def of_pairs(x: Array) -> Any:
    return [a * b for a, b in zip(x, x[::-1]) if a < b], [i for i, v in enumerate(x) if v > 0.5]


@program(vector, None)
def of_python_objects(x: Array) -> Any:
    names = ["a", "b"]
    x = 1  # type: ignore[assignment]  # comprehensions see the name as it is where they stand
    return [n + "c" for n in names], [x for _ in names], max(i * 2 for i in range(3))


@program(vector, None)
def extremes(x: Array) -> Any:
    return max(v * 2 for v in x), min([v + 1 for v in x]), max(abs(v - 0.5) for v in x if v > 0)


@program(vector, "l")
def what_is_appended_depends_on_the_first_item(x: Array) -> Any:
    ys, total = [5, 7], 0
    for v in x:
        total += ys[0] * v
        if ys[0] < 6:
            ys.append(9)
    return total, ys


@program(vector, "l")
def of_views_of_what_the_loop_around_makes(x: Array) -> Any:
    for _ in range(3):
        y, ys = x * 2, []
        for _ in range(4):
            y -= 1
            ys.append(y[:2])
        z = np.stack(ys)
    return z


@program(vector, None)
def of_views_that_two_loops_append(x: Array) -> Any:
    ys = []
    for k in range(3):
        y = x * k
        for _ in range(2):
            y -= 1
            ys.append(y[:2])
    return np.stack(ys)


@program(vector, None)
def of_what_is_changed_after_the_loop_that_appends_it(x: Array) -> Any:
    for k in range(3):
        y, ys = x * k, []
        for _ in range(4):
            ys.append(y)
        y[0] += 1
        z = np.stack(ys)
    return z


@program(vector, "l")
def of_an_array_of_the_loop_around_that_stays(x: Array) -> Any:
    ys = []
    for k in range(3):
        y = x * k
        for i in range(4):
            ys.append(y[i])
    return np.stack(ys)


@program(vector, None)
def of_arrays_from_before_that_change_after_the_loop(x: Array) -> Any:
    y = x * 2
    ys, zs, us = [y], [(x, 1), (y[1:], 2)], [y[1:]]
    for i in range(4):
        ys.append(ys[-1] * 0.5)
        zs.append((x * i, i))
        us.append(x[1:] + i)
    ys[0][0] = 5
    x[1] = 7
    zs[1][0][1] = 8
    return ys, y, zs, np.array(ys), np.stack(us), ys[0] is y, ys[1]


@program(vector, None)
def of_arrays_from_before_that_the_loop_changes(x: Array) -> Any:
    y = x * 2
    ys, total = [y], 0.0
    for i in range(4):
        ys.append(ys[-1] * 0.5)
        y[0] = i
        total += ys[0][0]
    return ys, total


@program(vector, "l")
def of_an_array_from_before(x: Array) -> Any:
    ys, total = [x], 0.0
    for i in range(1200):
        ys.append(ys[-1] * 0.5 + i)
    for y in ys:
        total += y[0]
    return total, np.stack(ys, axis=1)


@program(vector, "l")
def items_are_assigned_after_the_loop(x: Array) -> Any:
    ys = []
    for v in x:
        if v > 0.3:
            ys.append(v * 2)
    ys[0] = 3.0
    ys[-1] += 1
    zs = ys
    zs[1] = ys[0] + ys[2]
    ws = [i * 2 for i in range(10)]
    ws[3] = 70
    fs = [float(v) for v in x]
    fs[2] = 1
    return ys, zs is ys, sum(ys), np.array(ys), ys[0], ys[1], ws, fs, sum(fs)


@program(vector, None)
def items_of_other_kinds_are_assigned(x: Array) -> Any:
    ys = [x * v for v in x]
    first, z = ys[1], x + 1
    ys[0] = z
    z += 1
    ys[1] += 1
    pairs = [(i, v) for i, v in enumerate(x)]
    pairs[0] = (7, x[1])
    pairs[1] = (8.0, x[1])
    pairs[2:4] = [None, "none"]
    return ys, z, first, pairs


@program(vector, "l")
def items_are_assigned_in_loops(x: Array) -> Any:
    total = 0.0
    for i in range(4):
        ys = []
        for v in x:
            ys.append(v * i)
        ys[0] = 5.0
        total += sum(ys)
    return total, ys


@program(vector, "l")
def items_from_either_end_of_mixed_lists(x: Array) -> Any:
    ys = [0]
    for v in x:
        if v > 0.4:
            ys.append(v)
    last, first, second = ys[-1], ys[0], ys[1]
    ys.append("end")
    ys[-1] = "the end"
    ys[-2] = x[0]
    ys[1] = 0.5
    return last, first, second, ys[-2], ys


@program(vector, None)
def filled_in_one_branch(x: Array) -> Any:
    for j in range(1):
        if x[j] < 2:
            ys = [v * 2 for v in x if v > 0.5]
            zs = [x * i for i in range(2)]
    ys[0] = 4.0
    return ys, sum(ys), len(ys), zs[0] + 1, np.array(zs)


@program(vector, None)
def under_two_names_of_one_branch(x: Array) -> Any:
    us = [v for v in x if v > 0.3]
    if x[0] < 2:
        vs = us
        ys = [v for v in x if v > 0.5]
        zs = ys
    zs[0] = 7.0
    vs.append(1.0)
    return ys, zs, us, len(vs)


@program(vector, None)
def sums_and_additions(x: Array) -> Any:
    ys = [v * 2 for v in x if v > 0.3]
    zs = ys
    ys += [x[0]]
    ws = [v + 0 for v in x]
    first, second, sums = [1, *ws], [*ws, 2], (ws + x, x + ws, ws + x[0])
    us = ws
    us += ws
    us += np.ones(1)
    return zs, zs is ys, first, second, sums, us, ws


@program(vector, "l")
def items_are_taken_out(x: Array) -> Any:
    ys = [v * 2 for v in x if v > -1]
    zs = []
    for v in x:
        if v > 0.02:
            zs.append(float(v))
    del zs[0]
    del zs[1], zs[-2]
    first = zs.pop(0)
    del zs[-1]
    zs.insert(0, 0)
    zs.append("end")
    del ys[4], ys[len(x) - 7], ys[-1], zs[-1]
    return first, ys.pop(3), ys, zs, len(zs)


@program(vector, "l")
def changed_as_lists_are(x: Array) -> Any:
    ys, ws = [v * 2 for v in x], [x * i for i in range(5)]
    zs, vs, us = ys, ys.copy(), copy.deepcopy(ws)
    for _ in range(2):
        del ys[1:3]
    ys.reverse()
    ys *= 2
    ys.insert(3, 0.5)
    list.insert(ys, 2, 7)
    del ws[1]
    ws.insert(1, x)
    taken = ws.pop(2)
    taken += 1
    rest = iter(vs)
    next(rest)
    vs.pop()
    vs.append("end")
    vs.append(0.5)
    left = [*rest]
    ws[3] *= 2
    us[1] *= 3
    kept = copy.copy(vs)
    vs.clear()
    return ys, zs is ys, vs, left, kept, ws, taken, us, ws <= ws, 3 * kept == kept * 3, kept.index(kept[0])


@program(vector)
def changed_as_an_item_and_read_by_name(x: Array) -> Any:
    ys, ws, vs, zs, z, t, s, first = [], [], [], [], x, 0.0, 0.0, x + 1
    us = [first]
    for i in range(4):
        y = x * i
        ys.append(y)
        ys[-1][0] = 9
        t += y[0]
        y = None
        vs.append(w := x - i)
        zs.append(w)
        vs[-1][1] = 7
        if i > 0:
            ws[-1][2] = 3
            s += z[2]
        z = x / (i + 1)
        ws.append(z)
        us[-1][3] += 1
        us.append(x * i)
    return t, s, np.array(ys), np.array(ws), vs, zs, first, np.array(us)


@program(vector, "l")
def items_without_another_name_are_changed_in_the_loop(x: Array) -> Any:
    table = [np.zeros(3)]
    for i in range(4):
        table.append(np.zeros(3))
        for j in range(3):
            table[i + 1][j] = max(table[i][j], x[i + j])
    return np.array(table)
