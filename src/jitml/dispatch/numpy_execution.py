"""Execution by NumPy: how does a graph run that is not compiled?

By NumPy: interpreted once, then as one Python function of NumPy calls.

What it does besides computing (draws, prints, calls of Python) is undone if it fails, for it is answered otherwise then.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextvars import copy_context
from functools import partial
from typing import Any, TypeVar

import numpy as np

from jitml.dispatch.entry import Execute
from jitml.errors import NoRoom
from jitml.interrupts import contained
from jitml.ir import ops
from jitml.ir.analysis.generators import generators_in
from jitml.ir.execute.debug_nans import is_debugging, watching
from jitml.ir.execute.in_place import in_place
from jitml.ir.execute.to_python import Run, straight
from jitml.ir.graph import Graph
from jitml.ir.interpret import interpret
from jitml.ir.passes import run_passes
from jitml.ir.passes.dce import eliminate_dead
from jitml.ir.passes.observe import observe_errors
from jitml.ir.run_state import generator_at, postpone, postponing
from jitml.trace.traced import FromGraph, Traced

Array = np.ndarray[Any, Any]
T = TypeVar("T")


def executed(traced: Traced) -> Execute:
    """Run a graph by NumPy, writing into the caller's arrays at the end: interpreted once, then as a function."""
    graph = eliminate_dead(observe_errors(traced.graph))  # indices are checked, also where nothing needs what lies there
    dtypes = [v.dtype for v in graph.inputs]
    run: Run | None = None
    owned = [False] * len(graph.outputs)  # which results are memory that nobody else sees
    # A loop is long enough to be worth it at once; and only there does it write in place.
    first = 1 if any(node.bodies for node in graph.nodes) else 2
    calls = 0
    generators, acts = generators_in(graph), _acts(graph)

    def execute(*inputs: Any) -> Sequence[Array]:
        if not acts:
            return copy_context().run(execute_once, *inputs)  # an exception from outside drops NumPy's error state with it
        return contained(partial(_undone_if_it_fails, [generator_at(int(inputs[n])) for n in generators], execute_once, *inputs))

    def execute_once(*inputs: Any) -> Sequence[Array]:
        nonlocal run, owned, calls
        calls += 1
        if run is None and calls >= first:
            ready = run_passes(graph)
            run, owned = straight(ready), in_place(ready).owned
        arrays = [np.asarray(x, dtype) for x, dtype in zip(inputs, dtypes)]
        try:
            with np.errstate(all="ignore"):
                results = run(*arrays) if run is not None else interpret(graph, arrays)
        except MemoryError as error:
            raise _no_room(graph, error) or error from None
        # NumPy may have answered with an argument, or a view of one: each output has memory of its own.
        outputs = [np.asarray(x, order="C") if mine else np.array(x, order="C") for x, mine in zip(results, owned)]
        for output, entry in traced.aliases.items():
            np.copyto(inputs[entry], outputs[output])
        return outputs

    return execute


def _acts(graph: Graph) -> bool:
    """Whether a graph does more than to compute: draw, print, call out."""
    return any(node.op.family in ("host", "random") or any(map(_acts, node.graphs.values())) for node in graph.nodes)


def _undone_if_it_fails(generators: Sequence[Any], run: Callable[..., T], *args: Any) -> T:
    """The result of a program that may fail, and be answered otherwise: nothing has been drawn or printed then."""
    restore = [
        partial(g.set_state, g.get_state(legacy=False))
        if isinstance(g, np.random.RandomState)
        else partial(setattr, g.bit_generator, "state", g.bit_generator.state)
        for g in generators
    ]
    try:
        result, effects = postponing(run, *args)
    except Exception:
        for function in restore:
            function()
        raise
    for effect in effects:
        postpone(effect)
    return result


def executed_once_watched(traced: Traced, residuals: Collection[int]) -> Execute:
    """`executed` for once, while somebody watches.

    Args:
        residuals: which of the results are none of the user's, and may be what they like.
    """
    graph = eliminate_dead(observe_errors(traced.graph))

    def execute(*inputs: Any) -> Sequence[Array]:
        arrays = [np.asarray(x, v.dtype) for x, v in zip(inputs, graph.inputs)]
        with watching() as watcher:
            results = interpret(graph, arrays)
        outputs = [np.array(x, order="C") for x in results]
        for x, copy in zip(results, outputs):
            watcher.hand_on(x, copy)
        hidden = {r.position for n, r in enumerate(traced.results) if n in residuals and isinstance(r, FromGraph)}
        shown = {r.position for n, r in enumerate(traced.results) if n not in residuals and isinstance(r, FromGraph)}
        watcher.judge([x for n, x in enumerate(outputs) if n not in hidden - shown])
        for output, entry in traced.aliases.items():
            np.copyto(inputs[entry], outputs[output])
        return outputs

    return execute


def _no_room(graph: Graph, error: MemoryError) -> Exception | None:
    """What to raise where NumPy has found no memory for what a loop may save, a place for each iteration."""
    for node in graph.walk():
        for v in node.inputs if node.op in (ops.loop, ops.while_) else ():
            if v.aval.is_static and f"shape {v.shape} " in str(error):
                return NoRoom(
                    f"no memory for {v.aval.nbytes} bytes that a loop may save for its derivative, {v.aval}",
                    source=node.source,
                    remedy='JITML_SAVED_BYTES is how much may be tried; jitml.checkpoint(f, policy="sqrt") saves less.',
                )
    return None


def by_numpy(graph: Graph, arrays: Sequence[Array]) -> Sequence[Array]:
    """The outputs of a graph that is run often, for arrays that fit it; they may be arguments, or views of them."""
    if is_debugging():
        with watching() as watcher:
            results = interpret(graph, arrays)
        watcher.judge(results)
        return results
    with np.errstate(all="ignore"):
        return straight(graph)(*arrays)
