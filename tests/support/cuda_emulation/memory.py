"""Guarded memory: whoever accesses what lies beside it faults, at once or when it is freed."""

from __future__ import annotations

import ctypes
import mmap
from typing import Any, TypeVar

import numpy as np

from support.cuda_emulation.launch import KernelFault

_PAGE = mmap.PAGESIZE
_GUARD = 16 * _PAGE
_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
_POISON = 0xFF  # NaN in every format of floats, -1 as an integer

A = TypeVar("A", bound=np.ndarray[Any, Any])


class GuardedMemory:
    """Some bytes between two stretches of memory that nobody may touch; they end at the second, to within the alignment.

    What lies between the first stretch and them is looked at by `check`. All is poison at first.
    """

    def __init__(self, size: int, align: int = 16) -> None:
        pages = -(-max(size, 1) // _PAGE) * _PAGE
        self._area = mmap.mmap(-1, pages + 2 * _GUARD)
        self._bytes = np.frombuffer(self._area, np.uint8)[_GUARD : _GUARD + pages]
        self._bytes[:] = _POISON
        self._start = (pages - size) // align * align
        self.size = size
        self.address = self._bytes.ctypes.data + self._start
        for guard in (self._bytes.ctypes.data - _GUARD, self._bytes.ctypes.data + pages):
            if _LIBC.mprotect(guard, _GUARD, 0):
                raise OSError(ctypes.get_errno(), "mprotect")

    def array(self) -> np.ndarray[Any, np.dtype[np.uint8]]:
        """The bytes; they live as long as an array of them."""
        return self._bytes[self._start : self._start + self.size]

    def check(self) -> None:
        """
        Raises:
            KernelFault: somebody has written beside the bytes.
        """
        for beside in (self._bytes[: self._start], self._bytes[self._start + self.size :]):
            if (beside != _POISON).any():
                raise KernelFault(f"bytes beside an array of {self.size} bytes have been written")


def guarded(array: A, align: int = 16) -> A:
    """A copy in guarded memory, in C order; an `align` of 1 guards its end exactly, for code without vectors."""
    memory = GuardedMemory(array.nbytes, align)
    copy = memory.array().view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy  # type: ignore[return-value]
