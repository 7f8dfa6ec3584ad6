"""Buffer assignment: which buffer does each value of a graph lie in?"""

from __future__ import annotations

from collections.abc import Collection
from itertools import count
from typing import Any

import numpy as np

from jitml.fusion.grouping.groups import Group
from jitml.ir import ops
from jitml.ir.dims import Dim, bound
from jitml.ir.graph import Graph, Node, Value
from jitml.ir.printer import name_values
from jitml.ir.types import DType
from jitml.kernels.ir import Buffer, Expr
from jitml.kernels.sizes import Shape, Sizes

Array = np.ndarray[Any, Any]


class Buffers:
    """The buffers of a program that is being written.

    names: of each value, that of the buffer in which it would be stored.
    same_memory: values that are others reshaped, and lie where those do.
    made: in the order in which they were made, which `ages` tells of each.
    extents: true shapes, where they are not those of the memory.
    """

    def __init__(self, graph: Graph, sizes: Sizes, same_memory: dict[Value, Value]) -> None:
        self.sizes, self.same_memory = sizes, same_memory
        self.names = name_values(graph)
        for value, source in reversed(same_memory.items()):  # operands were met last
            if value.shape == source.shape:
                self.names[value] = self.names[source]
        self.made: dict[str, Buffer] = {}
        self.ages: dict[str, int] = {}
        self._births = count()
        self.constants: dict[str, Array] = {}
        self.extents: dict[str, tuple[Expr, ...]] = {}
        self.temporaries = 0

    def add(self, name: str, dtype: DType, shape: Shape, strides: tuple[int, ...] | None = None) -> Buffer:
        buffer = Buffer(name, dtype, tuple(map(bound, shape)))
        if strides is not None and strides != buffer.element_strides and buffer.size > 1:
            buffer = Buffer(name, dtype, buffer.shape, strides)
        if any(isinstance(n, Dim) for n in shape):
            self.extents[name] = tuple(map(self.sizes.expr, shape))
        self._keep(buffer)
        return buffer

    def _keep(self, buffer: Buffer) -> None:
        if buffer.name not in self.made:
            self.ages[buffer.name] = next(self._births)
        self.made[buffer.name] = buffer

    def remove(self, name: str) -> None:
        """Forget a buffer that no step uses any more."""
        del self.made[name]
        self.extents.pop(name, None)

    def add_stored(self, values: Collection[Value]) -> None:
        """Room for values that have none yet."""
        for value in values:
            if self.names[value] not in self.made:
                self.add(self.names[value], value.dtype, value.shape)

    def add_constants(self, graph: Graph) -> None:
        for node in graph.nodes:
            if node.op is ops.array and node.output.capacity > 1:
                value = np.ascontiguousarray(node.params["value"], dtype=node.output.dtype)
                self.add_constant(Buffer(self.names[node.output], value.dtype, value.shape), value)

    def add_constant(self, buffer: Buffer, value: Array) -> None:
        self._keep(buffer)
        self.constants[buffer.name] = value

    def temporary(self, dtype: DType, shape: Shape, strides: tuple[int, ...] | None = None) -> Buffer:
        self.temporaries += 1
        return self.add(f"p{self.temporaries - 1}", dtype, shape, strides)

    def another(self, name: str) -> str:
        """The name of a new buffer that is like one in all else."""
        known = self.made[name]
        return self.temporary(known.dtype, known.shape, known.strides).name

    def literal(self, value: Array) -> str:
        """The name of a new constant."""
        name = self.temporary(value.dtype, value.shape).name
        self.constants[name] = value
        return name

    def stored(self, value: Value) -> Buffer:
        """Where a value that was given room lies."""
        return self.made[self.names[value]]

    def of(self, value: Value, wanted: frozenset[Value] | None = None) -> Buffer:
        """Where a value lies; one that is another reshaped lies where that does, unless it is stored and wanted."""
        source = value
        while source in self.same_memory and (
            self.names[source] not in self.made or (wanted is not None and source not in wanted)
        ):
            source = self.same_memory[source]
        known = self.made.get(self.names[source])
        if known is not None and source.shape == value.shape:
            return known
        return Buffer(self.names[source], value.dtype, value.aval.bounds)

    def operands(self, g: Group, node: Node) -> tuple[Buffer, ...]:
        """Where a node's operands lie. A group that sees through a reshaped array does not wait until it is stored for others."""
        return tuple(self.of(value, frozenset(g.wanted)) for value in g.operands(node))
