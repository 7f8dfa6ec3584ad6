"""What a mask keeps, and pieces side by side where only the running program knows how long they are: loops of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jitml.fusion.lower.nests import NestSite, nested, nests
from jitml.ir import ops
from jitml.ir.dims import Dim
from jitml.ir.graph import Node, Value
from jitml.ir.types import BOOL, I64
from jitml.kernels.ir import Apply, Buffer, Cell, Const, Expr, If, Load, Loop, Stmt, Store, Update, Var, add, mul
from jitml.kernels.program import Call


def keeps_positions(node: Node, makers: Mapping[Value, Node]) -> bool:
    """Whether what a node compresses are the positions themselves, which need no memory: `nonzero`."""
    if node.op is not ops.compress:
        return False
    made = makers.get(node.inputs[0])
    return made is not None and made.op is ops.iota and node.output.ndim == 1 and node.output.dtype == I64


@nests.rule(ops.compress)
def lower_compress(site: NestSite) -> None:
    """Loops, or a call if the target has one."""
    compact = site.target.calls.get("compact")
    if compact is None or site.reads[1].size <= compact.small or not site.out.size:
        _compress_in_order(site)
        return
    axis, (x, mask) = site.node.params["axis"], site.reads
    operands = (mask,) if keeps_positions(site.node, site.makers) else (mask, x)
    extents = [site.extent(1, 0), *map(site.sizes.expr, site.node.output.shape)]
    is_sized = not all(isinstance(n, Const) for n in extents)
    reads = (*(b.name for b in operands), *((site.held(extents),) if is_sized else ()))
    params = {"axis": axis, "shapes": tuple(b.shape for b in operands), "sized": is_sized}
    site.steps.append(Call("compact", reads, (site.out.name,), params, site.sources))


def _compress_in_order(site: NestSite) -> None:
    """In order along the axis, with a counter of what has been kept.

    Single elements are stored without a branch, to be overwritten by the next if the mask drops them: a branch that data decides
    is missed half of the time. So a store may fall beyond what is kept, for which the memory must have room.
    """
    (x, mask), out, axis = site.reads, site.out, site.node.params["axis"]
    if not out.size:
        return
    inner = list(range(axis + 1, len(x.shape)))
    kept = Apply("minimum", (Var("s0"), Const(out.shape[axis] - 1)))

    def at(place: Expr) -> tuple[Expr, ...]:
        return tuple(place if a == axis else Var(f"i{a}") for a in range(len(x.shape)))

    is_position = keeps_positions(site.node, site.makers)
    element: Expr = Var("k0") if is_position else Load(x.name, at(Var("k0")), x.dtype)
    store: tuple[Stmt, ...] = (Store(out.name, at(kept), element),)
    keep = Load(mask.name, (Var("k0"),), BOOL)
    if inner or out.shape[axis] < x.shape[axis]:
        body: tuple[Stmt, ...] = (If(keep, (*site.loops(inner, store), Update("s0", Const(1), "add"))),)
    else:
        body = (*store, Update("s0", Apply("convert", (keep,), I64), "add"))
    nest = (Cell("s0", Const(0)), Loop("k0", Const(0), site.extent(0, axis), 1, "serial", body))
    site.emit(site.loops(list(range(axis)), nest), *(() if is_position else (x,)), mask, out)


def has_cuts_at_values(node: Node) -> bool:
    """Whether a piece of a concat, what a pad adds, or what a slice leaves begins where only the running program knows."""
    if node.op is ops.concat:
        return any(isinstance(v.shape[node.params["axis"]], Dim) for v in node.inputs)
    if node.op is ops.pad:
        params = zip(node.inputs[0].shape, *(node.params[name] for name in ("low", "high", "interior")))
        return any(isinstance(e, Dim) for n, *added in params if added != [0, 0, 0] for e in (n, *added))
    if node.op is ops.update_slice:
        return any(isinstance(n, Dim) and n != whole for whole, n in zip(*(v.shape for v in node.inputs)))
    return False


@nests.rule(ops.concat)
def lower_concat(site: NestSite) -> None:
    """One piece after the other, each to where it belongs."""
    axis, out, offset = site.node.params["axis"], site.out, 0
    body: list[Stmt] = []
    for k, piece in enumerate(site.reads):
        if piece.size:
            body += _moved(site, k, piece, {axis: site.sizes.expr(offset)}, {}, f"_{k}")
        offset = offset + site.node.inputs[k].shape[axis]
    site.emit(tuple(body), *site.reads, out)


@nests.rule(ops.pad)
def lower_pad(site: NestSite) -> None:
    """The value everywhere, then the operand's elements over it."""
    (x, value), out, params = site.reads, site.out, site.node.params
    axes = range(len(out.shape))
    fill: tuple[Stmt, ...] = (Store(out.name, tuple(Var(f"j{a}") for a in axes), Load(value.name, (), value.dtype)),)
    fill = nested({f"j{a}": site.sizes.expr(site.node.output.shape[a]) for a in axes}, fill)
    low = {a: site.sizes.expr(params["low"][a]) for a in axes}
    site.emit((*fill, *_moved(site, 0, x, low, {a: params["interior"][a] + 1 for a in axes}, "")), x, value, out)


def _moved(
    site: NestSite, operand: int, x: Buffer, offsets: dict[int, Expr], steps: dict[int, int], suffix: str
) -> tuple[Stmt, ...]:
    """Loops that copy an operand to the result, its element i of an axis to offset + step * i."""
    axes: Sequence[int] = range(len(x.shape))
    index = [Var(f"i{a}{suffix}") for a in axes]
    at = [add(mul(index[a], steps.get(a, 1)), offsets[a]) if a in offsets else index[a] for a in axes]
    store = Store(site.out.name, tuple(at), Load(x.name, tuple(index), x.dtype))
    return nested({index[a].name: site.extent(operand, a) for a in axes}, (store,))
