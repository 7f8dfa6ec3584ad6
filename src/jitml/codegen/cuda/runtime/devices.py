"""Devices: which GPUs are there?  Each is opened when it is first asked for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from jitml.codegen.cuda.runtime.device import Device
from jitml.codegen.cuda.runtime.driver import device_count
from jitml.codegen.cuda.runtime.gpu import Gpu
from jitml.config import CONFIG
from jitml.forks import lock

_USUAL_ARCH = "sm_90"
_LOCK = lock()
_OPEN: dict[int, Gpu] = {}
_instead: Device | None = None


def device(ordinal: int = 0) -> Device:
    """The GPU of this number.

    Raises:
        NoDeviceError: there is none.
    """
    if _instead is not None:
        return _instead
    with _LOCK:
        if ordinal not in _OPEN:
            _OPEN[ordinal] = Gpu(ordinal)
        return _OPEN[ordinal]


def known_arch() -> str:
    """What code is compiled for: the first GPU, or an H100 where there is none."""
    if _instead is not None or _OPEN or device_count():
        return device().arch
    return _USUAL_ARCH


def most_bytes() -> int:
    """The memory that the first GPU has, as far as JITML_DEVICE_BYTES allows; where there is none, that alone counts."""
    if _instead is not None or _OPEN or device_count():
        return min(device().memory()[1], CONFIG.device_bytes)
    return CONFIG.device_bytes


@contextmanager
def replaced(other: Device) -> Iterator[None]:
    """Have all that asks for a GPU get another device, for tests."""
    global _instead
    before, _instead = _instead, other
    try:
        yield
    finally:
        _instead = before
