"""Elements that one iteration stores and the next one loads: handed on in cells where nothing changes them in between."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jitml.fusion.scalar_loops.forward_stores import with_recurrences
from jitml.kernels.interpret import interpret
from jitml.kernels.ir import Cell, Kernel, walk
from jitml.kernels.text.parser import parse
from jitml.kernels.text.printer import show
from jitml.kernels.verify.kernel import verify
from support.llvm_kernels import copies, memory_for, program_of, run_program


def check(text: str) -> Kernel:
    """The kernel with its recurrences, after it and the machine code have left in memory what the plain one does."""
    kernel = parse(text)
    changed = with_recurrences(kernel)
    verify(changed)
    arrays = memory_for(kernel) | {"n": np.array(3), "far": np.array(40), "k": np.array([4, 0, 5, 2, 7, 3, 8, 1, 6])}
    expected, interpreted, compiled = copies(arrays), copies(arrays), copies(arrays)
    interpret(kernel, expected)
    interpret(changed, interpreted)
    assert run_program(program_of([changed]), compiled)[0] == 0
    for name, want in expected.items():
        np.testing.assert_array_equal(interpreted[name], want, err_msg=name)
        np.testing.assert_array_equal(compiled[name], want, err_msg=name)
    return changed


def handed_on(kernel: Kernel) -> int:
    return sum(isinstance(s, Cell) for s in walk(kernel.body))


def test_the_first_iteration_loads_from_memory_and_the_others_what_was_stored() -> None:
    kernel = check("""kernel k(n: i64[], x: f64[3, 9]) { let m: i64 = n[]; check m >= 0, IndexError, ''
        for i in 0:3 { for j in m:8 { let p: i64 = j + 1; let a: f64 = x[i, j]; x[i, p] = a * 0.5 + x[i, p] } } }""")
    assert (
        show(kernel)
        == """\
kernel k(n: i64[], x: f64[3, 9]) optimize {
  let m: i64 = n[]
  check m >= 0, IndexError, ''
  for i in 0:3 {
    cell r0: f64 = 0.0
    if m < 8 {
      r0 = x[i, m]
    }
    for j in m:8 {
      let p: i64 = j + 1
      let a: f64 = r0
      let r1: f64 = a * 0.5 + x[i, p]
      x[i, p] = r1
      r0 = r1
    }
  }
}"""
    )


# What a loop body does, between `for` and the end, and how many of its stores are handed on.
ROWS = {
    "forwards": ("for i in 0:8 { let a: f64 = x[i]; x[i + 1] = a * 0.5 + y[i] }", 1),
    "backwards": ("for i in 0:8 { let a: f64 = x[8 - i]; x[7 - i] = a * 0.5 + y[i] }", 1),
    "by steps of two": ("for i in 0:7:2 { let a: f64 = x[i]; x[i + 2] = a * 0.5 }", 1),
    "by steps that pass it": ("for i in 0:7:2 { let a: f64 = x[i]; x[i + 1] = a * 0.5 }", 0),
    "no iteration, outside of memory": (
        "let m: i64 = far[]; if m >= 0 { for i in m:8 { let a: f64 = x[i]; x[i + 1] = a } }",
        1,
    ),
    "some iterations": ("let m: i64 = n[]; if m >= 0 { for i in m:8 { let a: f64 = x[i]; x[i + 1] = a } }", 1),
    "loaded after it is stored": ("for i in 0:8 { x[i + 1] = y[i]; let a: f64 = x[i]; y[i] = a + 1.0 }", 1),
    "loaded twice": ("for i in 0:8 { let a: f64 = x[i]; x[i + 1] = a + 1.0; let b: f64 = x[i]; y[i] = a * b }", 1),
    "one element": ("for i in 0:8 { let a: f64 = x[3]; x[3] = a * 0.5 + y[i] }", 1),
    "one element, loaded after it is stored": ("for i in 0:8 { x[3] = y[i]; let a: f64 = x[3]; y[i] = a + 1.0 }", 0),
    "two iterations back": ("for i in 0:7 { let a: f64 = x[i]; x[i + 2] = a * 0.5 }", 0),
    "what later iterations store": ("for i in 0:8 { let a: f64 = x[i + 1]; x[i] = a * 0.5 }", 0),
    "two recurrences": ("for i in 0:8 { let a: f64 = x[i]; let b: f64 = y[i]; x[i + 1] = a - b; y[i + 1] = a + b }", 2),
    "another element is stored": ("for i in 0:7 { let a: f64 = x[i]; x[i + 1] = a * 0.5; x[i + 2] = a }", 1),
    "it is stored again": ("for i in 0:8 { let a: f64 = x[i]; x[i + 1] = a * 0.5; x[i + 1] = 2.0 }", 1),
    "it may be stored again": ("for i in 0:8 { let a: f64 = x[i]; x[i + 1] = a * 0.5; if a > 0.0 { x[i + 1] = 2.0 } }", 0),
    "the next iteration stores it first": ("for i in 0:8 { x[i] = y[i]; let a: f64 = x[i]; x[i + 1] = a * 0.5 }", 0),
    "the next iteration stores it after": ("for i in 0:8 { let a: f64 = x[i]; x[i] = y[i]; x[i + 1] = a * 0.5 }", 1),
    "stores to what is loaded": (
        "for i in 0:8 { let a: f64 = x[i]; x[i + 1] = a; x[remainder(k[i], 9)] = 2.0 }",
        0,
    ),
    "at places that are loaded": (
        "for i in 0:8 { let p: i64 = remainder(k[i], 9); let a: f64 = x[p]; x[p] = a * 0.5 }",
        0,
    ),
    "at a place that the loop does not change": (
        "let p: i64 = minimum(maximum(n[], 0), 1); for i in 0:7 { let a: f64 = x[p + i]; x[p + i + 1] = a }",
        1,
    ),
    "stored in some iterations": ("for i in 0:8 { let a: f64 = x[i]; if a > 0.0 { x[i + 1] = a * 0.5 } }", 0),
    "loaded in some iterations": ("for i in 0:8 { if y[i] > 0.0 { let a: f64 = x[i]; y[i] = a }; x[i + 1] = y[i] }", 0),
    "added to": ("for i in 0:8 { let a: f64 = x[i]; x[i + 1] add= a }", 0),
    "a load behind a check": ("for i in 0:8 { check i < 9, IndexError, ''; let a: f64 = x[i]; x[i + 1] = a }", 0),
    "a load before a check": ("for i in 0:8 { let a: f64 = x[i]; check i < 9, IndexError, ''; x[i + 1] = a }", 1),
    "the value changes after it is stored": ("cell s: f64 = 1.0; for i in 0:8 { let a: f64 = x[i]; x[i + 1] = s; s = s + a }", 2),
    "rows of a triangle": ("for j in 0:4 { for i in j:4 { let a: f64 = z[j, i]; z[j, i + 1] = a + z[j + 1, i] } }", 1),
    "down a column": ("for j in 0:4 { for i in 0:4 { let a: f64 = z[i, j]; z[i + 1, j] = a + z[i, j + 1] } }", 1),
    "a diagonal": ("for i in 0:4 { let a: f64 = z[i, i]; z[i + 1, i + 1] = a + z[i, i + 1] }", 1),
    "and the row above": (
        "for j in 1:5 { for i in 0:4 { let a: f64 = z[j, i]; z[j, i + 1] = a; z[j - 1, i] = 2.0 } }",
        1,
    ),
    "an outer loop": ("for j in 0:4 { let a: f64 = x[j]; for i in 0:4 { y[i] = a }; x[j + 1] = a * 0.5 }", 0),
    "float16": ("for i in 0:8 { let a: f16 = h[i]; h[i + 1] = a * a + a }", 1),
    "float32": ("for i in 0:8 { let a: f32 = f[i]; f[i + 1] = f32(f64(a) * 1.1) }", 1),
    "int8 wraps around": ("for i in 0:8 { let a: i8 = b[i]; b[i + 1] = a * a + a }", 1),
    "int64": ("for i in 0:8 { let a: i64 = k[i]; k[i + 1] = a * 3 + 1 }", 1),
    "bool": ("for i in 0:8 { let a: bool = q[i]; q[i + 1] = bit_not(a) }", 1),
}
PARAMS = """n: i64[], far: i64[], x: f64[9], y: f64[9], z: f64[6, 6], h: f16[9], f: f32[9], b: i8[9], k: i64[9], q: bool[9]"""


@pytest.mark.parametrize("name", ROWS)
def test_what_is_handed_on(name: str) -> None:
    body, count = ROWS[name]
    assert handed_on(check(f"kernel k({PARAMS}) {{ {body} }}")) == count


PLACES = ("x[2 * i + {}]", "z[i + {}, 2]", "z[i + {}, i + {}]", "z[2, {}]", "z[j + {}, i + {}]")


@st.composite
def drawn(draw: st.DrawFn) -> str:
    """A loop over elements near each other, of which every value stored depends on all that were loaded."""
    usual = draw(st.sampled_from(PLACES))
    values, body = ["1.0"], []
    for k in range(draw(st.integers(2, 6))):
        place = usual if draw(st.integers(0, 3)) else draw(st.sampled_from(PLACES))
        element = place.format(draw(st.integers(0, 2)), draw(st.integers(0, 2)))
        if k == 0 or draw(st.booleans()):
            body.append(f"let a{k}: f64 = {element}")
            values.append(f"a{k}")
        else:
            store = f"{element} = ({' + '.join(values)}) * 0.5 + {k}.0"
            body.append(f"if {values[-1]} < 2.0 {{ {store} }}" if draw(st.integers(0, 4)) == 0 else store)
    start, stop, step = (draw(st.integers(*limits)) for limits in ((0, 2), (2, 4), (1, 2)))
    return f"kernel k({PARAMS}) {{ for j in 0:3 {{ for i in {start}:{stop}:{step} {{ {'; '.join(body)} }} }} }}"


@settings(max_examples=80, deadline=None)
@given(drawn())
def test_drawn_loops_leave_the_same(text: str) -> None:
    kernel = parse(text)
    changed = with_recurrences(kernel)
    verify(changed)
    expected = memory_for(kernel)
    actual = copies(expected)
    interpret(kernel, expected)
    interpret(changed, actual)
    for name, want in expected.items():
        np.testing.assert_array_equal(actual[name], want, err_msg=name)
