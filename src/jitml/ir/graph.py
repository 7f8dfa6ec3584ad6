"""Graphs: what does a program compute?  A `Graph`: typed values in SSA form, its nodes in topological order.

Graphs are immutable. They are made by a `GraphBuilder`, which is what ops record into: tracing, transforms and passes
all build graphs by calling ops. Nodes carry the user's source line and every transform hands it on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import numpy as np

from jitml.errors import JitmlError, Source, TraceError
from jitml.ir.dims import Sym, syms_in
from jitml.ir.op import OPS, Op
from jitml.ir.printer import show
from jitml.ir.types import Aval, aval_of
from jitml.records import dataclass, field


@dataclass(frozen=True, eq=False, slots=True, weakref_slot=True)
class Value:
    """One result: an identity with an aval. Operators record strict ops: equal avals, or a Python number."""

    aval: Aval

    @property
    def shape(self) -> tuple[int, ...]:
        return self.aval.shape

    @property
    def dtype(self) -> np.dtype[np.generic]:
        return self.aval.dtype

    @property
    def ndim(self) -> int:
        return self.aval.ndim

    @property
    def size(self) -> int:
        return self.aval.size

    @property
    def capacity(self) -> int:
        return self.aval.capacity

    def __repr__(self) -> str:
        return f"Value({self.aval})"

    def __add__(self, other: Any) -> Any:
        return OPS["add"](self, other)

    def __radd__(self, other: Any) -> Any:
        return OPS["add"](other, self)

    def __sub__(self, other: Any) -> Any:
        return OPS["sub"](self, other)

    def __rsub__(self, other: Any) -> Any:
        return OPS["sub"](other, self)

    def __mul__(self, other: Any) -> Any:
        return OPS["mul"](self, other)

    def __rmul__(self, other: Any) -> Any:
        return OPS["mul"](other, self)

    def __truediv__(self, other: Any) -> Any:
        return OPS["div"](self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return OPS["div"](other, self)

    def __neg__(self) -> Any:
        return OPS["neg"](self)

    __array_ufunc__ = None  # a NumPy scalar on the left must leave the operator to us


@dataclass(frozen=True, eq=False, slots=True)
class Node:
    """One use of an op."""

    op: Op
    inputs: tuple[Value, ...]
    params: Mapping[str, Any]
    outputs: tuple[Value, ...]
    source: Source | None = None

    @property
    def output(self) -> Value:
        """The result of a node that has exactly one."""
        (out,) = self.outputs
        return out

    @property
    def bodies(self) -> dict[str, Graph]:
        """The graphs that a region holds, by parameter; empty for other nodes."""
        return self.graphs if self.op.has_bodies else {}

    @property
    def graphs(self) -> dict[str, Graph]:
        """The graphs that a region or a call holds, by parameter; empty for other nodes."""
        if self.op.family not in ("regions", "calls"):
            return {}
        return {name: param for name, param in self.params.items() if isinstance(param, Graph)}

    def walk(self) -> Iterator[Node]:
        """This node, and those of its bodies."""
        yield self
        for body in self.bodies.values():
            yield from body.walk()

    @property
    def has_effect(self) -> bool:
        """Whether it must run even if nothing uses its results: its op says so, or something in its graphs."""
        if self.op.has_effect or self.op.family not in ("regions", "calls"):
            return self.op.has_effect
        return any(node.has_effect for graph in self.graphs.values() for node in graph.nodes)

    @property
    def syms(self) -> frozenset[Sym]:
        """The Syms that its avals and parameters mention; a node that mentions one comes after the `bind` of it."""
        found = syms_in(tuple(self.params.values())) if self.params else []
        for v in (*self.inputs, *self.outputs):
            for n in v.aval.shape:
                if type(n) is not int:
                    found += syms_in(n)
        return frozenset(found)


@dataclass(frozen=True, eq=False)
class Graph:
    """inputs -> outputs. `names` are the user's names of inputs, for reports and messages only."""

    inputs: tuple[Value, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[Value, ...]
    names: tuple[str, ...] = field(default=())

    @property
    def in_avals(self) -> tuple[Aval, ...]:
        return tuple(v.aval for v in self.inputs)

    @property
    def out_avals(self) -> tuple[Aval, ...]:
        return tuple(v.aval for v in self.outputs)

    @cached_property
    def ops(self) -> frozenset[Op]:
        """The ops of its nodes, bodies apart: what a pass looks for, most graphs have none of."""
        return frozenset([node.op for node in self.nodes])

    @property
    def has_regions(self) -> bool:
        return any(op.has_bodies for op in self.ops)

    def walk(self) -> Iterator[Node]:
        """The nodes, each with those of its bodies behind it."""
        for node in self.nodes:
            yield from node.walk()

    def binders(self) -> Mapping[Sym, Value]:
        """The value, i64[], that each bound Sym is."""
        return self._binders

    @cached_property
    def _binders(self) -> Mapping[Sym, Value]:
        return {node.params["sym"]: node.inputs[0] for node in self.nodes if node.op.name == "bind"}

    @cached_property
    def last_reads(self) -> tuple[tuple[Value, ...], ...]:
        """For each node, the values that nothing reads after it, outputs apart."""
        seen, found = set(self.outputs), list[tuple[Value, ...]]()
        for node in reversed(self.nodes):
            found.append(tuple(v for v in dict.fromkeys(node.inputs) if v not in seen))
            seen.update(node.inputs)
        return tuple(reversed(found))

    def producers(self) -> dict[Value, Node]:
        """The node that makes each value; inputs are absent."""
        return {out: node for node in self.nodes for out in node.outputs}

    def users(self) -> dict[Value, list[Node]]:
        """The nodes that read each value, in order, once per node."""
        users: dict[Value, list[Node]] = {v: [] for v in self.inputs}
        for node in self.nodes:
            for out in node.outputs:
                users[out] = []
            for v in dict.fromkeys(node.inputs):
                users[v].append(node)
        return users

    def __str__(self) -> str:
        return show(self)


def _strayed(value: Value) -> TraceError:
    """The error for a value that no builder around makes."""
    return TraceError(f"a traced value {value.aval} is used after its trace has ended, or in another one")


class GraphBuilder:
    """Grows a graph, node by node. Activate it with `jitml.ir.op.recording(builder)` and call ops on its values.

    A value of an enclosing builder (a closure over an outer trace) becomes an extra input here, remembered in
    `captured`; whoever inlines the graph into the outer builder passes those values on.
    """

    def __init__(self, parent: GraphBuilder | None = None) -> None:
        self.parent = parent
        self.inputs: list[Value] = []
        self.names: list[str] = []
        self.nodes: list[Node] = []
        self.captured: dict[Value, Value] = {}
        self.locate: Callable[[], Source | None] = lambda: None
        self.strayed: Callable[[Value], JitmlError] = _strayed  # what is raised for a value of no builder around this one
        self._makers: dict[Value, Node | None] = {}  # None: an input

    def add_input(self, aval: Aval, name: str = "") -> Value:
        return self.keep_input(Value(aval), name)

    def keep_input(self, value: Value, name: str = "") -> Value:
        """Add an input that is a value of the graph that this one comes from."""
        self.inputs.append(value)
        self.names.append(name)
        self._makers[value] = None
        return value

    def defines(self, value: Value) -> bool:
        return value in self._makers

    def maker(self, value: Value) -> Node | None:
        """The node here that makes a value; None for an input and for what is not from here."""
        return self._makers.get(value)

    def producer(self, value: Value) -> Node | None:
        """The node, here or in an enclosing builder, that makes a value; None for an input."""
        builder: GraphBuilder | None = self
        while builder is not None:
            if value in builder._makers:
                return builder._makers[value]
            builder = builder.parent
        return None

    def capture(self, value: Value) -> Value:
        """The value here that stands for `value`: itself, or an extra input for one of an enclosing builder."""
        if value in self._makers:
            return value
        known = self.captured.get(value)
        if known is None:
            if not self._is_outer(value):
                raise self.strayed(value)
            known = self.captured[value] = self.add_input(value.aval)
        return known

    def around(self) -> Iterator[GraphBuilder]:
        """This one, and those that it is inside of."""
        builder: GraphBuilder | None = self
        while builder is not None:
            yield builder
            builder = builder.parent

    def _is_outer(self, value: Value) -> bool:
        return self.parent is not None and any(builder.defines(value) for builder in self.parent.around())

    def record(self, op: Op, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Add a node (`Recorder`). Arrays and numbers beside values become constants; all-concrete calls evaluate."""
        if args and Value not in map(type, args):
            return op.run(args, params)
        inputs = self._lift_operands(op, args)
        try:
            avals = op.aval(*(v.aval for v in inputs), **params)
        except JitmlError as error:
            if error.source is None:
                error.source = self.locate()
            raise
        for aval in avals if isinstance(avals, tuple) else (avals,):
            for n in aval.shape:
                if type(n) is int and n < 0:
                    raise ValueError("negative dimensions are not allowed")  # as NumPy says it, whatever function asked for them
        return self.emit(op, inputs, params, avals, self.locate())

    def emit(
        self, op: Op, inputs: tuple[Value, ...], params: Mapping[str, Any], avals: Aval | tuple[Aval, ...], source: Source | None
    ) -> Any:
        outputs = tuple(Value(aval) for aval in (avals if isinstance(avals, tuple) else (avals,)))
        self.append(Node(op, inputs, params, outputs, source))
        return outputs if isinstance(avals, tuple) else outputs[0]

    def append(self, node: Node) -> None:
        """Add a finished node whose operands are defined here: how a pass keeps what it does not change."""
        self.nodes.append(node)
        for out in node.outputs:
            self._makers[out] = node

    def cut(self, count: int) -> tuple[Node, ...]:
        """Take back all nodes but the first `count`, and say which those are: what they made is not defined any more."""
        removed = tuple(self.nodes[count:])
        del self.nodes[count:]
        for out in (out for node in removed for out in node.outputs):
            del self._makers[out]
        return removed

    def _lift_operands(self, op: Op, args: tuple[Any, ...]) -> tuple[Value, ...]:
        like = next((a.aval for a in args if isinstance(a, Value)), None)
        lifted: list[Value] = []
        for a in args:
            if isinstance(a, Value):
                lifted.append(self.capture(a))
            elif isinstance(a, (bool, int, float, complex)) and op.is_pointwise and like is not None:
                lifted.append(self.record(OPS["full"], (), {"value": a, "shape": like.shape, "dtype": like.dtype}))
            else:
                lifted.append(self.constant(a))
        return tuple(lifted)

    def constant(self, x: Any) -> Value:
        """A value known now: `full` if all its elements are one number, else a literal `array`."""
        array = np.asarray(x)
        if array.ndim == 0:
            params = {"value": array.item(), "shape": (), "dtype": array.dtype}
            return self.record(OPS["full"], (), params)
        params = {"value": np.array(array, order="C"), "shape": array.shape, "dtype": array.dtype}
        aval_of(array)
        return self.record(OPS["array"], (), params)

    def inline(self, graph: Graph, args: Sequence[Value]) -> tuple[Value, ...]:
        """Copy another graph's nodes into this one, its inputs replaced by `args`; returns its outputs here.

        A size that is bound here already, as by the forward part of a pullback, is not bound again.
        """
        env: dict[Value, Value] = dict(zip(graph.inputs, (self.capture(a) for a in args), strict=True))
        sizes = graph.binders() and {node.params["sym"] for node in self.nodes if node.op.name == "bind"}
        for node in graph.nodes:
            if node.op.name == "bind" and node.params["sym"] in sizes:
                continue
            outputs = tuple(Value(v.aval) for v in node.outputs)
            self.append(Node(node.op, tuple(env[v] for v in node.inputs), node.params, outputs, node.source))
            env.update(zip(node.outputs, outputs, strict=True))
        return tuple(env[v] for v in graph.outputs)

    @contextmanager
    def at(self, source: Source | None) -> Iterator[None]:
        """Give nodes recorded inside the block this source line."""
        before, self.locate = self.locate, lambda: source
        try:
            yield
        finally:
            self.locate = before

    def build(self, outputs: Sequence[Value]) -> Graph:
        """Freeze. Outputs may be inputs, or values of enclosing builders (captured now)."""
        outs = tuple(self.capture(v) for v in outputs)
        return Graph(tuple(self.inputs), tuple(self.nodes), outs, tuple(self.names))
