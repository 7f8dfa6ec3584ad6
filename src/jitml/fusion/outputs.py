"""A program's outputs: buffers of their own, and the true shapes of those that only a run can tell."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from jitml.fusion.complex.signature import Signature
from jitml.fusion.grouping.buffers import Buffers
from jitml.fusion.grouping.regions import before_checks, updated_operands
from jitml.ir import ops
from jitml.ir.dims import Dim
from jitml.ir.graph import Graph, Node, Value
from jitml.ir.passes.windows import is_start
from jitml.kernels.ir import Buffer, Expr
from jitml.kernels.program import Call, parted
from jitml.kernels.sizes import Shape, Sizes
from jitml.records import dataclass, replace


def behind_checks(graph: Graph) -> Graph:
    """The same graph with what was checked as its outputs, rather than the checks' results: those are the same arrays."""
    makers = graph.producers()
    nodes = tuple(replace(n, inputs=(before_checks(n.inputs[0], makers),)) if n.op is ops.observe else n for n in graph.nodes)
    return replace(graph, nodes=nodes, outputs=tuple(before_checks(value, makers) for value in graph.outputs))


def behind_widening(graph: Graph) -> Graph:
    """The same graph where an output is an array of unknown size, rather than that at the start of memory of its largest size."""
    makers = graph.producers()

    def origin(value: Value) -> Value:
        node = makers.get(value)
        if node is None or node.op is not ops.dynamic_update_slice or not is_start(node, makers):
            return value
        memory, part = makers.get(node.inputs[0]), node.inputs[1]
        is_all = memory is not None and memory.op is ops.empty and part.aval.bounds == value.aval.bounds
        part = before_checks(part, makers)
        return part if is_all and part in makers else value

    return replace(graph, outputs=tuple(map(origin, graph.outputs)))


def with_flat_results(graph: Graph, aliases: Mapping[int, int]) -> tuple[Graph, dict[Value, Shape]]:
    """The same graph with new outputs flat whose strides the inputs tell, and nothing before; and their shapes.

    What they hold is then the beginning of their memory, which need not be larger.
    """
    nodes, outputs, shapes = list(graph.nodes), list(graph.outputs), dict[Value, Shape]()
    sizes = Sizes(graph)
    for position, value in enumerate(graph.outputs):
        is_flat = all(isinstance(n, int) for n in value.shape[1:])
        is_known = all(sizes.from_inputs(n, graph.inputs) is not None for n in value.shape)
        if position not in aliases and not is_flat and is_known:
            outputs[position] = flat = Value(value.aval.with_shape((value.size,)))
            nodes.append(Node(ops.reshape, (value,), {"shape": flat.shape}, (flat,)))
            shapes[flat] = value.shape
    return replace(graph, nodes=tuple(nodes), outputs=tuple(outputs)), shapes


@dataclass(frozen=True)
class Outputs:
    """What becomes of a graph's outputs, by position.

    copies: calls that fill those that are an input, a constant or another output already.
    aliases: output -> the input whose memory it must end up in.
    """

    names: tuple[str, ...]
    copies: tuple[Call, ...]
    aliases: Mapping[str, str]


def name_outputs(graph: Graph, signature: Signature, buffers: Buffers, stored: Collection[Value]) -> Outputs:
    """Give each output a buffer of its own: what is an input, a constant or an output already is copied.

    So is what branches make for memory with strides: theirs are those of what they are given.
    """
    makers = graph.producers()
    names: list[str] = []
    copies: list[Call] = []
    alias_names: dict[str, str] = {}
    for position, value in enumerate(graph.outputs):
        strides = None
        source = signature.aliases.get(position)
        if source is not None:
            strides = signature.strides.get(source)
        elif signature.is_part(position):
            strides = parted(Buffer("", value.dtype, value.aval.bounds).element_strides)
        name = buffers.names[value]
        maker = makers.get(value)
        is_branched = maker is not None and maker.op is ops.cond and maker.outputs.index(value) not in updated_operands(maker)
        if value not in stored or name in names or (is_branched and strides is not None):
            name = f"out{position}"
            copies.append(Call("copy", (buffers.names[value],), (name,), {}))
        buffers.add(name, value.dtype, value.shape, strides)
        if source is not None:
            alias_names[name] = buffers.names[graph.inputs[source]]
        names.append(name)
    return Outputs(tuple(names), tuple(copies), alias_names)


def exact_shapes(
    graph: Graph, names: Sequence[str], aliases: Collection[int], sizes: Sizes, flat: Mapping[Value, Shape]
) -> dict[str, tuple[Expr, ...]]:
    """The true shapes of new outputs, if they follow from the inputs and such memory is the start of the largest.

    What is compressed may be stored one element beyond its end. `flat` holds the shapes of outputs that were made flat.
    """
    makers = graph.producers()
    exact: dict[str, tuple[Expr, ...]] = {}
    for position, (name, value) in enumerate(zip(names, graph.outputs)):
        maker, true = makers.get(value), flat.get(value, value.shape)
        is_static = all(isinstance(n, int) for n in true)  # a flat value without elements is, whatever its shape
        if is_static or position in aliases or (maker is not None and maker.op is ops.compress):
            continue
        if not all(isinstance(n, int) for n in value.shape[1:]):
            continue
        shape = [sizes.from_inputs(n, graph.inputs) for n in true]
        if None not in shape:
            exact[name] = tuple(e for e in shape if e is not None)
    return exact


def to_be_measured(
    graph: Graph, names: Sequence[str], aliases: Collection[int], exact: Collection[str], sizes: Sizes
) -> tuple[dict[str, tuple[int | None, ...]], list[Expr]]:
    """New outputs whose true extents only the run tells -> where each stands among the extents, which are the second result."""
    places: dict[str, tuple[int | None, ...]] = {}
    extents: list[Expr] = []
    for position, (name, value) in enumerate(zip(names, graph.outputs)):
        if position not in aliases and not value.aval.is_static and name not in exact:
            unknown = iter(range(len(extents), len(extents) + value.ndim))
            places[name] = tuple(next(unknown) if isinstance(n, Dim) else None for n in value.shape)
            extents += [sizes.expr(n) for n in value.shape if isinstance(n, Dim)]
    return places, extents
