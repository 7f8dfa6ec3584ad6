"""dot_general as a call to gemm, alone or with what is fused with it. What gemm cannot or should not do was expanded before."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from math import prod

from jitml.fusion.lower.gemm_operands import Axes, MatrixStack, merged_batch, operand_view, product_axes, result_view
from jitml.fusion.lower.layouts import IndexArrays, Layout, ProductDigits, equal_steps
from jitml.fusion.lower.nests import NestSite, nested, nests
from jitml.fusion.lower.strided_views import VIEWS, Strided
from jitml.ir import ops
from jitml.ir.graph import Graph, Node, Value
from jitml.ir.op import Op
from jitml.ir.types import I64
from jitml.kernels.ir import Buffer, Const, Expr, Load, Store, Var, mul
from jitml.kernels.program import Call
from jitml.kernels.target import Accepts

WINDOWS = (*VIEWS, ops.flip, ops.gather)  # that products which are fused may read through, by the digits of indices


@nests.rule(ops.dot_general)
def lower_dot_general(site: NestSite) -> None:
    node = site.node
    of_x, of_y, of_z = product_axes(node)
    shape_x, shape_y = (v.aval.bounds for v in node.inputs)
    params: dict[str, object] = {"m": _extent(shape_x, of_x.rows), "n": _extent(shape_y, of_y.columns)}
    params["k"] = _extent(shape_x, of_x.columns)
    values: list[Expr] = []
    if not all(v.aval.is_static for v in node.inputs):
        params["sized"] = True
        values += [_size(site, 0, of_x.rows), _size(site, 1, of_y.columns), _size(site, 0, of_x.columns)]
    (x, a), (y, b), (z, c) = _operand(site, 0, of_x), _operand(site, 1, of_y), _result(site, of_z)
    extents = tuple(shape_x[axis] for axis in of_x.batch)
    params["batch"], steps = merged_batch(extents, a.batch, b.batch, c.batch)
    for name, stack, batch in zip("abc", (a, b, c), steps):
        params |= {f"{name}_batch": batch, f"{name}_row": stack.row, f"{name}_col": stack.col}
        if isinstance(stack.offset, Const):
            params[f"{name}_offset"] = stack.offset.value
        else:
            params |= {f"{name}_offset": 0, f"{name}_start": len(values)}
            values.append(stack.offset)
    run = (_written(site, values).name,) if values else ()
    site.steps.append(Call("gemm", (x.name, y.name, *run), (z.name,), params, site.sources))
    if z is not site.out:
        site.call("copy", z, site.out)


@nests.rule(ops.fused)
def lower_fused(site: NestSite) -> None:
    call = site.node.params["call"]
    sources = tuple(dict.fromkeys(node.source for node in call.nodes if node.source is not None))
    reads = [b.name for b in site.reads]
    for k, x in enumerate(site.reads):
        has_places = _has_strides if "tiles" in site.node.params else _has_digits
        if not x.is_c_contiguous and not has_places(call, k, x):
            dense = site.new_buffer(x.dtype, x.shape)
            site.call("copy", x, dense)
            reads[k] = dense.name
    site.steps.append(Call("fused", tuple(reads), tuple(b.name for b in site.writes), site.node.params, sources))


def _has_strides(call: Graph, operand: int, x: Buffer) -> bool:
    """Whether products can read an operand by strides, through whatever views."""
    makers = call.producers()
    for node in call.nodes:
        if node.op is ops.dot_general:
            for (v, views), axes in zip(factor_views(node, makers), product_axes(node)):
                view = operand_view(Strided.whole(x), views, lambda value: Const(0)) if v is call.inputs[operand] else None
                if v is call.inputs[operand] and (view is None or MatrixStack.of(view, axes, Accepts()) is None):
                    return False
    return True


def _has_digits(call: Graph, operand: int, x: Buffer) -> bool:
    """Whether a product can read an operand, and as well as if it were dense."""
    makers = call.producers()
    products = [node for node in call.nodes if node.op is ops.dot_general]
    own = call.inputs[operand]
    arrays = IndexArrays(makers)
    dense = factor_digits(products, makers, lambda v: Strided.dense(v.shape), arrays)
    found = factor_digits(products, makers, lambda v: Strided.whole(x) if v is own else Strided.dense(v.shape), arrays)
    return found is not None and (found.has_strides or dense is None or not dense.has_strides)


def factor_digits(
    products: Sequence[Node], makers: Mapping[Value, Node], memory: Callable[[Value], Strided], arrays: IndexArrays
) -> ProductDigits | None:
    """How products that are fused, and added up, read their factors as one product; None if that has no layout.

    Args:
        products: of the same axes and extents.
        memory: where what lies in memory does.
    """
    found: list[list[Layout]] = [[], []]
    for product in products:
        for known, (v, views) in zip(found, factor_views(product, makers, WINDOWS), strict=True):
            where = memory(v)
            assert isinstance(where.offset, Const)
            layout: Layout | None = Layout.strided(where.shape, where.strides, int(where.offset.value))
            for node in views:
                layout = layout.through(node, arrays.layout) if layout is not None else None
            if layout is None or (known and layout.axes != known[0].axes):
                return None
            known.append(layout)
    terms = equal_steps([(x.offset, y.offset) for x, y in zip(*found, strict=True)])
    (x, *_), (y, *_) = found
    return None if terms is None else ProductDigits.of(x, y, *product_axes(products[0])[:2], terms)


def sum_of_products(first: Node, users: Mapping[Value, Sequence[Node]], makers: Mapping[Value, Node]) -> tuple[list[Node], Value]:
    """The products that are added up one by one, beginning with one, as nobody wants what is between; and their sum."""
    products, value = [first], first.output
    while len(users[value]) == 1 and (add := users[value][0]).op is ops.add and add.inputs[0] is value:
        other = makers.get(add.inputs[1])
        if other is None or other.op is not ops.dot_general or len(users[other.output]) != 1:
            break
        if (other.params, other.output.shape, add.output.shape) != (first.params, first.output.shape, first.output.shape):
            break
        products.append(other)
        value = add.output
    return products, value


def factor_views(
    product: Node, makers: Mapping[Value, Node], through: Collection[Op] = VIEWS
) -> tuple[tuple[Value, tuple[Node, ...]], ...]:
    """For both factors of a product that is fused, the value that lies in memory, and the views between, first to last.

    What widens halves between them is left out.
    """
    found = []
    for v in product.inputs:
        views: list[Node] = []
        while (maker := makers.get(v)) is not None and (maker.op in through or maker.op is ops.convert):
            views.insert(0, maker)
            v = maker.inputs[0]
        found.append((v, tuple(node for node in views if node.op is not ops.convert)))
    return tuple(found)


def _extent(shape: Sequence[int], axes: Sequence[int]) -> int:
    return prod(shape[a] for a in axes)


def _size(site: NestSite, operand: int, axes: Sequence[int]) -> Expr:
    """The true extent of some axes as one."""
    value: Expr = Const(1)
    for a in axes:
        value = mul(value, site.extent(operand, a))
    return value


def _written(site: NestSite, values: Sequence[Expr]) -> Buffer:
    """What only the run knows, for BLAS to read."""
    known = site.new_buffer(I64, (len(values),))
    site.emit(tuple(Store(known.name, (Const(n),), value) for n, value in enumerate(values)), known)
    return known


def _operand(site: NestSite, operand: int, axes: Axes) -> tuple[Buffer, MatrixStack]:
    """A batch of matrices that BLAS can read: where it lies if that can be had, else a copy."""
    x, maps = site.reads[operand], site.views.get(operand, ())
    view = operand_view(Strided.whole(x), maps, site.sizes.place)
    found = None if view is None else MatrixStack.of(view, axes, site.target.calls["gemm"])
    if found is not None:
        return x, found
    assert not maps, "grouping lets products read through no more than they can"
    dense = site.new_buffer(x.dtype, x.shape)
    found = MatrixStack.of(Strided.whole(dense), axes, site.target.calls["gemm"])
    if found is not None:
        site.call("copy", x, dense)
        return dense, found
    return _reordered(site, x, axes)


def _result(site: NestSite, axes: Axes) -> tuple[Buffer, MatrixStack]:
    """Where BLAS puts the result: where it is wanted if that can be, else dense memory."""
    found = MatrixStack.of(result_view(Strided.whole(site.out), site.transposed), axes, site.target.calls["gemm"])
    if found is not None:
        return site.out, found
    dense = site.new_buffer(site.out.dtype, site.node.output.shape)
    found = MatrixStack.of(Strided.whole(dense), axes, site.target.calls["gemm"])
    assert found is not None
    return dense, found


def _reordered(site: NestSite, x: Buffer, axes: Axes) -> tuple[Buffer, MatrixStack]:
    """A copy with the axes in the order that BLAS needs."""
    perm = axes.in_order
    out = site.new_buffer(x.dtype, tuple(x.shape[a] for a in perm))
    at = {a: Var(f"i{k}") for k, a in enumerate(perm)}
    value = Load(x.name, tuple(at[a] for a in range(len(perm))), x.dtype)
    store = Store(out.name, tuple(Var(f"i{k}") for k in range(len(perm))), value)
    site.emit(nested({f"i{k}": Const(n) for k, n in enumerate(out.shape)}, (store,)), x, out)
    found = MatrixStack.of(Strided.whole(out), _standard(axes), site.target.calls["gemm"])
    assert found is not None
    return out, found


def _standard(axes: Axes) -> Axes:
    """The same numbers of axes, in order."""
    rows, columns = len(axes.batch), len(axes.batch) + len(axes.rows)
    return Axes(tuple(range(rows)), tuple(range(rows, columns)), tuple(range(columns, len(axes.in_order))))
