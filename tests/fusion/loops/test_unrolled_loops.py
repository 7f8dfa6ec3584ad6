"""Loops of a few elements inside others are written out, and what passes between them stays in registers."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.fusion.scalar_loops.forward_stores import with_recurrences
from jitml.fusion.scalar_loops.fuse_loops import with_fused_loops
from jitml.fusion.scalar_loops.unroll_loops import with_short_loops_unrolled, with_stores_forwarded
from jitml.kernels.interpret import interpret
from jitml.kernels.ir import Alloc, Kernel, Load, Loop, Store, walk, walk_expressions
from jitml.kernels.text.parser import parse
from jitml.kernels.verify.kernel import verify
from support.llvm_kernels import copies, memory_for, program_of, run_program

PARAMS = "n: i64[], x: f64[9], y: f64[9], z: f64[4, 4], k: i64[9], f: f32[9]"


def check(body: str) -> Kernel:
    """The kernel with short loops written out, once it and the machine code have left in memory what the plain one does."""
    kernel = parse(f"kernel k({PARAMS}) {{ {body} }}")
    changed = with_recurrences(replace(kernel, body=with_fused_loops(with_short_loops_unrolled(kernel.body), in_order=True)))
    verify(changed)
    arrays = memory_for(kernel) | {"n": np.array(3), "k": np.array([4, 0, 5, 2, 7, 3, 8, 1, 6])}
    expected, interpreted, compiled = copies(arrays), copies(arrays), copies(arrays)
    interpret(kernel, expected)
    interpret(changed, interpreted)
    assert run_program(program_of([changed]), compiled)[0] == 0
    for name, want in expected.items():
        np.testing.assert_array_equal(interpreted[name], want, err_msg=name)
        np.testing.assert_array_equal(compiled[name], want, err_msg=name)
    return changed


# What stands in a loop of 5 iterations, how many loops are left in it, and how many loads.
INSIDE = {
    "one after the other": ("for i in 0:3 { x[i] = y[i] * 2.0 } for j in 0:3 { y[j] = x[j] + 1.0 }", 0, 3),
    "four": ("for i in 0:4 { x[i] = y[i] * 2.0 }", 0, 4),
    "too many": ("for i in 0:5 { x[i] = y[i] * 2.0 }", 1, 1),
    "of an unknown length": ("for i in 0:minimum(maximum(n[], 0), 3) { x[i] = y[i] * 2.0 }", 1, 2),
    "from another start, by steps": ("for i in 1:8:2 { x[i] = y[i] * 2.0 }", 0, 4),
    "none": ("for i in 3:3 { x[i] = y[i] }", 0, 0),
    "in each other": ("for i in 0:2 { for j in 0:3 { z[i, j] = z[j, i] + 1.0 } }", 0, 5),
    "in one that is not short": ("for i in 0:4 { for j in 0:5 { z[i, j // 2] = z[j // 2, i] + 1.0 } }", 2, 1),
    "a sum": ("cell s: f64 = 0.0 for i in 0:3 { s add= x[i] } y[0] = s", 0, 3),
    "a sum of squares": ("cell s: f64 = 0.0 for i in 0:3 { s add= x[i] * x[i] } y[0] = s", 0, 6),
    "a sum that is read before": ("cell s: f64 = 0.0 y[1] = s for i in 0:3 { s add= x[i] * x[i] } y[0] = s", 0, 6),
    "a sum of each": ("for j in 0:2 { cell s: f64 = 0.0 for i in 0:3 { s add= z[j, i] } y[j] = s }", 0, 6),
    "names": ("for i in 0:3 { let a: f64 = x[i] let b: f64 = a * a y[i] = a + b }", 0, 3),
    "choices": ("for i in 0:3 { x[i] = select(i < 1, y[0], select(i < 2, 3.0, z[0, 0])) }", 0, 2),
    "choices of what is loaded": ("for i in 0:3 { x[i] = select(y[i] < 1.0, 2.0, 3.0) }", 0, 3),
    "places that meet": ("for i in 0:3 { x[minimum(maximum(k[i], 0), 8)] = 1.0 y[i] = x[2] }", 0, 6),
    "a value that changes": ("cell s: f64 = 1.0 for i in 0:3 { x[i] = s s = s * 2.0 y[i] = x[i] }", 0, 0),
    "added to": ("for i in 0:3 { x[0] add= y[i] } y[5] = x[0]", 0, 4),
    "a loop in between": ("for i in 0:3 { x[i] = 1.0 } for j in 0:9 { x[j] = x[j] + y[j] } y[0] = x[0]", 1, 3),
    "a branch in between": ("for i in 0:3 { x[i] = 1.0 } if y[0] < 1.0 { x[1] = 2.0 } y[1] = x[1] y[2] = x[2]", 0, 2),
    "costly functions": ("for i in 0:3 { x[i] = exp(minimum(y[i], 0.0)) }", 1, 1),
    "float32": ("for i in 0:3 { f[i] = f[i] * f[i] }", 0, 6),
    "integers": ("for i in 0:3 { k[i] = k[i] * 3 + i }", 0, 3),
}


@pytest.mark.parametrize("name", INSIDE)
def test_what_is_written_out(name: str) -> None:
    body, loops, loads = INSIDE[name]
    (outer,) = [s for s in check(f"for t in 0:5 {{ {body} }}").body if isinstance(s, Loop)]
    assert sum(isinstance(s, Loop) for s in walk(outer.body)) == loops
    assert sum(isinstance(e, Load) for e in walk_expressions(outer.body)) == loads


def test_a_loop_that_stands_in_no_other_stays() -> None:
    assert any(isinstance(s, Loop) for s in walk(check("for i in 0:3 { x[i] = y[i] }").body))


def test_scratch_of_a_few_elements_is_gone() -> None:
    kernel = check("for t in 0:5 { alloc m: f64[3] { for i in 0:3 { m[i] = x[i] / y[t] } for j in 0:3 { x[j] = m[j] - m[0] } } }")
    assert not any(isinstance(s, Alloc) for s in walk(kernel.body))
    assert {e.buffer for e in walk_expressions(kernel.body) if isinstance(e, Load)} == {"x", "y"}


def test_a_stored_cell_is_what_it_was() -> None:
    kernel = parse(f"kernel k({PARAMS}) {{ cell s: f64 = 1.0 x[0] = s s = 2.0 y[0] = x[0] }}")
    forwarded = replace(kernel, body=tuple(with_stores_forwarded(kernel.body, (f"u{n}" for n in count()))))
    arrays = memory_for(kernel)
    interpret(forwarded, arrays)
    assert arrays["y"][0] == 1.0 and sum(isinstance(s, Store) for s in forwarded.body) == 2


# ------------------------------------------------------------------------------------------------ small vectors and matrices


def planet(state: Any, steps: Any) -> Any:
    for _ in range(steps):
        x, y, u, v = state
        pull = -1 / (x * x + y * y)
        state = state + 0.01 * np.array([u, v, pull * x, pull * y])
    return state


def turning(q: Any, steps: Any) -> Any:
    for k in range(steps):
        w, x, y, z = q
        q = q + 0.125 * np.array([-x - y * k - z, w + y, w * k - z, x])
        q = q / np.sqrt((q * q).sum())
    return q


def of_matrices(a: Any, steps: Any) -> Any:
    m = a.reshape(2, 2)
    for _ in range(steps):
        m = m * 0.5 + m[::-1].T
        m[0, 1] = m[1, 0]
    return m


def by_index(a: Any, steps: Any) -> Any:
    for t in range(steps):
        a = a * 0.5
        a[t % 4] += 1
        a[-1] = a[t % 3]
    return a


SMALL = (planet, turning, of_matrices, by_index)
VALUES = ([1.0, 0.5, -0.25, 0.75], [0.0, -0.0, 0.0, -0.0], [np.nan, 1.0, np.inf, -np.inf], [1e308, -1e308, 1e-310, 3.0])


@pytest.mark.parametrize("function", SMALL, ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", ["f8", "f4", ">f8"])
def test_small_vectors_are_numpys(function: Callable[..., Any], dtype: str) -> None:
    compiled = jitml.jit(function)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for values in VALUES:
            x = np.array(values, dtype)
            for form in (x, np.repeat(x, 2)[::2], x[::-1]):
                for steps in (0, 1, 2, 7):
                    want, got = function(form.copy(), steps), compiled(form.copy(), steps)
                    np.testing.assert_allclose(got, want, rtol=1e-13 if dtype != "f4" else 1e-5)
                    np.testing.assert_array_equal(np.signbit(got), np.signbit(want))


def test_warnings_are_numpys() -> None:
    state = np.array([0.0, 0.0, 1.0, 1.0])
    for function in (planet, jitml.jit(planet)):
        with pytest.warns(RuntimeWarning, match="divide by zero"):
            function(state, 1)
