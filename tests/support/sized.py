"""Graphs whose shapes depend on values: build them, run them through every layer, compare with the graph's own answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitml.codegen.interpreter import run
from jitml.codegen.llvm.runtime.compiler import compile_program
from jitml.fusion.fuse import DEFAULT
from jitml.ir import ops
from jitml.ir.analysis.verify import verify
from jitml.ir.dims import Size, Sym, as_size
from jitml.ir.graph import Graph, GraphBuilder, Value
from jitml.ir.interpret import interpret
from jitml.ir.op import recording
from jitml.ir.types import I64, Aval
from jitml.kernels.program import KernelProgram
from jitml.kernels.target import Target
from jitml.kernels.text.printer import show_program
from jitml.kernels.text.program_parser import parse_program
from jitml.kernels.verify.program import verify_program
from jitml.memory.plan import plan
from support.fused import TINY, fuse

Array = np.ndarray[Any, Any]
TARGETS = (DEFAULT, TINY)


class Sized(GraphBuilder):
    """A builder of graphs with sizes: `size` declares one, an input i64[] of the graph."""

    def size(self, name: str, high: int, low: int = 0) -> Size:
        sym = Sym(name, low, high)
        ops.bind(self.add_input(Aval((), I64)), sym=sym)
        return as_size(sym)

    def bound(self, value: Value, name: str, high: int, low: int = 0) -> Size:
        """A size that the graph computes."""
        sym = Sym(name, low, high)
        ops.bind(value, sym=sym)
        return as_size(sym)

    def array(self, *shape: Size, dtype: str = "f8") -> Value:
        return self.add_input(Aval(shape, np.dtype(dtype)))  # type: ignore[arg-type]  # see Aval.shape


def graph_of(build: Callable[[Sized], Any]) -> Graph:
    b = Sized()
    with recording(b):
        outputs = build(b)
    return verify(b.build(outputs if isinstance(outputs, (list, tuple)) else [outputs]))


def padded(graph: Graph, args: Sequence[Any]) -> list[Array]:
    """Arguments in the memory of their largest shape, garbage beyond the true one."""
    arrays = []
    for value, arg in zip(graph.inputs, args, strict=True):
        given = np.asarray(arg, dtype=value.dtype)
        whole = np.full(value.aval.bounds, 0xA5 if value.dtype.kind == "u" else -77).astype(value.dtype)
        whole[tuple(map(slice, given.shape))] = given
        arrays.append(whole)
    return arrays


def check(graph: Graph, *calls: Sequence[Any], targets: Sequence[Target] = TARGETS, rtol: float = 1e-12) -> KernelProgram:
    """Compare interpreted and native programs with the graph's own answers; the program for the usual machine."""
    programs = [verify_program(fuse(graph, target=target)) for target in targets]
    for program in programs:
        text = show_program(program)
        assert show_program(parse_program(text)) == text
        planned = plan(program)
        native = compile_program(planned)
        for args in calls:
            given = [np.asarray(a, dtype=v.dtype) for v, a in zip(graph.inputs, args, strict=True)]
            expected = interpret(graph, given)
            with np.errstate(all="ignore"):
                results = run(planned, padded(graph, given)), native(*padded(graph, given))
            for got in results:
                for g, e in zip(got, expected, strict=True):
                    assert (g.shape, g.dtype) == (e.shape, e.dtype), text
                    np.testing.assert_allclose(g, e, rtol=rtol, atol=1e-12, err_msg=text)
    return programs[0]
