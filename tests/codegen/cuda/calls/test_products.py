"""Matrix products on a GPU by functions of our own: as exact as sums of fused multiply-adds, and the same bits each time."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

from jitml.codegen.cuda.calls import products
from jitml.ir.types import I64
from jitml.kernels.ir import Buffer
from jitml.kernels.program import Call
from support.cuda_calls import Case, check, program_of

Array = np.ndarray[Any, Any]


def product(
    m: int,
    n: int,
    k: int,
    dtype: str = "f4",
    batch: tuple[int, ...] = (),
    turned: str = "",
    adds: bool = False,
    run: tuple[int, int, int] | None = None,
    offset: int = 0,
    starts: str = "",
) -> Case:
    """
    Args:
        turned: which of a, b and c are stored by columns.
        run: m, n and k of the run, where those of the program are the largest ones.
        starts: which of a, b and c start 8 elements later, as only the run knows.
    """
    rng = np.random.default_rng(m * n + k)
    params: dict[str, Any] = {"m": m, "n": n, "k": k, "batch": batch, **({"adds": True} if adds else {})}
    memory, values = {}, list(run or ())
    for a, rows, columns in (("a", m, k), ("b", k, n), ("c", m, n)):
        row, col = (1, rows) if a in turned else (columns, 1)
        steps = tuple(rows * columns * prod(batch[axis + 1 :]) for axis in range(len(batch)))
        params |= {f"{a}_row": row, f"{a}_col": col, f"{a}_batch": steps, f"{a}_offset": offset}
        if a in starts:
            params[f"{a}_start"] = len(values)
            values.append(8)
        memory[a] = rng.standard_normal(offset + 8 + prod(batch) * rows * columns).astype(dtype)
    if run:
        params["sized"] = True
    sizes = run or (m, n, k)

    def matrices(a: str, memory: Array, rows: int, columns: int) -> Array:
        steps = (*params[f"{a}_batch"], params[f"{a}_row"], params[f"{a}_col"])
        first = memory[offset + 8 * (a in starts) :]
        return as_strided(first, (*batch, rows, columns), [step * memory.itemsize for step in steps])

    x = matrices("a", memory["a"], sizes[0], sizes[2]).astype(np.float64)
    y = matrices("b", memory["b"], sizes[2], sizes[1]).astype(np.float64)
    wanted = memory["c"].copy()
    z = matrices("c", wanted, sizes[0], sizes[1])
    z[...] = z + x @ y if adds else x @ y
    buffers = [Buffer(a, np.dtype(dtype), memory[a].shape) for a in "abc"]
    if values:
        buffers.append(Buffer("v", I64, (len(values),)))
        memory["v"] = np.array(values)
    call = Call("gemm", ("a", "b", *(["v"] if values else [])), ("c",), params)
    return Case(program_of(buffers, call), memory, "c", wanted, float(np.finfo(dtype).eps) * 4 * (10 + sizes[2]))


def test_tiles_take_operands_and_results_by_rows_and_by_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "_BUSY", 26)  # so few tiles of 128 x 128 keep a device busy that they can be emulated
    check(
        [
            product(100, 70, 40),
            product(100, 70, 40, turned="ab"),
            product(65, 130, 33, "f8", turned="ac"),
            product(65, 130, 33, "f8", turned="bc"),
            product(150, 140, 20, batch=(2, 4)),  # tiles of 128 x 128
            product(130, 129, 12, adds=True),
            product(30, 40, 51, offset=3),
        ]
    )


def test_long_sums_are_cut_into_parts_and_added_up_in_order() -> None:
    check([product(20, 24, 1100, batch=(2,)), product(40, 40, 2100, "f8"), product(40, 33, 1100, adds=True)])


def test_sizes_and_starts_may_be_known_to_the_run_alone() -> None:
    check(
        [
            product(70, 70, 70, run=(50, 33, 21)),
            product(70, 70, 70, run=(0, 33, 21)),
            product(70, 70, 70, run=(50, 33, 0)),
            product(30, 40, 50, starts="ac", offset=4),
            product(40, 40, 1100, run=(33, 40, 700), starts="b"),
            product(300, 1, 70, run=(211, 1, 33)),
            product(17, 1, 5000, run=(9, 1, 4001), offset=1),
        ]
    )


def test_vectors_on_either_side() -> None:
    cases = []
    for turned in ("", "ab"):
        cases += [
            product(50, 1, 300, turned=turned),
            product(3, 1, 9000, turned=turned),
            product(1, 77, 300, turned=turned),
            product(300, 1, 50, "f8", adds=True, turned=turned),
            product(40, 1, 64, batch=(3,), turned=turned),
            product(5, 1, 5000, adds=True, turned=turned),
        ]
    check([*cases, product(1, 1, 20000)])


def test_small_products_and_empty_sums() -> None:
    check(
        [
            product(3, 4, 5, batch=(50,)),
            product(4, 4, 4, "f8", batch=(5, 7), adds=True),
            product(10, 10, 0),
            product(100, 100, 0),
            product(100, 1, 0),
        ]
    )
