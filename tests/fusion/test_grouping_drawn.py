"""Fusion leaves a drawn graph's answer alone, on an ordinary machine and on one to which everything is large."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from jitml.fusion.fuse import DEFAULT
from jitml.ir.graph import Graph
from jitml.kernels.target import Target
from support.fused import TINY, fuse_and_check
from support.strategies import graphs, ordinary_inputs


@pytest.mark.parametrize("target", [DEFAULT, TINY], ids=["ordinary", "tiny"])
@settings(max_examples=60, deadline=None)
@given(graph=graphs(max_nodes=12))
def test_drawn_graphs(target: Target, graph: Graph) -> None:
    args = [np.asarray(a) for a in ordinary_inputs(graph)]
    fuse_and_check(graph, args, rtol=1e-9, target=target)
