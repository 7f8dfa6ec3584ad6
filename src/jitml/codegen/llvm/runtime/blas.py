"""BLAS library: where is BLAS?

Addresses of its Fortran routines, as SciPy exports them for Cython; and how it is kept to one thread.

The routines take everything by pointer, with 32-bit integers, in column-major order. Compiled programs share a product among
the threads of our own pool, and SciPy's OpenBLAS, which has a pool of its own, uses one thread meanwhile. The setting is
OpenBLAS's global one: the first program that enters saves it, and the last one that leaves restores it. Where BLAS is not
an OpenBLAS that we can ask, it does as it likes.
"""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path
from typing import Any

from jitml.codegen.llvm.runtime.jit import Code, load
from jitml.codegen.llvm.runtime.singletons import once
from jitml.errors import StarvedError
from jitml.headroom import require_blas

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
    capsule = _capsules()[symbol.removesuffix("_")]
    name, pointer = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    address: int = pointer(capsule, name(capsule))
    return address


@once
def blas_gates() -> Code:
    """`jitml_blas_enter` and `jitml_blas_leave`, compiled at the first need."""
    _capsules()
    controls = _thread_controls()
    text, reset = _ONE_THREAD if controls else _AS_IT_LIKES, "jitml_blas_reset"
    return load(text, imports=controls, exports=(*GATES, reset), reset=reset)


def _thread_controls() -> dict[str, int]:
    """How to read and set the number of threads of SciPy's OpenBLAS; empty if it is something else."""
    import scipy

    for library in sorted((Path(scipy.__file__).parent.parent / "scipy.libs").glob("*openblas*")):
        blas = ctypes.CDLL(str(library))
        names = {"get_threads": "scipy_openblas_get_num_threads", "set_threads": "scipy_openblas_set_num_threads"}
        if all(hasattr(blas, name) for name in names.values()):
            return {name: ctypes.cast(getattr(blas, symbol), ctypes.c_void_p).value or 0 for name, symbol in names.items()}
    return {}
