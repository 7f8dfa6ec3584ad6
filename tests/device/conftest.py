"""A device for each test of this folder: the host's memory, at addresses that the processor cannot read."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from jitml.device import dlpack
from jitml.device.memory import ArrayDevice
from support.host_device import host_device


@pytest.fixture
def device() -> Iterator[ArrayDevice]:
    with host_device() as made:
        yield made


@pytest.fixture
def clean_device(device: ArrayDevice) -> Iterator[ArrayDevice]:
    """One of which all memory that nobody holds must be given back in the end, and all that others were lent."""
    yield device
    gc.collect()
    assert not device.memory.used and not dlpack._lent  # type: ignore[attr-defined]
