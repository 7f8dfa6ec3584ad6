"""`jacfwd`, `jacrev`, `jacobian`, `hessian`, `hvp`: all partial derivatives, or a product with them.

A Jacobian is a derivative of a basis: one linear map, linearized once, applied to all unit tangents (forward) or unit
cotangents (reverse) together, by the batching of `vmap`. Each pair of an argument's and a result's leaf is a map of its own,
so a pair that does not depend on one another costs nothing but its zeros.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, overload

from jitml.autograd.api.directions import pushed
from jitml.autograd.api.gradients import derived, grad
from jitml.autograd.api.transform_driver import ArgumentChoice, Function, inline, require_sequence, rows_of, run_or_tape
from jitml.autograd.arguments.point import Domain, FunctionPoint, trace_point
from jitml.autograd.batching.vmap import spread
from jitml.autograd.core.batch import Batched
from jitml.autograd.core.jvp import push
from jitml.autograd.core.transpose import transpose_graph, zeros
from jitml.autograd.reverse.linearize import LinearSplit, split, trimmed
from jitml.autograd.rules.calls import expand_pulls
from jitml.autograd.tape.transforms import Recorded, Seen, recorded
from jitml.diagnostics.tracebacks import entry
from jitml.errors import DerivativeError
from jitml.functions import require_function
from jitml.ir import ops
from jitml.ir.graph import Graph, GraphBuilder, Value
from jitml.ir.passes.dce import eliminate_dead
from jitml.ir.types import I64, Aval
from jitml.trace.environment.transformed import Transformed
from jitml.trace.record.pytree import unflatten
from jitml.trace.record.recording import user_source
from jitml.trace.values.boxing import fresh, scalar
from jitml.trace.values.kinds import rebuilt

if TYPE_CHECKING:
    from jitml.typing.functions import JacobianTransform, OneNumber, T, Ts

    def _jacobian_entry(transform: Function) -> JacobianTransform: ...

else:
    _jacobian_entry = entry

# One block of a Jacobian: of which result's leaf, by which argument's leaf; None where there is none.
Block = Value | None
_Seen = FunctionPoint | Seen
Blocks = Callable[[LinearSplit, Sequence[Value], FunctionPoint], list[list[Block]]]


@_jacobian_entry
def jacfwd(
    f: Function,
    argnums: int | Sequence[int] | None = None,
    has_aux: bool = False,
    holomorphic: bool = False,
    *,
    argnames: str | Sequence[str] | None = None,
) -> Function:
    """The Jacobian of a function, column by column: best where there are fewer arguments than results.

    Returns:
        A function whose result has the structure of f's, with an array of shape `result.shape + argument.shape` (for each
        leaf of the argument) in place of each leaf. Arguments are `grad`'s.

    >>> import numpy as np
    >>> jacfwd(lambda x: x * x)(np.array([1.0, 2.0]))
    array([[2., 0.],
           [0., 4.]])
    """
    domain = Domain.HOLOMORPHIC_ARRAYS if holomorphic else Domain.REAL_ARGUMENTS
    again = functools.partial(jacfwd, f, argnums, has_aux, holomorphic, argnames=argnames)
    choice = ArgumentChoice.of("jacfwd", argnums, argnames)
    return _make_jacobian("jacfwd", f, choice, has_aux, domain, lambda point: _columns, again=again)


@_jacobian_entry
def jacrev(
    f: Function,
    argnums: int | Sequence[int] | None = None,
    has_aux: bool = False,
    holomorphic: bool = False,
    *,
    argnames: str | Sequence[str] | None = None,
) -> Function:
    """The Jacobian of a function, row by row: best where there are fewer results than arguments. Otherwise like `jacfwd`.

    >>> import numpy as np
    >>> jacrev(lambda x: (x * x).sum())(np.array([1.0, 2.0]))
    array([2., 4.])
    """
    domain = Domain.HOLOMORPHIC_ARRAYS if holomorphic else Domain.REAL_RESULTS
    again = functools.partial(jacrev, f, argnums, has_aux, holomorphic, argnames=argnames)
    choice = ArgumentChoice.of("jacrev", argnums, argnames)
    return _make_jacobian("jacrev", f, choice, has_aux, domain, lambda point: _rows, all_at_once=False, again=again)


@_jacobian_entry
def jacobian(
    f: Function,
    argnums: int | Sequence[int] | None = None,
    has_aux: bool = False,
    holomorphic: bool = False,
    *,
    argnames: str | Sequence[str] | None = None,
) -> Function:
    """The Jacobian of a function: `jacfwd` or `jacrev`, whichever has fewer directions to follow.

    >>> import numpy as np
    >>> jacobian(lambda x: x[:1] * x)(np.array([1.0, 2.0]))
    array([[2., 0.],
           [2., 1.]])
    """

    def cheaper(point: _Seen) -> Blocks:
        complex_arguments, complex_results = (any(v.dtype.kind == "c" for v in vs) for vs in (point.inputs, point.results))
        if complex_arguments and complex_results and not holomorphic:
            raise DerivativeError(
                "jacobian: arguments and results are complex",
                source=user_source(),
                remedy="Of a holomorphic function, pass holomorphic=True; else differentiate real and imaginary parts apart.",
            )
        if complex_arguments != complex_results:
            return _rows if complex_arguments else _columns
        columns, rows = (sum(v.capacity for v in values) for values in (point.inputs, point.results))
        return _columns if columns <= rows else _rows

    domain = Domain.HOLOMORPHIC_ARRAYS if holomorphic else Domain.ANY
    again = functools.partial(jacobian, f, argnums, has_aux, holomorphic, argnames=argnames)
    choice = ArgumentChoice.of("jacobian", argnums, argnames)
    return _make_jacobian("jacobian", f, choice, has_aux, domain, cheaper, again=again)


@_jacobian_entry
def hessian(
    f: Function,
    argnums: int | Sequence[int] | None = None,
    has_aux: bool = False,
    holomorphic: bool = False,
    *,
    argnames: str | Sequence[str] | None = None,
) -> Function:
    """The second derivatives of a function: forward mode over reverse mode. Structure and arguments are `jacfwd`'s, twice.

    >>> import numpy as np
    >>> hessian(lambda x: x[0] ** 2 * x[1])(np.array([1.0, 2.0]))
    array([[4., 2.],
           [2., 0.]])
    """
    require_function("hessian", f)
    choice = ArgumentChoice.of("hessian", argnums, argnames)
    inner, outer = (Domain.HOLOMORPHIC_ARRAYS,) * 2 if holomorphic else (Domain.REAL_RESULTS, Domain.REAL_ARGUMENTS)
    again = functools.partial(hessian, f, argnums, has_aux, holomorphic, argnames=argnames)
    first = _make_jacobian("hessian", f, choice, has_aux, inner, lambda point: _rows, all_at_once=False, again=again)
    return _make_jacobian("hessian", first, choice, has_aux, outer, lambda point: _columns, again=again)


if TYPE_CHECKING:

    @overload
    def hvp(f: Callable[[T], OneNumber], primals: tuple[T], tangents: tuple[T]) -> T: ...
    @overload
    def hvp(f: Callable[[*Ts], OneNumber], primals: tuple[*Ts], tangents: tuple[*Ts]) -> tuple[*Ts]: ...
    @overload
    def hvp(f: Callable[..., OneNumber], primals: list[Any], tangents: Sequence[Any]) -> Any: ...


@entry
def hvp(f: Function, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
    """The product of the Hessian with a direction, of a function that returns one float. The Hessian itself is never made.

    It costs as much as a few gradients.

    Args:
        primals: the arguments, a tuple or list; all of them vary.
        tangents: the direction, of the same structure and shapes.

    Returns:
        What `grad` gives, moved along the direction: for several arguments a tuple.

    >>> import numpy as np
    >>> hvp(lambda x: (x**3).sum(), (np.array([1.0, 2.0]),), (np.array([1.0, 10.0]),))
    array([  6., 120.])
    """
    require_function("hvp", f)
    primals = require_sequence("hvp: primals", primals)
    argnums = 0 if len(primals) == 1 else tuple(range(len(primals)))
    slope = derived("hvp", f, ArgumentChoice.of("hvp", argnums, None), again=functools.partial(grad, f, argnums))
    return pushed("hvp", slope, primals, tangents)[1]


def _make_jacobian(
    what: str,
    f: Function,
    choice: ArgumentChoice,
    has_aux: bool,
    domain: Domain,
    mode: Callable[[_Seen], Blocks],
    *,
    all_at_once: bool = True,
    again: functools.partial[Any],
) -> Function:
    require_function(what, f)

    def program(f: Function, *args: Any, **kwargs: Any) -> Any:
        places = choice.places(what, f, args, kwargs)
        point = trace_point(what, f, args, kwargs, places, has_aux=has_aux, domain=domain, all_at_once=all_at_once)
        parts = split(point.graph, point.wrt, len(point.results))
        outputs = inline(parts.forward, [*point.inputs, *point.captured])
        n = len(point.graph.outputs)
        _, aux = point.rebuild(outputs[:n])
        blocks = mode(point)(parts, outputs[n:], point)
        rows = (_row(point, result, found, choice) for result, found in enumerate(blocks))
        whole = rebuilt(point.result.spec, list(rows))
        return (whole, aux) if has_aux else whole

    def on_tape(*args: Any, **kwargs: Any) -> Any:
        places = choice.places(what, f, args, kwargs)
        with recorded(what, f, args, kwargs, places, has_aux=has_aux, domain=domain, keeps_all=True) as point:
            whole = _on_tape(point, mode(point.seen) is _columns, choice)
            return ((whole, point.aux) if has_aux else whole), None

    key = (what, choice.key, has_aux, domain, all_at_once)

    @functools.wraps(f)
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        return run_or_tape(key, lambda: program, f, args, kwargs, functools.partial(on_tape, *args, **kwargs))[0]

    return Transformed(key, differentiated, again)


def _on_tape(point: Recorded, by_columns: bool, choice: ArgumentChoice) -> Any:
    """All derivatives of a function that has run on a tape, one direction after the other."""
    return unflatten(point.result_spec, [_of_result(point, n, by_columns, choice) for n in range(len(point.results))])


def _of_result(point: Recorded, result: int, by_columns: bool, choice: ArgumentChoice) -> Any:
    found = point.columns(result) if by_columns else point.rows(result)
    blocks = unflatten(point.spec, found)
    return blocks[0] if choice.is_one else blocks


def _row(point: FunctionPoint, result: int, blocks: Sequence[Block], choice: ArgumentChoice) -> Any:
    """The derivatives of one leaf of the result, in the structure of the arguments."""
    y, of_array = point.results[result], point.result.arrays[result]
    leaves: list[Any] = []
    for x, by_array, block in zip(point.inputs, point.arguments.arrays, blocks, strict=True):
        aval = Aval((*y.shape, *x.shape), y.dtype)
        value = zeros(aval) if block is None else ops.reshape(block, shape=aval.shape)
        leaves.append(fresh(value) if aval.shape or of_array or by_array else scalar(value))
    found = rebuilt(point.arguments.spec, leaves)
    return found[0] if choice.is_one else found


def _columns(parts: LinearSplit, residuals: Sequence[Value], point: FunctionPoint) -> list[list[Block]]:
    """Unit tangents, pushed forward: one argument's leaf after the other."""
    count = len(parts.tangent.inputs) - len(point.inputs)
    blocks: list[list[Block]] = [[None] * len(point.inputs) for _ in point.results]
    for number, x in enumerate(point.inputs):
        graph, moving = _by_one(expand_pulls(parts.tangent), count + number)
        for place, block in zip(moving, _applied(graph, residuals[:count], x, last=True)):
            blocks[parts.moving[place]][number] = block
    return blocks


def _rows(parts: LinearSplit, residuals: Sequence[Value], point: FunctionPoint) -> list[list[Block]]:
    """Unit cotangents, pulled back: one result's leaf after the other."""
    count = len(parts.tangent.inputs) - len(point.inputs)
    blocks: list[list[Block]] = [[None] * len(point.inputs) for _ in point.results]
    for place, tangent in zip(parts.moving, parts.tangent.outputs):
        alone = eliminate_dead(replace(parts.tangent, outputs=(tangent,)))
        pull = eliminate_dead(transpose_graph(alone, count))
        blocks[place] = list(_applied(pull, residuals[:count], point.results[place], last=False))
    return blocks


def _by_one(tangent: Graph, position: int) -> tuple[Graph, list[int]]:
    """A linear graph with zeros for all tangents but that at `position`; and which outputs depend on it.

    A linear map is its own derivative: pushing that one tangent through leaves the others out, as zeros by structure. In
    regions, which carry values and tangents together, they are zeros that nothing depends on.
    """
    b = GraphBuilder()
    _, moved = push(b, tangent, [position])
    there = [n for n, t in enumerate(moved) if t is not None]
    return eliminate_dead(trimmed(b.build([t for t in moved if t is not None]))), there


def _applied(graph: Graph, residuals: Sequence[Value], like: Value, *, last: bool) -> list[Value]:
    """A linear graph of one variable, its last input, applied to all unit arrays of a kind.

    Args:
        last: whether the axis of the units comes last in the results, instead of first.
    """
    read = {v for node in graph.nodes for v in node.inputs}.union(graph.outputs)
    known, others = graph.inputs[: len(residuals)], [v for v in graph.inputs[len(residuals) : -1] if v in read]
    graph = replace(graph, inputs=(*known, *others, graph.inputs[-1]), names=())
    given = [*residuals, *(zeros(v.aval) for v in others)]
    if like.shape == ():
        return list(inline(graph, [*given, ops.full(value=1, shape=(), dtype=like.dtype)]))
    units = _units(like.aval)
    batch = rows_of(like.size, units if like.ndim == 1 else None)
    results = spread(batch, graph, [*given, Batched(units, 0)])
    return [batch.at(x, aval.ndim if last else 0) for x, aval in zip(results, graph.out_avals, strict=True)]


def _units(aval: Aval) -> Value:
    """Every array of a kind that is 1 at one place and 0 elsewhere, one after the other."""
    n = aval.size
    here, there = (ops.iota(shape=(n, n), axis=axis, dtype=I64) for axis in (0, 1))
    matrix = ops.convert(ops.eq(here, there), dtype=aval.dtype)
    units: Value = ops.reshape(matrix, shape=(n, *aval.shape))
    return units
