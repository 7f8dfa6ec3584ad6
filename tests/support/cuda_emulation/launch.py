"""Launching emulated kernels on arrays and addresses, in any order of threads."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from shutil import which
from typing import Any

import numpy as np

from jitml.codegen.cuda.module import Launch

# Of threads and blocks: ascending, descending, and a shuffle that every phase draws anew.
ORDERS = (0, 1, 12345)

Extent = int | tuple[int, ...]


class KernelFault(RuntimeError):
    """What a device leaves undefined or ends with an error; says where."""


@cache
def load_machine(library: Path) -> ctypes.CDLL:
    """The machine that all kernels of this process run on; kernels find its functions by their names."""
    machine = ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
    machine.emulation_error.restype = ctypes.c_char_p
    machine.emulation_fault.restype = ctypes.c_size_t
    _MACHINES.append(machine)
    return machine


def machine() -> ctypes.CDLL:
    return _MACHINES[-1]


_MACHINES: list[ctypes.CDLL] = []


def arguments_of(launch: Launch, memory: Mapping[str, Any], error: Any) -> list[Any]:
    """What a launch gives its function, where its buffers are these arrays."""
    starts = launch.starts or (0,) * len(launch.buffers)
    pointers = [memory[name].ctypes.data + start for name, start in zip(launch.buffers, starts, strict=True)]
    return [*pointers, *map(np.int64, launch.numbers), *([error] if launch.has_error else [])]


class EmulatedModule:
    """The kernels of one source.

    Args:
        kernels: for each kernel, the function of the library that launches it.
    """

    def __init__(self, library: Path, kernels: Mapping[str, str]) -> None:
        self._functions = {name: getattr(ctypes.CDLL(str(library)), function) for name, function in kernels.items()}

    @property
    def kernels(self) -> tuple[str, ...]:
        return tuple(self._functions)

    def launch(
        self, kernel: str, grid: Extent, block: Extent, *arguments: Any, shared: int = 0, order: int = 0, races: bool = True
    ) -> None:
        """Run a kernel to its end.

        Args:
            grid, block: their extents along x, y and z.
            arguments: arrays, or addresses as integers, for pointers; scalars of NumPy, of the parameter's type.
            shared: bytes of dynamic shared memory.
            order: one of `ORDERS`, or the seed of another shuffle.
            races: False for a kernel whose blocks tell each other, by atomics, what they have written.

        Raises:
            KernelFault: with block and thread.
        """
        values = [np.array(_value(n, argument)) for n, argument in enumerate(arguments)]
        pointers = (ctypes.c_void_p * max(1, len(values)))(*(value.ctypes.data for value in values))
        machine = _MACHINES[-1]
        machine.emulation_look_for_races(races)
        if self._functions[kernel](_extents(grid), _extents(block), ctypes.c_size_t(shared), ctypes.c_uint(order), pointers):
            raise KernelFault(f"{kernel}: {machine.emulation_error().decode()}{_fault_place(machine)}")

    def counts(self) -> dict[str, int]:
        """Threads, barriers, exchanges within warps and switches between fibers of the last launch."""
        counts = (ctypes.c_uint64 * 4)()
        _MACHINES[-1].emulation_counts(counts)
        return dict(zip(("threads", "barriers", "exchanges", "switches"), counts))


def _fault_place(machine: ctypes.CDLL) -> str:
    """The line of the kernel's source at which an access has failed, if it is known."""
    path = ctypes.create_string_buffer(4096)
    place = machine.emulation_fault(path, ctypes.c_size_t(len(path)))
    if not place or which("addr2line") is None:
        return ""
    command = ["addr2line", "--inlines", "--exe", path.value.decode(), hex(place)]
    told = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    line = next((line for line in told.splitlines() if "source_" in line), "")
    return f" at {line.rpartition('/')[2].partition(' ')[0]}" if line else ""


def _extents(extent: Extent) -> ctypes.Array[ctypes.c_uint]:
    given = (extent,) if isinstance(extent, int) else extent
    return (ctypes.c_uint * 3)(*given, *(1,) * (3 - len(given)))


def _value(n: int, argument: Any) -> np.generic:
    """What the kernel gets: the address of an array."""
    if isinstance(argument, np.ndarray):
        return np.uint64(argument.ctypes.data)
    if isinstance(argument, int) and not isinstance(argument, bool):
        return np.uint64(argument)
    if isinstance(argument, np.generic):
        return argument
    raise TypeError(f"argument {n}: an array, an address or a scalar of NumPy is wanted, not {type(argument).__name__}")
