"""Copies and zeros on a GPU: every element arrives, none beside them changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from jitml.ir.types import I64
from jitml.kernels.ir import Buffer, Const, Expr, Var
from jitml.kernels.program import Call
from jitml.kernels.sizes import SizeSource
from support.cuda_calls import Case, check, placed, program_of

# shape, strides of the target, strides of the source
LAYOUTS: list[tuple[tuple[int, ...], tuple[int, ...] | None, tuple[int, ...] | None]] = [
    ((1003,), None, None),
    ((7, 33), None, (64, 1)),
    ((7, 64), None, (128, 1)),
    ((70, 45), None, (1, 70)),
    ((50, 60), (1, 50), None),
    ((3, 40, 50), None, (2000, 1, 40)),
    ((4, 5, 6), None, (1, 4, 20)),
    ((3, 20, 30, 4), None, (1, 12, 240, 3)),
    ((5, 6), None, (0, 1)),
    ((33,), (2,), (1,)),
    ((), None, None),
    ((3, 0), None, None),
]


def _contents(n: int, dtype: str) -> np.ndarray[Any, Any]:
    return np.random.default_rng(n).integers(0, 200, n).astype(dtype)


def _copy(shape: tuple[int, ...], target: Any, source: Any, dtype: str, sizes: dict[str, int], live: tuple[Any, ...]) -> Case:
    y, x = Buffer("y", np.dtype(dtype), shape, target), Buffer("x", np.dtype(dtype), shape, source)
    buffers = [y, x, *(Buffer(f"size_{name}", I64, ()) for name in sizes)]
    extents: tuple[Expr, ...] = tuple(Var(n) if isinstance(n, str) else Const(n) for n in live)
    known = {"sizes": {name: SizeSource(f"size_{name}", 0, 50) for name in sizes}, "extents": {"x": extents}} if sizes else {}
    memory = {"y": _contents(max(y.reach, 1), dtype), "x": _contents(max(x.reach, 1) + 1, dtype)[1:]}
    wanted = memory["y"].copy()
    part = tuple(sizes.get(n, n) for n in live) or None
    if y.size:
        placed(wanted, y, part)[...] = placed(memory["x"], x, part)
    memory |= {f"size_{name}": np.array(n) for name, n in sizes.items()}
    return Case(program_of(buffers, Call("copy", ("x",), ("y",), {}), **known), memory, "y", wanted)


def test_elements_are_copied_whatever_the_strides_and_widths() -> None:
    dtypes = ["u1", "f2", "f4", "f8"]
    check([_copy(*layout, dtypes[(n + k) % 4], {}, ()) for n, layout in enumerate(LAYOUTS) for k in (0, 2)])


@pytest.mark.parametrize("n", [0, 1, 37, 50, 99])
def test_of_arrays_of_open_size_the_part_that_counts_is_copied(n: int) -> None:
    live = min(n, 50)
    cases: list[tuple[tuple[int, ...], Any, tuple[Any, ...]]] = [
        ((50,), None, ("n",)),
        ((50, 8), None, ("n", 8)),
        ((8, 50), None, (8, "n")),
        ((50, 40), (1, 50), ("n", 40)),
    ]
    made = [_copy(shape, None, strides, "f4", {"n": live}, parts) for shape, strides, parts in cases]
    check([Case(c.program, {**c.memory, "size_n": np.array(n)}, "y", c.wanted) for c in made])


def test_addresses_need_no_alignment_beyond_that_of_an_element() -> None:
    program = _copy((40,), None, None, "f4", {}, ()).program
    whole = _contents(41, "f4")
    target = np.frombuffer(bytearray(41 * 4), np.float32)[1:]
    check([Case(program, {"x": whole[1:], "y": target}, "y", whole[1:])])


def test_zeros_fill_the_whole_buffer_and_nothing_else() -> None:
    buffers = [Buffer("y", np.dtype(d), shape) for d, shape in (("f4", (1003,)), ("u1", (16, 16)), ("f8", ()), ("f2", (7, 9)))]
    buffers.append(Buffer("y", np.dtype("f4"), (6, 4), (8, 1)))
    cases = []
    for buffer in buffers:
        memory = np.full(buffer.reach, 5, buffer.dtype)
        wanted = memory.copy()
        placed(wanted, buffer)[...] = 0
        cases.append(Case(program_of([buffer], Call("zeros", (), ("y",), {})), {"y": memory}, "y", wanted))
    check(cases)
