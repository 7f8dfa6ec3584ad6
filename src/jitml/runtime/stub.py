"""How does Python call a program?  A native function per program that reads arrays, makes the results and runs it.

The stub is LLVM IR text compiled together with the program. It is a METH_FASTCALL function: `stub(*inputs)` returns

* a list of the outputs: new arrays, or for an aliased output the caller's own array;
* a tuple (1 + check, four values) if a check of the program failed;
* None if an argument is no plain ndarray (nor, for a 0-d input, a Python number of its kind): the caller converts.

It reads the fields of PyArrayObject that NumPy's own macros read, and makes arrays through NumPy's C API. `native_calls`
says whether the running interpreter and NumPy have that layout.
"""

from __future__ import annotations

import ctypes
import importlib
import platform
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from jitml.fusion.loops import Buffer

# Offsets of the data pointer in PyArrayObject, and of the value in PyFloatObject and PyObject's type: 64-bit CPython.
DATA, FLOAT_VALUE, TYPE = 16, 16, 8
_NUMPY_2_ABI = 0x2000000
_NEW_FROM_DESCR = 94  # PyArray_NewFromDescr's slot in NumPy's C API table


@cache
def _numpy_api() -> ctypes.Array[ctypes.c_void_p]:
    umath: Any = importlib.import_module("numpy._core._multiarray_umath")  # the capsule has no other home
    capsule = umath._ARRAY_API
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table: ctypes.Array[ctypes.c_void_p] = (ctypes.c_void_p * 300).from_address(pointer(capsule, None))
    return table


@cache
def native_calls() -> bool:
    """Whether arrays can be read in place; if not, `Executable` goes through `ndarray.ctypes` instead."""
    if platform.python_implementation() != "CPython" or sys.maxsize != 2**63 - 1 or sysconfig.get_config_var("Py_GIL_DISABLED"):
        return False
    try:
        table = _numpy_api()
        version = ctypes.CFUNCTYPE(ctypes.c_uint)(table[0] or 0)()
    except (AttributeError, ImportError, ValueError):
        return False
    if version != _NUMPY_2_ABI or table[2] != id(np.ndarray):
        return False
    probe = np.arange(6.0).reshape(2, 3)
    data = ctypes.c_void_p.from_address(id(probe) + DATA).value
    kind = ctypes.c_void_p.from_address(id(probe) + TYPE).value
    number = 1.5
    value = ctypes.c_double.from_address(id(number) + FLOAT_VALUE).value
    return data == probe.ctypes.data and kind == id(np.ndarray) and value == number


def stub_imports() -> dict[str, int]:
    """Addresses of what a stub refers to."""
    names = (
        "PyList_New PyList_SetItem PyLong_AsLongLong PyErr_Occurred PyErr_NoMemory Py_BuildValue Py_IncRef Py_DecRef"
        " PyEval_SaveThread PyEval_RestoreThread"
    )
    python = {name: ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0 for name in names.split()}
    objects = {"PyFloat_Type": float, "PyLong_Type": int, "PyBool_Type": bool, "Py_True": True, "Py_None": None}
    new_array = _numpy_api()[_NEW_FROM_DESCR]
    return (
        python | {name: id(x) for name, x in objects.items()} | {"PyArray_Type": id(np.ndarray), "new_array": int(new_array or 0)}
    )


_DECLARATIONS = """
declare ptr @PyList_New(i64)
declare i32 @PyList_SetItem(ptr, i64, ptr)
declare i64 @PyLong_AsLongLong(ptr)
declare ptr @PyErr_Occurred()
declare ptr @PyErr_NoMemory()
declare ptr @Py_BuildValue(ptr, ...)
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare ptr @new_array(ptr, ptr, i32, ptr, ptr, ptr, i32, ptr)
declare ptr @jitml_arena(i64)
@PyArray_Type = external global i8
@PyFloat_Type = external global i8
@PyLong_Type = external global i8
@PyBool_Type = external global i8
@Py_True = external global i8
@Py_None = external global i8
"""


def stub_ir(
    inputs: Sequence[Buffer],
    outputs: Sequence[Buffer],
    *,
    aliases: Mapping[int, int],
    constants: Sequence[int],
    arena: int,
    release_gil: bool,
) -> str:
    """The text of `@jitml_call`, to stand in one module with the program's `@jitml_run`.

    Args:
        inputs, outputs: in the order of the program's table.
        aliases: output position -> position of the input whose memory it is.
        constants: addresses of the constant arrays, which must outlive the code.
        arena: bytes of scratch.
        release_gil: let other Python threads run meanwhile; costs 30 ns, so for work of more than some 10 us.
    """
    w = _Stub(len(inputs) + len(outputs) + len(constants))
    for position, buffer in enumerate(inputs):
        w.read(position, buffer)
    w.begin_results(len(outputs))
    for position, buffer in enumerate(outputs):
        at = len(inputs) + position
        if position in aliases:
            w.pass_on(position, aliases[position], at)
        else:
            w.make(position, buffer, at)
    for position, address in enumerate(constants):
        w.put(len(inputs) + len(outputs) + position, f"inttoptr (i64 {address} to ptr)")
    w.run(arena, release_gil)
    body, slots = "\n  ".join(w.lines), "\n  ".join(w.slots)
    return _DECLARATIONS + "\n".join(w.globals) + _FUNCTION.format(count=len(inputs), body=body, slots=slots, table=w.size)


_FUNCTION = """
@tuple_format = private constant [8 x i8] c"(LLLLL)\\00"

define ptr @jitml_call(ptr %self, ptr %args, i64 %nargs) {{
  %table = alloca ptr, i64 {table}
  %error = alloca [4 x i64]
  {slots}
  %enough = icmp eq i64 %nargs, {count}
  br i1 %enough, label %read, label %slow
read:
  {body}
slow:
  call void @Py_IncRef(ptr @Py_None)
  ret ptr @Py_None
}}
"""


class _Stub:
    """The lines of one stub. Every label is met once, in order, so that names need only a number."""

    def __init__(self, table: int) -> None:
        self.size = max(table, 1)
        self.lines: list[str] = []
        self.slots: list[str] = []
        self.globals: list[str] = []

    def line(self, text: str) -> None:
        self.lines.append(text)

    def put(self, at: int, pointer: str) -> None:
        self.line(f"%entry{at} = getelementptr ptr, ptr %table, i64 {at}")
        self.line(f"store ptr {pointer}, ptr %entry{at}")

    def read(self, i: int, buffer: Buffer) -> None:
        """The data pointer of argument i; of a Python number, the address of a copy of its value."""
        self.line(f"%slot{i} = getelementptr ptr, ptr %args, i64 {i}")
        self.line(f"%arg{i} = load ptr, ptr %slot{i}")
        self.line(f"%typep{i} = getelementptr i8, ptr %arg{i}, i64 {TYPE}")
        self.line(f"%type{i} = load ptr, ptr %typep{i}")
        self.line(f"%is{i} = icmp eq ptr %type{i}, @PyArray_Type")
        number = {"float64": "float", "int64": "int", "bool": "bool"}.get(buffer.dtype.name) if not buffer.shape else None
        self.line(f"br i1 %is{i}, label %array{i}, label %{f'number{i}' if number else 'slow'}")
        if number:
            getattr(self, f"_{number}")(i)
        self.line(f"array{i}:")
        self.line(f"%datap{i} = getelementptr i8, ptr %arg{i}, i64 {DATA}")
        self.line(f"%data{i} = load ptr, ptr %datap{i}")
        if not number:
            self.put(i, f"%data{i}")
            return
        self.line(f"br label %have{i}")
        self.line(f"have{i}:")
        doubt = f", [ %value{i}, %doubt{i} ]" if number == "int" else ""
        self.line(f"%at{i} = phi ptr [ %data{i}, %array{i} ], [ %value{i}, %known{i} ]{doubt}")
        self.put(i, f"%at{i}")

    def _of_type(self, i: int, kind: str) -> None:
        self.line(f"number{i}:")
        self.line(f"%is_number{i} = icmp eq ptr %type{i}, @{kind}")
        self.line(f"br i1 %is_number{i}, label %known{i}, label %slow")

    def _float(self, i: int) -> None:
        self._of_type(i, "PyFloat_Type")
        self.line(f"known{i}:")
        self.line(f"%value{i} = getelementptr i8, ptr %arg{i}, i64 {FLOAT_VALUE}")
        self.line(f"br label %have{i}")

    def _int(self, i: int) -> None:
        self._of_type(i, "PyLong_Type")
        self.line(f"known{i}:")
        self.slots.append(f"%value{i} = alloca i64")
        self.line(f"%integer{i} = call i64 @PyLong_AsLongLong(ptr %arg{i})")
        self.line(f"store i64 %integer{i}, ptr %value{i}")
        # -1 may be the number or an overflow; only the latter has set an exception, which the slow path meets again.
        self.line(f"%odd{i} = icmp eq i64 %integer{i}, -1")
        self.line(f"br i1 %odd{i}, label %doubt{i}, label %have{i}")
        self.line(f"doubt{i}:")
        self.line(f"%exception{i} = call ptr @PyErr_Occurred()")
        self.line(f"%fine{i} = icmp eq ptr %exception{i}, null")
        self.line(f"br i1 %fine{i}, label %have{i}, label %raise{i}")
        self.line(f"raise{i}:")
        self.line("ret ptr null")

    def _bool(self, i: int) -> None:
        self._of_type(i, "PyBool_Type")
        self.line(f"known{i}:")
        self.slots.append(f"%value{i} = alloca i8")
        self.line(f"%true{i} = icmp eq ptr %arg{i}, @Py_True")
        self.line(f"%byte{i} = zext i1 %true{i} to i8")
        self.line(f"store i8 %byte{i}, ptr %value{i}")
        self.line(f"br label %have{i}")

    def begin_results(self, count: int) -> None:
        self.line(f"%results = call ptr @PyList_New(i64 {count})")
        self.line("%no_list = icmp eq ptr %results, null")
        self.line("br i1 %no_list, label %broken, label %make")
        self.line("broken:")
        self.line("ret ptr null")
        self.line("make:")

    def pass_on(self, position: int, source: int, at: int) -> None:
        """An aliased output: the caller's array."""
        self.line(f"call void @Py_IncRef(ptr %arg{source})")
        self.line(f"%set{position} = call i32 @PyList_SetItem(ptr %results, i64 {position}, ptr %arg{source})")
        self.line(f"%same{position} = load ptr, ptr %entry{source}")
        self.put(at, f"%same{position}")

    def make(self, position: int, buffer: Buffer, at: int) -> None:
        """A new array of the output's shape and strides."""
        rank, size = len(buffer.shape), buffer.dtype.itemsize
        dims, strides = buffer.shape, tuple(s * size for s in buffer.element_strides)
        in_order = buffer.strides is None or buffer.element_strides == Buffer("", buffer.dtype, buffer.shape).element_strides
        for name, numbers in (("dims", dims), ("strides", strides)):
            numbers = numbers or (0,)
            text = ", ".join(f"i64 {n}" for n in numbers)
            self.globals.append(f"@{name}{position} = private constant [{len(numbers)} x i64] [{text}]")
        descr = f"inttoptr (i64 {id(buffer.dtype)} to ptr)"
        steps = "ptr null" if in_order else f"ptr @strides{position}"
        self.line(f"call void @Py_IncRef(ptr {descr})  ; PyArray_NewFromDescr takes a reference")
        self.line(
            f"%out{position} = call ptr @new_array(ptr @PyArray_Type, ptr {descr}, i32 {rank}, ptr @dims{position},"
            f" {steps}, ptr null, i32 0, ptr null)"
        )
        self.line(f"%none{position} = icmp eq ptr %out{position}, null")
        self.line(f"br i1 %none{position}, label %give_up{position}, label %made{position}")
        self.line(f"give_up{position}:")
        self.line("call void @Py_DecRef(ptr %results)")
        self.line("ret ptr null")
        self.line(f"made{position}:")
        self.line(f"%set{position} = call i32 @PyList_SetItem(ptr %results, i64 {position}, ptr %out{position})")
        self.line(f"%memp{position} = getelementptr i8, ptr %out{position}, i64 {DATA}")
        self.line(f"%mem{position} = load ptr, ptr %memp{position}")
        self.put(at, f"%mem{position}")

    def run(self, arena: int, release_gil: bool) -> None:
        scratch = "null"
        if arena:
            scratch = "%arena"
            self.line(f"%arena = call ptr @jitml_arena(i64 {arena})")
            self.line("%no_arena = icmp eq ptr %arena, null")
            self.line("br i1 %no_arena, label %no_memory, label %go")
            self.line("no_memory:")
            self.line("call void @Py_DecRef(ptr %results)")
            self.line("%raised = call ptr @PyErr_NoMemory()")
            self.line("ret ptr null")
            self.line("go:")
        if release_gil:
            self.line("%thread = call ptr @PyEval_SaveThread()")
        self.line(f"%status = call i64 @jitml_run(ptr %table, ptr {scratch}, ptr %error)")
        if release_gil:
            self.line("call void @PyEval_RestoreThread(ptr %thread)")
        self.line("%ok = icmp eq i64 %status, 0")
        self.line("br i1 %ok, label %done, label %failed")
        self.line("done:")
        self.line("ret ptr %results")
        self.line("failed:")
        self.line("call void @Py_DecRef(ptr %results)")
        for n in range(4):
            self.line(f"%valuep{n} = getelementptr i64, ptr %error, i64 {n}")
            self.line(f"%error{n} = load i64, ptr %valuep{n}")
        values = ", ".join(f"i64 %error{n}" for n in range(4))
        self.line(f"%report = call ptr (ptr, ...) @Py_BuildValue(ptr @tuple_format, i64 %status, {values})")
        self.line("ret ptr %report")


class _MethodDef(ctypes.Structure):
    _fields_ = (("name", ctypes.c_char_p), ("call", ctypes.c_void_p), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p))


_FASTCALL = 0x80


def builtin(address: int, *owners: object) -> Any:
    """A Python function made of a stub, which keeps what the stub needs (its code, the constants) alive."""
    definition = _MethodDef(b"program", address, _FASTCALL, b"A compiled program.")
    new = ctypes.pythonapi.PyCFunction_NewEx
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    return new(ctypes.addressof(definition), (definition, *owners), None)
