"""Scatters on a GPU: every element arrives in its place, and in its order where that makes a difference."""

from __future__ import annotations

import numpy as np
import pytest

from jitml.kernels.ir import Buffer
from jitml.kernels.program import Call
from support.cuda_calls import Case, check, plans_of, program_of

UFUNCS = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


def _scatter(
    shape: tuple[int, ...],
    axis: int,
    index_shape: tuple[int, ...],
    dtype: str,
    combine: str,
    *,
    indices: int = 1,
    live: tuple[int, ...] | None = None,
    error: float = 0.0,
) -> Case:
    """
    Args:
        live: extents that count, of the axes of the result and then of the indices.
    """
    rng = np.random.default_rng(len(shape) + index_shape[0])
    extents = live or (*shape, *index_shape)
    x, i_live = extents[: len(shape)], extents[len(shape) :]
    out = rng.integers(1, 50, shape).astype(dtype)
    values_shape = (*shape[:axis], *index_shape, *shape[axis + indices :])
    values = rng.integers(0, 3, values_shape).astype(dtype)
    places = [rng.integers(-x[axis + k], x[axis + k], index_shape, np.int64) for k in range(indices)]
    wanted = out.copy()
    used = tuple(map(slice, i_live))
    at = (*(slice(n) for n in x[:axis]), *(p[used] for p in places))
    part = values[tuple(map(slice, (*x[:axis], *i_live, *x[axis + indices :])))]
    target = wanted[tuple(map(slice, x))]
    if combine == "set":
        target[at] = part
    else:
        UFUNCS[combine].at(target, at, part)
    names = [f"i{k}" for k in range(indices)]
    memory = {"y": out, "v": values, **dict(zip(names, places))}
    reads = ["v", *names]
    if live:
        memory["n"] = np.array(live)
        reads.append("n")
    params = {"axis": axis, "combine": combine, "sized": live is not None, "shapes": (values_shape,) + (index_shape,) * indices}
    buffers = [Buffer(name, array.dtype, array.shape) for name, array in memory.items()]
    return Case(program_of(buffers, Call("scatter", tuple(reads), ("y",), params)), memory, "y", wanted, error)


def test_integers_are_combined_in_any_order() -> None:
    check(
        [
            _scatter((70,), 0, (300,), "i8", "add"),
            _scatter((5,), 0, (3000,), "i4", "add"),  # in shared memory
            _scatter((5000,), 0, (300,), "u4", "max"),
            _scatter((3, 40, 5), 1, (20, 4), "u8", "add"),
            _scatter((3, 7, 6, 2), 1, (50,), "i8", "min", indices=2),
        ]
    )


def test_the_last_of_those_that_replace_an_element_stays() -> None:
    check(
        [
            _scatter((70,), 0, (300,), "f4", "set"),
            _scatter((3, 40, 5), 1, (20, 4), "f2", "set"),
            _scatter((7, 6), 0, (500,), "?", "set", indices=2),
        ]
    )


def test_floats_and_narrow_integers_are_combined_in_order() -> None:
    check(
        [
            _scatter((70,), 0, (300,), "f4", "add"),
            _scatter((5,), 0, (3000,), "f8", "add", error=1e-9),  # by warps
            _scatter((3, 40, 5), 1, (20, 4), "f8", "mul"),
            _scatter((9, 6), 0, (300,), "i1", "add"),
            _scatter((9,), 0, (300,), "?", "add"),
            _scatter((9,), 0, (300,), "f4", "max"),
        ]
    )


def test_floats_are_added_in_any_order_for_those_who_choose_it() -> None:
    cases = [
        _scatter((70,), 0, (300,), "f4", "add"),
        _scatter((5,), 0, (3000,), "f8", "add"),  # in shared memory
        _scatter((3, 40, 5), 1, (20, 4), "f8", "add"),
        _scatter((5,), 0, (3000,), "f4", "add", live=(4, 2000)),
    ]
    check(cases, fastmath=["atomics"])
    assert "atomicAdd" in plans_of([case.program for case in cases], ["atomics"])[0]
    others = [_scatter((70,), 0, (300,), "f4", combine) for combine in ("mul", "max")]
    kept = [*others, _scatter((70,), 0, (300,), "f8", "set")]
    assert plans_of([c.program for c in kept])[0] == plans_of([c.program for c in kept], ["atomics"])[0]


@pytest.mark.parametrize(
    "value, start, wanted", [(-0.0, -0.0, -0.0), (0.0, -0.0, 0.0), (np.nan, 1.0, np.nan), (np.inf, 1.0, np.inf)]
)
def test_zeros_and_nan_in_shared_memory(value: float, start: float, wanted: float) -> None:
    case = _scatter((5,), 0, (300,), "f8", "add")
    memory = {**case.memory, "y": np.full(5, start), "v": np.full(300, value)}
    check([Case(case.program, memory, "y", np.full(5, wanted))], fastmath=["atomics"])


def test_the_run_may_tell_the_extents() -> None:
    check(
        [
            _scatter((70,), 0, (300,), "i8", "add", live=(33, 211)),
            _scatter((70, 4), 0, (300,), "f8", "add", live=(33, 3, 211)),
            _scatter((70,), 0, (300, 2), "f4", "set", live=(33, 100, 1)),
            _scatter((70,), 0, (300,), "f4", "add", live=(33, 0)),
        ]
    )


@pytest.mark.parametrize("index", [99, -99])
def test_an_index_that_nobody_has_checked_touches_nothing_outside(index: int) -> None:
    case = _scatter((70,), 0, (300,), "i8", "add")
    wanted = case.memory["y"].copy()
    wanted[0 if index < 0 else 69] += case.memory["v"].sum()
    check([Case(case.program, {**case.memory, "i0": np.full(300, index)}, "y", wanted)])
