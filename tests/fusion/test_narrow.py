"""Integers in fewer bits: the same numbers, in narrower vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.fusion.prepare.narrow import narrow_integers
from jitml.ir.interpret import interpret
from jitml.ir.text.parser import parse

N = 256
Function = Callable[..., Any]


def widths(text: str) -> set[str]:
    """The dtypes of what is computed of bytes a, b and shorts s, and 64-bit w, once dead nodes are gone; results as before."""
    graph = parse(f"graph(a: u8[{N}], b: u8[{N}], s: i16[{N}], w: i64[{N}]) {{ {text} }}")
    after = narrow_integers(graph)
    rng = np.random.default_rng(0)
    whole = np.arange(N, dtype=np.uint8)
    args = [whole, rng.permutation(whole), rng.integers(-(2**15), 2**15, N).astype(np.int16), rng.integers(-(2**40), 2**40, N)]
    for x, y in zip(interpret(graph, args), interpret(after, args), strict=True):
        np.testing.assert_array_equal(x, y)
    live, found = set(after.outputs), set()
    for node in reversed(after.nodes):
        if not live.isdisjoint(node.outputs):
            live |= set(node.inputs)
            found |= {str(node.output.dtype)} - {"bool"} if node.inputs and node.op.name != "convert" else set()
    return found


def wide(*lines: str, dtype: str = "i32", result: str = "u8") -> str:
    """Bytes x and y in more bits; `lines` compute z, of which the low bits are the result."""
    text = f"x: {dtype}[{N}] = convert a {{dtype={dtype}}}; y: {dtype}[{N}] = convert b {{dtype={dtype}}}; "
    text += "".join(f"{name}: {dtype}[{N}] = {line}; " for name, line in (whole.split(" = ") for whole in lines))
    return text + f"r: {result}[{N}] = convert z {{dtype={result}}}; return r"


def number(value: int, dtype: str = "i32") -> str:
    return f"full {{dtype={dtype}, shape=({N},), value={value}}}"


@pytest.mark.parametrize(
    "text, expected",
    [
        (wide("z = add x y"), {"uint8"}),  # of a sum the low bits are those of the low bits
        (wide("z = add x y", result="u16"), {"uint16"}),
        (wide("z = add x y", dtype="i64"), {"uint8"}),
        (wide("s1 = add x y", f"c = {number(1)}", "z = shift_right s1 c"), {"uint16"}),  # the ninth bit counts
        (wide("s1 = sub x y", f"c = {number(1)}", "z = shift_right s1 c"), {"int16"}),  # and the sign
        (wide("s1 = mul x y", f"c = {number(8)}", "z = shift_right s1 c"), {"uint16"}),
        (wide("s1 = mul x y", "s2 = mul s1 x", f"c = {number(8)}", "z = shift_right s2 c"), {"int32"}),  # more than 16 bits
        (wide("s1 = mul x y", "s2 = mul s1 x", f"c = {number(8, 'i64')}", "z = shift_right s2 c", dtype="i64"), {"uint32"}),
        (wide("s1 = add x y", f"c = {number(3)}", "z = floor_divide s1 c"), {"uint16"}),
        (wide("s1 = add x y", "z = floor_divide s1 y"), {"int32"}),  # perhaps by zero
        (wide("s1 = sub x y", f"c = {number(0)}", "z = maximum s1 c"), {"int16"}),
        (wide("s1 = sub x y", "z = abs s1"), {"int16"}),
        (wide("s1 = add x y", f"c = {number(40)}", "z = shift_right s1 c"), {"uint16"}),
        (wide("s1 = shift_left x y", f"c = {number(1)}", "z = shift_right s1 c"), {"int32"}),
        (f"v: i64[{N}] = add w w; r: u8[{N}] = convert v {{dtype=u8}}; return r", {"int64"}),  # an array that is wide anyway
    ],
)
def test_as_few_bits_as_do(text: str, expected: set[str]) -> None:
    assert widths(text) == expected


def test_what_others_read_stays() -> None:
    text = wide("z = add x y")
    assert widths(text.replace("return r", "return r z")) == {"int32"}
    other = f"f: f64[{N}] = convert z {{dtype=f64}}; return r f"
    assert widths(text.replace("return r", other)) == {"int32"}


def test_comparisons_see_all_bits() -> None:
    def compared(c: int) -> set[str]:
        head = wide("z = sub x y").split("r: u8")[0]
        return widths(f"{head} c: i32[{N}] = {number(c)}; r: bool[{N}] = gt z c; return r")

    assert compared(100) == {"int16"}
    assert compared(100_000) == {"int32"}


def blend(a, b):
    return ((a.astype(np.int32) * 3 + b.astype(np.int32) * 5 + 4) >> 3).astype(np.uint8)


def gray(a, b):
    return ((a.astype(np.uint32) * 77 + b.astype(np.uint32) * 179) >> 8).astype(np.uint8)


def sharpen(a, b):
    return np.clip(2 * a.astype(np.int64) - b, 0, 255).astype(np.uint8)


def edges(a, b):
    x = a.astype(np.int32)
    return (np.abs(x[2:] - x[:-2]) + np.abs(b[1:-1].astype(np.int32) - x[1:-1]) > 50).astype(np.uint8)


def average(a, b):
    return ((a.astype(np.uint16) + b) // 2).astype(np.uint8)


@pytest.mark.parametrize("function", [blend, gray, sharpen, edges, average])
@pytest.mark.parametrize("source", [np.uint8, np.int8, np.int16])
def test_images(function: Function, source: Any) -> None:
    """All pairs of bytes, among others."""
    ends = np.iinfo(source)
    few = np.unique(np.linspace(ends.min, ends.max, 256).astype(source))
    a, b = (x.reshape(-1).copy() for x in np.meshgrid(few, few))
    np.testing.assert_array_equal(jitml.jit(function)(a, b), function(a, b))


@pytest.mark.parametrize("by", [10, 31, 32, 256, 65536])
def test_shifts_by_more_than_there_are_bits(by: int) -> None:
    def shifted(x: Any) -> Any:
        return ((x.astype(np.int64) << by) + x).astype(np.uint16)

    x = np.arange(256).astype(np.uint8)
    np.testing.assert_array_equal(jitml.jit(shifted, strict=True, verify="never")(x), shifted(x))


def scan(op: str, of: str, dtype: str = "i64", more: str = "", result: str = "n") -> str:
    """A running sum or extreme z of something, in 64 bits, and what somebody makes of it."""
    params = "{axis=0, reverse=False}"
    return (
        f"x: {dtype}[{N}] = convert {of} {{dtype={dtype}}}; {more} z: {dtype}[{N}] = {op} x {params}; n: {dtype}[{N}] = neg z; "
        f"return {result}"
    )


@pytest.mark.parametrize(
    "text, expected",
    [
        (scan("cumsum", "a"), {"int32", "int64"}),
        (scan("cumsum", "s"), {"int32", "int64"}),
        (scan("cumsum", "a", "u64"), {"int32", "uint64"}),
        (scan("cummax", "s"), {"int32", "int64"}),
        (scan("cummin", "s"), {"int32", "int64"}),
        (scan("cumsum", "w"), {"int64"}),  # of which nobody knows the limits
        (scan("cummax", "w"), {"int64"}),
        (scan("cumprod", "s"), {"int64"}),
        (scan("cumsum", "a", result="n z"), {"int64"}),  # a result is wanted in all of its bits
        (scan("cumsum", "a", "i32"), {"int32"}),
    ],
)
def test_running_sums_and_extremes(text: str, expected: set[str]) -> None:
    assert widths(text) == expected


def test_a_running_sum_that_may_leave_32_bits_stays() -> None:
    n = (1 << 16) + 2  # of shorts
    lines = (
        f"x: i64[{n}] = convert s {{dtype=i64}}; z: i64[{n}] = cumsum x {{axis=0, reverse=False}}; r: i64[{n}] = neg z; return r"
    )
    graph = parse(f"graph(s: i16[{n}]) {{ {lines} }}")
    assert narrow_integers(graph) is graph
    for value in (-(2**15), 2**15 - 1):
        s = np.full(n, value, np.int16)
        np.testing.assert_array_equal(jitml.jit(lambda s: -np.cumsum(s, dtype=np.int64))(s), -np.cumsum(s, dtype=np.int64))
