"""Chained products: how does a GPU run a pass over squares that are never stored, as attention's scores?

A block keeps the rows of one tile, and goes along the other axis tile by tile (`chain.cuh`, `fusion/prepare/chains.py`). It makes
the products that squares are made of, what squares are element by element, and adds up what comes of them. Sums are done in one
order, which depends on extents alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod

from jitml.codegen.cuda.calls.elements import Elements, ElementText, pointer, split
from jitml.codegen.cuda.calls.plan import CallPlan, Means
from jitml.codegen.cuda.calls.products import is_aligned, is_along, stack_start
from jitml.codegen.cuda.calls.text import entry, number_type, read, template
from jitml.codegen.cuda.emit.builder import CudaValue
from jitml.codegen.cuda.emit.functions import COMBINES
from jitml.codegen.cuda.emit.spelling import literal
from jitml.codegen.cuda.module import Launch
from jitml.codegen.cuda.target import THREADS
from jitml.codegen.product import Matrix
from jitml.fusion.lower.points import Index
from jitml.fusion.lower.reductions import REDUCTIONS
from jitml.fusion.lower.scalars import Scalar
from jitml.fusion.lower.strided_views import VIEWS, Strided
from jitml.fusion.prepare.chains import LEAST_PIECES, Chain, End, Softmax, TiledMatrix, Tiles, pitch
from jitml.ir import ops
from jitml.ir.graph import Node, Value
from jitml.ir.op import Op
from jitml.ir.types import F32, DType
from jitml.kernels.ir import Buffer, Const
from jitml.kernels.program import Call, KernelProgram, seen_as

_SPARE = 272  # bytes of sums up to which half of a multiprocessor's registers are enough for a block, so that it can have two


def plan_chain(call: Call, program: KernelProgram, name: str, means: Means) -> CallPlan:
    """A pass as one function."""
    chain = Chain.of(call.params["call"])
    assert chain is not None
    named = zip((*chain.call.inputs, *chain.call.outputs), (*call.reads, *call.writes), strict=True)
    text = _PassText(chain, Tiles(*call.params["tiles"]), {v: seen_as(program.buffers[b], v.shape) for v, b in named}, means)
    rows, columns = chain.shape[-2:]
    comment = f"{', '.join(call.writes)} by tiles of {rows} x {columns}, which is not stored"
    resident = 2 if text.tiles.registers(chain) <= _SPARE else 1
    source = entry(name, [declaration for declaration, _ in text.pointers], text.body(), comment, resident=resident)
    launch = Launch(name, text.tiles.blocks(chain), THREADS, text.shared_bytes, tuple(b for _, b in text.pointers))
    names = ("common", "gemm", "chain", *(("mma", "chain_mma") if text.is_tf32 or chain.is_half else ()))
    return CallPlan(source, tuple(map(template, names)), (launch,))


class _PassText:
    """The text of one pass.

    Attributes:
        pointers: declarations of parameters, and the buffers that they point to.
        shared_bytes: of a block.
    """

    def __init__(self, chain: Chain, tiles: Tiles, buffers: Mapping[Value, Buffer], means: Means) -> None:
        self.chain, self.tiles, self.buffers, self.means = chain, tiles, buffers, means
        self.matrices = {x: f"x{k}" for k, x in enumerate(chain.operands(self.memory))}
        self.squares = {v: f"square{k}" for k, v in enumerate(chain.held)}
        beside = {buffers[v].name: buffers[v] for v in chain.call.inputs if not _is_matrix_alone(v, chain.call.users())}
        self.beside = {name: (buffer, f"e{k}") for k, (name, buffer) in enumerate(beside.items())}
        self.outs = {v: f"out{k}" for k, v in enumerate(chain.call.outputs)}
        self.pointers = [(read(number_type(x.value.dtype), word), buffers[x.value].name) for x, word in self.matrices.items()]
        self.pointers += [(pointer(buffer, word), name) for name, (buffer, word) in self.beside.items()]
        self.pointers += [(pointer(buffers[v], word, is_written=True), buffers[v].name) for v, word in self.outs.items()]
        self.shared_bytes = tiles.scratch(chain, self.memory)
        # A tile of 16 x 32 has too few pieces for all warps. What may be rounded to bfloat16 may be rounded to TF32.
        self.is_tf32 = bool(means.rounding(F32)) and tiles.kept * tiles.summed >= LEAST_PIECES and not chain.is_half
        rows, columns = chain.shape[-2:]
        self.ranges = {"b_": (0, prod(chain.batch)), "i_": (0, rows), "j_": (0, columns)}
        self.kept, self.summed = ("i_", "j_") if chain.by_rows else ("j_", "i_")

    def memory(self, value: Value) -> Strided:
        return Strided.whole(self.buffers[value])

    def body(self) -> list[str]:
        chain, tiles = self.chain, self.tiles
        each = -(-chain.kept // tiles.kept)
        return [
            *self.declared(),
            f"for (long long t = blockIdx.x; t < {tiles.blocks(chain)}; t += gridDim.x) {{",
            f"  const long long b = t / {each}, kept = t % {each} * {tiles.kept}, left = {chain.kept} - kept;",
            "  const int b_ = (int)b;",
            *(f"  {line}" for line in (*self.operands(), *self.cleared())),
            f"  for (long long summed = 0; summed < {chain.summed}; summed += {tiles.summed}) {{",
            f"    const int count = {chain.summed} - summed < {tiles.summed} ? (int)({chain.summed} - summed) : {tiles.summed};",
            *(f"    {line}" for line in self.step()),
            "  }",
            *(f"  {line}" for line in self.stored()),
            "}",
        ]

    # ------------------------------------------------------------------------------------------------------ memory

    def declared(self) -> Iterator[str]:
        """Arrays in shared memory, and what a softmax is made by."""
        arrays = [(f"{word}s", x.value.dtype, self.rows_bytes(x)) for x, word in self.matrices.items()]
        arrays += [(word, v.dtype, self.tiles.kept * self.pitch_of(v) * v.dtype.itemsize) for v, word in self.squares.items()]
        softmax = self.chain.softmax
        if softmax is not None:
            dtype = softmax.weights.dtype
            arrays += [(word, dtype, self.tiles.kept * dtype.itemsize) for word in ("shrink", "totals")]
        yield "extern __shared__ uint4 memory[];"
        start = 0
        for word, dtype, size in arrays:
            kind = number_type(dtype)
            yield f"{kind}* const {word} = ({kind}*)((char*)memory + {start});"
            start += size
        assert start == self.shared_bytes
        if softmax is not None:
            kind = number_type(softmax.weights.dtype)
            yield f"const {kind} least = {literal(-float('inf'), softmax.weights.dtype)};"
            yield from self.weigh(softmax)
        yield from dict.fromkeys(map(self.combination, self.chain.reductions))

    def rows_bytes(self, x: TiledMatrix) -> int:
        dtype = x.value.dtype
        return self.tiles.rows(x) * pitch(x.depth, dtype) * dtype.itemsize

    def pitch_of(self, square: Value) -> int:
        return pitch(self.tiles.summed, square.dtype)

    def operands(self) -> Iterator[str]:
        """Where the matrices of a stack begin; tiles that are kept are brought."""
        for x, word in self.matrices.items():
            matrix, kind = self.matrix(x), number_type(x.value.dtype)
            aligned = is_aligned(matrix, word, True, self.chain.batch) if self.is_along(x) else "false"
            start = f"{word} + {stack_start(matrix, self.chain.batch)}"
            yield f"const ji_operand<{kind}> {word}_of = {{{start}, {matrix.row}LL, {matrix.col}LL, {aligned}}};"
            if x.is_kept:
                yield self.brought(x)

    def matrix(self, x: TiledMatrix) -> Matrix:
        assert isinstance(x.stack.offset, Const)
        return Matrix(self.buffers[x.value], int(x.stack.offset.value), x.stack.batch, x.stack.row, x.stack.col)

    def is_along(self, x: TiledMatrix) -> bool:
        return is_along(self.matrix(x), self.chain.kept if x.is_kept else self.chain.summed, x.depth)

    def brought(self, x: TiledMatrix) -> str:
        word, kind = self.matrices[x], number_type(x.value.dtype)
        flags = f"{kind}, {self.tiles.rows(x)}, {x.depth}, {str(self.is_along(x)).lower()}"
        where = f"kept, {self.chain.kept}" if x.is_kept else f"summed, {self.chain.summed}"
        return f"ji_bring_rows<{flags}>({word}s, {word}_of, {where});"

    # -------------------------------------------------------------------------------------------------------- sums

    def cleared(self) -> Iterator[str]:
        for k, end in enumerate(self.chain.ends):
            yield f"{self.struct('end', end.node)}, {end.width}> end{k};"
            yield f"end{k}.clear();"
        if (softmax := self.chain.softmax) is not None:
            kind = number_type(softmax.weights.dtype)
            yield f"ji_softmax<{kind}, {self.tiles.kept}, {self.tiles.summed}> softmax;"
            yield "softmax.clear(least);"
            return
        for k, node in enumerate(self.chain.reductions):
            yield f"{number_type(node.output.dtype)} reduced{k} = {self.identity(node)};"

    def struct(self, name: str, product: Node) -> str:
        """What holds the sums of a product, up to the extents of its tile."""
        tile = f"{self.tiles.kept}, {self.tiles.summed}"
        dtype = product.output.dtype
        if self.chain.is_half:
            return f"ji_{name}_f16<{tile}"
        return f"ji_{name}_tf32<{tile}" if self.is_tf32 and dtype == F32 else f"ji_{name}<{number_type(dtype)}, {tile}"

    def identity(self, node: Node) -> str:
        return literal(REDUCTIONS[node.op].identity(node.output.dtype), node.output.dtype)

    def combination(self, node: Node) -> str:
        """The function of two numbers that a reduction combines them by."""
        dtype, combine = node.output.dtype, REDUCTIONS[node.op].combine
        kind = number_type(dtype)
        both = self.means.functions.apply(COMBINES[combine], (CudaValue(dtype, "x"), CudaValue(dtype, "y")), dtype)
        return f"const auto {_combination(node)} = [=]({kind} x, {kind} y) {{ return {both.text}; }};"

    def weigh(self, softmax: Softmax) -> Iterator[str]:
        """The function that makes a weight of a score and the largest one."""
        elements = Elements(self.chain.call, {}, self.ranges)
        elements.name(softmax.scores, "score")
        elements.name(softmax.top.output, "top")
        text = ElementText(self.means.functions, self.ranges, {})
        weight = text.value(elements.at(softmax.weights, self.index()))
        kind = number_type(softmax.weights.dtype)
        yield f"const auto weigh = [=]({kind} score, {kind} top) {{"
        yield from (f"  {line}" for line in text.lines)
        yield f"  return {weight.text};"
        yield "};"

    def index(self) -> Index:
        (i,), (j,) = split("i_", (1,)), split("j_", (1,))
        return (*split("b_", self.chain.batch), i, j)

    def step(self) -> Iterator[str]:
        """What is done with one tile of squares."""
        chain = self.chain
        yield from (self.brought(x) for x in self.matrices if not x.is_kept)
        yield "__syncthreads();"
        for k, node in enumerate(chain.products):
            left, right = chain.sides(node, self.memory)
            yield f"{self.struct('square', node)}> product{k};"
            yield f"product{k}.make<{left.depth}>({self.matrices[left]}s, {self.matrices[right]}s);"
        yield from self.elements()
        yield "__syncthreads();"
        if chain.softmax is not None:
            (word,), unit = self.squares.values(), literal(1 / self.units, chain.softmax.weights.dtype)
            yield f"softmax.step({word}, shrink, count, least, {unit}, weigh, {_combination(chain.softmax.top)});"
            yield "__syncthreads();"
        else:
            yield from self.reduced()
        for k, end in enumerate(chain.ends):
            if chain.softmax is not None:
                yield f"end{k}.scale(shrink);"
            yield f"end{k}.add({self.squares[end.square]}, {self.matrices[chain.matrix(end, self.memory)]}s);"
        yield "__syncthreads();"

    @property
    def units(self) -> float:
        """A power of two by which weights are divided, so that no sum of them times numbers is beyond the largest number."""
        if self.chain.is_half:  # sums are floats, far from it, and weights of few bits are to keep them
            return 1.0
        return float(1 << (self.chain.summed - 1).bit_length())

    def elements(self) -> Iterator[str]:
        """Squares, element by element, into shared memory."""
        chain = self.chain
        elements = Elements(chain.call, {v: self.buffers[v] for v in chain.call.inputs}, self.ranges)
        text = ElementText(self.means.functions, self.ranges, self.beside)
        for k, node in enumerate(chain.products):
            elements.name(node.output, f"p{k}")
        wanted = [*self.squares] if chain.softmax is None else [chain.softmax.scores]
        words = zip(wanted, self.squares.values(), strict=True)
        made = {word: (v, text.value(elements.at(v, self.index()))) for v, word in words}
        yield "#pragma unroll"
        yield "for (int u = 0; u < product0.DOWN; u++)"
        yield "#pragma unroll"
        yield "  for (int v = 0; v < product0.ACROSS; v++) {"
        yield "    const int row = product0.row(u), column = product0.column(v);"
        yield f"    const int {self.kept} = (int)kept + row, {self.summed} = (int)summed + column;"
        yield from (f"    {number_type(v.dtype)} {word}_at = 0;" for word, (v, _) in made.items())
        yield "    if (row < left && column < count) {"
        for k, node in enumerate(chain.products):
            yield f"      const {number_type(node.output.dtype)} p{k} = product{k}.sums[u][v];"
        yield from (f"      {line}" for line in text.lines)
        yield from (f"      {word}_at = {value.text};" for word, (_, value) in made.items())
        yield "    }"
        yield from (f"    {word}[row * {self.pitch_of(v)} + column] = {word}_at;" for word, (v, _) in made.items())
        yield "  }"

    def reduced(self) -> Iterator[str]:
        for k, node in enumerate(self.chain.reductions):
            (square,) = node.inputs
            row = self.row_type(square.dtype)
            found = f"{row}::reduce({self.squares[square]}, count, {self.identity(node)}, {_combination(node)})"
            yield f"reduced{k} = {_combination(node)}(reduced{k}, {found});"

    def row_type(self, dtype: DType) -> str:
        return f"ji_row<{number_type(dtype)}, {self.tiles.kept}, {self.tiles.summed}>"

    # ------------------------------------------------------------------------------------------------------- results

    def stored(self) -> Iterator[str]:
        chain, softmax = self.chain, self.chain.softmax
        row = self.row_type(chain.held[0].dtype)
        wanted = [(k, node) for k, node in enumerate(chain.reductions) if node.output in self.outs]
        if wanted:
            yield f"if ({row}::is_first() && {row}::row() < left) {{"
            yield f"  const int {self.kept} = (int)kept + {row}::row();"
            for k, node in wanted:
                word = f"reduced{k}"
                if softmax is not None:
                    word = "softmax.top" if node is softmax.top else "softmax.sum(least)"
                yield from (f"  {line}" for line in self.storing(node.output, self.row_index(), {node.output: word}))
            yield "}"
        if softmax is not None:
            yield f"if ({row}::is_first()) totals[{row}::row()] = softmax.sum(least);"
            yield "__syncthreads();"
        for k, end in enumerate(chain.ends):
            kind = number_type(end.node.output.dtype)
            yield f"end{k}.each(left, [=](int row, int c_, {kind} sum) {{"
            yield f"  const int {self.kept} = (int)kept + row;"
            if softmax is not None:
                yield f"  const {number_type(softmax.weights.dtype)} total = totals[row];"
            yield from (f"  {line}" for line in self.ending(end))
            yield "});"

    def row_index(self) -> Index:
        (i,) = split(self.kept, (1,))
        return (*split("b_", self.chain.batch), i)

    def storing(self, value: Value, index: Index, cells: Mapping[Value, str]) -> list[str]:
        elements = Elements(self.chain.call, {}, self.ranges)
        for cell, word in cells.items():
            elements.name(cell, word)
        return self.store(value, index, elements.at(value, index))

    def store(self, value: Value, index: Index, x: Scalar) -> list[str]:
        buffer = self.buffers[value]
        width = {"c_": (0, max(1, value.size))}
        text = ElementText(self.means.functions, {**self.ranges, **width}, {buffer.name: (buffer, self.outs[value])})
        text.store(buffer.name, index, x)
        return text.lines

    def ending(self, end: End) -> list[str]:
        """Statements that store `sum`, which is element `c_` of a row of a product."""
        value, softmax = end.node.output, self.chain.softmax
        columns = split("c_", [end.node.inputs[1 - end.operand].shape[a] for a in end.axes.columns])
        batch, (row,) = split("b_", self.chain.batch), split(self.kept, (1,))
        index = (*batch, row, *columns) if end.operand == 0 else (*batch, *columns, row)
        for node in end.stored:
            index = tuple(index[a] for a in node.params["perm"]) if node.op is ops.transpose else index
        elements = Elements(self.chain.call, {v: self.buffers[v] for v in self.chain.call.inputs}, self.ranges)
        b = elements.b
        x = b.cell("sum", value.dtype)
        if softmax is not None:
            total = b.cell("total", value.dtype)
            units = b.const(self.units, value.dtype)
            if softmax.total is not None:
                elements.name(softmax.total.output, "total")
            if end.divisor is not None:
                quotient = b.apply("div", (x, elements.at(end.divisor, self.row_index())), value.dtype)
                x = b.apply("mul", (quotient, units), value.dtype)
            else:  # where a weight is nan
                x = b.select(b.compare("eq", total, total), b.apply("mul", (x, units), value.dtype), total)
        return self.store(end.output, index, x if x.dtype == end.output.dtype else b.convert(x, end.output.dtype))


def _combination(node: Node) -> str:
    return f"by_{REDUCTIONS[node.op].combine}_{number_type(node.output.dtype).replace(' ', '_')}"


def _is_matrix_alone(value: Value, users: Mapping[Value, Sequence[Node]]) -> bool:
    """Whether nothing but products reads it."""
    views: tuple[Op, ...] = VIEWS
    return all(u.op is ops.dot_general or (u.op in views and _is_matrix_alone(u.output, users)) for u in users[value])
