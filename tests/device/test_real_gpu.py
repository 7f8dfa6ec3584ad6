"""Device arrays on a GPU of this machine, if it has one: the same cases, other libraries' streams, and what goes wrong."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import jitml
from device.device_cases import CASES, on_device, require_numpys, x

pytestmark = [pytest.mark.cuda, pytest.mark.skipif("cuda" not in jitml.devices(), reason="there is no GPU")]


@pytest.mark.parametrize("name", CASES)
def test_answers_and_changes_are_numpys(name: str) -> None:
    require_numpys(name, "first")


def test_memory_comes_back() -> None:
    kept = on_device(x)
    memory = kept._device.memory
    for _ in range(2):  # the pool grows once
        for _ in range(50):
            np.asarray(jitml.asarray(np.ones(1 << 20), device="cuda")[::2])
        gc.collect()
        kept.block_until_ready()
        free, _ = memory.memory()
    for _ in range(200):
        jitml.asarray(np.ones(1 << 20), device="cuda")
    kept.block_until_ready()
    assert memory.memory()[0] >= free - (64 << 20)


def test_pytorch_shares_memory_and_streams() -> None:
    torch = pytest.importorskip("torch")
    theirs = torch.arange(1 << 20, device="cuda", dtype=torch.float64)
    ours = jitml.asarray(theirs)
    doubled = torch.from_dlpack(jitml.jit(lambda v: v * 2)(ours))
    assert bool((doubled == theirs * 2).all())
    jitml.jit(lambda v: v.__iadd__(1))(theirs)
    assert float(theirs[0]) == 1.0


def test_cupy_takes_the_interface() -> None:
    cupy = pytest.importorskip("cupy")
    ours = jitml.asarray(x, device="cuda")
    theirs = cupy.asarray(ours.T)
    theirs += 1
    cupy.cuda.get_current_stream().synchronize()
    np.testing.assert_allclose(np.asarray(ours), x + 1)
    np.testing.assert_allclose(np.asarray(jitml.asarray(theirs)), x.T + 1)
