"""Host calls: how does a compiled program call Python?

`HostCalls`: one object for each program, which wraps the program's buffers.

What others would see, printed lines for one, waits until the call has succeeded.

A function gets arrays over the program's own memory, copied nowhere; what it returns is copied into the program's buffers. If it
raises, or returns something unforeseen, the program ends there, and the plain function answers the call instead.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from jitml.codegen.llvm.ir.conventions import HostStep
from jitml.codegen.llvm.runtime.jit import Code, addresses, load
from jitml.codegen.llvm.runtime.singletons import once
from jitml.codegen.run.fp_errors import error_state, give_back, raising_at
from jitml.errors import FailedCheck
from jitml.interrupts import pass_on
from jitml.kernels.ir import Buffer

Array = np.ndarray[Any, Any]

_SHIM = """
declare i32 @PyGILState_Ensure()
declare void @PyGILState_Release(i32)
declare ptr @PyObject_CallFunction(ptr, ptr, ...)
declare void @Py_DecRef(ptr)
@format = private constant [3 x i8] c"LL\\00"

define i64 @jitml_host(ptr %calls, i64 %number, ptr %buffers) {
  %state = call i32 @PyGILState_Ensure()
  %place = ptrtoint ptr %buffers to i64
  %result = call ptr (ptr, ptr, ...) @PyObject_CallFunction(ptr %calls, ptr @format, i64 %number, i64 %place)
  %raised = icmp eq ptr %result, null
  br i1 %raised, label %out, label %drop
drop:
  call void @Py_DecRef(ptr %result)
  br label %out
out:
  call void @PyGILState_Release(i32 %state)
  %code = zext i1 %raised to i64
  ret i64 %code
}
"""
_API = ("PyGILState_Ensure", "PyGILState_Release", "PyObject_CallFunction", "Py_DecRef")


@once
def host_shim() -> Code:
    """`jitml_host`, which calls a Python object, compiled at the first need.

    An exception stays the thread's, wherever it came up: a signal may raise one before the first line of a function.
    """
    return load(_SHIM, imports=addresses(ctypes.pythonapi, _API), exports=("jitml_host",))


class HostCalls:
    """The calls of one program; `run` is the object that its code calls."""

    def __init__(self, steps: Sequence[HostStep], *, watches: bool) -> None:
        self._watches = watches  # whether the plain function answers where floating-point errors come up
        self._steps = [(s, len(s.reads), [BufferView(b) for b in (*s.reads, *s.writes)]) for s in steps]
        self.run = self._run

    def _run(self, number: int, place: int) -> None:
        step, count, views = self._steps[number]
        function = step.function
        pointers = (ctypes.c_void_p * len(views)).from_address(place)
        try:
            arrays = [view.at(pointer) for view, pointer in zip(views, pointers)]
            options = {"out": tuple(arrays[count:])} if function.fills else {}
            if self._watches:
                state = error_state()
                try:
                    with raising_at(step.source):
                        results = function.call(*arrays[:count], **options)
                finally:
                    give_back(state)
            else:
                results = function.call(*arrays[:count], **options)
            if not function.fills:
                for target, result in zip(arrays[count:], results):
                    target[...] = result
        except FailedCheck:
            raise
        except Exception as error:  # an interruption is the user's, anything else leaves the call to NumPy
            pass_on(error)
            raise FailedCheck(f"{function.name} raised {type(error).__name__}: {error}", source=step.source) from None


class BufferView:
    """How to see a buffer's memory as an array, worked out once; a loop asks for the same memory again and again."""

    __slots__ = ("before", "buffer", "last", "memory", "steps")

    def __init__(self, buffer: Buffer) -> None:
        self.buffer = buffer
        self.steps = tuple(s * buffer.dtype.itemsize for s in buffer.element_strides)
        ends = [(n - 1) * s for n, s in zip(buffer.shape, self.steps)]
        self.before = -sum(e for e in ends if e < 0)  # bytes in front of the first element
        self.last: tuple[int | None, Array | None] = None, None
        self.memory = ctypes.c_char * (self.before + sum(e for e in ends if e > 0) + buffer.dtype.itemsize)

    def at(self, address: int | None) -> Array:
        """The array whose first element lies there."""
        known, array = self.last
        if array is not None and known == address:
            return array
        if not self.buffer.size or address is None:
            return np.empty(self.buffer.shape, self.buffer.dtype)
        memory: Any = self.memory.from_address(address - self.before)
        array = np.ndarray(self.buffer.shape, self.buffer.dtype, memory, self.before, self.steps)
        self.last = address, array
        return array
