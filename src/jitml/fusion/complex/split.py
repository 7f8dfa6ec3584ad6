"""Complex splitting: where do complex numbers go?

Each becomes two real values, its parts, before anything else is decided about a program.

So everything below the graph knows real numbers only: kernels, memory, machine code. The caller's complex arrays are seen as
two arrays that take turns in memory (`kernels/program.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Literal, TypeAlias

from jitml.ir import ops
from jitml.ir.graph import Graph, GraphBuilder, Node, Value
from jitml.ir.op import Op, RuleTable, recording
from jitml.ir.types import Aval, is_complex, part_dtype
from jitml.records import dataclass, replace


@dataclass(frozen=True, slots=True, eq=False)
class Complex:
    """A complex value as its parts, two real values of one aval.

    packed: both in one value, along a last axis, where it is known in this form.
    """

    re: Value
    im: Value
    packed: Value | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        return self.re.shape

    @property
    def ndim(self) -> int:
        return self.re.ndim


Part: TypeAlias = Value | Complex
# How an input or output of the split graph stands for one of the whole: itself, two parts, or both parts along a last axis.
Form: TypeAlias = Literal["real", "parts", "packed"]

# Ops whose arrays are complex wherever they run: NumPy's routines.
WHOLE_FAMILIES = ("host", "fft", "linalg")

# (node, *operands) -> the node's results, in a list if there are several. Complex operands and results come as `Complex`.
splitting: RuleTable[Callable[..., Any]] = RuleTable("splitting", "fusion/parts")


def holds_complex(graph: Graph) -> bool:
    """Whether any value of a graph, or of a body in it, is complex."""
    if any(is_complex(v.dtype) for v in graph.inputs):
        return True
    return any(
        any(is_complex(v.dtype) for v in node.outputs) or any(map(holds_complex, node.bodies.values())) for node in graph.nodes
    )


@dataclass(frozen=True)
class ComplexSplit:
    """A graph over real numbers, and how its inputs and outputs stand for those of the original one."""

    graph: Graph
    inputs: tuple[Form, ...]
    outputs: tuple[Form, ...]


def split(graph: Graph) -> Graph:
    """The same graph over real numbers: a complex input or output is two, the real part first."""
    return split_apart(graph, range(len(graph.inputs)), range(len(graph.outputs))).graph


def split_apart(graph: Graph, inputs: Collection[int] = (), outputs: Collection[int] = ()) -> ComplexSplit:
    """The same graph over real numbers. An array that a library reads or makes whole stays packed.

    Args:
        inputs, outputs: positions of those that are to be two, whatever they are used for.
    """
    b = GraphBuilder()
    env: dict[Value, Part] = {}
    wanted = {v for node in graph.nodes if node.op.family in WHOLE_FAMILIES for v in node.inputs}
    forms: list[Form] = []
    with recording(b):
        for k, (v, name) in enumerate(zip(graph.inputs, graph.names or ("",) * len(graph.inputs), strict=True)):
            forms.append(form := _form(v.aval, v in wanted and k not in inputs))
            env[v] = _input(b, v.aval, name, form)
        for node in graph.nodes:
            operands = [env[v] for v in node.inputs]
            with b.at(node.source):
                env.update(zip(node.outputs, _results(b, node, operands), strict=True))
    made = [env[v] for v in graph.outputs]
    shown = [
        _form(v.aval, isinstance(x, Complex) and x.packed is not None and k not in outputs)
        for k, (v, x) in enumerate(zip(graph.outputs, made))
    ]
    return ComplexSplit(b.build([part for x, form in zip(made, shown) for part in _shown(x, form)]), tuple(forms), tuple(shown))


def _form(aval: Aval, packed: bool) -> Form:
    return "real" if not is_complex(aval.dtype) else "packed" if packed else "parts"


def _input(b: GraphBuilder, aval: Aval, name: str, form: Form) -> Part:
    if form == "real":
        return b.add_input(aval, name)
    part = aval.with_dtype(part_dtype(aval.dtype))
    if form == "packed":
        return unpacked(b.add_input(part.with_shape((*aval.shape, 2)), name))
    return Complex(b.add_input(part, name and f"{name}.real"), b.add_input(part, name and f"{name}.imag"))


def _shown(x: Part, form: Form) -> tuple[Value, ...]:
    if isinstance(x, Complex) and form == "packed":
        assert x.packed is not None
        return (x.packed,)
    return parts_of(x)


def unpacked(x: Value) -> Complex:
    """The parts that lie side by side along a value's last axis."""
    shape = x.shape[:-1]

    def part(k: int) -> Value:
        start, stop = (*(0 for _ in shape), k), (*shape, k + 1)
        column: Value = ops.reshape(ops.slice(x, start=start, stop=stop, step=(1,) * x.ndim), shape=shape)
        return column

    return Complex(part(0), part(1), x)


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
