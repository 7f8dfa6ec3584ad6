"""Fused products: what is done for a product and all that is made of it element by element?

By our own functions, each sum goes through the rest of the graph before it is stored. cuBLASLt does what its epilogues are; where
they are not all, it leaves its result where the last one will be, and a function of our own goes over that.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from jitml.codegen.cuda.calls.chained import plan_chain
from jitml.codegen.cuda.calls.elements import Elements, ElementText, pointer, split
from jitml.codegen.cuda.calls.epilogues import library_epilogue
from jitml.codegen.cuda.calls.plan import CallPlan, LibraryWork, Means, blocks_for
from jitml.codegen.cuda.calls.products import Ending, plan_product
from jitml.codegen.cuda.calls.text import entry
from jitml.codegen.cuda.libraries.cublaslt import library_product
from jitml.codegen.cuda.module import Launch
from jitml.codegen.cuda.target import THREADS
from jitml.codegen.product import Matrix, Product
from jitml.fusion.lower.contraction import WINDOWS, factor_digits, factor_views, sum_of_products
from jitml.fusion.lower.gemm_operands import Axes, product_axes
from jitml.fusion.lower.layouts import IndexArrays, MatrixDigits
from jitml.fusion.lower.strided_views import Strided
from jitml.ir import ops
from jitml.ir.graph import Graph, Node, Value
from jitml.ir.types import F16
from jitml.kernels.ir import Buffer
from jitml.kernels.program import Call, KernelProgram, seen_as
from jitml.records import dataclass, replace


@dataclass(frozen=True)
class FusedProduct:
    """
    Args:
        nodes: the product in the graph, or several that are added up.
        sums: what they make.
        factors: what it multiplies, as that lies in memory.
        views: through which it does so.
        result: what a library leaves: the sums, or of halves the narrowed ones.
        buffers: of the graph's inputs and its output, under the shapes that it gives them.
    """

    call: Graph
    nodes: Sequence[Node]
    sums: Value
    factors: Sequence[Value]
    views: frozenset[Node]
    result: Value
    buffers: dict[Value, Buffer]

    @staticmethod
    def of(call: Call, program: KernelProgram) -> FusedProduct:
        graph: Graph = call.params["call"]
        makers, users = graph.producers(), graph.users()
        first = next(n for n in graph.nodes if n.op is ops.dot_general)
        nodes, sums = sum_of_products(first, users, makers)
        factors = [factor_views(node, makers, WINDOWS) for node in nodes]
        views = {view for of_node in factors for _, of_factor in of_node for view in of_factor}
        (x, _), (y, _) = factors[0]
        result = sums if x.dtype != F16 else users[sums][0].output
        named = zip((*graph.inputs, *graph.outputs), (*call.reads, *call.writes), strict=True)
        buffers = {v: seen_as(program.buffers[name], v.shape) for v, name in named}
        return FusedProduct(graph, nodes, sums, (x, y), frozenset(views), result, buffers)

    @property
    def out(self) -> Value:
        return self.call.outputs[0]

    def product(self, z: Buffer) -> Product:
        """The product, with its result in C order in a buffer."""
        of_x, of_y, _ = product_axes(self.nodes[0])
        makers = self.call.producers()
        digits = factor_digits(self.nodes, makers, lambda v: Strided.whole(self.buffers[v]), IndexArrays(makers))
        assert digits is not None, "what has no strides is copied first"
        x, y = (_matrix(self.buffers[v], own) for v, own in zip(self.factors, (digits.x, digits.y), strict=True))
        shape_x, shape_y = (v.shape for v in self.nodes[0].inputs)
        m, n, k = extent(shape_x, of_x.rows), extent(shape_y, of_y.columns), len(self.nodes) * extent(shape_x, of_x.columns)
        steps = tuple(m * n * prod(digits.batch[a + 1 :]) for a in range(len(digits.batch)))
        return Product(digits.batch, m, n, k, x, y, Matrix(z, 0, steps, n, 1))


def _matrix(buffer: Buffer, of: MatrixDigits) -> Matrix:
    if of.has_strides:
        row, col = (digits[0][1] if digits else 0 for digits in (of.rows, of.columns))
        return Matrix(buffer, of.offset, of.batch, row, col)
    rows, columns = (digits or ((1, 0),) for digits in (of.rows, of.columns))
    return Matrix(buffer, of.offset, of.batch, 0, 0, digits=(rows, columns))


def extent(shape: Sequence[int], axes: Sequence[int]) -> int:
    return prod(shape[a] for a in axes)


def plan_fused(call: Call, program: KernelProgram, name: str, means: Means) -> CallPlan:
    if "tiles" in call.params:
        return plan_chain(call, program, name, means)
    f = FusedProduct.of(call, program)
    p = f.product(Buffer(f"{name}_sums", f.sums.dtype, f.sums.shape))
    comment = f"{call.writes[0]} of {p.x.buffer.name} @ {p.y.buffer.name}, {p.m} x {p.k} x {p.n}"
    rounding = means.rounding(p.x.buffer.dtype)
    ending = _ending(f, p, f.sums, means)
    plan = plan_product(p, replace(ending, lines=_given(ending.lines)), name, comment, rounding)
    return _with_library(plan, f, p, name, means)


def _given(lines: Sequence[str]) -> list[str]:
    """Lines over ints."""
    return ["const int b_ = (int)b, i_ = (int)i, j_ = (int)j;", *lines]


def _ending(f: FusedProduct, p: Product, cell: Value, means: Means) -> Ending:
    """What is made of one element of a value, which is called `sum`."""
    of_z: Axes = product_axes(f.nodes[0])[2]
    shape = f.sums.shape
    ranges = {"b_": (0, p.stacks), "i_": (0, p.m), "j_": (0, p.n)}
    parts = (("b_", of_z.batch), ("i_", of_z.rows), ("j_", of_z.columns))
    index = tuple(e for variable, axes in parts for e in split(variable, [shape[a] for a in axes]))
    elements = Elements(f.call, {v: f.buffers[v] for v in f.call.inputs}, ranges)
    elements.name(cell, "sum")
    result = elements.at(f.out, index)
    used = [v for v in f.call.inputs if _is_read_beside(f, v)]
    names = {f.buffers[v].name: (f.buffers[v], f"e{k}") for k, v in enumerate(used)}
    out = f.buffers[f.out]
    text = ElementText(means.functions, ranges, names | {out.name: (out, "out")})
    text.store(out.name, index, result)
    parameters = [(pointer(out, "out", is_written=True), out.name)]
    parameters += [(pointer(buffer, word), name) for name, (buffer, word) in names.items()]
    return Ending(parameters, text.lines)


def _is_read_beside(f: FusedProduct, value: Value) -> bool:
    """Whether it is an operand of what is made of the product."""
    factors = {v for node in f.nodes for v in node.inputs}
    own = {*f.nodes, *f.views, *(n for n in f.call.nodes if n.op is ops.convert and n.output in factors)}
    return any(value in n.inputs for n in f.call.nodes if n not in own)


def _with_library(plan: CallPlan, f: FusedProduct, p: Product, name: str, means: Means) -> CallPlan:
    """The plan with what cuBLASLt does of it, if it takes the product, and what is left then."""
    out = f.buffers[f.out]
    is_in_place = out.is_c_contiguous and out.dtype == f.result.dtype
    left = out if is_in_place else Buffer(f"{name}_result", f.result.dtype, f.result.shape)
    library = library_product(f.product(replace(left, shape=f.result.shape)))
    if library is None:
        return plan
    library = library.rounded_to(means.rounding(p.x.buffer.dtype))
    epilogue = library_epilogue(f.call, f.result, means.fastmath) if is_in_place else None
    if epilogue is not None:
        return replace(plan, library=LibraryWork((epilogue.applied_to(library, f.buffers),)))
    ending = _ending(f, p, f.result, means)
    whole = replace(ending, parameters=[*ending.parameters, (pointer(left, "from", is_written=True), left.name)])
    text = entry(f"{name}_after", [d for d, _ in whole.parameters], _pass(p, _given(ending.lines), f.result))
    after = Launch(f"{name}_after", blocks_for(p.stacks * p.m * p.n), THREADS, 0, tuple(b for _, b in whole.parameters))
    work = LibraryWork((library, after), () if is_in_place else (left,))
    return replace(plan, source=plan.source + text, library=work)


def _pass(p: Product, lines: list[str], cell: Value) -> list[str]:
    """Statements for each element of what a library has left in `from`."""
    kind = pointer(Buffer("", cell.dtype, ()), "", is_written=True).removesuffix("* ")
    return [
        f"const long long total = {p.stacks * p.m * p.n}, all = gridDim.x * {THREADS}LL;",
        f"for (long long t = blockIdx.x * {THREADS}LL + threadIdx.x; t < total; t += all) {{",
        f"  const long long b = t / {p.m * p.n}, i = t / {p.n} % {p.m}, j = t % {p.n};",
        f"  const {kind} sum = from[t];",
        *(f"  {line}" for line in lines),
        "}",
    ]
