"""Devices by name: which there are, and the one that a name means.

`cpu` is where NumPy's arrays are. The others are made when they are first asked for: importing jitml touches no driver.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from typing import Any

from jitml.device.memory import ArrayDevice, CopyCount, MemoryBlock
from jitml.device.view import DeviceView, address, device_view
from jitml.diagnostics.tracebacks import entry
from jitml.errors import NoDeviceError, UnsupportedError
from jitml.forks import lock

CPU = "cpu"
_CUDA = 2  # DLPack's number for it
_CUDA_MANAGED = 13  # for memory that the processor sees, too


def _cuda() -> ArrayDevice:
    try:
        protocol: Any = import_module("jitml.codegen.cuda.runtime.device")
        runtime: Any = import_module("jitml.codegen.cuda.runtime.devices")
    except ImportError as error:
        remedy = 'Install what it needs: pip install "jitml[cuda]".'
        raise NoDeviceError(f"the device cuda cannot be used: {error}", remedy=remedy) from error

    def given(view: DeviceView) -> Any:
        if view.argument is None:
            view.argument = protocol.DeviceArgument(address(view), view.shape, view.dtype, view.strides)
        return view.argument

    memory, known = runtime.device(), _made.get("cuda")
    if known is not None and known.memory is memory:
        return known
    return ArrayDevice("cuda", _CUDA, memory, "cuda", _program, given, _taken)


def _program(executable: Any) -> Any:
    return executable.on_device


def _taken(device: ArrayDevice, result: Any) -> DeviceView:
    """A program's result, in memory that is ours from now on."""
    start = result.owned
    view = device_view(
        MemoryBlock(device, start, result.nbytes), result.dtype, result.shape, result.strides, result.address - start
    )
    view.argument = result
    return view


_OWN: dict[str, Callable[[], ArrayDevice]] = {"cuda": _cuda}
_MAKERS = dict(_OWN)
_made: dict[str, ArrayDevice] = {}
_making = lock()


def add_device(name: str, make: Callable[[], ArrayDevice]) -> None:
    """Give a device a name. `make` is called when it is first asked for."""
    _MAKERS[name] = make
    _made.pop(name, None)


def remove_device(name: str) -> None:
    """Forget a device that was added; the name means what it meant before."""
    _MAKERS.pop(name, None)
    _MAKERS.update({own: make for own, make in _OWN.items() if own == name})
    _made.pop(name, None)


def device_named(name: str) -> ArrayDevice:
    """The device of a name.

    Raises:
        UnsupportedError: there is none of that name.
        NoDeviceError: it is not on this machine, or cannot be used.
    """
    require_known(name)
    with _making:
        if name not in _made or _MAKERS[name] is _OWN.get(name):  # whose runtime knows whether it is the same GPU
            _made[name] = _MAKERS[name]()
        return _made[name]


def is_used() -> bool:
    """Whether any device has been asked for."""
    return bool(_made)


def require_known(name: object) -> None:
    """
    Raises:
        UnsupportedError: no device has this name, wherever jitml runs.
    """
    if not isinstance(name, str) or name not in _MAKERS:
        raise UnsupportedError(
            f"there is no device {name!r}",
            remedy=f"The devices of this machine are {', '.join(devices())}. An NVIDIA GPU is called cuda.",
        )


def device_of_kind(dlpack: tuple[int, int]) -> ArrayDevice:
    """The device that DLPack means by a kind and a number.

    Raises:
        UnsupportedError: jitml has none that is this one.
    """
    wanted = (_CUDA, dlpack[1]) if dlpack[0] == _CUDA_MANAGED else dlpack
    for name in [n for n in _MAKERS if n in _made or n == "cuda"]:
        if (name in _made or wanted[0] == _CUDA) and device_named(name).dlpack == wanted:
            return device_named(name)
    raise UnsupportedError(f"arrays of DLPack's device {dlpack} are of none of {', '.join(devices())}")


@entry
def copies(device: str) -> CopyCount:
    """How many arrays, and bytes, have been copied to a device and to the host since the device was first used.

    `f.explain(x)` says which of them a call makes.
    """
    return replace(device_named(device).copies)


@entry
def devices() -> tuple[str, ...]:
    """The names of the devices that arrays can be on.

    >>> "cpu" in devices()
    True
    """
    return (CPU, *(name for name in _MAKERS if _is_here(name)))


def _is_here(name: str) -> bool:
    try:
        device_named(name)
    except NoDeviceError:
        return False
    return True
