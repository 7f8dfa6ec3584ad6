"""Calling convention: how does Python call a program?

By one native function for all programs, which reads arrays and makes the results.

It is a METH_FASTCALL function in LLVM IR, compiled once per process. What differs from program to program stands in a
descriptor, an int64 array that is the function's `self`. `call(*inputs)` returns

* a list of the outputs: new arrays, or for an aliased output the caller's own array;
* a tuple (1 + check, four values) if a check of the program failed; (`HEARD`, flags, ...) if floating-point errors came up that
  plain Python shall tell of (`codegen/run/fp_errors.py`), and the caller's arrays are as they were; (`RAISED`, an exception) of
  a host call, or one that has come from outside;
* nothing, for the exception is raised, if there was no memory to begin;
* None if an argument is no plain ndarray (nor, for a 0-d input, a number of its kind): the caller converts.

It reads the fields of PyArrayObject that NumPy's own macros read, and makes arrays through NumPy's C API (`c_api.py`).

Whether errors are to be told of is known after the run, so what it writes is copied before: to the stack, if that is little.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from jitml.codegen.llvm.ir.conventions import DUE, ENTRY, ERROR_WORDS, HEARD, RAISED, SHAPES, STOPPED
from jitml.codegen.llvm.ir.flags import flags_ir
from jitml.codegen.llvm.native_call import CALL, CLEAN, FAILED, SLOW, STARVED, THREW, TRACE_DOMAIN
from jitml.codegen.llvm.runtime.arena import arenas
from jitml.codegen.llvm.runtime.c_api import CARRAY, CONTIGUOUS, OFFSETS, OWNDATA, completed
from jitml.codegen.llvm.runtime.cpu import host_cpu
from jitml.codegen.llvm.runtime.jit import Code, load
from jitml.codegen.llvm.runtime.results import LARGE, results, results_handler
from jitml.codegen.llvm.runtime.safepoints import ENTER, LEAVE, safepoints
from jitml.codegen.llvm.runtime.singletons import once
from jitml.codegen.run.fp_errors import SMALL
from jitml.kernels.ir import Buffer

Array = np.ndarray[Any, Any]

_MEMORY = ("jitml_results_malloc", "jitml_results_free", "jitml_results_release")
OUTCOMES = {"CLEAN": CLEAN, "SLOW": SLOW, "STARVED": STARVED, "THREW": THREW, "FAILED": FAILED}
RECORD_WORDS = ERROR_WORDS + 1  # of an error, and what comes of the run
MOST_BYTES = 2**62  # instead of more than a machine word says: no more than this can be had either
_ENTRY_WORD, _SHAPES_WORD = 5, 7  # of a descriptor
# How a Python number is read for a 0-d input of a dtype; others must come as arrays.
_KINDS = {"float64": 1, "int64": 2, "bool": 3}


@once
def native_call() -> Code:
    imports = {name: results()[name] for name in _MEMORY} | {name: safepoints()[name] for name in (ENTER, LEAVE)}
    imports |= {"results_handler": results_handler(), "jitml_arena": arenas()["jitml_arena"]}
    kinds, flags = {"FLOAT": 1, "INT": 2, "BOOL": 3}, flags_ir(host_cpu())
    numbers = {
        "ERROR_WORDS": ERROR_WORDS,
        "DUE": DUE,
        "STOPPED": STOPPED,
        "RAISED": RAISED,
        "HEARD": HEARD,
        "SMALL": SMALL,
        "LARGE": LARGE,
        "CARRAY": CARRAY,
        "CONTIGUOUS": CONTIGUOUS,
        "OWNDATA": OWNDATA,
        "TRACE_DOMAIN": TRACE_DOMAIN,
        **OFFSETS,
        **kinds,
        **OUTCOMES,
        "RECORD_WORDS": RECORD_WORDS,
    }
    text, functions = completed(CALL.format(flags=flags, **numbers))
    exports = ("jitml_call", "jitml_run_program", "jitml_listed")
    return load(text, level=2, imports=imports | functions, exports=exports, is_first=True)


class Record(np.ndarray[Any, Any]):
    """The numbers that a native function reads, and what must live as long as they do."""

    owners: tuple[object, ...]


def enter_by(record: Record, code: Code) -> None:
    """Have the calls of a program that begin from now on run other code of it. Those under way end in the code that they are in.

    Each word is one that both codes may have: a program says the same shapes in either.
    """
    record.owners += (code,)
    if record[_SHAPES_WORD]:
        record[_SHAPES_WORD] = code[SHAPES]
    record[_ENTRY_WORD] = code[ENTRY]


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
    save: Callable[..., Any] | None,
    judge: Callable[..., bool] | None,
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
        save: is given the inputs before the run, if they are not little, and makes copies of what is written.
        judge: is given the outputs where floating-point errors came up, the processor's flags, and those copies or `()`; False
            where plain Python has to answer, and what `save` has copied is put back.
    """
    shapes = [_words(b.shape) for b in outputs]
    strides = [_words(s * b.dtype.itemsize for s in b.element_strides) for b in outputs]
    arena = min(arena, MOST_BYTES)
    words = [len(inputs), len(outputs), len(constants), arena, int(release_gil), code[ENTRY]]
    words += [extents, code[SHAPES] if exact else 0]
    words += [0 if save is None else id(save), 0 if judge is None else id(judge)]
    words += [0 if b.shape or k in aliases.values() else _KINDS.get(b.dtype.name, 0) for k, b in enumerate(inputs)]
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
            buffer.dtype.itemsize,
        ]
    words += [array.ctypes.data for array in constants]
    descriptor = np.array(words, np.int64).view(Record)
    definition = MethodDefinition(b"program", native_call()["jitml_call"], _FASTCALL, b"A compiled program.")
    descriptor.owners = (code, shapes, strides, [b.dtype for b in outputs], list(constants), definition, save, judge)
    return function_of(definition, descriptor)


def function_of(definition: MethodDefinition, record: Record) -> Any:
    """The function of Python's; the record, which is its `self`, keeps the definition alive."""
    new = ctypes.pythonapi.PyCFunction_NewEx
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    return new(ctypes.addressof(definition), record, None)
