"""Loop nests compiled for this machine against the kernel interpreter: lengths, strides, masks, branches, reductions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from jitml.fusion.interpret import interpret
from jitml.fusion.loops import Kernel
from jitml.fusion.parser import parse
from jitml.ir.types import DTYPES
from kernel_texts import KERNELS
from llvm_kernels import Arrays, copies, program_of, run_program


def memory_for(kernel: Kernel, seed: int = 0) -> Arrays:
    """Small numbers for every parameter: exact in each dtype, so that sums do not depend on their order."""
    rng = np.random.default_rng(seed)
    arrays = {}
    for b in kernel.params:
        span = sum((n - 1) * abs(s) for n, s in zip(b.shape, b.element_strides)) + 1 if b.size else 0
        low = 0 if b.dtype.kind in "bu" else -8
        arrays[b.name] = rng.integers(low, 2 if b.dtype.kind == "b" else 9, span).astype(b.dtype)
    return arrays


def check(text: str, arrays: Arrays | None = None, *, ulps: int = 0, **options: Any) -> None:
    """The compiled kernel must leave the same bits in memory as the interpreter (or within `ulps`)."""
    kernel = parse(text)
    arrays = memory_for(kernel) if arrays is None else arrays
    expected, actual = copies(arrays), copies(arrays)
    interpret(kernel, expected)
    assert run_program(program_of([kernel]), actual, **options)[0] == 0
    for name, want in expected.items():
        if ulps:
            np.testing.assert_array_max_ulp(actual[name], want, ulps)
        else:
            np.testing.assert_array_equal(actual[name], want, err_msg=name)


@pytest.mark.parametrize("name", [name for name in KERNELS if name not in ("gather", "histogram", "softmax")])
def test_shared_kernels(name: str) -> None:
    check(KERNELS[name])


def test_softmax() -> None:
    check(KERNELS["softmax"], ulps=4)


def test_histogram_and_gather() -> None:
    rng = np.random.default_rng(1)
    check(KERNELS["histogram"], {"x": rng.random(20), "h": np.zeros(4, np.int64)})
    check(KERNELS["gather"], {"x": rng.random(6), "k": np.array([0, -1, 5, -6]), "y": np.zeros(4)})


@pytest.mark.parametrize("n", [0, 1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 70])
def test_every_length_has_its_tail(n: int) -> None:
    check(f"kernel k(x: f64[{n}], y: f64[{n}]) {{ for i in 0:{n} vector {{ y[i] = x[i] * 2.0 + 1.0 }} }}")
    check(f"kernel k(x: f32[{n}], s: f32[]) {{ cell a: f32 = 0.0_f32; for i in 0:{n} vector {{ a add= x[i] }}; s[] = a }}")


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_is_loaded_and_stored(dtype: str) -> None:
    check(f"kernel k(x: {dtype}[45], y: {dtype}[45]) {{ for i in 0:45 vector {{ y[i] = x[i] + x[44 - i] }} }}")
    check(f"kernel k(x: {dtype}[45], y: f64[45]) {{ for i in 0:45 vector {{ y[i] = f64(x[i]) }} }}")


@pytest.mark.parametrize("combine", ["add", "mul", "max", "min", "or", "and"])
@pytest.mark.parametrize("dtype", ["i32", "u8", "f64", "bool"])
def test_reductions(combine: str, dtype: str) -> None:
    if combine in ("or", "and") and dtype == "f64":
        return
    start = {"i32": "3_i32", "u8": "3_u8", "f64": "3.0", "bool": "true"}[dtype]
    check(
        f"kernel k(x: {dtype}[77], s: {dtype}[]) {{"
        f" cell a: {dtype} = {start}; for i in 0:77 vector {{ a {combine}= x[i] }}; s[] = a }}"
    )
