"""Every function of docs/supported.md has derivatives: forward, backward, twice, compiled, in rows, in both precisions."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from optree import tree_leaves, tree_map

from jitml import jit, jvp, vjp, vmap
from support.effort import FULL
from support.function_table import ROWS, is_here, words

PAGE = Path(__file__).parents[3] / "docs" / "supported.md"
# Their results are integers, truth values, places, dtypes or shapes, or do not depend on the numbers in their arguments.
WITHOUT_SLOPE = words(
    "np.bitwise_and np.bitwise_count np.bitwise_or np.bitwise_xor np.equal np.greater_equal np.greater np.invert np.isfinite "
    "np.isinf np.isnan np.left_shift np.less_equal np.less np.logical_and np.logical_not np.logical_or np.logical_xor "
    "np.not_equal np.right_shift np.signbit np.logical_and.reduce np.logical_or.reduce np.iscomplex np.iscomplexobj np.isreal "
    "np.isrealobj np.all np.any np.argmax np.argmin np.count_nonzero np.nanargmax np.nanargmin np.bool np.empty_like "
    "np.empty np.eye np.identity np.indices np.int16 np.int32 np.int64 np.int8 np.ones_like np.ones np.uint16 np.uint32 "
    "np.uint64 np.uint8 np.zeros_like np.zeros np.ravel_multi_index np.unravel_index ndarray.flags ndarray.setflags "
    "np.unique_counts np.allclose np.array_equal np.array_equiv np.can_cast np.isclose np.isneginf np.isposinf "
    "np.may_share_memory np.result_type np.shares_memory np.fft.fftfreq np.fft.rfftfreq all any bool in is int len math.isfinite "
    "math.isinf math.isnan math.ceil math.floor math.trunc "
    "cmath.isfinite cmath.isinf cmath.isnan "
    "math.comb math.factorial math.gcd math.isclose math.isqrt math.lcm math.perm collections.deque itertools.product"
)
# Of which another row shows as much.
LIKE_OTHERS = {
    "np.unique_all",
    "np.unique_inverse",
    "np.complex64",
    "np.complex128",
    "np.float16",
    "np.float32",
    "np.real_if_close",
}
# How many elements there are depends on their values: rows may differ.
OF_ANY_SIZE = set(
    words(
        "np.nonzero np.argwhere np.flatnonzero np.unique np.unique_values np.trim_zeros np.union1d np.intersect1d np.setdiff1d "
        "np.setxor1d"
    )
)
Block = tuple[Callable[..., Any], tuple[Any, ...]]  # a function and its arguments
AT_ONCE = 12  # names whose functions make one program: tracing takes its time for each program, not for each function
NAMES = {kind: [name for name, rows in ROWS.items() if any(kind in kinds for kinds, _, _ in rows)] for kind in "fc"}
BATCHES = [
    (kind, among[n : n + AT_ONCE])
    for kind, names in NAMES.items()
    for among in ([n for n in names if n not in OF_ANY_SIZE], [n for n in names if n in OF_ANY_SIZE])
    for n in range(0, len(among), AT_ONCE)
]


def test_the_table_is_complete() -> None:
    supported = PAGE.read_text().partition("## Supported")[2].partition("Every supported")[0]
    names = set(re.findall(r"`([^`]+)`", supported)) - {"is not"}
    missing = set(filter(is_here, names)) - {name.partition(":")[0] for name in ROWS} - set(WITHOUT_SLOPE) - LIKE_OTHERS
    assert not missing, f"give {', '.join(sorted(missing))} a row in function_table.py, or say that there is no slope"


def complexes(x: np.ndarray) -> np.ndarray:
    return x * (1 + 0.3j) + 0.2j * np.sin(np.arange(x.size)).reshape(x.shape)


def cotangent(y: Any) -> Any:
    drawn = np.random.default_rng(1)
    y = np.asarray(y)
    ct = drawn.normal(size=y.shape) + (1j * drawn.normal(size=y.shape) if y.dtype.kind == "c" else 0)
    return ct.astype(y.dtype)[()]


def blocks_of(name: str, kind: str) -> list[Block]:
    return [(f, args if kind == "f" else tuple(map(complexes, args))) for kinds, f, args in ROWS[name] if kind in kinds]


def beside(blocks: Sequence[Block]) -> Callable[..., Any]:
    """All functions as one, of all arguments: a tuple of results."""
    return lambda *args: tuple(function(*own) for (function, _), own in zip(blocks, apart(blocks, args), strict=True))


def apart(blocks: Sequence[Block], values: Sequence[Any]) -> tuple[Sequence[Any], ...]:
    """What belongs to the arguments of each block."""
    return tuple(values[stop - len(args) : stop] for (_, args), stop in zip(blocks, accumulate(len(args) for _, args in blocks)))


def along(x: Any, rng: np.random.Generator) -> Any:
    x = np.asarray(x)
    return (rng.normal(size=x.shape) + (1j * rng.normal(size=x.shape) if x.dtype.kind == "c" else 0)).astype(x.dtype)[()]


def product(cts: Any, ways: Any) -> float:
    return sum(float(np.real(np.sum(ct * way))) for ct, way in zip(tree_leaves(cts), tree_leaves(ways), strict=True))


def differences(function: Callable[..., Any], args: Sequence[Any], dx: Sequence[Any]) -> Any:
    """The derivative along dx by the central difference of fourth order."""
    at = [function(*(x + 1e-3 * step * d for x, d in zip(args, dx))) for step in (-2, -1, 1, 2)]
    return tree_map(lambda a, b, c, d: (8 * (c - b) - (d - a)) / 12e-3, *at)


def check(function: Callable[..., Any], blocks: Sequence[Block], order: int, rng: np.random.Generator, path: str = "") -> None:
    """As `check_grads` does, for each block on its own: both modes against differences, and so for the gradients.

    In full for forward derivatives, too. `check_all` has the forward derivatives of gradients.
    """
    args = tuple(x for _, args in blocks for x in args)
    dx = tuple(along(x, rng) for x in args)
    quotients = differences(function, args, dx)
    y, dy = jvp(function, args, dx) if FULL or not path else (function(*args), quotients)
    ct = tree_map(lambda y: along(y, rng), y)
    gradients = apart(blocks, vjp(function, *args)[1](ct))
    for n, ways in enumerate(apart(blocks, dx)):
        for ours, theirs in zip(tree_leaves(dy[n]), tree_leaves(quotients[n]), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=2e-5, err_msg=f"{path} fwd: {n}")
        reverse, forward = product(gradients[n], ways), product(ct[n], quotients[n])
        np.testing.assert_allclose(reverse, forward, rtol=2e-5, atol=2e-5, err_msg=f"{path} rev: {n}")
    if order > 1 and FULL:
        check(lambda *xs: jvp(function, xs, dx)[1], blocks, order - 1, rng, f"{path} fwd")
    if order > 1:
        check(lambda *xs: apart(blocks, vjp(function, *xs)[1](ct)), blocks, order - 1, rng, f"{path} rev")


def close(got: Any, expected: Any) -> None:
    for ours, theirs in zip(tree_leaves(got), tree_leaves(expected), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-10)


def check_all(kind: str, names: Sequence[str], is_deep: bool) -> None:
    """Of the first row of each name all is asked, of the others both modes; of complex numbers one mode of the other.

    In full both modes of both are asked of all rows.

    Args:
        is_deep: whether second derivatives are compiled, and not the first alone.
    """
    is_whole = kind == "f" or FULL
    blocks = [block for name in names for block in blocks_of(name, kind)]
    firsts = [blocks_of(name, kind)[0] for name in names]
    others = [block for name in names for block in blocks_of(name, kind)[1:]]
    for some, order in ((blocks, 2),) if FULL else ((firsts, 2 if is_whole else 1), (others, 1)):
        if some:
            check(beside(some), some, order, np.random.default_rng(0))
    function, args = beside(firsts), tuple(x for _, args in firsts for x in args)
    ct = tree_map(cotangent, function(*args))
    pull = lambda ct, *args: vjp(function, *args)[1](ct)  # noqa: E731  # transforms want a function
    expected = pull(ct, *args)
    ways = tuple(np.cos(x) if kind == "f" else np.exp(1j * x.real) for x in args)
    twice = jvp(lambda *args: pull(ct, *args), args, ways)
    for got, quotient in zip(twice[1], differences(partial(pull, ct), args, ways), strict=True):
        np.testing.assert_allclose(got, quotient, rtol=2e-5, atol=2e-5)
    if is_deep:
        close(jit(lambda ct, *args: jvp(lambda *args: pull(ct, *args), args, ways))(ct, *args), (expected, twice[1]))
    else:
        close(jit(pull)(ct, *args), expected)
    if OF_ANY_SIZE.isdisjoint(names):
        together = vmap(pull)(tree_map(lambda ct: np.stack([ct, ct]), ct), *(np.stack([x, x]) for x in args))
        close(together, [np.stack([ct, ct]) for ct in expected])
    narrow = tuple(x.astype(np.float32 if kind == "f" else np.complex64) for x in args)
    narrow_ct = tree_map(lambda ct, y: ct.astype(np.asarray(y).dtype), ct, function(*narrow))
    for ours, theirs, x in zip(pull(narrow_ct, *narrow), expected, narrow):
        assert ours.dtype == x.dtype
        np.testing.assert_allclose(ours, theirs, rtol=3e-3, atol=3e-3 * max(1, np.abs(theirs).max()))


@pytest.mark.parametrize(("kind", "names"), BATCHES, ids=[f"{names[0]}-{kind}" for kind, names in BATCHES])
def test_derivatives(kind: str, names: list[str]) -> None:
    """To compile second derivatives takes half of all its time: by turns it is done for a third of the real functions."""
    is_deep = FULL or (kind == "f" and BATCHES.index((kind, names)) % 3 == 0)
    try:
        check_all(kind, names, is_deep)
    except Exception:
        for name in names:  # which of them?
            check_all(kind, [name], is_deep)
        raise
