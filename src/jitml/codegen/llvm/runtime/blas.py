"""BLAS library: where is BLAS?

Addresses of Fortran routines, and how their library is kept to one thread. NumPy's own OpenBLAS comes first: products
then have NumPy's speed, and where they are not cut, its bits. NumPy may be built with another library, which does not tell
of its routines; then SciPy's is taken, as it exports it for Cython.

The routines take everything by pointer, in column-major order. NumPy's read integers of 64 bits, SciPy's of 32: of a 64-bit one
these are the first bytes, so that one program suits both. Compiled programs share a product among the threads of our own
pool, and OpenBLAS, which has a pool of its own, uses one thread meanwhile. The setting is OpenBLAS's global one: the first
program that enters saves it, and the last one that leaves restores it. Where BLAS is not an OpenBLAS that we can ask, it
does as it likes.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from jitml.codegen.llvm.runtime.jit import Code, load
from jitml.codegen.llvm.runtime.singletons import once
from jitml.errors import StarvedError
from jitml.headroom import require_blas, require_blas_buffers

GATES = ("jitml_blas_enter", "jitml_blas_leave")

_ONE_THREAD = """
@inside = internal global i32 0
@before = internal global i32 0
@lock = internal global i32 0

declare i32 @get_threads()
declare void @set_threads(i32)

define internal void @acquire() {
  br label %again
again:
  %swap = cmpxchg ptr @lock, i32 0, i32 1 seq_cst seq_cst
  %mine = extractvalue { i32, i1 } %swap, 1
  br i1 %mine, label %done, label %again
done:
  ret void
}

define internal void @release() {
  store atomic i32 0, ptr @lock seq_cst, align 4
  ret void
}

define void @jitml_blas_enter() {
  call void @acquire()
  %n = load i32, ptr @inside
  %more = add i32 %n, 1
  store i32 %more, ptr @inside
  %first = icmp eq i32 %n, 0
  br i1 %first, label %ask, label %done
ask:
  %threads = call i32 @get_threads()
  store i32 %threads, ptr @before
  %many = icmp sgt i32 %threads, 1
  br i1 %many, label %narrow, label %done
narrow:
  call void @set_threads(i32 1)
  br label %done
done:
  call void @release()
  ret void
}

define void @jitml_blas_leave() {
  call void @acquire()
  %n = load i32, ptr @inside
  %fewer = sub i32 %n, 1
  store i32 %fewer, ptr @inside
  %last = icmp eq i32 %fewer, 0
  br i1 %last, label %restore, label %done
restore:
  %threads = load i32, ptr @before
  %many = icmp sgt i32 %threads, 1
  br i1 %many, label %widen, label %done
widen:
  call void @set_threads(i32 %threads)
  br label %done
done:
  call void @release()
  ret void
}

; In a child of fork() nobody is inside.
define void @jitml_blas_reset() {
  store i32 0, ptr @inside
  store i32 0, ptr @lock
  ret void
}
"""

_AS_IT_LIKES = """
define void @jitml_blas_enter() {
  ret void
}
define void @jitml_blas_leave() {
  ret void
}
define void @jitml_blas_reset() {
  ret void
}
"""


@cache
def _numpys() -> ctypes.CDLL | None:
    """The OpenBLAS that NumPy's wheels bring, if this process has loaded it."""
    for library in _loaded(Path(np.__file__).parent):
        if hasattr(library, "scipy_dgemm_64_") and hasattr(library, "scipy_openblas_set_num_threads64_"):
            require_blas_buffers()
            return library
    return None


def _loaded(package: Path) -> Iterator[ctypes.CDLL]:
    """The OpenBLAS libraries beside a package, or inside of it on macOS, without loading one that is not in use."""
    for file in sorted((*package.parent.glob(f"{package.name}.libs/*openblas*"), *package.glob(".dylibs/*openblas*"))):
        try:
            yield ctypes.CDLL(str(file), mode=ctypes.DEFAULT_MODE | getattr(os, "RTLD_NOLOAD", 0))
        except OSError:
            continue


@cache
def _capsules() -> dict[str, Any]:
    # Imported at the first need: scipy.linalg takes 100 ms, and programs without products do without it.
    require_blas()
    try:
        import scipy.linalg.cython_blas as cython_blas
    except RuntimeError as error:  # SciPy 1.18 imports what wants to be told of Python's end
        if "after shutdown" not in str(error):
            raise
        raise StarvedError("SciPy, of which it needs BLAS, cannot be imported any more while Python ends") from error

    capsules: dict[str, Any] = cython_blas.__pyx_capi__
    return capsules


def blas_address(symbol: str) -> int:
    """The address of `dgemm_`, `sgemv_` ... in this process; KeyError if BLAS has no routine of that name."""
    if (library := _numpys()) is not None:
        if not hasattr(library, f"scipy_{symbol}64_"):
            raise KeyError(symbol)
        return _place(library, f"scipy_{symbol}64_")
    capsule = _capsules()[symbol.removesuffix("_")]
    name, pointer = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    address: int = pointer(capsule, name(capsule))
    return address


@once
def blas_gates() -> Code:
    """`jitml_blas_enter` and `jitml_blas_leave`, compiled at the first need."""
    controls = _thread_controls()
    text, reset = _ONE_THREAD if controls else _AS_IT_LIKES, "jitml_blas_reset"
    return load(text, imports=controls, exports=(*GATES, reset), reset=reset)


def _thread_controls() -> dict[str, int]:
    """How to read and set the number of threads of OpenBLAS; empty if BLAS is something else."""
    library, suffix = _numpys(), "64_"
    if library is None:
        _capsules()
        import scipy

        library, suffix = next(_loaded(Path(scipy.__file__).parent), None), ""
    names = {"get_threads": f"scipy_openblas_get_num_threads{suffix}", "set_threads": f"scipy_openblas_set_num_threads{suffix}"}
    if library is None or not all(hasattr(library, name) for name in names.values()):
        return {}
    return {name: _place(library, symbol) for name, symbol in names.items()}


def _place(library: ctypes.CDLL, symbol: str) -> int:
    return ctypes.cast(getattr(library, symbol), ctypes.c_void_p).value or 0
