"""Python's and NumPy's C API for native code: where are the functions, what is to be declared, how do objects lie in memory?

NumPy's functions stand in the table that it exports to extension modules, whose order is part of its ABI. A text that names
`@PyList_New` gets its declaration and its address: `completed` looks for the names.
"""

from __future__ import annotations

import ctypes
import importlib
import platform
import re
import sys
from functools import cache
from typing import Any

import numpy as np

from jitml.codegen.llvm.runtime.jit import addresses

_NUMPY_2_ABI = 0x2000000
_ENTRIES = 366
# Of each, what it takes.
_SIGNATURES = {
    "void": "Py_IncRef(ptr) Py_DecRef(ptr) PyEval_RestoreThread(ptr) PyErr_Clear() PyErr_Fetch(ptr,ptr,ptr) "
    "PyErr_NormalizeException(ptr,ptr,ptr) PyErr_SetObject(ptr,ptr)",
    "i32": "PyArray_SetBaseObject(ptr,ptr) PyContextVar_Get(ptr,ptr,ptr) PyDict_Next(ptr,ptr,ptr,ptr) "
    "PyDict_SetItem(ptr,ptr,ptr) PyErr_ExceptionMatches(ptr) PyException_SetTraceback(ptr,ptr) PyList_SetItem(ptr,i64,ptr) "
    "PyObject_GenericSetAttr(ptr,ptr,ptr) PyObject_IsTrue(ptr) PyObject_RichCompareBool(ptr,ptr,i32) "
    "PyTraceMalloc_Track(i32,ptr,i64) PyTuple_SetItem(ptr,i64,ptr)",
    "i64": "PyLong_AsLongLong(ptr) PyTuple_Size(ptr) PyList_Size(ptr) PyDict_Size(ptr)",
    "ptr": "PyArray_NewFromDescr(ptr,ptr,i32,ptr,ptr,ptr,i32,ptr) PyArray_Return(ptr) PyBool_FromLong(i64) PyDict_New() "
    "PyErr_NoMemory() PyErr_Occurred() PyEval_SaveThread() PyFloat_FromDouble(double) PyList_GetItem(ptr,i64) PyList_New(i64) "
    "PyLong_FromLongLong(i64) PyObject_RichCompare(ptr,ptr,i32) PyObject_Vectorcall(ptr,ptr,i64,ptr) PyTuple_GetItem(ptr,i64) "
    "PyTuple_New(i64) Py_BuildValue(ptr,...)",
}
_FUNCTIONS = {
    name: (result, taken) for result, functions in _SIGNATURES.items() for name, taken in re.findall(r"(\w+)\((\S*)\)", functions)
}
# Places in NumPy's table.
_NUMPY = {
    "PyArray_NewFromDescr": 94,
    "PyArray_Return": 76,
    "PyArray_SetBaseObject": 282,
    "PyDataMem_GetHandler": 305,
}
_OBJECTS = {
    "PyArray_Type": np.ndarray,
    "PyDoubleArrType_Type": np.float64,
    "PyFloat_Type": float,
    "PyLong_Type": int,
    "PyBool_Type": bool,
    "PyExc_Exception": Exception,
    "PyExc_MemoryError": MemoryError,
    "PyExc_ValueError": ValueError,
    "Py_True": True,
    "Py_False": False,
    "Py_None": None,
    "Py_Nothing": (),
}

# In 64-bit CPython: where the type of an object stands, the version of a class, the value of a float, the parts of an array
# (`PyArrayObject_fields`).
OFFSETS = {
    "TYPE": 8,
    "VERSION_TAG": 384,
    "FLOAT_VALUE": 16,
    "DATA": 16,
    "NDIM": 24,
    "DIMS": 32,
    "STRIDES": 40,
    "DTYPE": 56,
    "FLAGS": 64,
    "HANDLER": 88,
}
CONTIGUOUS, OWNDATA, CARRAY = 0x3, 0x4, 0x501  # flags of arrays: in C's or Fortran's order; its own memory; as new ones are


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


def _is_free_threaded() -> bool:
    """Whether this Python is built to run without its lock; objects are laid out otherwise then."""
    if not hasattr(sys, "_is_gil_enabled"):  # before 3.13
        return False
    import sysconfig  # takes a millisecond

    return bool(sysconfig.get_config_var("Py_GIL_DISABLED"))


@cache
def native_calls() -> bool:
    """Whether objects and arrays can be read and made in place; if not, `Executable` goes through `ndarray.ctypes` instead."""
    if platform.python_implementation() != "CPython" or sys.maxsize != 2**63 - 1 or _is_free_threaded():
        return False
    table = numpy_api()
    if table is None or table[2] != id(np.ndarray):
        return False
    own, number, scalar = np.empty(3), 1.5, np.float64(2.5)
    x = np.zeros((2, 3), np.int32)[:, ::2]

    def read(what: Any, part: str, kind: Any = ctypes.c_void_p) -> Any:
        return kind.from_address(id(what) + OFFSETS[part]).value

    if read(x, "TYPE") != id(np.ndarray) or read(x, "NDIM", ctypes.c_int) != 2:
        return False
    shape, strides = ((ctypes.c_ssize_t * 2).from_address(read(x, part) or 0) for part in ("DIMS", "STRIDES"))
    handler = ctypes.PYFUNCTYPE(ctypes.py_object)(table[_NUMPY["PyDataMem_GetHandler"]] or 0)()
    found = (
        read(x, "DATA"),
        tuple(shape),
        tuple(strides),
        read(x, "DTYPE"),
        read(own, "FLAGS", ctypes.c_int),
        read(own, "HANDLER"),
    )
    wanted = (x.ctypes.data, x.shape, x.strides, id(x.dtype), own.flags.num, id(handler))
    numbers = (read(number, "FLOAT_VALUE", ctypes.c_double), read(scalar, "FLOAT_VALUE", ctypes.c_double))
    return found == wanted and numbers == (number, scalar)


def class_version(cls: type) -> int:
    """The number that Python gives a class anew whenever an attribute of it, or of a base, has been set; 0 if it has none."""
    return _version(cls) if _has_versions() else 0


def _version(cls: type) -> int:
    type.__getattribute__(cls, "__init__")  # whoever looks for an attribute has the class numbered
    return ctypes.c_uint.from_address(id(cls) + OFFSETS["VERSION_TAG"]).value


@cache
def _has_versions() -> bool:
    """Whether these numbers stand in classes where they are looked for."""

    class Base:
        part = 1

    class Probe(Base):
        pass

    found = [_version(Probe)]
    for cls, name in ((Probe, "own"), (Base, "part"), (Base, "more")):
        setattr(cls, name, 2)
        now = ctypes.c_uint.from_address(id(Probe) + OFFSETS["VERSION_TAG"]).value
        found += [_version(Probe)] if now not in found else [0]
    return native_calls() and 0 not in found and len(set(found)) == len(found) and _version(Probe) == found[-1]


def completed(text: str) -> tuple[str, dict[str, int]]:
    """A text with the declarations of what it names of Python's and NumPy's, and where that is.

    >>> text, found = completed("define ptr @jitml_new() { %x = call ptr @PyTuple_New(i64 0) ret ptr %x }")
    >>> text.splitlines()[0], list(found)
    ('declare ptr @PyTuple_New(i64)', ['PyTuple_New'])
    """
    lines: list[str] = []
    found: dict[str, int] = {}
    for name in dict.fromkeys(re.findall(r"@(Py\w+)", text)):
        if name in _OBJECTS:
            lines.append(f"@{name} = external global i8")
            found[name] = id(_OBJECTS[name])
            continue
        result, arguments = _FUNCTIONS[name]
        lines.append(f"declare {result} @{name}({arguments})")
        table = numpy_api() if name in _NUMPY else None
        found |= {name: int(table[_NUMPY[name]] or 0)} if table is not None else addresses(ctypes.pythonapi, [name])
    return "\n".join([*lines, text]), found


__all__ = ["CARRAY", "CONTIGUOUS", "OFFSETS", "OWNDATA", "class_version", "completed", "native_calls", "numpy_api"]
