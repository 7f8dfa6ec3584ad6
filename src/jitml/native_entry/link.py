"""A native entry as an object of Python's: a plan's instructions with their addresses, around a program's native code."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitml.codegen.llvm.runtime.c_api import OFFSETS, completed
from jitml.codegen.llvm.runtime.executable import NativeExecutable
from jitml.codegen.llvm.runtime.jit import Code, addresses, load
from jitml.codegen.llvm.runtime.native_call import OUTCOMES, RECORD_WORDS, MethodDefinition, Record, function_of, native_call
from jitml.codegen.llvm.runtime.singletons import once
from jitml.interrupts import pass_on
from jitml.ir.execute.debug_nans import AS_PYTHON
from jitml.native_entry import codes
from jitml.native_entry.machine import machine
from jitml.native_entry.plan import C_FUNCTIONS
from jitml.native_entry.plan_data import EntryPlan

_FASTCALL, _KEYWORDS = 0x80, 0x2


@once
def _machine() -> Code:
    text, imports = completed(machine({"RECORD_WORDS": RECORD_WORDS, **OUTCOMES, **OFFSETS}))
    imports |= {"as_python": id(AS_PYTHON), **{name: native_call()[name] for name in ("jitml_run_program", "jitml_listed")}}
    return load(text, level=2, imports=imports, exports=("jitml_enter",))


@once
def _c_functions() -> dict[str, int]:
    return addresses(ctypes.pythonapi, C_FUNCTIONS)


class _Memory:
    """Numbers that an entry reads, and what must live as long as it does."""

    def __init__(self) -> None:
        self.owners: list[Any] = []

    def words(self, numbers: Sequence[int]) -> int:
        """Where these numbers stand."""
        array = np.array([*numbers, 0], np.int64)
        self.owners.append(array)
        return int(array.ctypes.data)

    def object(self, x: Any) -> int:
        self.owners.append(x)
        return id(x)


def linked(
    plan: EntryPlan, executable: NativeExecutable, following: Callable[..., Any], hits: np.ndarray[Any, Any]
) -> Callable[..., Any]:
    """The entry.

    Args:
        following: is called where the variant is not for the call, or cannot answer it.
        hits: where its calls are counted, and how many there may be.
    """
    memory = _Memory()
    record = [0] * codes.WORDS
    code, most_operands = _code(plan, memory)
    results = [word for part in plan.results for word in _part(part, plan, memory)]
    record[codes.POSITIONAL] = plan.positional
    record[codes.NAMES], record[codes.NAME_COUNT] = memory.object(plan.names), len(plan.names)
    record[codes.ARGUMENTS] = plan.arguments
    record[codes.CONSTANTS] = memory.words([memory.object(x) for x in plan.constants])
    record[codes.CONSTANT_COUNT] = len(plan.constants)
    record[codes.SLOT_COUNT] = max(1, len(plan.constants) + plan.arguments + plan.computed)
    record[codes.CODE], record[codes.MOST_OPERANDS] = memory.words(code), most_operands
    record[codes.PROGRAM] = executable.descriptor
    record[codes.INPUT_COUNT], record[codes.INPUTS] = len(plan.inputs), memory.words([*map(plan.number, plan.inputs)])
    record[codes.OUTPUT_COUNT] = len(executable.outputs)
    record[codes.RESULTS], record[codes.RESULT_COUNT] = memory.words([*results, codes.WHOLE, 0, 0]), len(plan.results)
    record[codes.TELL] = 0 if plan.tell is None else memory.object(plan.tell)
    record[codes.NEXT] = memory.object(following)
    record[codes.HITS] = hits.ctypes.data
    record[codes.PASS_ON] = memory.object(pass_on)
    definition = MethodDefinition(b"entry", _machine()["jitml_enter"], _FASTCALL | _KEYWORDS, b"The native entry of a function.")
    words = np.array(record, np.int64).view(Record)
    words.owners = (memory.owners, hits, executable, definition)
    entry: Callable[..., Any] = function_of(definition, words)
    return entry


def _part(part: tuple[int, int, Any], plan: EntryPlan, memory: _Memory) -> tuple[int, int, int]:
    """Three words for an instruction that makes a part of the result."""
    op, count, x = part
    if op == codes.SLOT:
        return op, count, plan.number(x)
    if op == codes.NEW_DICT:
        return op, count, memory.words([memory.object(key) for key in x])
    if op in (codes.CALLED, codes.DO, codes.ATTRIBUTE):
        return op, count, memory.object(x)
    return op, count, memory.words(x) if op == codes.VIEW else x


def _code(plan: EntryPlan, memory: _Memory) -> tuple[list[int], int]:
    """Six words for each instruction, and how many operands a call has at the most."""
    words: list[int] = []
    most = 0
    for op, a, b, d, x, y in plan.code:
        words += [op, *(0 if place is None else plan.number(place) for place in (a, b, d))]
        if op in (codes.CALL, codes.CHECK):
            most = max(most, y)
            words.append(memory.words([*map(plan.number, x)]))
        elif op == codes.DICT and x:
            words.append(memory.words([memory.object(key) for key in x]))
        elif op in (codes.SHAPE, codes.STRIDES):
            words.append(memory.words(x))
        elif op in (codes.BINARY, codes.UNARY):
            words.append(_c_functions()[x])
        else:
            words.append(memory.object(x) if op in (codes.TYPE, codes.DTYPE) else x)
        words.append(y)
    return [*words, codes.END, 0, 0, 0, 0, 0], most


__all__ = ["linked"]
