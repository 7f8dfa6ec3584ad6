"""Neighbouring loops over single elements that are one loop, where each iteration then finds what it has found before."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jitml
from jitml.codegen.llvm.runtime.target import host_target
from jitml.codegen.llvm.schedule.scalar_loops import schedule_scalars
from jitml.fusion.scalar_loops.fuse_loops import with_fused_loops
from jitml.fusion.schedule.primitives.statements import with_schedule
from jitml.kernels.interpret import interpret
from jitml.kernels.ir import Alloc, Kernel, Loop, walk
from jitml.kernels.schedule import Schedule
from jitml.kernels.text.parser import parse
from jitml.kernels.verify.kernel import verify
from support.llvm_kernels import copies, memory_for, program_of, run_program

PARAMS = "n: i64[], x: f64[40], y: f64[40], z: f64[6, 40], b: i8[40]"
AROUND = "let m: i64 = minimum(maximum(n[], 0), 2) for t in 0:3 {{ {} }}"


def check(body: str, *, in_order: bool = True) -> Kernel:
    """The kernel with fused loops and then in lanes, once it and the machine code have left in memory what that does."""
    kernel = parse(f"kernel k({PARAMS}) {{ {body} }}")
    fused = replace(kernel, body=with_fused_loops(kernel.body, in_order=in_order))
    verify(fused)
    lanes = with_schedule(fused, Schedule((schedule_scalars(fused, host_target()),)), host_target(), "k")
    verify(lanes)
    for n in (-3, 0, 1, 2, 7):
        arrays = memory_for(kernel) | {"n": np.array(n)}
        expected, interpreted, compiled = copies(arrays), copies(arrays), copies(arrays)
        interpret(kernel, expected)
        interpret(lanes, interpreted)
        assert run_program(program_of([lanes]), compiled)[0] == 0
        for name, want in expected.items():
            np.testing.assert_array_equal(interpreted[name], want, err_msg=name)
            np.testing.assert_array_equal(compiled[name], want, err_msg=name)
    return lanes


def loops(kernel: Kernel) -> list[str]:
    """The kinds of the innermost loops."""
    found = [s for s in walk(kernel.body) if isinstance(s, Loop)]
    return [s.kind for s in found if not any(isinstance(inner, Loop) for inner in walk(s.body))]


# What stands in a loop over time, and of which kinds the loops are that are left.
INSIDE = {
    "one after the other": ("for i in 0:40 { x[i] = y[i] * 2.0 } for j in 0:40 { y[j] = x[j] + 1.0 }", ["vector"]),
    "read ahead": ("for i in 0:39 { x[i] = y[i + 1] * 2.0 } for j in 0:39 { y[j] = x[j] + 1.0 }", ["vector"]),
    "read behind": ("for i in 0:39 { x[i] = y[i] * 2.0 } for j in 0:39 { y[j + 1] = x[j] + 1.0 }", ["vector", "vector"]),
    "stored ahead": ("for i in 0:39 { x[i] = y[i] * 2.0 } for j in 0:39 { y[j] = x[j + 1] }", ["vector", "vector"]),
    "stored behind": ("for i in 0:39 { x[i + 1] = y[i] * 2.0 } for j in 0:39 { z[0, j] = x[j] }", ["serial"]),
    "read ahead by a name": (
        "for i in 0:37 { x[i] = y[i + m] * 2.0 } for j in 0:37 { y[j] = x[j] + 1.0 }",
        ["vector"],
    ),
    "read behind by a name": (
        "for i in 0:37 { x[i] = y[i] * 2.0 } for j in 0:37 { y[j + m] = x[j] + 1.0 }",
        ["vector", "vector"],
    ),
    "read ahead by another name": (
        "let k: i64 = n[] for i in 0:37 { x[i] = y[remainder(k + i, 40)] } for j in 0:37 { y[j] = x[j] + 1.0 }",
        ["serial", "vector"],
    ),
    "backwards": ("for i in 0:39 { x[39 - i] = y[38 - i] } for j in 0:39 { y[39 - j] = x[39 - j] }", ["vector"]),
    "backwards, read behind": ("for i in 0:39 { x[38 - i] = y[39 - i] } for j in 0:39 { y[38 - j] = x[38 - j] }", ["vector"] * 2),
    "by steps of two": ("for i in 0:20 { x[2 * i] = y[2 * i] } for j in 0:20 { y[2 * j] = x[2 * j] + 1.0 }", ["serial"]),
    "across": ("for i in 0:40 { x[i] = y[39 - i] } for j in 0:40 { y[j] = x[j] }", ["vector", "vector"]),
    "one element": ("for i in 0:40 { x[i] = y[i] + x[3] } for j in 0:40 { y[j] = x[j] }", ["serial", "vector"]),
    "other lengths": ("for i in 0:40 { x[i] = y[i] } for j in 0:39 { y[j] = x[j] + 1.0 }", ["vector", "vector"]),
    "nothing shared": ("for i in 0:40 { x[i] = 2.0 } for j in 0:40 { y[j] = 1.0 }", ["vector", "vector"]),
    "of an unknown length": ("for i in 0:m { x[i] = y[i + 1] } for j in 0:m { y[j] = x[j] }", ["vector"]),
    "three": ("for i in 0:9 { x[i] = y[i] } for j in 0:9 { y[j] = x[j] + 1.0 } for k in 0:9 { x[k] = y[k] * x[k] }", ["vector"]),
    "a number in between": (
        "for i in 0:9 { x[i] = y[i] } let a: f64 = z[0, 0] * 2.0 observe a for j in 0:9 { y[j] = x[j] + a }",
        ["vector"],
    ),
    "what was stored in between": (
        "for i in 0:9 { x[i] = y[i] } let a: f64 = x[3] for j in 0:9 { y[j] = x[j] + a }",
        ["vector", "vector"],
    ),
    "a store in between": ("for i in 0:9 { x[i] = y[i] } y[3] = 5.0 for j in 0:9 { y[j] = x[j] + 1.0 }", ["vector", "vector"]),
    "a cell": ("cell s: f64 = 0.0 for i in 0:9 { s add= x[i] } for j in 0:9 { x[j] = x[j] + s }", ["vector", "vector"]),
    "a scan": ("for i in 0:39 { x[i + 1] = x[i] + y[i] } for j in 0:39 { y[j] = x[j] }", ["serial", "vector"]),
    "added to": ("for i in 0:9 { x[i] add= y[i] } for j in 0:9 { y[j] = x[j] }", ["vector", "vector"]),
    "rows": ("for i in 0:40 { z[0, i] = z[1, i] } for j in 0:40 { z[1, j] = z[0, j] * 0.5 }", ["vector"]),
    "another row": ("for i in 0:39 { z[t, i] = x[i] } for j in 0:39 { x[j + 1] = z[t + 1, j] }", ["vector", "vector"]),
    "bytes": ("for i in 0:40 { b[i] = b[i] * 3_i8 } for j in 0:40 { b[j] = b[j] + 100_i8 }", ["vector"]),
    "a vector's width and one": ("for i in 0:17 { x[i] = y[i + 1] } for j in 0:17 { y[j] = x[j] * 0.5 }", ["vector"]),
    "a shrinking cell": (
        "cell s: i64 = 40 for u in 0:5 { let a: i64 = minimum(1, s) let e: i64 = minimum(maximum(s - 1, 0), 39) "
        "for i in 0:e { x[i] = y[a + i] } for j in 0:e { y[j] = x[j] * 0.5 } s = maximum(s - 1, 0) }",
        ["vector"],
    ),
    "a growing cell": (
        "cell s: i64 = 0 for u in 0:3 { for i in 0:9 { x[i] = y[i] } for j in 0:9 { y[minimum(s, 20) + j] = x[j] } s = s + 1 }",
        ["vector", "serial"],
    ),
}


@pytest.mark.parametrize("name", INSIDE)
def test_which_loops_are_one(name: str) -> None:
    body, kinds = INSIDE[name]
    assert loops(check(AROUND.format(body))) == kinds


def test_loops_that_threads_may_share_read_nothing_ahead() -> None:
    """On a GPU, and outside of all other loops."""
    ahead = "for i in 0:39 { x[i] = y[i + 1] * 2.0 } for j in 0:39 { y[j] = x[j] + 1.0 }"
    same = "for i in 0:39 { x[i] = y[i] * 2.0 } for j in 0:39 { y[j] = x[j] + 1.0 }"
    for body, count in ((ahead, 2), (same, 1)):
        assert len(loops(check(body))) == len(loops(check(f"for t in 0:2 {{ {body} }}", in_order=False))) == count


def test_scratch_that_nobody_reads_is_gone() -> None:
    kernel = check("""for t in 0:3 { alloc q: f64[40] { alloc r: f64[40] { for i in 0:39 { q[i] = y[i + 1] / x[i] }
        for j in 0:39 { r[j] = q[j] * q[j] } for k in 0:39 { y[k] = r[k] - q[k] } } } }""")
    assert loops(kernel) == ["vector"] and not any(isinstance(s, Alloc) for s in walk(kernel.body))


@st.composite
def drawn(draw: st.DrawFn) -> str:
    """Loops over elements near each other, in a loop over time."""
    length = draw(st.sampled_from((1, 7, 8, 9, 31)))
    written = []
    for k in range(draw(st.integers(2, 5))):
        i = f"i{k}"
        places = [f"{draw(st.sampled_from('xy'))}[{i} + {draw(st.integers(0, 3))}]" for _ in range(3)]
        first = f"let a{k}: f64 = {places[0]} * 0.5" if draw(st.booleans()) else f"{places[0]} = 1.0"
        value = f"{places[2]} + 1.0" + (f" - a{k}" if first.startswith("let") else "")
        written.append(f"for {i} in 0:{length} {{ {first} {places[1]} = {value} }}")
    return AROUND.format(" ".join(written))


@settings(max_examples=40, deadline=None)
@given(drawn())
def test_drawn_loops_leave_the_same(body: str) -> None:
    check(body)


# ---------------------------------------------------------------------------------------------- arrays that shrink


def tree(x: Any, q: Any, steps: Any) -> Any:
    value = np.maximum(x, 0)
    for _ in range(steps):
        x = x[1:] / q
        value = np.maximum(0.5 * (value[1:] + value[:-1]), 1 - x)
    return value, x


def both_ends(x: Any, q: Any, steps: Any) -> Any:
    for _ in range(steps):
        x = x[1:-1] + x[:-2] * q
    return x


def turned(x: Any, q: Any, steps: Any) -> Any:
    for _ in range(steps):
        x = x[::-1][1:] * q
    return x


def exchanged(x: Any, q: Any, steps: Any) -> Any:
    y = x * q
    for _ in range(steps):
        x, y = y[1:] - x[:-1], x[:-1] + y[1:] * q
    return x, y


def from_the_end(x: Any, q: Any, steps: Any) -> Any:
    for _ in range(steps):
        x = x[:-1] - q * x[-1]
    return x


def and_old(x: Any, q: Any, steps: Any) -> Any:
    total = 0.0
    for _ in range(steps):
        new = x[1:] + q
        total = total + x.max() - new[:1].max()
        x = new
    return x, total


SHRINKING = (tree, both_ends, turned, exchanged, from_the_end, and_old)
VALUES = np.array([0.5, -0.0, 3.0, np.nan, -1e300, np.inf, 2.0, -7.25, 1e-310, 4.0] * 5)


@pytest.mark.parametrize("function", SHRINKING, ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", ["f8", "f4", ">f8", "i8", "i4", "u1"])
def test_arrays_that_shrink_are_numpys(function: Callable[..., Any], dtype: str) -> None:
    finite = np.nan_to_num(VALUES, posinf=9, neginf=-9).clip(-100, 100)
    compiled = jitml.jit(function)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for n, steps in ((50, 20), (50, 0), (50, 1), (33, 16), (17, 8), (2, 0), (2, 1)):
            base = (VALUES if "f" in dtype else finite)[:n]
            for x in (base.astype(dtype), np.repeat(base.astype(dtype), 2)[::2], base.astype(dtype)[::-1]):
                want, got = function(x.copy(), x.dtype.type(2), steps), compiled(x.copy(), x.dtype.type(2), steps)
                for a, b in zip(want if isinstance(want, tuple) else (want,), got if isinstance(got, tuple) else (got,)):
                    assert np.asarray(b).dtype == np.asarray(a).dtype
                    np.testing.assert_array_equal(b, a)
                    np.testing.assert_array_equal(np.signbit(b), np.signbit(a))


def test_an_array_that_has_shrunk_to_nothing_raises_numpys_error() -> None:
    def last(x: Any, steps: Any) -> Any:
        for _ in range(steps):
            x = x[1:] * 0.5
        return x[0]

    compiled = jitml.jit(last)
    assert compiled(np.arange(9.0), 8) == last(np.arange(9.0), 8)
    with pytest.raises(IndexError, match="index 0 is out of bounds for axis 0 with size 0"):
        compiled(np.arange(9.0), 9)


def test_a_step_of_a_binomial_tree_is_one_pass() -> None:
    steps = jitml.jit(tree).lower(np.arange(100.0), 2.0, 90).program.kernels.steps
    (kernel,) = [k for k in steps if isinstance(k, Kernel) and k.name.endswith("loop")]
    assert loops(kernel) == ["vector"] and not any(isinstance(s, Alloc) for s in walk(kernel.body))


def test_what_is_not_stored_still_warns() -> None:
    def overflowing(x: Any, q: Any, steps: Any) -> Any:
        for _ in range(steps):
            y = x[1:] * q
            x = np.minimum(y, 1.0) + 0 * x[:-1]
        return x

    with pytest.warns(RuntimeWarning, match="overflow"):
        jitml.jit(overflowing)(np.array([1.0, 2.0, 1e300, 5.0]), 1e200, 1)
