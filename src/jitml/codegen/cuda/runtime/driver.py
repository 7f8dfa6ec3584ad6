"""CUDA driver: what of NVIDIA's driver is here, and its errors as exceptions of ours.

The driver is reached by `cuda.bindings.driver`, which is imported when a GPU is first asked for, and not before.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any, NoReturn

from jitml.errors import CompilerError, DeviceFault, DeviceMemoryError, NoDeviceError
from jitml.forks import in_child

_OLDEST = 12000  # of drivers: CUDA 12.0, as `cuDriverGetVersion` counts
_INSTALL = '`pip install jitml[cuda]` brings the packages; the driver comes with the system. Without a GPU, device="cpu" works.'

# After one of these the context is lost, and each further call gives the same error.
_FAULTS = {
    "CUDA_ERROR_ILLEGAL_ADDRESS": "an access outside of memory",
    "CUDA_ERROR_MISALIGNED_ADDRESS": "an access at an address that is not aligned to its width",
    "CUDA_ERROR_INVALID_ADDRESS_SPACE": "an access to the wrong kind of memory",
    "CUDA_ERROR_ILLEGAL_INSTRUCTION": "an instruction that this GPU has not",
    "CUDA_ERROR_INVALID_PC": "a jump out of the code",
    "CUDA_ERROR_HARDWARE_STACK_ERROR": "a stack that has overflown",
    "CUDA_ERROR_LAUNCH_FAILED": "a kernel that has failed",
    "CUDA_ERROR_LAUNCH_TIMEOUT": "a kernel that has run for longer than the system allows",
    "CUDA_ERROR_ASSERT": "a failed assertion in a kernel",
    "CUDA_ERROR_ECC_UNCORRECTABLE": "memory that cannot be corrected: the hardware",
    "CUDA_ERROR_NVLINK_UNCORRECTABLE": "a link between GPUs: the hardware",
    "CUDA_ERROR_CONTAINED": "the hardware",
    "CUDA_ERROR_CONTEXT_IS_DESTROYED": "a context that somebody has destroyed",
    "CUDA_ERROR_TENSOR_MEMORY_LEAK": "a kernel that has kept tensor memory",
}
_forked = False


@in_child
def _note_fork() -> None:
    """A child has the parent's memory and none of its GPU: what was open there is dead here."""
    global _forked
    _forked = _forked or _bindings.cache_info().currsize > 0


@cache
def _bindings() -> ModuleType:
    """The driver, initialised."""
    try:
        driver = import_module("cuda.bindings.driver")
    except ImportError as error:
        raise NoDeviceError(
            f"there is no way to a GPU: the package cuda-bindings is missing ({error})", remedy=_INSTALL
        ) from None
    try:
        (status,) = driver.cuInit(0)
        version = driver.cuDriverGetVersion()[1] if not status else 0
    except RuntimeError as error:  # the driver's library, or a function of it, is not there
        first, *_ = str(error).splitlines() or [""]
        raise NoDeviceError(f"there is no NVIDIA driver on this machine: {first}", remedy=_INSTALL) from None
    if status == driver.CUresult.CUDA_ERROR_NO_DEVICE:
        raise NoDeviceError("the NVIDIA driver finds no GPU", remedy="See CUDA_VISIBLE_DEVICES and `nvidia-smi`.")
    if status:
        raise NoDeviceError(
            f"the NVIDIA driver does not start: {_described(driver, status)}", remedy="See what `nvidia-smi` says."
        )
    if version < _OLDEST:
        raise NoDeviceError(
            f"the NVIDIA driver is of CUDA {version // 1000}.{version % 1000 // 10}, and older than 12.0",
            remedy="Install a newer driver.",
        )
    return driver


def bindings() -> Any:
    """The driver's functions, ready to be called.

    Raises:
        NoDeviceError: there is no driver, or no GPU, or this process is the child of one that uses it.
    """
    if _forked:
        raise NoDeviceError(
            f"this process ({os.getpid()}) was forked from one that has used the GPU, and CUDA does not survive a fork",
            remedy='Start processes by "spawn": multiprocessing.set_start_method("spawn"). The CPU works here.',
        )
    return _bindings()


def device_count() -> int:
    """How many GPUs there are; 0 where nothing can be reached."""
    try:
        driver = bindings()
    except NoDeviceError:
        return 0
    status, count = driver.cuDeviceGetCount()
    return 0 if status else int(count)


def _described(driver: Any, status: Any) -> str:
    _, text = driver.cuGetErrorString(status)
    return f"{status.name} ({text.decode() if text else 'unknown'})"


class Calls:
    """Calls of the driver that raise where it gives an error, for one device.

    After a fault nothing reaches the driver any more: what it would say is known.
    """

    def __init__(self, driver: Any, name: str) -> None:
        self.driver, self._name = driver, name
        self._fault: str | None = None

    def __call__(self, function: Callable[..., tuple[Any, ...]], *args: Any) -> Any:
        """The one result of a function of the driver, or None."""
        if self._fault is not None or _forked:
            self._refuse()
        found = function(*args)
        if found[0]:
            self.fail(function.__name__, found[0])
        return found[1] if len(found) > 1 else None

    def end(self) -> None:
        """Let nothing reach the driver any more."""
        self._fault = self._fault or "Python is ending"

    @property
    def is_dead(self) -> bool:
        return self._fault is not None or _forked

    def _refuse(self) -> NoReturn:
        if _forked:
            bindings()
        raise DeviceFault(
            f"{self._name} does nothing more for this process: {self._fault}",
            remedy="Start Python anew to use the GPU again. The CPU keeps working.",
        )

    def fail(self, function: str, status: Any) -> NoReturn:
        """Raise what an error of a function of the driver stands for."""
        if status.name in _FAULTS:
            self._fault = f"code has failed there by {_FAULTS[status.name]} ({status.name}, as {function} found)"
            raise DeviceFault(
                f"code has failed on {self._name}: {_FAULTS[status.name]} ({status.name}, as {function} found)",
                remedy="What was in its memory is lost, and it does nothing more for this process: start Python anew to use the"
                " GPU again. The CPU keeps working. If the code is jitml's, this is a bug: please report it.",
            )
        if status == self.driver.CUresult.CUDA_ERROR_OUT_OF_MEMORY:
            raise DeviceMemoryError(f"{self._name} has no memory left, as {function} found")
        raise CompilerError(
            f"{self._name}: {function} fails: {_described(self.driver, status)}",
            remedy="This is a bug in jitml, or the driver does not fit: please report it.",
        )
