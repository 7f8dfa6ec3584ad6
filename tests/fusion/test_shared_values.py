"""Values that several groups read."""

from __future__ import annotations

import numpy as np

import jitml
from jitml.ir.text.parser import parse
from jitml.kernels.text.printer import show
from support.fused import fuse_and_check


def test_a_value_with_three_users_of_which_two_merge() -> None:
    graph = parse(
        """graph(a: u32[5], b: u64[5], c: f64[5]) {
          d: f64[5] = convert a {dtype=f64}
          e: f64[5] = full {dtype=f64, shape=(5,), value=0.5}
          f: f64[5] = mul d e
          g: f64[5] = convert b {dtype=f64}
          h: f64[5] = mul g e
          i: f64[5] = mul c e
          return f h i
        }"""
    )
    fuse_and_check(graph, [np.arange(5, dtype="u4"), np.arange(5, dtype="u8"), np.arange(5.0)])


def test_a_row_that_waits_in_an_output_is_read_before_the_output_replaces_it() -> None:
    fuse_and_check(
        parse(
            """graph(a: f64[3,5]) {
              b: f64[3,5] = exp a
              c: f64[3] = reduce_sum b {axes=(1,)}
              d: f64[3,5] = broadcast c {axes=(0,), shape=(3, 5)}
              e: f64[3,5] = mul d b
              f: f64[3,5] = sub a d
              return e f
            }"""
        )
    )


def test_rows_that_wait_in_outputs_that_read_both() -> None:
    fuse_and_check(
        parse(
            """graph(a: f64[3,5], b: f64[3,5]) {
              c: f64[3,5] = exp a
              d: f64[3,5] = exp b
              e: f64[3,5] = mul c d
              f: f64[3] = reduce_sum e {axes=(1,)}
              g: f64[3,5] = broadcast f {axes=(0,), shape=(3, 5)}
              h: f64[3,5] = mul g c
              i: f64[3,5] = add h d
              j: f64[3,5] = mul g d
              k: f64[3,5] = add j c
              return i k
            }"""
        )
    )


def test_what_waits_in_a_place_for_each_turn_of_a_loop_that_it_does_not_depend_on() -> None:
    fuse_and_check(
        parse(
            """graph(a: i64[4], b: i64[5]) {
              c: i64[4,2] = broadcast a {axes=(0,), shape=(4, 2)}
              d: i64[8] = reshape c {shape=(8,)}
              e: i64[8] = full {dtype=i64, shape=(8,), value=5}
              f: i64[8] = remainder d e
              g: i64[8] = gather b f {axis=0}
              h: i64[] = reduce_max d {axes=(0,)}
              i: i64[8] = broadcast h {axes=(), shape=(8,)}
              j: i64[8] = add g i
              return d f j
            }"""
        ),
        [np.array([7, 3, 4, 11]), np.arange(5) * 10],
    )


def test_what_is_little_work_beside_a_value_that_is_kept_anyway_is_not_kept() -> None:
    def gated(x, w):
        t = np.tanh(x)
        gate = 1 + t
        return (x * gate) @ w * gate * (1 - t * t)

    def crowded(x, w):  # among much else that the same kernel reads, and what its operand is for comes earlier
        t = np.tanh(x)
        square, gate = t * t, 1 + t
        y = (x * gate) @ w * gate * (1 - square)
        for v in others:
            y = y * v
        return y

    def apart(x, w):  # what it is made of is wanted nowhere else
        gate = 1 + np.tanh(x)
        return (x * gate) @ w * gate

    x = np.random.default_rng(0).standard_normal((40, 40))
    w = x[::-1].copy()
    others = [x + k for k in range(40)]
    for f in (gated, crowded, apart):
        program = jitml.jit(f).lower(x, w).program.kernels
        read = 2 + len(others) * (f is crowded)
        assert len(program.buffers) == read + 1 + 3  # the tangent or the gate, what is multiplied, and the product
        assert show(program.steps[-1]).count("1.0 + ") == (f is not apart)
        np.testing.assert_allclose(jitml.jit(f)(x, w), f(x, w), rtol=1e-12, atol=1e-12)


def test_elements_of_an_array_that_is_kept_are_read_where_they_are() -> None:
    """A rotation of three angles: sines and cosines are kept, and none of their elements is copied out."""
    f = jitml.jit(
        lambda a: (np.stack([c := np.cos(a), s := np.sin(a)]), np.array([c[0] * s[1], c[1] * s[2], c[2]]), c[0] * s[0] * a)
    )
    f(np.arange(3.0))
    program = f.lower(np.arange(3.0)).program.kernels
    assert not [b for b in program.buffers.values() if b.size == 1]


def test_a_row_of_a_large_array_is_kept_without_the_array() -> None:
    def centred(x: np.ndarray) -> np.ndarray:
        y = np.exp(np.sin(x))
        return y - y[0]

    program = jitml.jit(centred).lower(np.ones((100, 50))).program.kernels
    assert [b.size for b in program.buffers.values() if b.name not in program.inputs + program.outputs] == [50]
