"""Loops of which threads share the part that knows nothing of other iterations, and the rest runs in order."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.fusion.scalar_loops.split_loops import in_two_parts
from jitml.kernels.interpret import interpret
from jitml.kernels.ir import Buffer, Kernel
from jitml.kernels.text.parser import parse
from jitml.kernels.text.printer import show
from jitml.kernels.verify.kernel import verify
from support.llvm_kernels import copies, memory_for, program_of, run_program

PARAMS = "x: f64[9], y: f64[9], k: i64[9], n: i64[], s: f64[], t: i64[]"
WORK = "cell c: i64 = 0 cell v: f64 = 1.0 while c < i { c = c + 1 v = v * 0.5 + x[minimum(c, 8)] }"


def check(body: str) -> bool:
    """Whether a kernel is split; the parts, and their machine code, then leave in memory what the whole does."""
    kernel = parse(f"kernel k({PARAMS}) {{ {body} }}")
    made: list[Buffer] = []

    def new_buffer(dtype: Any, shape: tuple[int, ...]) -> Buffer:
        made.append(Buffer(f"p{len(made)}", dtype, shape))
        return made[-1]

    split = in_two_parts(kernel, new_buffer)
    if split is None:
        return False
    assert split.kept == tuple(made)
    arrays = memory_for(kernel) | {b.name: np.full(b.shape, 77, b.dtype) for b in made} | {"n": np.array(3)}
    expected, interpreted, compiled = copies(arrays), copies(arrays), copies(arrays)
    interpret(kernel, expected)
    for part in (split.free, split.in_order):
        verify(parse(show(part).replace("for i in 0:9 {", "for i in 0:9 parallel {")) if part is split.free else part)
        interpret(part, interpreted)
    program = program_of([split.free, split.in_order])
    assert run_program(program, compiled)[0] == 0
    for name in {b.name for b in kernel.params}:
        np.testing.assert_array_equal(interpreted[name], expected[name], err_msg=name)
        if name in program.kernels.buffers:
            np.testing.assert_array_equal(compiled[name], expected[name], err_msg=name)
    return True


FOUND = {
    "the largest": f"cell b: f64 = -9.0 for i in 0:9 {{ {WORK} b = maximum(b, v) }} s[] = b",
    "where it is": f"cell b: f64 = -9.0 cell w: i64 = 0 for i in 0:9 {{ {WORK} let is: bool = v > b "
    "w = select(is, i, w) b = select(is, v, b) } t[] = w",
    "a sum": f"cell b: f64 = 0.0 for i in 0:9 {{ {WORK} b add= v }} s[] = b",
    "what depends on the last": f"cell b: f64 = 0.0 for i in 0:9 {{ {WORK} b = b * v + 0.5 }} s[] = b",
    "two numbers": f"cell b: f64 = 0.0 for i in 0:9 {{ {WORK} b = b + v if c > 3 {{ b = b + f64(c) }} }} s[] = b",
    "a name of the index": f"cell b: i64 = 0 for i in 0:9 {{ let j: i64 = i * 3 + 1 {WORK} b = b * 2 + j + c }} t[] = b",
    "stores": f"cell b: f64 = 0.0 for i in 0:9 {{ {WORK} b = b + v y[i] = b }}",
    "a number from before": f"let a: f64 = y[3] cell b: f64 = a for i in 0:9 {{ {WORK} b = b * a + v }} s[] = b + a",
    "from another start": f"cell b: f64 = 0.0 for i in 3:9 {{ {WORK} b = b * 0.5 + v }} s[] = b",
    "a check without numbers": f"cell b: f64 = 0.0 for i in 0:9 {{ {WORK} check c < 99, OverflowError, 'a' b = b + v }} s[] = b",
}
NOT_FOUND = {
    "no loop inside": "cell b: f64 = 0.0 for i in 0:9 { let v: f64 = x[i] * 2.0 b = b * 0.5 + v } s[] = b",
    "nothing in order": f"cell b: f64 = 0.0 for i in 0:9 {{ {WORK} }} s[] = b",
    "the work is in order": "cell b: i64 = 0 for i in 0:9 { cell c: i64 = 0 while c < i { c = c + 1 b = b + c } } t[] = b",
    "it begins with the last": "cell b: i64 = 1 for i in 0:9 { cell c: i64 = b while c < i { c = c + 1 } b = c } t[] = b",
    "it reads what is stored": f"cell b: f64 = 0.0 for i in 0:9 {{ {WORK} b = b + v x[i] = b }}",
    "the rest changes its number": f"cell b: f64 = 0.0 for i in 0:9 {{ {WORK} v = v + b b = v }} s[] = b",
    "a check that shows numbers": f"cell b: f64 = 0.0 for i in 0:9 {{ {WORK} check c < 99, IndexError, '{{}}', c b = b + v }}",
    "two errors": f"cell b: f64 = 1.0 for i in 0:9 {{ {WORK} check c < 9, IndexError, 'a' check c < 8, IndexError, 'b' b = v }}",
    "a check in order": f"cell b: f64 = 0.0 for i in 0:9 {{ {WORK} b = b + v check b < 1e9, OverflowError, 'a' }} s[] = b",
    "an unknown length": f"cell b: f64 = 0.0 for i in 0:n[] {{ {WORK} b = b + v }} s[] = b",
    "two loops": f"cell b: f64 = 0.0 for i in 0:9 {{ {WORK} b = b + v }} for j in 0:9 {{ b = b * x[j] }} s[] = b",
    "one iteration": f"cell b: f64 = 0.0 for i in 0:1 {{ {WORK} b = b + v }} s[] = b",
}


@pytest.mark.parametrize("name", FOUND)
def test_what_is_split(name: str) -> None:
    assert check(FOUND[name])


@pytest.mark.parametrize("name", NOT_FOUND)
def test_what_is_not_split(name: str) -> None:
    assert not check(NOT_FOUND[name])


# ------------------------------------------------------------------------------------------------------- as people write it


def longest(x: Any) -> Any:
    best, most = 0, 0
    for k in range(len(x)):
        n, steps = int(x[k]), 0
        while n > 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            steps += 1
        if steps > most:
            best, most = k, steps
    return best, most


def nearest(x: Any) -> Any:
    """Of the roots by Newton's method, the one that is nearest to 2; nan is nowhere."""
    best, where = np.inf, -1
    for k in range(len(x)):
        r = 1.0
        for _ in range(40):
            r = 0.5 * (r + x[k] / r)
        if abs(r - 2) < best:
            best, where = abs(r - 2), k
    return best, where


def running(x: Any) -> Any:
    total, out = 0.0, np.zeros(len(x))
    for k in range(len(x)):
        c = 0
        while c < 30 and c < x[k]:
            c += 1
        total = total * 0.5 + c
        out[k] = total
    return out


def kernels_of(function: Callable[..., Any], x: Any) -> list[str]:
    return [k.name for k in jitml.jit(function).lower(x).program.kernels.steps if isinstance(k, Kernel)]


@pytest.mark.parametrize("function", [longest, nearest, running], ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", ["f8", "f4", ">f8", "i8", "i4", "u1"])
def test_answers_are_pythons(function: Callable[..., Any], dtype: str) -> None:
    if "f" in dtype and function is longest:
        pytest.skip("of whole numbers")
    values = np.array([3, 1, 27, 6, 97, 0, 97, 54, 2, 100] * 200)
    special = np.array([4.0, -0.0, np.inf, 1e-310, 25.0, np.nan, 3.9, 1e300, -7.0, 4.1] * 200)
    compiled = jitml.jit(function)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for x in (values, special if "f" in dtype else values[::-1]):
            for n in (0, 1, 2, 9, 2000):
                for form in (x[:n].astype(dtype), np.repeat(x[:n].astype(dtype), 2)[::2], x[:n].astype(dtype)[::-1]):
                    want, got = function(form), compiled(form)
                    for a, b in zip(want if isinstance(want, tuple) else (want,), got if isinstance(got, tuple) else (got,)):
                        np.testing.assert_array_equal(b, a)


def test_threads_share_the_sequences() -> None:
    x = np.arange(2000)
    assert any(name.endswith("_shared") for name in kernels_of(longest, x))
    assert not any(name.endswith("_shared") for name in kernels_of(longest, x[:9]))  # not worth to wake a thread for
    one, two = (jitml.jit(longest, threads=n)(x) for n in (1, 2))
    assert one == two == longest(x)


def test_an_error_in_what_is_shared_is_pythons() -> None:
    """Of numbers beyond 64 bits, the plain function knows the answer."""
    x = np.arange(2000)
    x[1234] = 2**62 + 1
    assert jitml.jit(longest)(x) == longest(x)
