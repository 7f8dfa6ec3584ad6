"""A GPU's memory is enough for what would need more: values are made twice. What needs more still is refused with figures."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.device.operations import forget_operations
from support.cuda_emulation import has_compiler
from support.cuda_emulation.device import EmulatedDevice, emulated

pytestmark = pytest.mark.skipif(not has_compiler(), reason="kernels are emulated by g++")
LAYERS, ARRAY = 8, 256 * 32 * 8
RNG = np.random.default_rng(0)
WEIGHTS, X = [RNG.standard_normal((32, 32)) / 32 for _ in range(LAYERS)], RNG.standard_normal((256, 32))


def slope(weights: Any, x: Any) -> Any:
    def loss(weights: Any) -> Any:
        y = x
        for w in weights:
            y = np.tanh(y @ w)
        return (y**2).sum()

    return jitml.grad(loss)(weights)


@pytest.fixture
def small() -> Iterator[EmulatedDevice]:
    """Memory for some arrays more than there are weights, which is too little to save one for each layer."""
    with emulated(capacity=2 * LAYERS * 32 * 32 * 8 + 9 * ARRAY) as gpu:
        yield gpu
        forget_operations()
        gc.collect()
        assert gpu.used == 0


def test_what_does_not_fit_is_made_twice(small: EmulatedDevice) -> None:
    f = jitml.jit(slope, device="cuda", verify="never")
    for found, wanted in zip(f(WEIGHTS, X), slope(WEIGHTS, X), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12)
    assert "values twice: needs" in f.explain(WEIGHTS, X)


def test_what_does_not_fit_even_so_is_refused_with_figures(small: EmulatedDevice) -> None:
    x = np.resize(X, (4000, 32))
    launches = small.launches
    f = jitml.jit(slope, device="cuda", verify="never")
    with pytest.raises(jitml.DeviceMemoryError, match=r"has not [\d,]+ bytes: .* are free\. The call needs [\d,]+ bytes"):
        f(WEIGHTS, x)
    assert small.launches == launches
