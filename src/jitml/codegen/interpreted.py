"""The interpreter as a back end: kernels as Python functions over NumPy arrays, and `interpreter.py` around them.

It is slow, and the oracle of the others: what it answers wrongly is wrong before code is written. It hears of no floating-point
errors; a call in which they must be heard, or would raise, is left to the plain function.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from jitml.codegen.backend import Backend, CodeOptions, Executable
from jitml.codegen.interpreter import run
from jitml.codegen.llvm.schedule import SCHEDULER
from jitml.codegen.run.calling import ProgramCall, RunNeeds
from jitml.codegen.run.describe import interface_of
from jitml.codegen.run.fp_errors import Errors
from jitml.errors import UnsupportedError
from jitml.kernels.interpret import load_kernel, write_kernel
from jitml.kernels.ir import Buffer, Kernel
from jitml.kernels.target import Target
from jitml.memory.program import Program
from jitml.records import dataclass

Array = np.ndarray[Any, Any]

_MOST_BYTES = 1 << 31  # all memory is filled before a run; where sizes are open, that is room for the largest ones


@dataclass(frozen=True, slots=True)
class InterpretedModule:
    """Kernels as Python text, and the values of the names in it, by their `id`."""

    kernels: Mapping[int, tuple[str, Mapping[str, Any]]]


class InterpretedCall(ProgramCall):
    """A program that the interpreter runs."""

    def __init__(self, program: Program, module: InterpretedModule, needs: RunNeeds) -> None:
        super().__init__(interface_of(program))
        self.program = program
        self._functions = {key: load_kernel(*kernel) for key, kernel in module.kernels.items()}
        self._errors = needs.errors or Errors()
        self.surround(self._interpret, RunNeeds(None, needs.generators))

    def _interpret(self, *args: Any) -> list[Array]:
        self._errors.require_unheard("the interpreter does not see")
        given = [np.asarray(x, b.dtype) for x, b in zip(args, self.inputs, strict=True)]
        whole = [_with_room(x, b) for x, b in zip(given, self.inputs)]
        results = run(self.program, whole, self._functions)
        for k, n in self.aliases.items():
            if whole[n] is not given[n]:
                given[n][...] = _used(whole[n], given[n]).reshape(given[n].shape)
            results[k] = given[n]
        return [x if k in self.aliases else x.copy(order="K") for k, x in enumerate(results)]

    def shaped(self, outputs: list[Array]) -> list[Array]:
        return outputs


def _with_room(x: Array, buffer: Buffer) -> Array:
    """An input in memory of the largest shape it may have."""
    if x.shape == buffer.shape:
        return x
    whole = np.zeros(buffer.shape, buffer.dtype)
    used = _used(whole, x)
    used[...] = x.reshape(used.shape)
    return whole


def _used(whole: Array, x: Array) -> Array:
    """The part of memory with room that an input takes: rows of open length lie one after the other, as elements."""
    return whole[tuple(map(slice, x.shape if whole.ndim == x.ndim else (x.size,)))]


class Interpreter:
    name = "interpreter"
    stages = ("python",)
    target = Target(name)
    most_bytes = None
    scheduler = SCHEDULER  # the kernels whose answers are compared are those of the other back end

    def emit(self, program: Program, options: CodeOptions) -> InterpretedModule:
        """
        Raises:
            UnsupportedError: sizes are open, and the largest would take too much memory.
        """
        buffers = program.kernels.buffers
        needed = program.arena_size + sum(buffers[n].nbytes for n in {*program.kernels.inputs, *program.kernels.outputs})
        if needed > _MOST_BYTES:
            raise UnsupportedError(f"the interpreter would have to fill {needed:,} bytes")
        return InterpretedModule({id(kernel): write_kernel(kernel) for kernel in _kernels(program)})

    def load(self, program: Program, module: InterpretedModule, options: CodeOptions, needs: RunNeeds) -> Executable:
        return InterpretedCall(program, module, needs)

    def compile(self, program: Program, options: CodeOptions, needs: RunNeeds) -> tuple[InterpretedModule, Executable]:
        module = self.emit(program, options)
        return module, self.load(program, module, options, needs)

    def text(self, stage: str, module: InterpretedModule) -> str:
        return "\n\n".join(text for text, _ in module.kernels.values())


def _kernels(program: Program) -> Iterator[Kernel]:
    yield from (step for step in program.kernels.steps if isinstance(step, Kernel))
    for bodies in program.bodies.values():
        for body in bodies:
            yield from _kernels(body)


BACKEND: Backend[InterpretedModule] = Interpreter()
