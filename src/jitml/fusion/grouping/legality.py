"""Fusion legality: may a node, or a group, join a group's loops?

A value can be computed where it is wanted unless it has cases by position that would cut the loops too often; a reduction can
run on the way of loops over its rows; two groups whose loops are alike can be one. Nothing joins where other floating-point
errors are ignored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product

from jitml.fusion.grouping.groups import WHOLE, Group, ReadRecorder, collect_cuts
from jitml.fusion.lower.indexed import private_tables
from jitml.fusion.lower.points import Index
from jitml.ir import ops
from jitml.ir.analysis.fp_errors import ignored_by, raised_by
from jitml.ir.dims import bound
from jitml.ir.graph import Node, Value
from jitml.kernels.ir import variables_of
from jitml.kernels.target import Target

MOST_BOXES = 32  # a loop nest is cut into at most so many boxes
MOST_COLD = 16  # nodes that are computed again where a check has failed: more code than that is not worth their memory


def may_inline(node: Node, g: Group) -> bool:
    """A value with cases by position joins plain loops only, and only while the boxes stay few."""
    if not g.takes_points or not hears(g, node) or not g.untouched.isdisjoint(node.inputs):
        return False
    if g.is_cold and len(g.members) >= MOST_COLD:
        return False
    if node.op not in (ops.pad, ops.concat, ops.update_slice):
        return True
    if node.op is ops.pad and any(node.params["interior"]):
        return False
    if g.rows is not None or not g.is_open:
        return False
    cuts: dict[str, set[int]] = {name: set(places) for name, places in g.cuts.items()}
    for index, reach in list(g.wanted[node.output].items()):
        assert index is not None
        recorder = ReadRecorder(g, index, reach)
        recorder.run(node, index)
        if not collect_cuts(recorder, cuts, g.ranges):
            return False
    boxes = 1
    for places in cuts.values():
        boxes *= len(places) + 1
    return boxes <= MOST_BOXES


def why_not_inline(node: Node, users: list[Group]) -> str:
    """The reason of the first reader that cannot compute a point node itself."""
    for g in users:
        if g.node is not None and not g.takes_points:
            return f"its reader {g.node.op.name} runs on its own"
        if WHOLE in g.wanted[node.output]:
            return "a reader wants the whole array, not one element"
        if not g.untouched.isdisjoint(node.inputs):
            return "it is made of what its reader changes"
    return "it has cases by position, which would cut its readers' loops into too many boxes"


def on_the_way(node: Node, g: Group) -> Index | None:
    """The index at which a group wants a reduction, if the group's loops run over the reduction's rows, or over all it reads."""
    value, operand, axes = node.output, node.inputs[0], node.params["axes"]
    uses = g.wanted[value]
    if len(uses) != 1 or g.cuts or not g.is_open or not hears(g, node):
        return None
    ((index, _),) = uses.items()
    rows = None if index is None else g.covers(index, value.shape)
    if index is None or rows is None or (g.rows is not None and rows != g.rows):
        return None
    rest = [n for name, n in g.axes.items() if name not in rows]
    if g.rows is None and not rest:
        return index
    return index if rest == [operand.shape[a] for a in axes if operand.shape[a] != 1] else None


def rows_stay_in_cache(node: Node, g: Group, index: Index, target: Target) -> bool:
    """Whether users that run along a reduction's rows too can read them again quickly."""
    value, operand, axes = node.output, node.inputs[0], node.params["axes"]
    rows = g.covers(index, value.shape)
    if rows is None or g.wanted[value][index] <= rows:
        return True
    row = operand.capacity // max(1, value.capacity)
    many, nbytes = value.capacity >= 4 * target.limits.cores, row * operand.dtype.itemsize
    trailing = axes == tuple(range(operand.ndim - len(axes), operand.ndim))
    is_kept = many and nbytes <= target.limits.row_bytes and isinstance(operand.aval.size, int)
    return trailing and (is_kept or target.cost.fits_close(nbytes, (2 if many else 8) * target.cost.sharers))


def homes(value: Value, users: list[Group]) -> Iterator[tuple[Group, Index]]:
    """Groups that compute a value once at every index, with that index: any of them could store it."""
    for g in users:
        if g.is_open and len(g.wanted[value]) == 1:
            (index,) = g.wanted[value]
            if index is not None and _is_home(g, value, index):
                yield g, index


def _is_home(g: Group, value: Value, index: Index) -> bool:
    """Whether a use visits each element once, as often as the loops around it run: the place to store from."""
    covered = g.covers(index, value.shape)
    return covered is not None and (covered == g.axes.keys() or covered == g.rows)


def evaluations(g: Group, value: Value, index: Index) -> float:
    """How often an expression at an index runs: its loops, and those around them."""
    used = g.axes.keys() & variables_of(*index)
    if g.rows is not None and used <= g.rows:
        names = [n for n in g.axes if n in g.rows]
    else:
        names = list(g.axes)
    times, count, mine = 1.0, 1.0, 1.0
    for name in names:
        times *= bound(g.axes[name])
        if name in used:
            mine *= bound(g.axes[name])
            count = times
    if not g.cuts:
        return count
    # Of a piece of a concat or the inside of a pad, only its own box is run.
    return min(count * g.shares.get(value, 1.0), count / max(1.0, mine) * min(mine, value.capacity))


def piece_of(node: Node, operand: Value) -> float:
    """Which part of a node's result is made of an operand."""
    if node.op is not ops.concat:
        return 1.0
    axis = node.params["axis"]
    pieces = sum(bound(v.shape[axis]) for v in node.inputs if v is operand)
    return pieces / max(1, bound(node.output.shape[axis]))


def alike(value: Value, g: Group, h: Group, other: Value | None = None) -> bool:
    """Whether groups that read one value, or h another one that lies beside it, have loops that can be one."""
    if g is h or not (g.is_open and h.is_open) or g.axes != h.axes or g.cuts != h.cuts:
        return False
    if g.rows is not None and h.rows is not None and g.rows != h.rows:
        return False
    if (g.rows is None) != (h.rows is None) and (g.cuts or not _row_fits(g, h)):
        return False
    if g.after & h.bits or h.after & g.bits or not _heard_alike(g.raised, g.ignored, h.raised, h.ignored):
        return False
    return g.wanted[value].keys() == h.wanted[value if other is None else other].keys()


def beside(halves: Iterable[tuple[Value, Value]], users: Mapping[Value, Sequence[Group]]) -> Iterator[tuple[Value, Group, Group]]:
    """Pairs of groups with loops that can be one, of which one reads a value, and the other what lies beside it.

    Each is to become one group, and `users` to say so, before the next one is asked for.
    """
    for value, partner in halves:
        found = product(users.get(value, ()), users.get(partner, ()))
        while (pair := next(((h, g) for h, g in found if alike(value, h, g, partner)), None)) is not None:
            yield (value, *pair)
            found = product(users.get(value, ()), users.get(partner, ()))


def _row_fits(g: Group, h: Group) -> bool:
    """Loops with and without a reduction go together if the reduction runs along the last axes."""
    rows = g.rows if g.rows is not None else h.rows
    assert rows is not None
    return [name in rows for name in g.axes] == sorted((name in rows for name in g.axes), reverse=True)


def may_scatter_too(node: Node, g: Group, memory: frozenset[Value], target: Target) -> bool:
    """Whether a group that scatters may do another scatter by the same indices, which are then read and made good once.

    Where each of them counts in tables of its own, threads share either; both at once would need twice the tables.

    Args:
        memory: what the other scatter may change.
    """
    known = g.scatters[:1]
    if not known or "block" in target.kinds or known[0].params["axis"] != node.params["axis"] or not hears(g, node):
        return False
    if known[0].inputs[2:] != node.inputs[2:] or known[0].inputs[1].shape != node.inputs[1].shape:
        return False
    read = {*g.wanted, *(v for n in g.members for v in n.inputs)}
    is_apart = memory.isdisjoint(g.untouched | read) and g.untouched.isdisjoint(node.inputs)
    return is_apart and any(private_tables(n, g.points, target) == 1 for n in (*known, node))


def hears(g: Group, node: Node) -> bool:
    """Whether a node's floating-point errors are ignored as the group's are: a kernel cannot tell which operation raised one."""
    return _heard_alike(g.raised, g.ignored, raised_by(node), ignored_by((node,)))


def _heard_alike(raised: int, ignored: int, more_raised: int, more_ignored: int) -> bool:
    # What one side lets pass and could raise must not be hidden by, nor spoil, what the other does not hear of.
    both = raised & more_raised
    return not both & (ignored ^ more_ignored)
