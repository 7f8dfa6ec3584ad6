"""Schedules of the user's: shown, given back, replaced, and refused with the kernel, the reason and the loops."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable

import numpy as np
import pytest

import jitml
from jitml.errors import ScheduleError
from jitml.kernels.schedule import parse_primitive, show_primitive
from support.drawn_schedules import Array, softmax

X = np.random.default_rng(0).normal(size=(40, 30))


def rows(x: Array) -> Array:
    return np.exp(x.sum(-1))


def two_halves(x: Array) -> Array:
    return np.concatenate([x * 2.0, np.exp(x)])


def counted(x: Array) -> Array:
    total = np.zeros((x.shape[1], x.shape[1]))
    n = 0
    while total.max() < 5.0:
        total = total + np.exp(total @ total.T + x.T @ x)
        n += 1
    return total + n


def scan(x: Array) -> Array:
    return np.cumsum(x, axis=0)


def smooth(x: Array) -> Array:
    y = x.copy()
    for i in range(x.shape[0]):
        for j in range(1, x.shape[1]):
            y[i, j] = y[i, j - 1] * 0.5 + x[i, j]
    return y


@pytest.mark.parametrize("function", [softmax, rows, two_halves, counted, scan, smooth])
def test_what_is_shown_can_be_given_back(function: object) -> None:
    shown = jitml.jit(function).lower(X)
    again = jitml.jit(function, schedules=shown.schedules)
    assert again.lower(X).schedules == shown.schedules
    assert again.lower(X).kernels == shown.kernels
    assert shown.schedules


def test_a_schedule_replaces_the_one_that_jitml_chooses() -> None:
    scheduled = jitml.jit(rows, schedules={"k0_exp": "split i0 8 -> io; parallel io; vector i1"})
    assert "for io in 0:40:8 parallel" in scheduled.lower(X).kernels
    np.testing.assert_allclose(scheduled(X), rows(X))
    np.testing.assert_allclose(pickle.loads(pickle.dumps(scheduled))(X), rows(X))


def test_a_kernel_in_a_region_has_a_path() -> None:
    path = "k2_while.1/k0_add"
    assert path in jitml.jit(counted).lower(X).schedules
    scheduled = jitml.jit(counted, schedules={path: "split i0 8 -> io"})
    assert "for io in" in scheduled.lower(X).kernels
    np.testing.assert_allclose(scheduled(X), counted(X))


def test_kinds_that_the_target_lacks_are_refused() -> None:
    with pytest.raises(ScheduleError, match="bind i0 block: cpu has no block loops; its kinds are parallel, unroll, vector"):
        jitml.jit(rows, schedules={"k0_exp": "bind i0 block"}).lower(X)


@pytest.mark.parametrize(("text", "mark"), [("vector i7", "for i0 in"), ("vector i0; parallel i0", "> for i0 in")])
def test_a_kernel_in_a_region_is_refused_by_its_path(text: str, mark: str) -> None:
    with pytest.raises(ScheduleError, match=re.escape("schedule of k2_while.1/k0_add: ")) as error:
        jitml.jit(counted, schedules={"k2_while.1/k0_add": text})(X)
    assert mark in str(error.value)


def test_a_kernel_that_is_not_there() -> None:
    with pytest.raises(ScheduleError, match="no kernel with a schedule is called k7_exp; there are k0_exp"):
        jitml.jit(rows, schedules={"k7_exp": "vector i0"})(X)


def test_a_primitive_that_does_not_fit_shows_the_loops_and_marks_one() -> None:
    with pytest.raises(ScheduleError) as error:
        jitml.jit(rows, schedules={"k0_exp": "vector i0; vector i1"})(X)
    assert str(error.value).splitlines()[:-1] == [
        "schedule of k0_exp: vector i1: i1 cannot run in lanes inside i0, which does",
        "Its loops:",
        "  for i0 in 0:40 vector {",
        "    cell s0: f64 = 0.0",
        ">   for i1 in 0:30 vector {",
        "      point s0 add= %s0",
        "    }",
        "    point store c",
        "  }",
    ]


def test_a_fused_loop_is_shared_where_its_iterations_are_proven_apart() -> None:
    def scaled(x: Array) -> Array:
        return x * x[0] + x[:, :1]

    for text in ("fuse i0 i1 -> q", "fuse i0 i1 -> q; parallel q", "split i1 5 -> p; fuse i0 p -> q; split q 7 -> r; parallel r"):
        np.testing.assert_allclose(jitml.jit(scaled, schedules={"k0_add": text})(X), scaled(X))


def framed(x: Array) -> Array:
    y = np.zeros((x.shape[0], x.shape[1] + 1))
    y[:, :-1] = x * x[0] + x[:, :1]
    return y


FUSED_IN_A_FRAME = "box 0 { fuse i0 i1 -> q; parallel q } box 1 { }"


def test_a_fused_loop_over_rows_that_do_not_follow_each_other() -> None:
    (kernel,) = jitml.jit(framed).lower(X).schedules
    np.testing.assert_allclose(jitml.jit(framed, schedules={kernel: FUSED_IN_A_FRAME})(X), framed(X))


def test_loops_that_are_not_proven_apart_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    (kernel,) = jitml.jit(framed).lower(X).schedules
    reason = "parallel loop over q: j is written in one iteration and written in another"
    unproven = "jitml.fusion.schedule.primitives.statements.races"  # of this nest, all is proven
    monkeypatch.setattr(unproven, lambda kernel: iter([reason]))
    with pytest.raises(ScheduleError, match=reason) as error:
        jitml.jit(framed, schedules={kernel: FUSED_IN_A_FRAME})(X)
    assert "> for q in 0:1200 parallel {" in str(error.value)


@pytest.mark.parametrize("name", ["i0", "i1", "s0", "t3", "for"])
def test_names_of_new_loops_are_new(name: str) -> None:
    with pytest.raises(ScheduleError, match=f"the name {name} is taken"):
        jitml.jit(rows, schedules={"k0_exp": f"split i0 8 -> {name}"})(X)


def test_each_box_has_its_own_primitives() -> None:
    text = "box 0 { vector i0 } box 1 { unroll i0 }"
    (kernel,) = jitml.jit(two_halves).lower(X).schedules
    assert "unroll" in jitml.jit(two_halves, schedules={kernel: text}).lower(X).kernels
    with pytest.raises(ScheduleError, match="it has primitives for 1 boxes of loops, of which there are 2"):
        jitml.jit(two_halves, schedules={kernel: "vector i0"})(X)


def test_what_cannot_be_read_is_refused_at_once() -> None:
    with pytest.raises(ScheduleError, match="no primitive is called 'tile'"):
        jitml.jit(rows, schedules={"k0_exp": "tile i0 i1"})
    with pytest.raises(TypeError, match="is no mapping from names of kernels to schedules"):
        jitml.jit(rows, schedules={"k0_exp": 3})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f"split i0 {'9' * 5000} -> io", "cannot read 'split i0 999"),
        ("split i0 \u0663 -> io", "cannot read"),
        ("split i0 4 -> 4", "cannot read"),
        ("split i0 4 -> io.1", "io.1 is no name for a new loop"),
        ("rfactor i1 4 -> %0", "%0 is no name for a new loop"),
        (f"vector i0.{'9' * 5000}", "cannot read"),
        ("reorder i0..1 i1", "cannot read"),
        ("reorder i0. i1", "cannot read"),
        ("box 1 { vector i0 } box 0 { unroll i0 }", "stand in order, from 0 on, and not as 1, 0"),
        ("box 0 { vector i0 } box 0 { unroll i0 }", "stand in order, from 0 on, and not as 0, 0"),
    ],
)
def test_numbers_names_and_boxes_of_other_forms_are_refused(text: str, reason: str) -> None:
    with pytest.raises(ScheduleError, match=re.escape(reason)):
        jitml.jit(two_halves, schedules={"k0_concatenate": text})


def test_a_second_store_to_one_array_can_be_named() -> None:
    assert show_primitive(parse_primitive("stage %0 in h:1")) == "stage %0 in h:1"


def test_a_body_is_written_a_bounded_number_of_times() -> None:
    with pytest.raises(ScheduleError, match="would be written 99999999999 times; 64 are the most") as error:
        jitml.jit(rows, schedules={"k0_exp": "jam i0 99999999999"})(X)
    assert "> for i0 in 0:40 {" in str(error.value)


@pytest.mark.parametrize(
    ("function", "kernel", "text", "loop"),
    [
        (scan, "k0_cumsum", "split i1.1 8 -> io; vector i1.1", "for io in 0:30:8 {"),
        (scan, "k0_cumsum", "vector i1", "for i1 in 0:30 vector {"),
        (smooth, "k0_loop", "parallel i0 grain 2", "for i0 in 0:40 parallel grain 2 {"),
        (smooth, "k0_loop", "unroll i1", "for i1 in 0:29 unroll {"),
    ],
)
def test_loops_that_are_no_groups_have_schedules(function: Callable[[Array], Array], kernel: str, text: str, loop: str) -> None:
    chosen = jitml.jit(function).lower(X)
    scheduled = jitml.jit(function, schedules={kernel: text})
    assert loop in scheduled.lower(X).kernels
    assert scheduled.lower(X).kernels.count(" {") == chosen.kernels.count(" {") + ("split" in text)
    np.testing.assert_array_equal(scheduled(X), function(X))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("vector k0", "vector loop over k0: b is written in one iteration and read in another"),
        ("parallel k0", "parallel loop over k0: b is written in one iteration and read in another"),
        ("parallel i1.1", "the parallel loop over i1 stands inside the loop over k0"),
        ("reorder k0 i1.1", "reorder k0 i1.1: these loops hold statements, in their order; what changes them is split, parallel"),
        ("vector i1.2", "no loop is called i1.2; the loops are i1, k0"),
        ("split k0 4 -> i1", "split k0 4 -> i1: the name i1 is taken"),
        ("split k0 0 -> io", "k0 is serial, and is not cut into pieces of 0 iterations"),
        ("vector i1.0; unroll i1", "unroll i1: i1 is vector already"),
        ("bind k0 block", "cpu has no block loops; its kinds are parallel, unroll, vector"),
        ("box 0 { } box 1 { }", "it has primitives for 2 boxes of loops, of which there is one"),
    ],
)
def test_schedules_of_such_loops_are_refused(text: str, reason: str) -> None:
    with pytest.raises(ScheduleError, match=f"k0_cumsum: .*{re.escape(reason)}"):
        jitml.jit(scan, schedules={"k0_cumsum": text})(X)


def test_a_loop_of_an_op_that_is_not_proven_apart_is_marked() -> None:
    with pytest.raises(ScheduleError) as error:
        jitml.jit(scan, schedules={"k0_cumsum": "vector k0"})(X)
    assert [line for line in str(error.value).splitlines() if line.startswith(">")] == ["> for k0 in 1:40 vector {"]
