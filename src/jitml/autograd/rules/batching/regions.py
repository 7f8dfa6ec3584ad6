"""Batching of regions: they run as long as any row does, and rows that are done keep what they have.

A loop or a branch whose course is the same for all rows stays one. Where it differs: a loop runs as often as the row that
runs longest; a while, until no row goes on; of a branch both sides are computed, each only if any row takes it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from jitml.autograd.batching.vmap import batch_graph, batched_inputs, spread
from jitml.autograd.core.batch import Batch, Batched, Operand, is_bound, refuse, vmap
from jitml.errors import OtherSizes, RowsDiffer, UnsupportedError, WrongPath
from jitml.ir import ops
from jitml.ir.analysis.limits import limits_of
from jitml.ir.graph import Graph, GraphBuilder, Value
from jitml.ir.op import active_recorder, recording
from jitml.ir.types import I64, Aval

Flags = tuple[bool, ...]
_INDEX = Aval((), I64)
_MANY = 1 << 62  # iterations of which no limit is known
# Families whose ops may run although no row needs their result: they neither fail nor go on for ever.
_HARMLESS = ("pointwise", "index_maps", "reductions", "contraction")


def _flags(operands: Sequence[Operand]) -> Flags:
    return tuple(isinstance(x, Batched) for x in operands)


def _values(batch: Batch, operands: Sequence[Operand], flags: Flags) -> list[Value]:
    """Operands of a region: batched ones, and those that it makes batched, with the rows in front."""
    return [batch.front(x) if flag or isinstance(x, Batched) else x for x, flag in zip(operands, flags, strict=True)]


def _results(values: Sequence[Value], flags: Flags) -> tuple[Operand, ...]:
    return tuple(Batched(v, 0) if flag else v for v, flag in zip(values, flags, strict=True))


# Records a body; gets the rows there, the inputs of its own, the batched graph's, and further captured ones.
Record = Callable[[Batch, list[Value], list[Operand], list[Value]], Sequence[Value]]


def _body(
    batch: Batch, own: Sequence[Aval], avals: Sequence[Aval], flags: Flags, further: Sequence[Value], record: Record
) -> Graph:
    """A body; its last inputs are the further ones and the counts of the batch."""
    b = GraphBuilder()
    first = [b.add_input(aval) for aval in own]
    args = batched_inputs(b, batch, avals, flags)
    last = [b.add_input(v.aval) for v in further]
    inner = batch.inside(b)
    with recording(b):
        outputs = record(inner, first, args, last)
    return b.build(outputs)


def _masks(batch: Batch) -> list[Value]:
    return [] if batch.active is None else [batch.active]


def _settled(batch: Batch, body: Graph, own: int, carried: Flags, captured: Flags) -> Flags:
    """What is batched after any number of iterations."""
    while True:
        _, after = batch_graph(batch, body, ((False,) * own) + carried + captured)
        joined = tuple(a or b for a, b in zip(carried, after, strict=True))
        if joined == carried:
            return carried
        carried = joined


def _kept(
    batch: Batch, body: Graph, own: int, running: Value, after: Sequence[Operand], before: Sequence[Operand]
) -> list[Operand]:
    """What is carried after an iteration: rows that do not run have what they had."""
    makers = body.producers()

    def is_kept(k: int) -> bool:
        """Whether an iteration writes windows of an array alone, which their rule does for rows that count."""
        value = body.outputs[k]
        while (maker := makers.get(value)) is not None and maker.op is ops.dynamic_update_slice:
            value = maker.inputs[0]
        return value is body.inputs[own + k]

    return [new if is_kept(k) else batch.choose(running, new, old) for k, (new, old) in enumerate(zip(after, before))]


@vmap.rule(ops.loop)
def loop_rows(batch: Batch, trip: Operand, *operands: Operand, body: Graph, carried: int, **plan: bool) -> tuple[Operand, ...]:
    state, captured = _flags(operands[:carried]), _flags(operands[carried:])
    differs = isinstance(trip, Batched)
    state = (True,) * carried if differs else _settled(batch, body, 1, state, captured)
    further, most = _masks(batch), _MANY
    if isinstance(trip, Batched):
        b = active_recorder()
        assert isinstance(b, GraphBuilder)
        most = limits_of(trip.value, b.producer, lambda v: None)[1]
        trips = batch.within(trip)
        assert isinstance(trips, Batched)
        further.append(trips.value)
        longest: Operand = ops.reduce_max(batch.with_one_more(trips.value, 0), axes=(0,))
    else:
        longest = trip

    def record(rows: Batch, own: list[Value], args: list[Operand], last: list[Value]) -> Sequence[Value]:
        inner = replace(rows, active=last[0] if batch.active is not None else None)
        if not differs:
            return _values(inner, spread(inner, body, [*own, *args]), state)
        running = ops.lt(ops.broadcast(own[0], shape=last[-1].shape, axes=()), last[-1])
        inner = inner.among(running)
        index = own[0] if most >= _MANY else ops.minimum(own[0], ops.full(value=max(0, most - 1), shape=(), dtype=I64))
        after = spread(inner, body, [index, *args])
        return list(map(rows.front, _kept(inner, body, 1, running, after, args)))

    graph = _body(batch, [_INDEX], body.in_avals[1:], state + captured, further, record)
    given = (*_values(batch, operands, state + captured), *further, *batch.counts)
    values = ops.loop(longest, *given, body=graph, carried=carried, **plan)
    return _results(values, state)


@vmap.rule(ops.while_)
def while_rows(batch: Batch, *operands: Operand, test: Graph, body: Graph, carried: int, **plan: bool) -> tuple[Operand, ...]:
    state, captured = _flags(operands[:carried]), _flags(operands[carried:])
    state = _settled(batch, body, 0, state, captured)
    _, (differs,) = batch_graph(batch, test, state + captured)
    if differs:
        return _each_while(batch, operands, captured, test, body, carried, plan)
    further = _masks(batch)

    def record(graph: Graph, flags: Flags) -> Graph:
        def program(rows: Batch, own: list[Value], args: list[Operand], last: list[Value]) -> Sequence[Value]:
            inner = replace(rows, active=last[0] if last else None)
            return _values(inner, spread(inner, graph, args), flags)

        return _body(batch, [], body.in_avals, state + captured, further, program)

    values = ops.while_(
        *_values(batch, operands, state + captured),
        *further,
        *batch.counts,
        test=record(test, (False,)),
        body=record(body, state),
        carried=carried,
        **plan,
    )
    return _results(values, state)


def _each_while(
    batch: Batch,
    operands: Sequence[Operand],
    captured: Flags,
    test: Graph,
    body: Graph,
    carried: int,
    plan: Mapping[str, bool],
) -> tuple[Operand, ...]:
    """Each row goes on as long as its own test says: which do is carried too."""
    state = (True,) * carried
    flags = state + captured
    going = _goes_on(batch, test, operands)

    def again(rows: Batch, own: list[Value], args: list[Operand], last: list[Value]) -> Sequence[Value]:
        return [ops.reduce_any(own[0], axes=(0,))]

    def record(rows: Batch, own: list[Value], args: list[Operand], last: list[Value]) -> Sequence[Value]:
        inner = replace(rows, active=own[0])
        after = spread(inner, body, args)
        kept = _kept(inner, body, 0, own[0], after, args)
        return [_goes_on(inner, test, [*kept, *args[carried:]]), *map(rows.front, kept)]

    graphs = [_body(batch, [going.aval], body.in_avals, flags, [], program) for program in (again, record)]
    given = (going, *_values(batch, operands, flags), *batch.counts)
    values = ops.while_(*given, test=graphs[0], body=graphs[1], carried=carried + 1, **plan)
    return _results(values[1:], state)


def _goes_on(batch: Batch, test: Graph, args: Sequence[Operand]) -> Value:
    """bool[size]: the rows that count and whose test holds."""
    (holds,) = spread(batch, test, args)
    found = batch.among(batch.front(holds)).active
    assert found is not None
    return found


@vmap.rule(ops.cond)
def cond_rows(batch: Batch, which: Operand, *captured: Operand, then: Graph, orelse: Graph) -> tuple[Operand, ...]:
    flags = _flags(captured)
    if isinstance(which, Batched):
        holds = which.value
        sides = [_side(batch.among(c), g, captured) for c, g in ((holds, then), (ops.bit_not(holds), orelse))]
        return tuple(batch.choose(holds, x, y) for x, y in zip(*sides, strict=True))
    differs = [batch_graph(batch, graph, flags)[1] for graph in (then, orelse)]
    results = tuple(a or b for a, b in zip(*differs, strict=True))
    further = _masks(batch)

    def branch(graph: Graph) -> Graph:
        def record(rows: Batch, own: list[Value], args: list[Operand], last: list[Value]) -> Sequence[Value]:
            inner = replace(rows, active=last[0] if last else None)
            return _values(inner, spread(inner, graph, args), results)

        return _body(batch, [], graph.in_avals, flags, further, record)

    given = (*_values(batch, captured, flags), *further, *batch.counts)
    values = ops.cond(which, *given, then=branch(then), orelse=branch(orelse))
    return _results(values, results)


def _side(rows: Batch, graph: Graph, captured: Sequence[Operand]) -> list[Operand]:
    """One side of a branch for the rows that take it: skipped if there are none, unless it can do no harm."""
    if all(node.op.family in _HARMLESS for node in graph.nodes):
        return spread(rows, graph, captured)
    flags = _flags(captured)
    assert rows.active is not None

    def record(inner: Batch, own: list[Value], args: list[Operand], last: list[Value]) -> Sequence[Value]:
        taking = replace(inner, active=last[0])
        return [inner.front(x) for x in spread(taking, graph, args)]

    def skip(inner: Batch, own: list[Value], args: list[Operand], last: list[Value]) -> Sequence[Value]:
        _bind_sizes(graph, args)
        return [ops.full(value=0, shape=inner.of(aval).shape, dtype=aval.dtype) for aval in graph.out_avals]

    then, orelse = (_body(rows, [], graph.in_avals, flags, [rows.active], program) for program in (record, skip))
    taken = ops.reduce_any(rows.active, axes=(0,))
    given = (*_values(rows, captured, flags), rows.active, *rows.counts)
    values = ops.cond(taken, *given, then=then, orelse=orelse)
    return [Batched(v, 0) for v in values]


def _bind_sizes(graph: Graph, args: Sequence[Operand]) -> None:
    """What a graph's inputs say about sizes."""
    b = active_recorder()
    assert isinstance(b, GraphBuilder)
    known = dict(zip(graph.inputs, args))
    for node in graph.nodes:
        count = known.get(node.inputs[0]) if node.op is ops.bind else None
        if isinstance(count, Value) and not is_bound(b, node.params["sym"]):
            ops.bind(count, sym=node.params["sym"])


@vmap.rule(ops.check)
def check_rows(batch: Batch, x: Operand, ok: Operand, *values: Operand, error: str, message: str) -> Operand:
    """All rows that count have to pass; the message is about the first that does not."""
    if error == WrongPath.__name__ and isinstance(ok, Batched):
        refuse("a size, or a branch whose sides do not fit together, differs from row to row", "Use np.where.", RowsDiffer)
    if error == OtherSizes.__name__ and isinstance(ok, Batched):
        error, message, values = RowsDiffer.__name__, "vmap: how the sizes of two arrays fit together differs from row to row", ()
    if error == UnsupportedError.__name__ and isinstance(ok, Batched):
        error = RowsDiffer.__name__
    if not isinstance(ok, Batched) and batch.active is not None:
        ok = Batched(batch.front(ok), 0)
    first: Value = ops.full(value=0, shape=(), dtype=I64)
    if isinstance(ok, Batched):
        passed = ok.value if batch.active is None else ops.bit_or(ok.value, ops.bit_not(batch.active))
        first = ops.argmin(batch.with_one_more(passed, False), axis=0)
        ok = ops.reduce_all(passed, axes=(0,))
    told = [ops.gather(batch.with_one_more(v.value, 0), first, axis=0) if isinstance(v, Batched) else v for v in values]
    value = x.value if isinstance(x, Batched) else x
    checked = ops.check(value, ok, *told, error=error, message=message)
    return Batched(checked, x.axis) if isinstance(x, Batched) else checked


@vmap.rule(ops.observe)
def observe_rows(batch: Batch, x: Batched) -> tuple[Operand, ...]:
    ops.observe(x.value)
    return ()
