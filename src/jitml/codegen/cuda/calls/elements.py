"""Elements: what is a graph of pointwise nodes, at one index, in CUDA C++?  Statements, by the same rules as in kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jitml.codegen.cuda.emit.builder import CudaBuilder, CudaValue
from jitml.codegen.cuda.emit.expressions import Bounds, CudaBuffer, CudaIndex, ScalarText
from jitml.codegen.cuda.emit.functions import ScalarFunctions
from jitml.codegen.cuda.emit.spelling import memory_type_of, type_of
from jitml.errors import LoweringError
from jitml.fusion.lower import Point, lowering
from jitml.fusion.lower.points import Index, Ranges, decide
from jitml.fusion.lower.scalars import Scalar, Scalars
from jitml.ir.dims import Size
from jitml.ir.graph import Graph, Node, Value
from jitml.kernels.ir import Buffer, Const, Expr, Load, Var, floor_divide, remainder


class Elements:
    """Scalars of a graph's values at indices over some variables.

    Args:
        buffers: where inputs lie, under the shapes that the graph gives them.
        ranges: of the variables.
    """

    def __init__(self, graph: Graph, buffers: Mapping[Value, Buffer], ranges: Ranges) -> None:
        self.b, self.ranges, self.sizes, self.axes = Scalars(), ranges, _Known(), dict[str, Size]()
        self._makers, self._buffers = graph.producers(), buffers
        self._made: dict[tuple[Value, Index], Scalar] = {}
        self.cells: dict[Value, Scalar] = {}

    def name(self, value: Value, cell: str) -> None:
        """What a value is at whatever index it is asked for: a variable of the text."""
        self.cells[value] = self.b.cell(cell, value.dtype)

    def at(self, value: Value, index: Index) -> Scalar:
        if value in self.cells:
            return self.cells[value]
        if value in self._buffers:
            return self.b.load(self._buffers[value].name, index, value.dtype)
        key = (value, index)
        if key not in self._made:
            node = self._makers[value]
            self._made[key] = lowering[node.op](Point(self, node, index))
        return self._made[key]

    # ------------------------------------------------------------------------------------------ what a rule asks

    def read(self, node: Node, operand: int, index: Index) -> Scalar:
        return self.at(node.inputs[operand], index)

    def load(self, node: Node, operand: int, index: tuple[Expr | Scalar, ...]) -> Scalar:
        raise LoweringError(f"{node.op.name} is no function of elements at known places")

    def place(self, value: Value) -> Expr:
        raise LoweringError("a place that is a value is not known here")

    def inside(self, expr: Expr, low: int, high: int) -> bool | None:
        return decide(expr, low, high, self.ranges)


class _Known:
    """Sizes that are numbers."""

    def expr(self, size: Size) -> Expr:
        assert isinstance(size, int)
        return Const(size)


class ElementText:
    """Statements that compute scalars, each once.

    Args:
        indices: the variables, with the limits of each; they are ints in the text.
        pointers: buffers, and the names of their pointers in the text.
    """

    def __init__(self, functions: ScalarFunctions, indices: Ranges, pointers: Mapping[str, tuple[Buffer, str]]) -> None:
        self.text = ScalarText(functions)
        for name, (low, high) in indices.items():
            self.text.scope[name] = CudaIndex(name, Bounds(low, high - 1), is_narrow=True)
        for name, (buffer, pointer) in pointers.items():
            self.text.buffers[name] = CudaBuffer(buffer, pointer, name)
        self.lines: list[str] = []
        self._known: dict[Scalar, CudaValue] = {}

    def value(self, x: Scalar) -> CudaValue:
        if x not in self._known:
            self._known[x] = self._written(x)
        return self._known[x]

    def _written(self, x: Scalar) -> CudaValue:
        if x.kind == "const":
            return CudaBuilder().const(x.value, x.dtype)
        if x.kind == "cell":
            return CudaValue(x.dtype, x.value)
        if x.kind == "apply":
            found = self.text.functions.apply(x.value, [self.value(a) for a in x.args], x.dtype)
        else:
            places = [e for e in x.places if e is not None]
            found = self.text.value(places[0] if x.kind == "index" else Load(x.value, tuple(places), x.dtype))
        word = f"t{len(self._known)}_{len(self.lines)}"
        self.lines.append(f"const {type_of(x.dtype)} {word} = {found.text};")
        return CudaValue(x.dtype, word)

    def store(self, buffer: str, at: Sequence[Expr], x: Scalar) -> None:
        value = self.value(x)
        self.lines.append(f"{self.text.element(buffer, at)} = {value.text};")


def pointer(buffer: Buffer, name: str, *, is_written: bool = False) -> str:
    """The parameter for a buffer."""
    kind = memory_type_of(buffer.dtype)
    return f"{kind}* {name}" if is_written else f"const {kind}* __restrict__ {name}"


def split(variable: str, shape: Sequence[int]) -> tuple[Expr, ...]:
    """The indices of several axes of which one variable counts all, in C order."""
    found: list[Expr] = []
    rest: Expr = Var(variable)
    for k in reversed(range(len(shape))):
        if k == 0:
            found.insert(0, rest)
        else:
            found.insert(0, remainder(rest, shape[k]))
            rest = floor_divide(rest, shape[k])
    return tuple(found)
