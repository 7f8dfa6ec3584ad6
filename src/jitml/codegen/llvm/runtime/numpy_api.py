"""NumPy's C API: where are NumPy's C functions?

In the table that it exports to extension modules, whose order is part of its ABI.
"""

from __future__ import annotations

import ctypes
import importlib
from functools import cache
from typing import Any

_NUMPY_2_ABI = 0x2000000
_ENTRIES = 366


@cache
def numpy_api() -> ctypes.Array[ctypes.c_void_p] | None:
    """NumPy's C API table; None if this NumPy has another ABI than version 2."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    try:
        umath: Any = importlib.import_module("numpy._core._multiarray_umath")  # the capsule has no other home
        table: ctypes.Array[ctypes.c_void_p] = (ctypes.c_void_p * _ENTRIES).from_address(pointer(umath._ARRAY_API, None))
    except (AttributeError, ImportError, ValueError):
        return None
    version: int = ctypes.CFUNCTYPE(ctypes.c_uint)(table[0] or 0)()
    return table if version == _NUMPY_2_ABI else None
