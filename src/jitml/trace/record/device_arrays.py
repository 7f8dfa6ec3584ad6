"""Device arrays in a trace: they come in as views of their memory, and a program whose arrays are on a device runs there."""

from __future__ import annotations

from typing import Any

from jitml.device.array import Array, array_of
from jitml.device.memory import ArrayDevice
from jitml.device.registry import CPU
from jitml.device.view import DeviceView
from jitml.errors import UnsupportedError
from jitml.records import dataclass
from jitml.trace.record.array_memory import is_native
from jitml.trace.record.guards import HostConst, Slot
from jitml.trace.record.parts import CallPart
from jitml.trace.record.recording import Trace, unsupported, user_source


@dataclass
class ProgramDevice(CallPart):
    """Where a program runs: None is the host.

    name: what is on the device.
    """

    device: ArrayDevice | None = None
    name: str = ""


def is_on_device(x: Any) -> bool:
    return type(x) is Array


def device_name(trace: Trace) -> str:
    """Where the arrays of a program are, for all that is known by now."""
    device = trace.root.call[ProgramDevice].device
    return CPU if device is None else device.name


def shown_memory(trace: Trace, x: Array, slot: Slot) -> tuple[DeviceView, Slot]:
    """The memory of a device's array, and the slot of that.

    Raises:
        UnsupportedError: other arrays of the program are on another device.
    """
    host, name = trace.host, trace.host.name(slot)
    host.require_type(slot, Array)
    used = trace.root.call[ProgramDevice]
    if used.device is not None and used.device is not x._device:
        raise UnsupportedError(
            f"{name} is on {x.device}, and {used.name} on {used.device.name}",
            source=user_source(),
            remedy=f"Take both to one device: {name}.to_device({used.device.name!r}), say.",
        )
    if not is_native(x._view):
        unsupported(f"{name} is not aligned, or its strides are no multiples of its elements", f"Pass {name}.copy().")
    used.device, used.name = x._device, used.name or name
    host.require_same(host.compute(getattr, (slot, HostConst("_device")), f"the device of {name}"), x._device)
    return x._view, host.compute(getattr, (slot, HostConst("_view")), name)


def as_returned(x: Any) -> Any:
    """What a call returns for what its program has: the array whose memory it is."""
    return array_of(x) if type(x) is DeviceView else x
