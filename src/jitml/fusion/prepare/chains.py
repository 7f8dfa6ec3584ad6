"""Chains of products: products whose results other products take, such as attention's, of which nothing in between is stored.

A *square* is what is made of products element by element: attention's scores and weights. One pass goes over tiles of squares.
It keeps the sums of some rows and goes along the columns, or the other way round. What comes of a tile is added to the results at
once: to products of a square with a matrix (*ends*), and to reductions of its rows.

A softmax takes one pass, too. When a larger element of a row comes, what has been summed shrinks (online softmax, Milakov and
Gimelshein 2018, arXiv:1805.02867; for attention, Dao and others 2022, arXiv:2205.14135).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from math import prod

from jitml.fusion.lower.contraction import factor_views
from jitml.fusion.lower.gemm_operands import Axes, MatrixStack, operand_view, product_axes
from jitml.fusion.lower.reductions import REDUCTIONS
from jitml.fusion.lower.strided_views import VIEWS, Strided
from jitml.ir import ops
from jitml.ir.graph import Graph, Node, Value
from jitml.ir.types import F16, F32, DType
from jitml.kernels.ir import Const
from jitml.kernels.target import Accepts, Limits
from jitml.records import dataclass

_ANY = Accepts()
_THREADS = 256  # of a block
_LANES_BYTES = 16  # of one access to shared memory
_ACROSS = 16  # threads that stand side by side along a row of a tile
_HELD = 480  # bytes of sums that a thread can have in registers, beside all else
_MOST_DEPTH = 256  # beyond that, products take so long that the way of squares to memory and back is little beside it
LEAST_PIECES = 1024  # elements of a tile by tensor cores, so that all warps have a part of it
_FEW_STEPS = 16  # tiles that a block may work off, one after the other, while other processors have nothing to do


@dataclass(frozen=True, slots=True)
class Softmax:
    """
    Args:
        scores: the square whose largest element in each row is subtracted.
        top: that reduction.
        weights: exponentials of the differences.
        total: their sum in each row.
    """

    scores: Value
    top: Node
    weights: Value
    total: Node | None


@dataclass(frozen=True, slots=True)
class End:
    """A product of a square with a matrix.

    Args:
        operand: which of its factors is the square.
        square: what is multiplied: that factor, or if there is a divisor its dividend.
        stored: what is made of the result before it is stored: it is narrowed to halves, or transposed, or both in turn.
        divisor: a number for each row, by which the result is divided.
    """

    node: Node
    operand: int
    stored: tuple[Node, ...]
    square: Value
    divisor: Value | None = None

    @property
    def output(self) -> Value:
        return self.stored[-1].output if self.stored else self.node.output

    @property
    def width(self) -> int:
        """Of the matrix."""
        return prod(self.node.inputs[1 - self.operand].shape[a] for a in self.axes.columns)

    @property
    def axes(self) -> Axes:
        """Of the matrix: rows go along the sum."""
        x, y, _ = product_axes(self.node)
        return y if self.operand == 0 else Axes(x.batch, x.columns, x.rows)


@dataclass(frozen=True, slots=True)
class TiledMatrix:
    """A stack of matrices that is read by tiles of whole rows.

    Args:
        depth: numbers in a row.
        is_kept: whether a block reads one tile of it, or all of them in turn.
    """

    value: Value
    stack: MatrixStack
    depth: int
    is_kept: bool


@dataclass(frozen=True, slots=True)
class Chain:
    """
    Args:
        products: of matrices in memory; squares are made of them.
        by_rows: whether a block keeps rows of squares and goes along columns.
    """

    call: Graph
    products: tuple[Node, ...]
    ends: tuple[End, ...]
    reductions: tuple[Node, ...]
    softmax: Softmax | None
    by_rows: bool

    @staticmethod
    def of(call: Graph) -> Chain | None:
        """None if a graph has one product, or its results depend on each other otherwise than in a softmax."""
        squares: set[Value] = set()
        products, ends, reductions = list[Node](), list[Node](), list[Node]()
        for node in call.nodes:
            of_squares = not squares.isdisjoint(node.inputs)
            if node.op is ops.dot_general and of_squares:
                ends.append(node)
            elif of_squares and node.op in REDUCTIONS:
                reductions.append(node)
            elif of_squares or node.op is ops.dot_general:
                squares.add(node.output)
                products += [node] if node.op is ops.dot_general else []
        if not (ends or reductions):
            return None
        axis = summed_axis(ends[0], squares) if ends else reductions[0].params["axes"][0]
        softmax = softmax_of(call, reductions)
        found = [_end(node, squares, softmax, call) for node in ends]
        return Chain(call, tuple(products), tuple(found), tuple(reductions), softmax, axis == products[0].output.ndim - 1)

    @property
    def shape(self) -> tuple[int, ...]:
        """Of squares."""
        return self.products[0].output.shape

    @property
    def is_half(self) -> bool:
        """Whether it is products of halves, which tensor cores multiply: all are, or none."""
        (left, _), _ = factor_views(self.products[0], self.call.producers())
        return left.dtype == F16

    @property
    def batch(self) -> tuple[int, ...]:
        return self.shape[:-2]

    @property
    def kept(self) -> int:
        """Extent of the axis of which a block keeps a part."""
        return self.shape[-2 if self.by_rows else -1]

    @property
    def summed(self) -> int:
        """Extent of the axis that each block goes along."""
        return self.shape[-1 if self.by_rows else -2]

    @property
    def held(self) -> tuple[Value, ...]:
        """Squares whose tiles lie in shared memory."""
        return tuple(dict.fromkeys([*(end.square for end in self.ends), *self._reduced()]))

    def _reduced(self) -> Sequence[Value]:
        if self.softmax is not None:  # exponentials stand where scores have stood
            return [self.softmax.weights]
        return [node.inputs[0] for node in self.reductions]

    def sides(self, product: Node, memory: Callable[[Value], Strided]) -> tuple[TiledMatrix, TiledMatrix]:
        """What a product multiplies: what is kept, and what is read in turn."""
        x, y, _ = product_axes(product)
        axes = x, Axes(y.batch, y.columns, y.rows)
        factors = factor_views(product, self.call.producers())
        left, right = (_operand(factor, a, memory, k == (not self.by_rows)) for k, (factor, a) in enumerate(zip(factors, axes)))
        return (left, right) if self.by_rows else (right, left)

    def matrix(self, end: End, memory: Callable[[Value], Strided]) -> TiledMatrix:
        """What a square is multiplied with."""
        return _operand(factor_views(end.node, self.call.producers())[1 - end.operand], end.axes, memory, is_kept=False)

    def operands(self, memory: Callable[[Value], Strided]) -> tuple[TiledMatrix, ...]:
        """Each matrix once."""
        sides = [side for product in self.products for side in self.sides(product, memory)]
        return tuple(dict.fromkeys([*sides, *(self.matrix(end, memory) for end in self.ends)]))


def _operand(factor: tuple[Value, Sequence[Node]], axes: Axes, memory: Callable[[Value], Strided], is_kept: bool) -> TiledMatrix:
    value, views = factor
    view = operand_view(memory(value), views, lambda v: Const(0))
    stack = None if view is None else MatrixStack.of(view, axes, _ANY)
    assert view is not None and stack is not None, "what has no strides is copied first"
    return TiledMatrix(value, stack, prod(view.shape[a] for a in axes.columns), is_kept)


def stored_as(product: Node, users: Mapping[Value, Sequence[Node]], outputs: Collection[Value]) -> tuple[Node, ...]:
    """What is made of a product before it is stored, as nobody wants it otherwise: halves, and a transpose."""
    found: list[Node] = []
    for is_next in (_narrows, _transposes):
        value = found[-1].output if found else product.output
        here = users[value]
        if len(here) == 1 and value not in outputs and is_next(here[0]):
            found.append(here[0])
    return tuple(found)


def _narrows(node: Node) -> bool:
    return node.op is ops.convert and node.inputs[0].dtype == F32 and node.output.dtype == F16


def _transposes(node: Node) -> bool:
    return node.op is ops.transpose


def unrounded(value: Value, makers: Mapping[Value, Node]) -> Value:
    """The float32 that a value was before it became a half and a float32 again; the value itself if it was none."""
    wide = makers.get(value)
    narrow = makers.get(wide.inputs[0]) if wide is not None and wide.op is ops.convert and wide.output.dtype == F32 else None
    return narrow.inputs[0] if narrow is not None and _narrows(narrow) else value


def summed_axis(end: Node, squares: set[Value]) -> int:
    """The axis of the square that a product sums along."""
    operand = 0 if end.inputs[0] in squares else 1
    (axis,) = end.params["contract"][operand]
    return int(axis)


def softmax_of(call: Graph, reductions: Sequence[Node]) -> Softmax | None:
    """The softmax of which some reductions are, if others are none."""
    makers, users = call.producers(), call.users()
    for node in call.nodes:
        difference = makers.get(node.inputs[0]) if node.op is ops.exp else None
        if difference is None or difference.op is not ops.sub or len(users[difference.output]) > 1:
            continue
        scores, spread = difference.inputs
        top = spread_of(spread, makers)
        if top is not None and top in reductions and top.op is ops.reduce_max and top.inputs == (scores,):
            sums = [n for n in reductions if n.op is ops.reduce_sum and n.params == top.params]
            totals = [n for n in sums if unrounded(n.inputs[0], makers) is node.output]
            return Softmax(scores, top, node.output, totals[0] if totals else None)
    return None


def spread_of(value: Value, makers: Mapping[Value, Node], *, is_rounded: bool = False) -> Node | None:
    """The reduction whose number for each row a value gives to each element of the row.

    Args:
        is_rounded: whether it may be rounded to a half on the way.
    """
    views: list[Node] = []
    v = value
    while (maker := makers.get(v)) is not None and (maker.op in VIEWS or (is_rounded and _narrows(maker))):
        views += [maker] if maker.op in VIEWS else []
        (v,) = maker.inputs
    views.reverse()
    if maker is None or maker.op not in REDUCTIONS or maker.inputs[0].shape != value.shape:
        return None
    view = operand_view(Strided.dense(v.shape), views, lambda place: Const(0))
    steps = iter(Strided.dense(v.shape).strides)
    wanted = [0 if a in maker.params["axes"] else next(steps) for a in range(value.ndim)]
    is_whole = view is not None and view.offset == Const(0)
    is_so = view is not None and all(n == 1 or x == y for n, x, y in zip(value.shape, view.strides, wanted, strict=True))
    return maker if is_whole and is_so else None


def of_softmax(square: Value, softmax: Softmax, makers: Mapping[Value, Node]) -> tuple[Value, Value | None] | None:
    """The exponentials and the divisor of a square that is a softmax, or the exponentials themselves; None if it is neither."""
    square = unrounded(square, makers)
    if square is softmax.weights:
        return square, None
    node = makers[square]
    if node.op is not ops.div or node.inputs[0] is not softmax.weights or softmax.total is None:
        return None
    return (node.inputs[0], softmax.total.output) if spread_of(node.inputs[1], makers) is softmax.total else None


def _end(node: Node, squares: set[Value], softmax: Softmax | None, call: Graph) -> End:
    operand = 0 if node.inputs[0] in squares else 1
    stored = stored_as(node, call.users(), ())
    if softmax is None:
        return End(node, operand, stored, node.inputs[operand])
    found = of_softmax(node.inputs[operand], softmax, call.producers())
    assert found is not None, "other products are no part of this pass"
    return End(node, operand, stored, *found)


# ---------------------------------------------------------------------------------------------------------- tiles


@dataclass(frozen=True, slots=True)
class Tiles:
    """
    Args:
        kept, summed: extents of a square's tile along these axes of its.
    """

    kept: int
    summed: int

    def rows(self, operand: TiledMatrix) -> int:
        return self.kept if operand.is_kept else self.summed

    def scratch(self, chain: Chain, memory: Callable[[Value], Strided]) -> int:
        """Bytes of shared memory: of matrices, of squares, and numbers of each row."""
        matrices = sum(self.rows(x) * pitch(x.depth, x.value.dtype) * x.value.dtype.itemsize for x in chain.operands(memory))
        squares = sum(self.kept * pitch(self.summed, v.dtype) * v.dtype.itemsize for v in chain.held)
        return matrices + squares + (self.kept * 2 * chain.held[0].dtype.itemsize if chain.softmax is not None else 0)

    def registers(self, chain: Chain) -> int:
        """Bytes of sums of a thread."""
        each = self.kept // _ACROSS * (self.summed // _ACROSS)
        ends = [pitch(end.width, end.node.output.dtype) * end.node.output.dtype.itemsize for end in chain.ends]
        return each * sum(p.output.dtype.itemsize for p in chain.products) + sum(self.kept * n // _THREADS for n in ends)

    def blocks(self, chain: Chain) -> int:
        return prod(chain.batch) * -(-chain.kept // self.kept)


def pitch(depth: int, dtype: DType) -> int:
    """Elements from row to row of a tile in shared memory: an odd number of accesses, so that rows start in different banks."""
    lanes = _LANES_BYTES // dtype.itemsize
    return (-(-depth // lanes) | 1) * lanes


def tiles_for(chain: Chain, limits: Limits) -> Tiles | None:
    """The largest tiles that fit into a processor and keep most processors busy; None if none fit."""

    def dense(value: Value) -> Strided:
        return Strided.dense(value.shape)

    found: Tiles | None = None
    for kept, summed in ((64, 64), (64, 32), (32, 64), (32, 32), (16, 64), (16, 32)):
        tiles = Tiles(kept, summed)
        if chain.is_half and kept * summed < LEAST_PIECES:
            continue
        if tiles.scratch(chain, dense) <= limits.row_bytes and tiles.registers(chain) <= _HELD:
            if found is None or (kept < found.kept and 4 * found.blocks(chain) < 3 * limits.cores):
                found = tiles
    return found


def pays(chain: Chain, tiles: Tiles, limits: Limits) -> bool:
    """Whether squares are larger than all that goes in and comes out, and no block goes on for long while others have no work."""
    depths = [prod(p.inputs[0].shape[a] for a in p.params["contract"][0]) for p in chain.products]
    deepest = max([*depths, *(end.width for end in chain.ends)])
    is_large = deepest <= min(chain.kept, chain.summed, _MOST_DEPTH)
    is_busy = 2 * tiles.blocks(chain) >= limits.cores
    return is_large and (is_busy or chain.summed <= _FEW_STEPS * tiles.summed)
