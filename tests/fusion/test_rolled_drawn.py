"""Drawn programs of loops, branches, elements and windows: graph interpreter, kernel interpreter and machine code agree."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jitml.codegen.interpreter import run
from jitml.codegen.llvm.runtime.compiler import compile_program
from jitml.ir import ops
from jitml.ir.analysis.verify import verify
from jitml.ir.graph import Value
from jitml.ir.interpret import interpret
from jitml.ir.types import F64, I64, Aval
from jitml.kernels.target import Cost, Target
from jitml.kernels.verify.program import verify_program
from jitml.memory.plan import plan
from support.fused import fuse
from support.regions import for_, get, graph_of, if_, number, put, put_window, rolled_program, size, spread, while_, window

ROWS, COLUMNS, LENGTH = 4, 5, 6
KINDS = ("element", "entry", "number", "count", "row", "shift", "sum", "scatter", "for", "triangle", "while", "if")


@dataclass(frozen=True)
class State:
    """What every loop of a drawn program carries, and the indices of the loops around with what bounds them."""

    a: Value  # f64[ROWS, COLUMNS]
    x: Value  # f64[LENGTH]
    s: Value  # f64[]
    n: Value  # i64[]
    indices: tuple[tuple[Value, int], ...] = ()

    @property
    def carried(self) -> list[Value]:
        return [self.a, self.x, self.s, self.n]


class Drawn:
    def __init__(self, draw: Any) -> None:
        self.draw = draw

    def pick(self, *choices: Any) -> Any:
        return self.draw(st.sampled_from(choices))

    def place(self, state: State, extent: int) -> Any:
        """An index below `extent`."""
        near = [index for index, bound in state.indices if bound <= extent]
        kind = self.pick("index", "constant", "data")
        if kind == "index" and near:
            return self.pick(*near)
        if kind == "data":
            return ops.remainder(state.n, extent)
        return number(self.draw(st.integers(0, extent - 1)))

    def value(self, state: State, depth: int = 2) -> Value:
        kind = self.pick("a", "x", "s", "two", "two", "index") if depth else self.pick("a", "x", "s")
        if kind == "a":
            return get(state.a, self.place(state, ROWS), self.place(state, COLUMNS))
        if kind == "x":
            return get(state.x, self.place(state, LENGTH))
        if kind == "index":
            return ops.convert(self.place(state, 6), dtype=F64)
        if kind == "two":
            op = self.pick(ops.add, ops.sub, ops.maximum, ops.minimum)
            half = ops.mul(self.value(state, depth - 1), 0.5)
            return op(half, self.value(state, depth - 1))  # type: ignore[no-any-return]
        return state.s

    def body(self, state: State, depth: int) -> State:
        for _ in range(self.draw(st.integers(1, 3))):
            state = self.statement(state, depth)
        return state

    def block(self, indices: tuple[tuple[Value, int], ...], depth: int, *carried: Value) -> list[Value]:
        return self.body(State(*carried, indices), depth).carried

    def statement(self, state: State, depth: int) -> State:
        kind = self.pick(*(KINDS if depth else KINDS[:8]))
        match kind:
            case "element":
                return replace(state, x=put(state.x, self.value(state), self.place(state, LENGTH)))
            case "entry":
                return replace(state, a=put(state.a, self.value(state), self.place(state, ROWS), self.place(state, COLUMNS)))
            case "number":
                return replace(state, s=self.value(state))
            case "count":
                step = ops.convert(ops.lt(self.value(state), 1.0), dtype=I64)
                return replace(state, n=ops.remainder(state.n * 3 + step + self.place(state, 6), 17))
            case "row":
                return self.row(state)
            case "shift":
                read, write = self.draw(st.integers(0, 2)), self.draw(st.integers(0, 2))
                part = window(state.x, (read, 4)) * 0.5 + window(state.x, (self.draw(st.integers(0, 2)), 4))
                return replace(state, x=put_window(state.x, part, (write, 4)))
            case "sum":
                reduce = self.pick(ops.reduce_sum, ops.reduce_max)
                total = reduce(window(state.x, (0, 5)) * spread(self.value(state, 0), 5), axes=(0,))
                return replace(state, s=total * 0.125)
            case "scatter":
                at = ops.sub(ops.remainder(state.n, 9), 4)
                combine = self.pick("set", "add", "max")
                return replace(state, x=ops.scatter(state.x, self.value(state), at, axis=0, combine=combine))
        return self.region(kind, state, depth - 1)

    def row(self, state: State) -> State:
        """A window of a row of A, as long as an index says."""
        i, k = self.place(state, ROWS), self.place(state, ROWS)
        length: Any = 4
        if state.indices and self.pick(True, False):
            index, bound = state.indices[-1]
            # What the trace knows of a size is what it knows of the index: proofs of places rest on either.
            length = size(index, 0, max(bound - 1, 1)) if bound <= COLUMNS else 3
        other = self.pick(window(state.a, (k, 1), (0, length)), window(state.x, (0, length)))
        part = window(state.a, (i, 1), (0, length)) * 0.5 + other - spread(self.value(state, 0), length)
        return replace(state, a=put_window(state.a, part, (i, 1), (0, length)))

    def region(self, kind: str, state: State, depth: int) -> State:
        indices = state.indices
        match kind:
            case "for":
                trip = self.draw(st.integers(0, 4))
                result = for_(trip, state.carried, lambda i, *c: self.block((*indices, (i, max(trip, 1))), depth, *c))
            case "triangle" if indices:
                outer, bound = indices[-1]
                result = for_(outer, state.carried, lambda i, *c: self.block((*indices, (i, bound)), depth, *c))
            case "triangle" | "while":
                result = while_(
                    [number(0), *state.carried],
                    lambda k, a, x, s, n: ops.bit_and(ops.lt(k, 4), ops.lt(ops.remainder(n, 5), 4)),
                    lambda k, *c: [k + 1, *self.block(indices, depth, *c)],
                )[1:]
            case _:
                captured = state.carried
                result = if_(
                    ops.lt(self.value(state), self.value(state)),
                    lambda: self.block(indices, depth, *captured),
                    lambda: captured if self.pick(True, False) else self.block(indices, depth, *captured),
                )
        return State(*result, indices)


@st.composite
def programs(draw: Any) -> Any:
    drawn = Drawn(draw)

    def program(a: Value, x: Value, s: Value, n: Value) -> Any:
        def body(i: Value, a: Value, x: Value, s: Value, n: Value) -> Any:
            return drawn.block(((i, 3),), 2, put(a, s, i, 4), put(x, s * 0.5, 5), s, n)

        return for_(3, [a, x, s, n], body)

    return graph_of(program, Aval((ROWS, COLUMNS), F64), Aval((LENGTH,), F64), Aval((), F64), Aval((), I64))


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs(), st.integers(0, 1000))
def test_three_interpreters_agree(graph: Any, seed: int) -> None:
    verify(graph)
    program = verify_program(rolled_program(graph, Target(cost=Cost(parallel_ns=1.0, grain_ns=0.1))))
    rng = np.random.default_rng(seed)
    args = [rng.integers(-4, 5, (ROWS, COLUMNS)) * 1.0, rng.integers(-4, 5, LENGTH) * 1.0, np.array(0.5), np.array(3)]
    expected = interpret(graph, args)
    planned = plan(program)
    apart = plan(verify_program(fuse(graph, rolls=False)))
    answers = [run(planned, [x.copy() for x in args]), compile_program(planned)(*[x.copy() for x in args])]
    for got in (*answers, run(apart, [x.copy() for x in args])):
        for x, y in zip(got, expected, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-9)
