"""Where do complex numbers go?  Each becomes two real values, its parts, before anything else is decided about a program.

So everything below the graph knows real numbers only: kernels, memory, machine code. The caller's complex arrays are seen as
two arrays that take turns in memory (`fusion/program.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from jitml.ir.graph import Graph, GraphBuilder, Node, Value
from jitml.ir.op import Op, RuleTable, recording
from jitml.ir.types import Aval, is_complex, part_dtype


@dataclass(frozen=True, slots=True, eq=False)
class Complex:
    """A complex value as its parts, two real values of one aval."""

    re: Value
    im: Value

    @property
    def shape(self) -> tuple[int, ...]:
        return self.re.shape

    @property
    def ndim(self) -> int:
        return self.re.ndim


Part: TypeAlias = Value | Complex

# (node, *operands) -> the node's results, in a list if there are several. Complex operands and results come as `Complex`.
splitting: RuleTable[Callable[..., Any]] = RuleTable("splitting", "fusion/parts")


def holds_complex(graph: Graph) -> bool:
    """Whether any value of a graph, or of a body in it, is complex."""
    if any(is_complex(v.dtype) for v in graph.inputs):
        return True
    return any(
        any(is_complex(v.dtype) for v in node.outputs) or any(map(holds_complex, node.bodies.values())) for node in graph.nodes
    )


def split(graph: Graph) -> Graph:
    """The same graph over real numbers: a complex input or output is two, the real part first."""
    b = GraphBuilder()
    env: dict[Value, Part] = {}
    for v, name in zip(graph.inputs, graph.names or ("",) * len(graph.inputs), strict=True):
        env[v] = _input(b, v.aval, name)
    with recording(b):
        for node in graph.nodes:
            operands = [env[v] for v in node.inputs]
            with b.at(node.source):
                env.update(zip(node.outputs, _results(b, node, operands), strict=True))
    return b.build([part for v in graph.outputs for part in parts_of(env[v])])


def _input(b: GraphBuilder, aval: Aval, name: str) -> Part:
    if not is_complex(aval.dtype):
        return b.add_input(aval, name)
    part = aval.with_dtype(part_dtype(aval.dtype))
    return Complex(b.add_input(part, name and f"{name}.real"), b.add_input(part, name and f"{name}.imag"))


def _results(b: GraphBuilder, node: Node, operands: list[Part]) -> list[Part]:
    if not touches_complex(node):
        outputs = tuple(Value(v.aval) for v in node.outputs)
        b.append(replace(node, inputs=tuple(x for x in operands if isinstance(x, Value)), outputs=outputs))
        return list(outputs)
    results = splitting[node.op](node, *operands)
    return results if isinstance(results, list) else [results]


def touches_complex(node: Node) -> bool:
    values = (*node.inputs, *node.outputs)
    return any(is_complex(v.dtype) for v in values) or any(map(holds_complex, node.bodies.values()))


def parts_of(x: Part) -> tuple[Value, ...]:
    return (x.re, x.im) if isinstance(x, Complex) else (x,)


def each_part(op: Op, *operands: Part, **params: Any) -> Complex:
    """An op on the real parts, and the same on the imaginary parts; real operands serve both."""
    res = (x.re if isinstance(x, Complex) else x for x in operands)
    ims = (x.im if isinstance(x, Complex) else x for x in operands)
    return Complex(op(*res, **params), op(*ims, **params))
