"""Schedules of loops that are no group's: which kinds back ends choose, and what loops are called."""

from __future__ import annotations

import numpy as np

from jitml.codegen.cuda.schedule.statements import schedule_statements
from jitml.codegen.llvm.schedule.op_loops import schedule_op_loops
from jitml.codegen.llvm.schedule.scalar_loops import schedule_scalars
from jitml.fusion.schedule.primitives.statements import loop_names, with_schedule
from jitml.kernels.analysis.dependence import accesses
from jitml.kernels.interpret import interpret
from jitml.kernels.ir import Kernel
from jitml.kernels.schedule import Schedule, parse_schedule, show_primitive
from jitml.kernels.target import Target
from jitml.kernels.text.parser import parse
from jitml.kernels.text.printer import show
from jitml.kernels.verify.kernel import verify

CPU = Target()
ROWS = """kernel k(x: f64[64, 5000], y: f64[64, 5000], n: i64[64]) {
  for i in 0:64 {
    cell s: f64 = x[i, 0]
    for j in 1:5000 {
      s = s + x[i, j]
      y[i, j] = s
    }
    for j in 0:5000 {
      y[i, j] = y[i, j] * 2.0
    }
  }
}"""
CHECKED = """kernel k(x: f64[5000], n: i64[5000]) {
  for i in 0:5000 {
    check n[i] < 7, IndexError, 'index {}', n[i]
  }
  for i in 0:5000 {
    for j in 0:1 {
      x[i] = 1.0
    }
  }
}"""


def texts(primitives: tuple[object, ...]) -> list[str]:
    return [show_primitive(p) for p in primitives]  # type: ignore[arg-type]


def test_loops_over_one_index_are_numbered() -> None:
    assert [*loop_names(accesses(parse(ROWS))).values()] == ["i", "j.0", "j.1"]


def test_innermost_loops_that_are_free_are_vectors_and_threads_share_the_loop_that_is_all() -> None:
    kernel = parse(ROWS)
    assert texts(schedule_op_loops(kernel, CPU, 64e5)) == ["parallel i", "vector j.1"]
    assert texts(schedule_op_loops(kernel, CPU, 64e4)) == ["parallel i grain 2", "vector j.1"]
    assert texts(schedule_op_loops(kernel, CPU, 1e3)) == ["vector j.1"]


def test_loops_that_check_stay_in_order_and_of_several_none_is_shared() -> None:
    assert texts(schedule_op_loops(parse(CHECKED), CPU, 1e9)) == ["vector j"]


def test_vectors_over_single_elements_touch_neighbours() -> None:
    rows = ROWS.replace("for j in 0:", "for k in 0:").replace("y[i, j] = y[i, j] * 2.0", "y[i, k] = y[i, k] * 2.0")
    columns = rows.replace("y[i, k] = y[i, k] * 2.0", "y[k - k, i] = x[i, 0]")
    assert texts(schedule_scalars(parse(rows), CPU)) == ["vector k", "parallel i grain 2"]
    assert "vector k" not in texts(schedule_scalars(parse(columns), CPU))


def test_blocks_and_threads() -> None:
    assert texts(schedule_statements(parse(ROWS), CPU)) == ["bind i block", "bind j.1 thread"]
    assert texts(schedule_statements(parse(CHECKED), CPU))[:3] == ["split i.0 1024 -> ib", "bind ib block", "bind i.0 thread"]


OPEN = """kernel k(n: i64[], x: f64[5000], y: f64[5000]) {
  let m: i64 = minimum(maximum(n[], 0), 5000)
  for i in 0:m {
    for j in 0:i {
      y[i] add= x[j]
    }
  }
}"""


def test_a_loop_whose_length_is_open_has_as_many_blocks_as_the_longest() -> None:
    assert texts(schedule_statements(parse(OPEN), CPU)) == ["split i 1024 -> ib", "bind ib block", "bind i thread"]
    short = OPEN.replace("5000)", "9)")
    assert texts(schedule_statements(parse(short), CPU)) == ["bind i thread"]


def test_a_schedule_changes_no_answer() -> None:
    def run(kernel: Kernel) -> np.ndarray:
        x, y = np.arange(7 * 5000.0).reshape(7, 5000), np.zeros((7, 5000))
        interpret(kernel, {"x": x, "y": y, "n": np.zeros(7, np.int64)})
        return y

    kernel = parse(ROWS.replace("64[64", "64[7").replace("0:64", "0:7"))
    pieces = with_schedule(kernel, parse_schedule("split i 3 -> io; split j.0 999 -> jo; vector j.1; parallel io"), CPU, "k")
    verify(pieces)
    assert show(pieces).splitlines()[1:5] == [
        "  for io in 0:7:3 parallel {",
        "    for i in io:minimum(io + 3, 7) {",
        "      cell s: f64 = x[i, 0]",
        "      for jo in 1:5000:999 {",
    ]
    np.testing.assert_array_equal(run(pieces), run(kernel))
    assert with_schedule(kernel, Schedule(), CPU, "k") == kernel
