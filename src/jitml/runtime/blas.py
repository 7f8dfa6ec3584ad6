"""Where is BLAS?  Addresses of its Fortran routines, as SciPy exports them for Cython.

They take everything by pointer, with 32-bit integers, in column-major order. SciPy's OpenBLAS has a thread pool of its
own, apart from ours: it works only while one of our programs waits in a BLAS call, and our workers sleep meanwhile. Its
size follows JITML_NUM_THREADS if that is set.
"""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path
from typing import Any

from jitml.config import CONFIG


@cache
def _capsules() -> dict[str, Any]:
    # Imported at the first need: scipy.linalg takes 100 ms, and programs without products do without it.
    import scipy.linalg.cython_blas as cython_blas

    if CONFIG.num_threads is not None:
        _limit_threads(CONFIG.num_threads)
    capsules: dict[str, Any] = cython_blas.__pyx_capi__
    return capsules


def blas_address(symbol: str) -> int:
    """The address of `dgemm_`, `sgemv_` ... in this process; KeyError if BLAS has no routine of that name."""
    capsule = _capsules()[symbol.removesuffix("_")]
    name, pointer = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    address: int = pointer(capsule, name(capsule))
    return address


def _limit_threads(threads: int) -> None:
    """Tell SciPy's OpenBLAS, where it is one, how many threads to use."""
    import scipy

    for library in sorted((Path(scipy.__file__).parent.parent / "scipy.libs").glob("*openblas*")):
        setter = getattr(ctypes.CDLL(str(library)), "scipy_openblas_set_num_threads", None)
        if setter is not None:
            setter(threads)
