"""Runtime checks: which one failed, with which values, and that nothing after it runs."""

from __future__ import annotations

import numpy as np
import pytest

from jitml.kernels.text.parser import parse
from support.llvm_kernels import program_of, run_kernel, run_program

GATHER = """kernel k(n: i64[77], x: f64[9], y: f64[77]) {
  for i in 0:77 %s { check bit_and(n[i] >= 0, n[i] < 9), IndexError, 'index {} at {}', n[i], i }
  for i in 0:77 vector { y[i] = x[n[i]] } }"""


@pytest.mark.parametrize("kind", ["", "vector", "parallel"])
@pytest.mark.parametrize("place", [None, 0, 3, 40, 76])
def test_the_first_bad_index_is_reported(kind: str, place: int | None) -> None:
    arrays = {"n": np.arange(77) % 9, "x": np.arange(9.0), "y": np.zeros(77)}
    if place is not None:
        arrays["n"][place] = 12
        arrays["n"][76] = 12
    status, error = run_kernel(GATHER % kind, arrays)
    if place is None:
        assert status == 0
        np.testing.assert_array_equal(arrays["y"], arrays["n"])
    else:
        assert (status, error[:2]) == (1, [12, place]) or (kind == "parallel" and error[1] in (place, 76))
        assert not arrays["y"].any()


def test_later_steps_do_not_run() -> None:
    first = parse("kernel a(x: f64[4]) { check x[0] > 0.0, ValueError, 'no'; check x[1] > 0.0, ValueError, 'no {}', 7 }")
    second = parse("kernel b(y: f64[4]) { for i in 0:4 vector { y[i] = 1.0 } }")
    for values, status in (([1.0, 1, 1, 1], 0), ([0.0, 1, 1, 1], 1), ([1.0, 0, 1, 1], 2)):
        arrays = {"x": np.array(values), "y": np.zeros(4)}
        result, error = run_program(program_of([first, second]), arrays)
        assert result == status and arrays["y"].any() == (status == 0)
        assert status != 2 or error[0] == 7


def test_a_check_under_a_branch_asks_only_the_lanes_that_get_there() -> None:
    text = """kernel k(x: f64[50], y: f64[50]) { for i in 0:50 vector {
      if x[i] > 0.0 { check x[i] < 5.0, ValueError, '{}', i ; y[i] = 1.0 } } }"""
    x = np.full(50, -9.0)
    x[::7] = 3.0
    assert run_kernel(text, {"x": x, "y": np.zeros(50)})[0] == 0
    x[21] = 6.0
    assert run_kernel(text, {"x": x, "y": np.zeros(50)}) == (1, [21, 0, 0, 0])


def test_nothing_is_loaded_ahead_of_the_check_in_its_loop() -> None:
    text = """kernel k(n: i64[], x: f64[9], y: f64[3]) { let p: i64 = n[]
      for i in 0:3 { y[i] = 1.0; check bit_and(p >= 0, p < 9), IndexError, '{}', p; y[i] = x[p] } }"""
    for place, status in ((2, 0), (1 << 40, 1)):
        arrays = {"n": np.array(place), "x": np.arange(9.0), "y": np.zeros(3)}
        assert run_kernel(text, arrays)[0] == status
        np.testing.assert_array_equal(arrays["y"], [2, 2, 2] if status == 0 else [1, 0, 0])
