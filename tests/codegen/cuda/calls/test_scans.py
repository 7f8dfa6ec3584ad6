"""Running sums, products and extremes on a GPU: along any axis, in either direction, in one piece or in many."""

from __future__ import annotations

import numpy as np

from jitml.ir.types import I64
from jitml.kernels.ir import Buffer, Const, Var
from jitml.kernels.program import Call
from jitml.kernels.sizes import SizeSource
from support.cuda_calls import Case, check, placed, program_of

UFUNCS = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


def _scan(
    shape: tuple[int, ...],
    axis: int,
    dtype: str = "f4",
    combine: str = "add",
    *,
    reverse: bool = False,
    strides: tuple[int, ...] | None = None,
    live: int | None = None,
) -> Case:
    """
    Args:
        strides: of what is read.
        live: the extent of the axis that counts.
    """
    x, y = Buffer("x", np.dtype(dtype), shape, strides), Buffer("y", np.dtype(dtype), shape)
    values = np.random.default_rng(x.size).integers(-9, 9, x.reach).astype(dtype)
    memory = {"x": values, "y": np.full(y.size, 7, dtype)}
    wanted = memory["y"].copy()
    part = tuple(live if a == axis and live is not None else n for a, n in enumerate(shape))
    turned = slice(None, None, -1 if reverse else 1)
    source, target = (np.moveaxis(placed(*each, part), axis, 0)[turned] for each in ((values, x), (wanted, y)))
    target[...] = UFUNCS[combine].accumulate(source.astype(np.float64 if dtype == "f4" else dtype), axis=0)
    buffers, known = [x, y], {}
    if live is not None:
        memory["n"] = np.array(live)
        buffers.append(Buffer("n", I64, ()))
        extents = tuple(Var("n") if a == axis else Const(n) for a, n in enumerate(shape))
        known = {"sizes": {"n": SizeSource("n", 0, shape[axis])}, "extents": {"x": extents, "y": extents}}
    call = Call("scan", ("x",), ("y",), {"axis": axis, "combine": combine, "reverse": reverse})
    return Case(program_of(buffers, call, **known), memory, "y", wanted.reshape(-1))


def test_rows_columns_and_what_lies_between() -> None:
    check(
        [
            _scan((5,), 0),
            _scan((3, 5000), 1, "i4"),  # pieces of rows
            _scan((9001,), 0, "f8", reverse=True),
            _scan((150, 300), 1),  # a block for each row
            _scan((40, 30), 1, "i8", reverse=True),  # a thread for each row
            _scan((300, 20), 0),  # columns, in pieces
            _scan((90, 20000), 0, "i4"),  # columns, whole
            _scan((3, 50, 40), 1, "u2", reverse=True),
            _scan((70, 130), 1, strides=(1, 70)),
        ]
    )


def test_every_operation_and_width() -> None:
    check(
        [_scan((3000,), 0, dtype, combine) for dtype, combine in (("i1", "add"), ("u1", "mul"), ("i8", "mul"), ("u8", "max"))]
        + [_scan((100,), 0, dtype, combine) for dtype, combine in (("?", "max"), ("i2", "min"), ("f8", "min"), ("u4", "add"))]
    )


def test_nan_stays_and_zeros_keep_their_sign() -> None:
    rows = [[1.0, np.nan, 2.0, 3.0], [-0.0, -0.0, -0.0, 1.0]]
    cases = []
    for combine in ("max", "min", "add"):
        case = _scan((2, 4), 1, "f8", combine)
        wanted = UFUNCS[combine].accumulate(np.array(rows), axis=1).reshape(-1)
        cases.append(Case(case.program, {**case.memory, "x": np.array(rows).reshape(-1)}, "y", wanted))
    check(cases)


def test_the_run_may_tell_how_long_rows_are() -> None:
    cases = [_scan((2, 5000), 1, live=n) for n in (0, 1, 3000, 5000)]
    check(cases + [_scan((300, 20), 0, "i4", live=n, reverse=True) for n in (0, 7, 299)])
