"""Hypothesis strategies: well-typed graphs over a few small shapes, and inputs for them.

A graph is grown node by node from a pool of values: pick a kind of step, pick operands that fit, record the op. Shapes are
few, so that values meet again; a failing graph prints as text and shrinks to few nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from jitml.ir import ops
from jitml.ir.dims import Size, Sym, as_size, resolve
from jitml.ir.graph import Graph, GraphBuilder, Value
from jitml.ir.op import Op, recording
from jitml.ir.printer import show
from jitml.ir.types import F64, I64, Aval, DType
from support.op_cases import CASES, Array, OpCase, Sample, Shape, anything
from support.regions import for_, if_, number, while_

Draw = Callable[[st.SearchStrategy[Any]], Any]

SHAPES = ((), (4,), (3, 4), (2, 3, 4), (3, 1), (0, 3))
# Tame: results stay finite for ordinary operands.
TAME_UNARY = (ops.neg, ops.abs, ops.sin, ops.cos, ops.tanh, ops.arctan, ops.logistic, ops.erf, ops.arcsinh, ops.floor, ops.sign)
TAME_BINARY = (ops.add, ops.sub, ops.mul, ops.maximum, ops.minimum, ops.hypot, ops.arctan2, ops.copysign)
COMPARISONS = (ops.lt, ops.le, ops.eq, ops.ne)
REDUCTIONS = (ops.reduce_sum, ops.reduce_prod, ops.reduce_max, ops.reduce_min)
CUMULATIVE = (ops.cumsum, ops.cumprod, ops.cummax, ops.cummin)


def pick(draw: Draw, items: Any) -> Any:
    return draw(st.sampled_from(list(items)))


def step_unary(draw: Draw, pool: list[Value]) -> Value:
    op: Op = pick(draw, TAME_UNARY)
    return op(pick(draw, pool))


def _mate(draw: Draw, pool: list[Value], x: Value) -> Value:
    return pick(draw, [v for v in pool if v.aval == x.aval])


def step_binary(draw: Draw, pool: list[Value]) -> Value:
    op: Op = pick(draw, TAME_BINARY)
    x = pick(draw, pool)
    return op(x, _mate(draw, pool, x))


def step_constant(draw: Draw, pool: list[Value]) -> Value:
    op: Op = pick(draw, TAME_BINARY)
    return op(pick(draw, pool), pick(draw, (0.0, 1.0, -2.0, 0.5)))


def step_select(draw: Draw, pool: list[Value]) -> Value:
    x = pick(draw, pool)
    y = _mate(draw, pool, x)
    op: Op = pick(draw, COMPARISONS)
    return ops.select(op(_mate(draw, pool, x), y), x, _mate(draw, pool, x))


def step_reduce(draw: Draw, pool: list[Value]) -> Value:
    op: Op = pick(draw, REDUCTIONS)
    x = pick(draw, [v for v in pool if v.size])
    axes = tuple(a for a in range(x.ndim) if draw(st.booleans()))
    return op(x, axes=axes)


def step_reduce_extreme(draw: Draw, pool: list[Value]) -> Value:
    x = pick(draw, [v for v in pool if v.size and v.dtype.kind == "f"])
    return pick(draw, (ops.reduce_max, ops.reduce_min))(x, axes=tuple(a for a in range(x.ndim) if draw(st.booleans())))


def step_cumulative(draw: Draw, pool: list[Value]) -> Value:
    wide = [v for v in pool if v.ndim]
    if not wide:
        return step_unary(draw, pool)
    x = pick(draw, wide)
    op: Op = pick(draw, CUMULATIVE)
    return op(x, axis=draw(st.integers(0, x.ndim - 1)), reverse=draw(st.booleans()))


def step_broadcast(draw: Draw, pool: list[Value]) -> Value:
    """A leading axis, or stretched axes of length one."""
    x = pick(draw, [v for v in pool if v.ndim < 3] or pool)
    shape = tuple(4 if n == 1 else n for n in x.shape)
    if x.ndim < 3:
        return ops.broadcast(x, shape=(2, *shape), axes=tuple(range(1, x.ndim + 1)))
    return ops.broadcast(x, shape=shape, axes=tuple(range(x.ndim)))


def step_rearrange(draw: Draw, pool: list[Value]) -> Value:
    x = pick(draw, pool)
    kind = pick(draw, ("transpose", "reshape", "flip", "slice", "pad"))
    if kind == "transpose":
        return ops.transpose(x, perm=tuple(draw(st.permutations(range(x.ndim)))))
    if kind == "reshape":
        return ops.reshape(x, shape=pick(draw, ((x.size,), (1, *x.shape), (x.size, 1))))
    if kind == "flip":
        return ops.flip(x, axes=tuple(a for a in range(x.ndim) if draw(st.booleans())))
    if kind == "slice":
        bounds = [sorted((draw(st.integers(0, n)), draw(st.integers(0, n)))) for n in x.shape]
        step = tuple(draw(st.integers(1, 2)) for _ in x.shape)
        return ops.slice(x, start=tuple(a for a, _ in bounds), stop=tuple(b for _, b in bounds), step=step)
    amounts = [tuple(draw(st.integers(0, 2)) for _ in x.shape) for _ in range(3)]
    zero = ops.full(value=0.0, shape=(), dtype=x.dtype)
    return ops.pad(x, zero, low=amounts[0], high=amounts[1], interior=amounts[2])


def step_concat(draw: Draw, pool: list[Value]) -> Value:
    wide = [v for v in pool if v.ndim]
    if not wide:
        return step_unary(draw, pool)
    x = pick(draw, wide)
    return ops.concat(x, _mate(draw, pool, x), axis=draw(st.integers(0, x.ndim - 1)))


def step_update(draw: Draw, pool: list[Value]) -> Value:
    """A write through a view: a slice of one value replaced by that of another."""
    x = pick(draw, pool)
    bounds = [sorted((draw(st.integers(0, n)), draw(st.integers(0, n)))) for n in x.shape]
    start, stop, ones = tuple(a for a, _ in bounds), tuple(b for _, b in bounds), (1,) * x.ndim
    part = ops.slice(_mate(draw, pool, x), start=start, stop=stop, step=ones)
    return ops.update_slice(x, part, start=start, step=ones)


def step_gather(draw: Draw, pool: list[Value]) -> Value:
    long = [v for v in pool if v.ndim and v.shape[0]]
    if not long:
        return step_unary(draw, pool)
    x = pick(draw, long)
    n = x.shape[0]
    index = np.array(draw(st.lists(st.integers(-n, n - 1), min_size=1, max_size=4)))
    rows = ops.array(value=index, shape=index.shape, dtype=I64)
    if draw(st.booleans()):
        return ops.gather(x, rows, axis=0)
    return ops.scatter(x, ops.gather(x, rows, axis=0), rows, axis=0, combine=pick(draw, ("add", "set")))


def step_dot(draw: Draw, pool: list[Value]) -> Value:
    x = pick(draw, [v for v in pool if v.ndim <= 2])
    y = _mate(draw, pool, x)
    axes = tuple(a for a in range(x.ndim) if draw(st.booleans()))
    return ops.dot_general(x, y, batch=((), ()), contract=(axes, axes))


STEPS = (
    step_unary, step_binary, step_constant, step_select, step_reduce, step_cumulative, step_broadcast, step_rearrange,
    step_concat, step_update, step_gather, step_dot,
)  # fmt: skip


@st.composite
def graphs(draw: Draw, dtype: DType = np.dtype(np.float64), max_nodes: int = 8, max_size: int = 400) -> Graph:  # noqa: B008
    """A graph of one float dtype whose values have at most `max_size` elements and stay tame."""
    b = GraphBuilder()
    shapes = draw(st.lists(st.sampled_from(SHAPES), min_size=1, max_size=3))
    # A scalar is always there: every step finds an operand.
    pool = [b.add_input(Aval(shape, dtype)) for shape in [(), *shapes]]
    with recording(b):
        for _ in range(draw(st.integers(1, max_nodes))):
            value = pick(draw, STEPS)(draw, pool)
            if value.size <= max_size:
                pool.append(value)
    outputs = draw(st.lists(st.sampled_from(pool[-4:]), min_size=1, max_size=3, unique=True))
    return b.build([pool[-1], *(v for v in outputs if v is not pool[-1])])


def step_window(draw: Draw, pool: list[Value], indices: Sequence[Value] = ()) -> Value:
    """A window at places that are values, read or written: the index of a loop around, or numbers."""
    x = pick(draw, pool)
    sizes = tuple(draw(st.integers(0, n)) for n in x.shape)
    starts = []
    for n, size in zip(x.shape, sizes):
        start = pick(draw, indices) if indices and draw(st.booleans()) else number(draw(st.integers(0, n)))
        shifted = ops.add(start, number(draw(st.integers(-1, 1))))
        starts.append(ops.minimum(ops.maximum(shifted, number(0)), number(n - size)))
    part = ops.dynamic_slice(x, *starts, sizes=sizes, step=(1,) * x.ndim)
    if draw(st.booleans()):
        return part
    return ops.dynamic_update_slice(x, step_unary(draw, [part]), *starts, step=(1,) * x.ndim)


# Steps of bodies: what is done again and again stays small, and cannot fail.
BODY_STEPS = (
    step_unary,
    step_select,
    step_reduce_extreme,
    step_rearrange,
    step_update,
    step_window,
    step_gather,
    step_cumulative,
)


def step_region(draw: Draw, pool: list[Value], indices: Sequence[Value] = (), depth: int = 2) -> Value:
    """A loop, while or branch over values of the pool; its bodies may hold more of them."""
    kind = pick(draw, ("for", "while", "if"))
    carried = draw(st.lists(st.sampled_from(pool), min_size=1, max_size=2))

    def step(values: Sequence[Value], *more: Value) -> list[Value]:
        """Some statements over these values and those around; for each value one like it, the newest or the one before."""
        inner, places = [*pool, *values], [*indices, *more]
        for _ in range(draw(st.integers(1, 3))):
            function = pick(draw, BODY_STEPS)
            if depth > 1 and draw(st.integers(0, 3)) == 0:
                value = step_region(draw, inner, places, depth - 1)
            else:
                value = step_window(draw, inner, places) if function is step_window else function(draw, inner)
            if value.size <= 200:
                inner.append(value)
        return [pick(draw, [u for u in inner if u.aval == v.aval][-2:]) for v in values]

    if kind == "if":
        wide = ops.reduce_sum(carried[0], axes=tuple(range(carried[0].ndim)))
        results = if_(ops.lt(wide, 0.5), lambda: step(carried), lambda: step(carried))
    elif kind == "for":
        results = for_(draw(st.integers(0, 3)), carried, lambda i, *values: step(values, i))
    else:
        limit = draw(st.integers(0, 3))
        results = while_(
            [number(0), *carried],
            lambda n, *values: ops.lt(n, number(limit)),
            lambda n, *values: [ops.add(n, number(1)), *step(values, n)],
        )[1:]
    return results[0] if isinstance(results, (tuple, list)) else results


@st.composite
def region_programs(draw: Draw) -> Program:
    """Loops, whiles and branches over a few arrays, with outputs that may have to end up in arguments."""
    b = GraphBuilder()
    shapes = draw(st.lists(st.sampled_from([s for s in SHAPES if s]), min_size=1, max_size=2))
    pool = [b.add_input(Aval(shape, F64)) for shape in [(), *shapes]]
    with recording(b):
        for _ in range(draw(st.integers(1, 3))):
            value = step_region(draw, pool) if draw(st.integers(0, 3)) else pick(draw, BODY_STEPS)(draw, pool)
            pool.append(value)
    outputs = [pool[-1], *draw(st.lists(st.sampled_from(pool[:-1]), max_size=2, unique=True))]
    graph = b.build(outputs)
    aliases: dict[int, int] = {}
    for k, value in enumerate(outputs):
        same = [i for i, v in enumerate(graph.inputs) if v.aval == value.aval and i not in aliases.values()]
        if same and draw(st.booleans()):
            aliases[k] = pick(draw, same)
    return Program(graph, ordinary_inputs(graph), aliases)


def ordinary_inputs(graph: Graph, seed: int = 0) -> list[np.ndarray]:
    """Normal numbers for every input."""
    rng = np.random.default_rng(seed)
    return [np.asarray(rng.normal(size=aval.shape)).astype(aval.dtype) for aval in graph.in_avals]


@dataclass(frozen=True)
class Program:
    """A drawn graph, its arguments in whatever layout, and which outputs must end up in which argument."""

    graph: Graph
    args: list[Array]
    aliases: dict[int, int]

    @property
    def strides(self) -> dict[int, tuple[int, ...]]:
        """Element strides of the arguments that are not in C order."""
        strided = {k: a for k, a in enumerate(self.args) if not a.flags.c_contiguous}
        return {k: tuple(s // a.itemsize for s in a.strides) for k, a in strided.items()}

    def fresh_args(self) -> list[Array]:
        """Copies of the arguments in the same layout."""
        return [np.ndarray(a.shape, a.dtype, _memory(a).copy("K"), _offset(a), a.strides) for a in self.args]

    def __repr__(self) -> str:
        return "\n".join([show(self.graph), *map(repr, self.args), f"aliases {self.aliases}"])

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self))  # how Hypothesis prints a failing example


@st.composite
def floating_programs(draw: Draw) -> Program:
    """A graph of `graphs`, with ordinary arguments."""
    graph = draw(graphs())
    return Program(graph, ordinary_inputs(graph), {})


@st.composite
def programs_from_the_table(draw: Draw, max_nodes: int = 6) -> Program:
    """Graphs of all ops and dtypes: each node is a sample of a row of the op table, its operands made to fit.

    Arguments are small dyadic numbers, so that sums are exact and a comparison after them has one answer.
    """
    b = GraphBuilder()
    args: list[Array] = []
    rng = np.random.default_rng(draw(st.integers(0, 1000)))

    def argument(array: Array) -> Value:
        args.append(laid_out(array, draw(st.sampled_from(LAYOUTS))))
        return b.add_input(Aval(array.shape, array.dtype))

    def operand(shape: Shape, dtype: DType, pool: list[Value]) -> Value:
        if pool and draw(st.integers(0, 3)):
            value = fitted(pick(draw, pool), shape, dtype)
            if value is not None:
                return value
        return argument(dyadic(rng, shape, dtype))

    pool: list[Value] = []
    with recording(b):
        for _ in range(draw(st.integers(1, max_nodes))):
            case: OpCase = pick(draw, [c for c in CASES.values() if c.op.family != "linalg"])
            sample: Sample = pick(draw, case.samples)
            # What single precision rounds, the tolerance of double precision would see once it is converted.
            dtype: DType = pick(draw, [d for d in case.dtypes if d.name != "complex64" and (case.width < 4 or d.itemsize >= 8)])
            draws = sample.draws or (None,) * len(sample.shapes)
            if case.op is ops.convert or case.op is ops.pow:
                draws = (case.draw,) * len(sample.shapes)  # outside their domain NumPy has no one answer
            values = [
                argument(special(rng, shape, dtype)) if special else operand(shape, dtype, pool)
                for shape, special in zip(sample.shapes, draws, strict=True)
            ]
            pool.append(case.op(*values, **sample.params))
    outputs = draw(st.lists(st.sampled_from(pool[:-1]), max_size=2, unique=True)) if len(pool) > 1 else []
    outputs = [pool[-1], *outputs]
    aliases: dict[int, int] = {}
    for k, value in enumerate(outputs):
        same = [i for i, v in enumerate(b.inputs) if v.aval == value.aval and i not in aliases.values()]
        if same and draw(st.booleans()):
            aliases[k] = pick(draw, same)
    return Program(b.build(outputs), args, aliases)


LAYOUTS = ("C", "C", "C", "F", "reversed", "every other")


def laid_out(array: Array, layout: str) -> Array:
    """The same elements in another layout of memory."""
    if layout == "F":
        return np.array(array, order="F")
    if layout == "reversed" and array.ndim:
        return np.ascontiguousarray(array[::-1])[::-1]
    if layout == "every other" and array.ndim:
        wide = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)
        wide[..., ::2] = array
        return wide[..., ::2]
    return np.array(array, order="C")


def _memory(array: Array) -> Array:
    """The array that owns a view's memory."""
    return array if array.base is None else array.base


def _offset(array: Array) -> int:
    return array.ctypes.data - _memory(array).ctypes.data


def dyadic(rng: np.random.Generator, shape: Shape, dtype: DType) -> Array:
    """Quarters in [-4, 4], integers in [-9, 9], bools."""
    return np.asarray(rng.integers(-16, 17, shape) / 4).astype(dtype) if dtype.kind == "f" else anything(rng, shape, dtype)


def fitted(x: Value, shape: Shape, dtype: DType) -> Value | None:
    """A value made to fit an operand by broadcast, slice, reshape and conversion; None if it is too small."""
    size = int(np.prod(shape, dtype=int))
    if x.ndim == 0:
        x = ops.broadcast(x, shape=shape, axes=())
    elif x.size < size:
        return None
    elif x.shape != shape:
        flat = ops.reshape(x, shape=(x.size,))
        flat = flat if x.size == size else ops.slice(flat, start=(0,), stop=(size,), step=(1,))
        x = ops.reshape(flat, shape=shape)
    if x.dtype.kind == "f" and x.dtype != dtype:
        x = ops.lt(x, 0.5)  # the rounding of one precision is an error in another; NaN as an integer has no one answer
    return x if x.dtype == dtype else ops.convert(x, dtype=dtype)


# ------------------------------------------------------------------------------------------------- sizes that are values

MOST = {"n": 5, "m": 7}


def _window(draw: Draw, pool: list[Value], sizes: dict[str, Size]) -> Value:
    """The first elements along an axis, as many as a size says."""
    wide = [v for v in pool if v.ndim and type(v.shape[0]) is int and v.shape[0] >= 5]
    if not wide:
        return step_unary(draw, pool)
    x, n = pick(draw, wide), sizes["n"]
    starts = [ops.full(value=0, shape=(), dtype=I64)] * x.ndim
    return ops.dynamic_slice(x, *starts, sizes=(n, *x.shape[1:]), step=(1,) * x.ndim)


def _rearranged(draw: Draw, pool: list[Value], sizes: dict[str, Size]) -> Value:
    x = pick(draw, [v for v in pool if v.ndim] or pool)
    kind = pick(draw, ("transpose", "flat", "flip", "stretch", "twice", "padded", "update"))
    if not x.ndim:
        return step_unary(draw, pool)
    if kind == "transpose":
        return ops.transpose(x, perm=tuple(draw(st.permutations(range(x.ndim)))))
    if kind == "flat":
        return ops.reshape(x, shape=(x.size,))
    if kind == "flip":
        return ops.flip(x, axes=tuple(a for a in range(x.ndim) if draw(st.booleans())))
    if kind == "stretch" and x.ndim < 3:
        return ops.broadcast(x, shape=(pick(draw, (2, sizes["m"])), *x.shape), axes=tuple(range(1, x.ndim + 1)))
    if kind == "twice":
        return ops.concat(x, pick(draw, [v for v in pool if v.aval == x.aval]), axis=draw(st.integers(0, x.ndim - 1)))
    if kind == "update":
        y = pick(draw, [v for v in pool if v.aval == x.aval])
        starts = [ops.full(value=0, shape=(), dtype=I64)] * x.ndim
        return ops.dynamic_update_slice(y, x, *starts, step=(1,) * x.ndim)
    low, high = (tuple(draw(st.integers(0, 2)) for _ in x.shape) for _ in range(2))
    return ops.pad(x, ops.full(value=0.5, shape=(), dtype=x.dtype), low=low, high=high, interior=(0,) * x.ndim)


def _reduced(draw: Draw, pool: list[Value], sizes: dict[str, Size]) -> Value:
    x = pick(draw, pool)
    axes = tuple(a for a in range(x.ndim) if draw(st.booleans()))
    return pick(draw, (ops.reduce_sum, ops.reduce_prod))(x, axes=axes)


def _ordered(draw: Draw, pool: list[Value], sizes: dict[str, Size]) -> Value:
    x = pick(draw, [v for v in pool if v.ndim] or pool)
    if not x.ndim:
        return step_unary(draw, pool)
    axis = draw(st.integers(0, x.ndim - 1))
    if draw(st.booleans()):
        return ops.sort(x, axis=axis, kind="stable")
    return pick(draw, CUMULATIVE)(x, axis=axis, reverse=draw(st.booleans()))


def _contracted(draw: Draw, pool: list[Value], sizes: dict[str, Size]) -> Value:
    x = pick(draw, [v for v in pool if v.ndim <= 2])
    y = pick(draw, [v for v in pool if v.aval == x.aval])
    axes = tuple(a for a in range(x.ndim) if draw(st.booleans()))
    return ops.dot_general(x, y, batch=((), ()), contract=(axes, axes))


SIZED_STEPS = (_window, _rearranged, _rearranged, _reduced, _ordered, _contracted)
PLAIN_STEPS = (step_unary, step_binary, step_constant, step_select)


@st.composite
def sized_programs(draw: Draw, max_nodes: int = 7, most: int = 3000) -> Program:
    """A graph whose shapes depend on two sizes, both inputs, and arguments for it. Reads beyond a true extent find garbage."""
    b = GraphBuilder()
    dtype = np.dtype(np.float64)
    with recording(b):
        sizes: dict[str, Size] = {}
        for name, high in MOST.items():
            sym = Sym(name, 0, high)
            ops.bind(b.add_input(Aval((), I64)), sym=sym)
            sizes[name] = as_size(sym)
        n, m = sizes.values()
        shapes: tuple[tuple[Any, ...], ...] = ((), (6,), (n,), (n, 4), (3, n), (n, m), (n + m,))
        pool = [
            b.add_input(Aval(shape, dtype)) for shape in ((), *draw(st.lists(st.sampled_from(shapes), min_size=1, max_size=3)))
        ]
        for _ in range(draw(st.integers(1, max_nodes))):
            step = pick(draw, (*SIZED_STEPS, *PLAIN_STEPS))
            value = step(draw, pool, sizes) if step in SIZED_STEPS else step(draw, pool)
            if value.capacity <= most:
                pool.append(value)
    outputs = draw(st.lists(st.sampled_from(pool[-4:]), max_size=2, unique=True))
    graph = b.build([pool[-1], *(v for v in outputs if v is not pool[-1])])
    known = {sym: draw(st.integers(0, sym.high)) for sym in graph.binders()}
    rng = np.random.default_rng(draw(st.integers(0, 100)))
    args: list[Array] = [np.asarray(k) for k in known.values()]
    args += [np.asarray(rng.normal(size=resolve(v.shape, known))) for v in graph.inputs[len(known) :]]
    return Program(graph, args, {})
