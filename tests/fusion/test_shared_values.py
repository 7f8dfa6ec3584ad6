"""Values that several groups read."""

from __future__ import annotations

import numpy as np

from fused import fuse_and_check
from jitml.ir.parser import parse


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
