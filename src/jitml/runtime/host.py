"""How does a compiled program call Python?  `HostCalls`: one native function for each program, which wraps its buffers.

What others would see, printed lines for one, waits until the call has succeeded.

A function gets arrays over the program's own memory, copied nowhere; what it returns is copied into the program's buffers. If it
raises, or returns something unforeseen, the program ends there, and the plain function answers the call instead.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitml.codegen.llvm.kernel import HostStep
from jitml.errors import FailedCheck
from jitml.fusion.loops import Buffer
from jitml.ir.ops.host import postpone, postponing

Array = np.ndarray[Any, Any]
_NATIVE = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.POINTER(ctypes.c_void_p))


class HostCalls:
    """The calls of one program; `address` is what its code calls."""

    def __init__(self, steps: Sequence[HostStep]) -> None:
        self._calls = [(s.function, len(s.reads), [View(b) for b in (*s.reads, *s.writes)]) for s in steps]
        self._thread = threading.local()
        self._native = _NATIVE(self._run)  # takes the GIL

    @property
    def address(self) -> int:
        return ctypes.cast(self._native, ctypes.c_void_p).value or 0

    def failure(self, step: HostStep) -> BaseException:
        """Why a call of this thread failed: an interruption is the user's, anything else leaves the call to NumPy."""
        error: BaseException = vars(self._thread).pop("error")  # whose traceback holds on to arrays
        if isinstance(error, FailedCheck) or not isinstance(error, Exception):
            return error
        return FailedCheck(f"{step.function.name} raised {type(error).__name__}: {error}", source=step.failure.source)

    @property
    def draws(self) -> bool:
        """Whether any of them draws from a generator, or makes one."""
        return any(function.draws or function.makes for function, _, _ in self._calls)

    @property
    def postpones(self) -> bool:
        """Whether any of them does what others see."""
        return any(function.postpones for function, _, _ in self._calls)

    def _run(self, number: int, pointers: Any) -> int:
        function, count, views = self._calls[number]
        try:
            arrays = [view.at(pointers[n]) for n, view in enumerate(views)]
            options = {"out": tuple(arrays[count:])} if function.fills else {}
            results = function.call(*arrays[:count], **options)
            if not function.fills:
                for target, result in zip(arrays[count:], results):
                    target[...] = result
        except BaseException as error:
            self._thread.error = error
            return 1
        return 0


def run_then_show(run: Callable[..., Any], *args: Any) -> Any:
    """Run a program, and do what it has postponed unless it fails."""
    with postponing() as effects:
        result = run(*args)
    if not has_failed(result):
        for effect in effects:
            postpone(effect)
    return result


def has_failed(result: Any) -> bool:
    """Whether what a program returned says that the plain function has to answer the call."""
    return (type(result) is tuple and len(result) > 2) or isinstance(result, FailedCheck)


class View:
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
