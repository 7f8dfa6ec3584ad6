"""Interpreter of planned programs: what should a planned program's answer be?

Run it in NumPy over real memory, laid out by the plan.

The arena is one array of bytes, full of garbage before the run, and kernels see views of it: a plan that lets two live
buffers overlap, or a kernel that reads what nobody wrote, gives a wrong answer here as it would in native code. The
oracle of fusion, memory planning and the LLVM back end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from jitml.errors import FailedCheck, LoweringError
from jitml.interrupts import pass_on
from jitml.ir import ops
from jitml.ir.graph import Graph
from jitml.ir.interpret import interpret_outputs
from jitml.ir.ops.random import DISTRIBUTIONS, routine
from jitml.kernels.interpret import KernelFunction, compile_kernel
from jitml.kernels.ir import Buffer, Expr, Kernel
from jitml.kernels.program import Call, Port, Region, seen_as
from jitml.kernels.sizes import evaluate
from jitml.memory.program import Place, Program

Array = np.ndarray[Any, Any]
_GARBAGE = 0xA5
_FILLED = 1 << 26  # bytes


def run(program: Program, inputs: Sequence[Array], compiled: dict[int, KernelFunction] | None = None) -> list[Array]:
    """The program's outputs; inputs that outputs alias are changed, as the program asks.

    Args:
        inputs: arrays of the program's input buffers' shapes, dtypes and strides (of the largest shapes, then, where only
            a part counts). An output that aliases an input is that very array.
        compiled: kernels as functions, by their `id`; what is missing is added.
    """
    kernels = program.kernels
    arena = garbage(Buffer("arena", np.dtype(np.uint8), (program.arena_size,)))
    entries, ports = kernels.ports(kernels.inputs), kernels.ports(kernels.outputs)
    given = [part for port, x in zip(entries, inputs, strict=True) for part in _parts(x, port)]
    made = [part for port in ports for part in _parts(garbage(port.buffer), port)]
    memory = _ProgramMemory(program, given, made, arena)
    _ProgramRun({} if compiled is None else compiled).program(program, memory)
    owners = {port.parts[0]: x for port, x in zip(entries, inputs)}
    results = [
        owners[kernels.aliases[port.parts[0]]] if port.parts[0] in kernels.aliases else _whole(port, memory) for port in ports
    ]
    return results[:-1] if kernels.measured else results


def _parts(x: Array, port: Port) -> tuple[Array, ...]:
    """An array as the program's buffers: the same memory."""
    if port.buffer.dtype.kind != "c":
        return (x,)
    if len(port.parts) == 2:
        return x.real, x.imag
    return (as_strided(x.real, (*x.shape, 2), (*x.strides, x.real.itemsize)),)


def _whole(port: Port, memory: _ProgramMemory) -> Array:
    parts = [memory.result(name) for name in port.parts]
    if port.buffer.dtype.kind != "c":
        return parts[0]
    if len(parts) == 1:
        parts = [parts[0][..., 0], parts[0][..., 1]]
    whole: Array = ops.complex.run(tuple(parts), {})
    return whole


class _ProgramRun:
    """One run of a program. A kernel is compiled the first time it is met."""

    def __init__(self, compiled: dict[int, KernelFunction]) -> None:
        self.compiled = compiled

    def program(self, program: Program, memory: _ProgramMemory) -> None:
        for step in program.kernels.steps:
            match step:
                case Kernel():
                    if id(step) not in self.compiled:
                        self.compiled[id(step)] = compile_kernel(step)
                    self.compiled[id(step)]({b.name: memory.view(b.name, b) for b in step.params})
                case Call():
                    _call(step, memory)
                case Region():
                    self.region(step, program.bodies[step.name], memory)

    def region(self, region: Region, bodies: Sequence[Program], memory: _ProgramMemory) -> None:
        moves, at = region.moves, {name: memory.whole(name) for name in region.moves}

        def run(k: int) -> None:
            inputs, outputs = (
                [at[name] if name in at else memory.whole(name) for name in names[k]]
                for names in (region.arguments, region.results)
            )
            arena = memory.whole(region.scratch) if region.scratch is not None else np.empty(0, np.uint8)
            arena[...] = _GARBAGE  # what an iteration leaves there, the next must not read
            self.program(bodies[k], _ProgramMemory(bodies[k], inputs, outputs, arena))

        match region.kind:
            case "loop":
                trips = region.control if isinstance(region.control, int) else int(memory.whole(region.control))
                for k in range(trips):
                    if region.index is not None:
                        memory.whole(region.index)[...] = k
                    run(0)
                    at = {name: at[target] for name, target in moves.items()}
            case "while":
                assert isinstance(region.control, str)
                run(0)
                while memory.whole(region.control):
                    run(1)
                    at = {name: at[target] for name, target in moves.items()}
                    run(0)
            case "cond":
                assert isinstance(region.control, str)
                run(0 if memory.whole(region.control) else 1)
        final = {name: at[name].copy() for name in region.carried if name in at}
        for name, value in final.items():
            memory.whole(name)[...] = value


class _ProgramMemory:
    """Arena, inputs, outputs and constants, and the views of them that the steps ask for."""

    def __init__(self, program: Program, inputs: list[Array], outputs: list[Array], arena: Array) -> None:
        self.kernels = kernels = program.kernels
        self.places: Mapping[str, Place] = program.places
        self.buffers = kernels.buffers
        self.inputs, self.outputs, self.arena = inputs, outputs, arena
        self.constants = [np.ascontiguousarray(c) for c in kernels.constants.values()]
        for constant in self.constants:
            constant.setflags(write=False)

    def whole(self, name: str) -> Array:
        """A buffer with its true shape and strides."""
        return self.view(name, self.buffers[name])

    def live(self, name: str) -> Array:
        """The part of a buffer that counts, where its true shape depends on values."""
        if name not in self.kernels.extents:
            return self.whole(name)
        return self.whole(name)[tuple(map(slice, self._extents(self.kernels.extents[name])))]

    def operand(self, call: Call) -> Array:
        """What a call reads, as far as what it writes reaches: of an array that is resized, the part that both have.

        A contiguous buffer may have another shape.
        """
        (read, *_), (written,) = call.reads, call.writes
        same = self.buffers[read].shape == self.buffers[written].shape
        source = self.live(read) if same else self.view(read, seen_as(self.buffers[read], self.buffers[written].shape))
        return source[tuple(map(slice, self.live(written).shape))]

    def result(self, name: str) -> Array:
        """An output as the caller gets it."""
        exact = self.kernels.exact.get(name)
        return self.live(name) if exact is None else self.live(name).reshape(self._extents(exact))

    def _extents(self, extents: Sequence[Expr]) -> tuple[int, ...]:
        values = {size: int(self.whole(source.buffer)[()]) for size, source in self.kernels.sizes.items()}
        return tuple(evaluate(e, values) for e in extents)

    def view(self, name: str, buffer: Buffer, offset: int = 0) -> Array:
        """A buffer's memory, seen as a step sees it, from the element at `offset` on."""
        place, dtype = self.places[name], buffer.dtype
        strides = tuple(s * dtype.itemsize for s in buffer.element_strides)
        if not buffer.size:
            return np.empty(buffer.shape, dtype)
        if place.space == "arena":  # ndarray refuses what does not fit
            return np.ndarray(buffer.shape, dtype, self.arena, place.offset + offset * dtype.itemsize, strides)
        base = {"input": self.inputs, "output": self.outputs, "constant": self.constants}[place.space][place.index]
        if base.flags.c_contiguous and offset + buffer.reach > base.size:
            raise ValueError(f"{name}: {buffer} from element {offset} does not fit into {base.size} elements")
        start = as_strided(base, (offset + 1,), (dtype.itemsize,), writeable=base.flags.writeable)[offset:]
        return as_strided(start.view(dtype), buffer.shape, strides, writeable=base.flags.writeable)


def garbage(buffer: Buffer) -> Array:
    """Memory for a buffer as an allocator would hand it out, but never zero where a run is likely to come."""
    flat = np.empty(buffer.nbytes, np.uint8)
    flat[:_FILLED] = _GARBAGE  # of arrays of any size the largest are gigabytes
    return flat.view(buffer.dtype).reshape(buffer.shape)


def _call(call: Call, memory: _ProgramMemory) -> None:
    if call.name not in _CALLS:
        raise LoweringError(f"the interpreter knows no library call {call.name}; add one in codegen/interpreter.py")
    _CALLS[call.name](call, memory)


def _gemm(call: Call, memory: _ProgramMemory) -> None:
    p = call.params
    batch, m, n, k = (p[name] for name in ("batch", "m", "n", "k"))
    reads, values = call.reads, []
    if "sized" in p or any(f"{which}_start" in p for which in "abc"):
        values = memory.whole(reads[-1]).tolist()
        reads = reads[:-1]
    if "sized" in p:
        m, n, k = values[:3]

    def operand(name: str, which: str, rows: int, columns: int) -> Array:
        strides = (*p[f"{which}_batch"], p[f"{which}_row"], p[f"{which}_col"])
        buffer = Buffer(name, memory.buffers[name].dtype, (*batch, rows, columns), strides)
        start = values[p[f"{which}_start"]] if f"{which}_start" in p else 0
        return memory.view(name, buffer, p[f"{which}_offset"] + start)

    a, b = operand(reads[0], "a", m, k), operand(reads[-1], "b", k, n)
    result = operand(call.writes[0], "c", m, n)
    result[...] = result + np.matmul(a, b) if "adds" in p else np.matmul(a, b)


def _fused(call: Call, memory: _ProgramMemory) -> None:
    body: Graph = call.params["call"]
    reads = [seen_as(memory.buffers[name], v.shape) for name, v in zip(call.reads, body.inputs, strict=True)]
    for name, result in zip(call.writes, interpret_outputs(body, [memory.view(b.name, b) for b in reads]), strict=True):
        memory.whole(name)[...] = result


def _copy(call: Call, memory: _ProgramMemory) -> None:
    source = memory.operand(call)
    memory.live(call.writes[0])[tuple(map(slice, source.shape))] = source


def _sort(call: Call, memory: _ProgramMemory) -> None:
    memory.live(call.writes[0])[...] = np.sort(memory.operand(call), axis=call.params["axis"], kind=call.params["kind"])


def _argsort(call: Call, memory: _ProgramMemory) -> None:
    params = {"axis": call.params["axis"], "kind": call.params["kind"]}
    memory.live(call.writes[0])[...] = ops.argsort.evaluate(memory.operand(call), **params)


def _scan(call: Call, memory: _ProgramMemory) -> None:
    axis, ufunc = call.params["axis"], _UFUNCS[call.params["combine"]]
    turned = slice(None, None, -1 if call.params["reverse"] else 1)
    source, target = (np.moveaxis(x, axis, 0)[turned] for x in (memory.operand(call), memory.live(call.writes[0])))
    target[...] = ufunc.accumulate(source, axis=0, dtype=source.dtype)


def _scatter(call: Call, memory: _ProgramMemory) -> None:
    p, target = call.params, memory.whole(call.writes[0])
    operands = call.reads[:-1] if p["sized"] else call.reads
    seen = [seen_as(memory.buffers[name], shape) for name, shape in zip(operands, p["shapes"], strict=True)]
    values, *indices = (memory.view(b.name, b) for b in seen)
    axis, k = p["axis"], len(indices)
    if p["sized"]:
        extents = memory.whole(call.reads[-1]).tolist()
        rank, shape = target.ndim, extents[target.ndim :]
        target = target[tuple(map(slice, extents[:rank]))]
        indices = [x[tuple(map(slice, shape))] for x in indices]
        values = values[tuple(map(slice, (*extents[:axis], *shape, *extents[axis + k : rank])))]
    limits = target.shape[axis : axis + k]
    places = [np.clip(np.where(x < 0, x.astype(np.int64) + n, x), 0, max(n - 1, 0)) for x, n in zip(indices, limits)]
    at = (slice(None),) * axis
    for place in np.ndindex(*indices[0].shape):
        one = (*at, *(int(x[place]) for x in places))
        new = values[(*at, *place)]
        target[one] = new if p["combine"] == "set" else _UFUNCS[p["combine"]](target[one], new)


def _compact(call: Call, memory: _ProgramMemory) -> None:
    p, target = call.params, memory.whole(call.writes[0])
    operands = call.reads[:-1] if p["sized"] else call.reads
    seen = [seen_as(memory.buffers[name], shape) for name, shape in zip(operands, p["shapes"], strict=True)]
    mask, *given = (memory.view(b.name, b) for b in seen)
    if p["sized"]:
        n, *extents = memory.whole(call.reads[-1]).tolist()
        mask, target = mask[:n], target[tuple(map(slice, extents))]
    kept = np.flatnonzero(mask)[: target.shape[p["axis"]]]
    for x in given:
        parts = (slice(n if axis != p["axis"] else None) for axis, n in enumerate(target.shape))
        kept = x[tuple(parts)].take(kept, p["axis"])
    target[tuple(map(slice, kept.shape))] = kept


def _random(call: Call, memory: _ProgramMemory) -> None:
    numbers = memory.whole(call.writes[1])
    legacy, dtype = call.params["routine"].startswith("jitml_legacy_"), numbers.dtype
    (kind,) = (d for d in DISTRIBUTIONS if routine(d, legacy, dtype) == call.params["routine"])
    address, *rest = (int(memory.whole(name)) for name in call.reads)
    count = rest.pop() if call.params["count"] is None else call.params["count"]
    drawn = ops.random.evaluate(address, *rest, distribution=kind, legacy=legacy, shape=(count,), dtype=dtype)[1]
    memory.whole(call.writes[0])[...] = address
    numbers.reshape(-1)[:count] = drawn


def _call_host(call: Call, memory: _ProgramMemory) -> None:
    reads = [seen_as(memory.buffers[name], shape) for name, shape in zip(call.reads, call.params["shapes"], strict=True)]
    function, given = call.params["function"], [memory.view(b.name, b) for b in reads]
    try:
        if function.fills:
            function.call(*given, out=tuple(map(memory.whole, call.writes)))
            return
        for name, result in zip(call.writes, function.call(*given)):
            memory.whole(name)[...] = result
    except FailedCheck:
        raise
    except Exception as error:  # as in machine code: an interruption is the user's, anything else leaves the call to NumPy
        pass_on(error)
        source = call.sources[0] if call.sources else None
        raise FailedCheck(f"{function.name} raised {type(error).__name__}: {error}", source=source) from error


def _empty(call: Call, memory: _ProgramMemory) -> None:
    """The garbage that is there will do."""


def _zeros(call: Call, memory: _ProgramMemory) -> None:
    memory.whole(call.writes[0])[...] = 0


_UFUNCS = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}
_CALLS = {
    "gemm": _gemm,
    "fused": _fused,
    "copy": _copy,
    "sort": _sort,
    "argsort": _argsort,
    "random": _random,
    "scan": _scan,
    "scatter": _scatter,
    "compact": _compact,
    "host": _call_host,
    "empty": _empty,
    "zeros": _zeros,
}
