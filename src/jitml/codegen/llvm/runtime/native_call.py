"""Calling convention: how does Python call a program?

By one native function for all programs, which reads arrays and makes the results.

It is a METH_FASTCALL function in LLVM IR, compiled once per process. What differs from program to program stands in a
descriptor, an int64 array that is the function's `self`. `call(*inputs)` returns

* a list of the outputs: new arrays, or for an aliased output the caller's own array;
* a tuple (1 + check, four values) if a check of the program failed;
* a pair (outputs, flags) if floating-point errors came up (`ir/analysis/fp_errors.py`);
* nothing, for the exception is raised, if a host call has raised;
* None if an argument is no plain ndarray (nor, for a 0-d input, a number of its kind): the caller converts.

It reads the fields of PyArrayObject that NumPy's own macros read, and makes arrays through NumPy's C API. `native_calls`
says whether the running interpreter and NumPy have that layout.
"""

from __future__ import annotations

import ctypes
import platform
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from jitml.codegen.llvm.ir.conventions import DUE, ENTRY, ERROR_WORDS, RAISED, SHAPES, STOPPED
from jitml.codegen.llvm.ir.flags import flags_ir
from jitml.codegen.llvm.runtime.arena import arenas
from jitml.codegen.llvm.runtime.cpu import host_cpu
from jitml.codegen.llvm.runtime.jit import Code, addresses, load
from jitml.codegen.llvm.runtime.numpy_api import numpy_api
from jitml.codegen.llvm.runtime.results import LARGE, MAKING, results, results_handler
from jitml.codegen.llvm.runtime.safepoints import ENTER, LEAVE, safepoints
from jitml.codegen.llvm.runtime.singletons import once
from jitml.kernels.ir import Buffer

Array = np.ndarray[Any, Any]

# Offsets of the data pointer in PyArrayObject, of the value in PyFloatObject and of the type in PyObject: 64-bit CPython.
DATA, FLOAT_VALUE, TYPE = 16, 16, 8
_NEW_FROM_DESCR, _GET_HANDLER = 94, 305  # slots of PyArray_NewFromDescr and PyDataMem_GetHandler in NumPy's C API table
# Of an array that owns its memory: where its flags and who frees it stand (NumPy 1.22), a flag, NumPy's domain in tracemalloc.
FLAGS, HANDLER, OWNDATA, TRACE_DOMAIN = 64, 88, 0x4, 389047
CARRAY = 0x501  # contiguous, aligned, writeable


def _is_free_threaded() -> bool:
    """Whether this Python is built to run without its lock; objects are laid out otherwise then."""
    if not hasattr(sys, "_is_gil_enabled"):  # before 3.13
        return False
    import sysconfig  # takes a millisecond

    return bool(sysconfig.get_config_var("Py_GIL_DISABLED"))


@cache
def native_calls() -> bool:
    """Whether arrays can be read in place; if not, `Executable` goes through `ndarray.ctypes` instead."""
    if platform.python_implementation() != "CPython" or sys.maxsize != 2**63 - 1 or _is_free_threaded():
        return False
    table = numpy_api()
    if table is None or table[2] != id(np.ndarray):
        return False
    probe = np.arange(6.0).reshape(2, 3)
    scalar = np.float64(2.5)
    data = ctypes.c_void_p.from_address(id(probe) + DATA).value
    kind = ctypes.c_void_p.from_address(id(probe) + TYPE).value
    number = 1.5
    value = ctypes.c_double.from_address(id(number) + FLOAT_VALUE).value
    own = np.empty(3)
    flags = ctypes.c_int.from_address(id(own) + FLAGS).value
    freed_by = ctypes.c_void_p.from_address(id(own) + HANDLER).value
    handler = ctypes.PYFUNCTYPE(ctypes.py_object)(table[_GET_HANDLER] or 0)()
    scalars = ctypes.c_double.from_address(id(scalar) + FLOAT_VALUE).value
    is_owner = flags == own.flags.num and flags & OWNDATA and freed_by == id(handler)
    return data == probe.ctypes.data and kind == id(np.ndarray) and value == number and scalars == scalar and bool(is_owner)


# What comes of a run: results; the arguments are not as they have to be; an exception; a failed check, whose number stands behind
# the record of the error; results and floating-point errors, whose flags stand there.
CLEAN, SLOW, THREW, FAILED, FLAGGED = range(5)

_CALL = (
    """
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
declare ptr @PyArray_NewFromDescr(ptr, ptr, i32, ptr, ptr, ptr, i32, ptr)
declare i32 @PyTraceMalloc_Track(i32, ptr, i64)
declare ptr @jitml_results_malloc(ptr, i64)
declare void @jitml_results_free(ptr, ptr, i64)
declare void @jitml_results_release()
declare ptr @jitml_arena(i64)
declare void @jitml_run_begins(ptr)
declare void @jitml_run_ends(ptr)
@results_handler = external global i8
@PyArray_Type = external global i8
@PyFloat_Type = external global i8
@PyDoubleArrType_Type = external global i8
@PyLong_Type = external global i8
@PyBool_Type = external global i8
@Py_True = external global i8
@Py_None = external global i8
@report_format = private constant [8 x i8] c"(LLLLL)\\00"
@flags_format = private constant [5 x i8] c"(NL)\\00"
{flags}

; inputs, outputs, constants, arena bytes, whether to release the GIL, entry, extents that the program says, function that does
%Header = type {{ i64, i64, i64, i64, i64, ptr, i64, ptr }}
; input it is (or -1), dtype, rank, shape, strides (or null), where among the extents that the program says (or -1),
; bytes of an element if it may be large
%Output = type {{ i64, ptr, i64, ptr, ptr, i64, i64 }}

"""
    + MAKING
    + """
; Runs a program: what it makes goes into `made`, a new reference each, but where it fails.
define i64 @jitml_run_program(ptr %descriptor, ptr %args, ptr %made, ptr %error) {{
begin:
  %header = load %Header, ptr %descriptor
  %inputs = extractvalue %Header %header, 0
  %outputs = extractvalue %Header %header, 1
  %constants = extractvalue %Header %header, 2
  %kinds = getelementptr %Header, ptr %descriptor, i64 1
  %results = getelementptr i64, ptr %kinds, i64 %inputs
  %literals = getelementptr %Output, ptr %results, i64 %outputs
  %before = add i64 %inputs, %outputs
  %entries = add i64 %before, %constants
  %table = alloca ptr, i64 %entries
  %numbers = alloca i64, i64 %inputs
  %stoppedp = getelementptr i64, ptr %error, i64 {STOPPED}
  store i64 0, ptr %stoppedp
  %never = alloca i64  ; a program that keeps the GIL does not look, whatever it could
  store i64 0, ptr %never
  %duep = getelementptr i64, ptr %error, i64 {DUE}
  store ptr %never, ptr %duep
  %extents = extractvalue %Header %header, 6
  %shapes = alloca i64, i64 %extents
  br label %input

; Each input's data pointer; of a Python number, the address of its value.
input:
  %i = phi i64 [ 0, %begin ], [ %i.next, %input.put ]
  %more_inputs = icmp slt i64 %i, %inputs
  br i1 %more_inputs, label %input.look, label %make
input.look:
  %argp = getelementptr ptr, ptr %args, i64 %i
  %arg = load ptr, ptr %argp
  %typep = getelementptr i8, ptr %arg, i64 {TYPE}
  %type = load ptr, ptr %typep
  %is_array = icmp eq ptr %type, @PyArray_Type
  br i1 %is_array, label %array, label %number
array:
  %datap = getelementptr i8, ptr %arg, i64 {DATA}
  %data = load ptr, ptr %datap
  br label %input.put
number:
  %numberp = getelementptr i64, ptr %numbers, i64 %i
  %kindp = getelementptr i64, ptr %kinds, i64 %i
  %kind = load i64, ptr %kindp
  switch i64 %kind, label %slow [ i64 {FLOAT}, label %float i64 {INT}, label %int i64 {BOOL}, label %bool ]
float:
  %is_pythons = icmp eq ptr %type, @PyFloat_Type
  %is_numpys = icmp eq ptr %type, @PyDoubleArrType_Type  ; a float with nothing more to it
  %is_float = or i1 %is_pythons, %is_numpys
  %floatp = getelementptr i8, ptr %arg, i64 {FLOAT_VALUE}
  br i1 %is_float, label %input.put, label %slow
int:
  %is_int = icmp eq ptr %type, @PyLong_Type
  br i1 %is_int, label %int.value, label %slow
int.value:
  %int64 = call i64 @PyLong_AsLongLong(ptr %arg)
  store i64 %int64, ptr %numberp
  %doubtful = icmp eq i64 %int64, -1
  br i1 %doubtful, label %int.overflow, label %input.put
int.overflow:
  %exception = call ptr @PyErr_Occurred()
  %minus_one = icmp eq ptr %exception, null
  br i1 %minus_one, label %input.put, label %raise
bool:
  %is_bool = icmp eq ptr %type, @PyBool_Type
  %true = icmp eq ptr %arg, @Py_True
  %byte = zext i1 %true to i8
  store i8 %byte, ptr %numberp
  br i1 %is_bool, label %input.put, label %slow
input.put:
  %source = phi ptr [ %data, %array ], [ %floatp, %float ], [ %numberp, %int.value ], [ %numberp, %int.overflow ],
                    [ %numberp, %bool ]
  %inputp = getelementptr ptr, ptr %table, i64 %i
  store ptr %source, ptr %inputp
  %i.next = add i64 %i, 1
  br label %input

; The results: for an aliased one the caller's array, else a new one.
make:
  %says_shapes = icmp sgt i64 %extents, 0
  br i1 %says_shapes, label %measure, label %output
measure:
  %say_shapes = extractvalue %Header %header, 7
  call void %say_shapes(ptr %table, ptr %shapes)
  br label %output
output:
  %o = phi i64 [ 0, %make ], [ 0, %measure ], [ %o.next, %output.put ]
  %more_outputs = icmp slt i64 %o, %outputs
  br i1 %more_outputs, label %output.look, label %constant
output.look:
  %outputp = getelementptr %Output, ptr %results, i64 %o
  %output.record = load %Output, ptr %outputp
  %alias = extractvalue %Output %output.record, 0
  %is_new = icmp slt i64 %alias, 0
  br i1 %is_new, label %output.new, label %output.given
output.given:
  %givenp = getelementptr ptr, ptr %args, i64 %alias
  %given = load ptr, ptr %givenp
  call void @Py_IncRef(ptr %given)
  br label %output.put
output.new:
  %dtype = extractvalue %Output %output.record, 1
  %rank64 = extractvalue %Output %output.record, 2
  %known_shape = extractvalue %Output %output.record, 3
  %place = extractvalue %Output %output.record, 5
  %is_known = icmp slt i64 %place, 0
  %own_shape = getelementptr i64, ptr %shapes, i64 %place
  %shape = select i1 %is_known, ptr %known_shape, ptr %own_shape
  %strides = extractvalue %Output %output.record, 4
  %rank = trunc i64 %rank64 to i32
  call void @Py_IncRef(ptr %dtype)  ; PyArray_NewFromDescr takes a reference over
  %itemsize = extractvalue %Output %output.record, 6
  %new = call ptr @new_array(ptr %dtype, i32 %rank, ptr %shape, ptr %strides, i64 %itemsize)
  %no_array = icmp eq ptr %new, null
  br i1 %no_array, label %drop.some, label %output.put
output.put:
  %result = phi ptr [ %given, %output.given ], [ %new, %output.new ]
  %madep = getelementptr ptr, ptr %made, i64 %o
  store ptr %result, ptr %madep
  %memoryp = getelementptr i8, ptr %result, i64 {DATA}
  %memory = load ptr, ptr %memoryp
  %at_output = add i64 %inputs, %o
  %entryp = getelementptr ptr, ptr %table, i64 %at_output
  store ptr %memory, ptr %entryp
  %o.next = add i64 %o, 1
  br label %output

constant:
  %c = phi i64 [ 0, %output ], [ %c.next, %constant.put ]
  %more_constants = icmp slt i64 %c, %constants
  br i1 %more_constants, label %constant.put, label %scratch
constant.put:
  %literalp = getelementptr ptr, ptr %literals, i64 %c
  %literal = load ptr, ptr %literalp
  %at_constant = add i64 %before, %c
  %constantp = getelementptr ptr, ptr %table, i64 %at_constant
  store ptr %literal, ptr %constantp
  %c.next = add i64 %c, 1
  br label %constant

scratch:
  %bytes = extractvalue %Header %header, 3
  %needs_arena = icmp sgt i64 %bytes, 0
  br i1 %needs_arena, label %scratch.take, label %run
scratch.take:
  %block = call ptr @jitml_arena(i64 %bytes)
  %no_arena = icmp eq ptr %block, null
  br i1 %no_arena, label %scratch.retry, label %run
scratch.retry:
  call void @jitml_results_release()
  %last_block = call ptr @jitml_arena(i64 %bytes)
  %still_no_arena = icmp eq ptr %last_block, null
  br i1 %still_no_arena, label %no_memory, label %run
run:
  %arena = phi ptr [ null, %scratch ], [ %block, %scratch.take ], [ %last_block, %scratch.retry ]
  %long = extractvalue %Header %header, 4
  %entry = extractvalue %Header %header, 5
  %is_long = icmp ne i64 %long, 0
  %old_flags = call i64 @take_flags()
  br i1 %is_long, label %run.apart, label %run.here
run.here:
  %status.here = call i64 %entry(ptr %table, ptr %arena, ptr %error)
  br label %finish
run.apart:
  call void @jitml_run_begins(ptr %error)
  %thread = call ptr @PyEval_SaveThread()
  %status.apart = call i64 %entry(ptr %table, ptr %arena, ptr %error)
  call void @PyEval_RestoreThread(ptr %thread)
  call void @jitml_run_ends(ptr %error)
  br label %finish
finish:
  %status = phi i64 [ %status.here, %run.here ], [ %status.apart, %run.apart ]
  %flags = call i64 @take_flags()
  %stopped = load i64, ptr %stoppedp
  %is_stopped = icmp ne i64 %stopped, 0
  br i1 %is_stopped, label %drop, label %judge
judge:
  %failed = icmp ne i64 %status, 0
  br i1 %failed, label %fail, label %look
look:
  %clean = icmp eq i64 %flags, 0
  br i1 %clean, label %done, label %doubt
done:
  ret i64 {CLEAN}
doubt:
  %flagsp = getelementptr i64, ptr %error, i64 {ERROR_WORDS}
  store i64 %flags, ptr %flagsp
  ret i64 {FLAGGED}
fail:
  %has_raised = icmp eq i64 %status, {RAISED}
  br i1 %has_raised, label %drop, label %report
report:
  %statusp = getelementptr i64, ptr %error, i64 {ERROR_WORDS}
  store i64 %status, ptr %statusp
  br label %drop
no_memory:
  %error_set = call ptr @PyErr_NoMemory()
  br label %drop
drop:
  %outcome = phi i64 [ {THREW}, %finish ], [ {THREW}, %fail ], [ {FAILED}, %report ], [ {THREW}, %no_memory ]
  br label %drop.some
drop.some:
  %verdict = phi i64 [ {THREW}, %output.new ], [ %outcome, %drop ]
  %dropped = phi i64 [ %o, %output.new ], [ %outputs, %drop ]
  call void @drop(ptr %made, i64 %dropped)
  ret i64 %verdict
raise:
  ret i64 {THREW}
slow:
  ret i64 {SLOW}
}}

define ptr @jitml_call(ptr %self, ptr %args, i64 %nargs) {{
  %descriptorp = getelementptr i8, ptr %self, i64 {DATA}
  %descriptor = load ptr, ptr %descriptorp
  %inputs = load i64, ptr %descriptor
  %as_many = icmp eq i64 %nargs, %inputs
  br i1 %as_many, label %run, label %slow
run:
  %outputsp = getelementptr i64, ptr %descriptor, i64 1
  %outputs = load i64, ptr %outputsp
  %made = alloca ptr, i64 %outputs
  %error = alloca [{RECORD_WORDS} x i64]
  %outcome = call i64 @jitml_run_program(ptr %descriptor, ptr %args, ptr %made, ptr %error)
  %wordp = getelementptr i64, ptr %error, i64 {ERROR_WORDS}
  switch i64 %outcome, label %raise [ i64 {CLEAN}, label %done i64 {FLAGGED}, label %doubt i64 {FAILED}, label %report
                                      i64 {SLOW}, label %slow ]
done:
  %list = call ptr @jitml_listed(ptr %made, i64 %outputs)
  ret ptr %list
doubt:
  %outcomes = call ptr @jitml_listed(ptr %made, i64 %outputs)
  %no_list = icmp eq ptr %outcomes, null
  br i1 %no_list, label %raise, label %pair
pair:
  %flags = load i64, ptr %wordp
  %flagged = call ptr (ptr, ...) @Py_BuildValue(ptr @flags_format, ptr %outcomes, i64 %flags)  ; takes the list over
  ret ptr %flagged
report:
  %status = load i64, ptr %wordp
  %values = load [4 x i64], ptr %error
  %v0 = extractvalue [4 x i64] %values, 0
  %v1 = extractvalue [4 x i64] %values, 1
  %v2 = extractvalue [4 x i64] %values, 2
  %v3 = extractvalue [4 x i64] %values, 3
  %tuple = call ptr (ptr, ...) @Py_BuildValue(ptr @report_format, i64 %status, i64 %v0, i64 %v1, i64 %v2, i64 %v3)
  ret ptr %tuple
raise:
  ret ptr null
slow:
  call void @Py_IncRef(ptr @Py_None)
  ret ptr @Py_None
}}
"""
)

_FUNCTIONS = (
    "PyList_New PyList_SetItem PyLong_AsLongLong PyErr_Occurred PyErr_NoMemory Py_BuildValue Py_IncRef Py_DecRef"
    " PyEval_SaveThread PyEval_RestoreThread PyTraceMalloc_Track"
)
_MEMORY = ("jitml_results_malloc", "jitml_results_free", "jitml_results_release")
_OBJECTS = {
    "PyArray_Type": np.ndarray,
    "PyFloat_Type": float,
    "PyDoubleArrType_Type": np.float64,
    "PyLong_Type": int,
    "PyBool_Type": bool,
    "Py_True": True,
    "Py_None": None,
}
OFFSETS = {"DATA": DATA, "TYPE": TYPE, "FLOAT_VALUE": FLOAT_VALUE, "FLAGS": FLAGS, "HANDLER": HANDLER, "OWNDATA": OWNDATA}
OUTCOMES = {"CLEAN": CLEAN, "SLOW": SLOW, "THREW": THREW, "FAILED": FAILED, "FLAGGED": FLAGGED}
RECORD_WORDS = ERROR_WORDS + 1  # of an error, and what comes of the run
MOST_BYTES = 2**62  # instead of more than a machine word says: no more than this can be had either
# How a Python number is read for a 0-d input of a dtype; others must come as arrays.
_KINDS = {"float64": 1, "int64": 2, "bool": 3}


@once
def native_call() -> Code:
    imports = addresses(ctypes.pythonapi, _FUNCTIONS.split())
    imports |= {name: id(x) for name, x in _OBJECTS.items()}
    table = numpy_api()
    assert table is not None, "native_calls() was asked"
    imports |= {"PyArray_NewFromDescr": int(table[_NEW_FROM_DESCR] or 0), "jitml_arena": arenas()["jitml_arena"]}
    imports |= {"results_handler": results_handler(), **{name: results()[name] for name in _MEMORY}}
    kinds, flags = {"FLOAT": 1, "INT": 2, "BOOL": 3}, flags_ir(host_cpu())
    imports |= {name: safepoints()[name] for name in (ENTER, LEAVE)}
    numbers = {
        "ERROR_WORDS": ERROR_WORDS,
        "DUE": DUE,
        "STOPPED": STOPPED,
        "RAISED": RAISED,
        "LARGE": LARGE,
        "CARRAY": CARRAY,
        "TRACE_DOMAIN": TRACE_DOMAIN,
        **OFFSETS,
        **kinds,
        **OUTCOMES,
        "RECORD_WORDS": RECORD_WORDS,
    }
    text = _CALL.format(flags=flags, **numbers)
    return load(text, level=2, imports=imports, exports=("jitml_call", "jitml_run_program", "jitml_listed"))


class Record(np.ndarray[Any, Any]):
    """The numbers that a native function reads, and what must live as long as they do."""

    owners: tuple[object, ...]


class MethodDefinition(ctypes.Structure):
    _fields_ = (("name", ctypes.c_char_p), ("call", ctypes.c_void_p), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p))


_FASTCALL = 0x80


def _words(numbers: Iterable[int]) -> Array:
    return np.array([min(n, MOST_BYTES) for n in numbers], np.int64)


def native_function(
    code: Code,
    inputs: Sequence[Buffer],
    outputs: Sequence[Buffer],
    *,
    exact: Mapping[int, tuple[int, int]],
    extents: int,
    aliases: Mapping[int, int],
    constants: Sequence[Array],
    arena: int,
    release_gil: bool,
) -> Any:
    """A Python function that runs a program, and keeps alive all that it needs.

    Args:
        code: the program's, with its entry `jitml_run`.
        inputs, outputs: in the order of the program's table.
        exact: position of an output whose shape the program's `jitml_shapes` says -> where it begins there, and its rank.
        extents: how many numbers that function says.
        aliases: output position -> position of the input whose memory it is.
        constants: C-contiguous.
        arena: bytes of scratch.
        release_gil: let other Python threads run meanwhile; costs 30 ns, so for work of more than some 10 us.
    """
    shapes = [_words(b.shape) for b in outputs]
    strides = [_words(s * b.dtype.itemsize for s in b.element_strides) for b in outputs]
    arena = min(arena, MOST_BYTES)
    words = [len(inputs), len(outputs), len(constants), arena, int(release_gil), code[ENTRY]]
    words += [extents, code[SHAPES] if exact else 0]
    words += [_KINDS.get(b.dtype.name, 0) if not b.shape else 0 for b in inputs]
    for position, (buffer, shape, steps) in enumerate(zip(outputs, shapes, strides)):
        steps_address = 0 if buffer.is_c_contiguous else steps.ctypes.data
        place, rank = exact.get(position, (-1, len(buffer.shape)))
        words += [
            aliases.get(position, -1),
            id(buffer.dtype),
            rank,
            shape.ctypes.data,
            steps_address,
            place,
            buffer.dtype.itemsize if buffer.nbytes >= LARGE else 0,
        ]
    words += [array.ctypes.data for array in constants]
    descriptor = np.array(words, np.int64).view(Record)
    definition = MethodDefinition(b"program", native_call()["jitml_call"], _FASTCALL, b"A compiled program.")
    descriptor.owners = (code, shapes, strides, [b.dtype for b in outputs], list(constants), definition)
    new = ctypes.pythonapi.PyCFunction_NewEx
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    return new(ctypes.addressof(definition), descriptor, None)
