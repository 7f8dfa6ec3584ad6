"""The derivatives that users ask for: `grad`, `value_and_grad`, `vjp`, `jvp`, `stop_gradient`.

Each traces the function at the given arguments, transforms the graph and puts the outcome into the enclosing trace.
Outside any trace it runs itself in one that is interpreted by NumPy, so that eager and jitted results have one source:
`jit(grad(f))` compiles it, `grad(grad(f))` nests it. The signatures and conventions are JAX's.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from jitml.autograd.jvp import jvp_graph
from jitml.autograd.linearize import Linearized, linearize
from jitml.autograd.point import Form, Point, trace_point
from jitml.errors import DerivativeError
from jitml.ir import ops
from jitml.ir.graph import Graph, Value
from jitml.ir.types import Aval, is_float
from jitml.trace.context import active_trace, current_trace, user_source
from jitml.trace.entry import evaluate
from jitml.trace.tracers import TracedArray, TracedNumber, fresh, is_traced, read, scalar, wrap
from jitml.trace.tree import flatten, unflatten

Function = Callable[..., Any]


def grad(f: Function, argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Function:
    """The gradient of a function that returns one float.

    Args:
        f: called with copies of its array arguments, so what it writes into them stays its own.
        argnums: the position of the argument to differentiate by, counted from the end if negative; or several, for
            a tuple of gradients. Arguments may be nested containers of float arrays; the gradient has their structure.
        has_aux: `f` returns (float, aux), and the result is (gradient, aux).

    Raises:
        DerivativeError: an argument to differentiate by is not float, or the result not one float.

    >>> import numpy as np
    >>> grad(lambda x: (x * x).sum())(np.array([1.0, 2.0]))
    array([2., 4.])
    """
    both = value_and_grad(f, argnums, has_aux)

    @functools.wraps(f)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        value, slope = both(*args, **kwargs)
        return (slope, value[1]) if has_aux else slope

    return gradient


def value_and_grad(f: Function, argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Function:
    """Like `grad`, returning (value, gradient), or ((value, aux), gradient).

    >>> import numpy as np
    >>> value_and_grad(lambda x: (x * x).sum())(np.array([1.0, 2.0]))
    (np.float64(5.0), array([2., 4.]))
    """
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)

    def program(*args: Any, **kwargs: Any) -> Any:
        positions = _positions("grad", numbers, len(args))
        point = trace_point("grad", f, args, kwargs, positions, has_aux=has_aux, scalar_result=True)
        derivative, outputs = _forward(point)
        (y,), aux = point.rebuild(outputs[: derivative.outputs])
        one = ops.full(value=1.0, shape=(), dtype=point.results[0].dtype)
        slopes = _inline(derivative.pull, [*outputs[derivative.outputs :], *(one for _ in derivative.moving)])
        gradients = point.arguments.show(slopes)
        return ((y, aux) if has_aux else y), (gradients[0] if isinstance(argnums, int) else gradients)

    @functools.wraps(f)
    def derived(*args: Any, **kwargs: Any) -> Any:
        return _in_a_trace(program, *args, **kwargs)

    return derived


def vjp(f: Function, *primals: Any, has_aux: bool = False) -> Any:
    """The value of a function, and the function that pulls cotangents of the result back to the arguments.

    Returns:
        `(y, pull)`, or `(y, pull, aux)`. `pull(ct)`, with `ct` like `y`, gives a tuple of cotangents, one for each
        argument; it may be called any number of times.

    Raises:
        DerivativeError: an argument or a result is not made of floats.

    >>> import numpy as np
    >>> y, pull = vjp(np.sin, np.array([0.0, 1.0]))
    >>> pull(np.array([1.0, 0.0]))
    (array([1., 0.]),)
    """
    linear: list[tuple[Linearized, Point]] = []

    def program(*primals: Any) -> Any:
        point = trace_point("vjp", f, primals, {}, range(len(primals)), has_aux=has_aux)
        derivative, outputs = _forward(point)
        linear.append((derivative, point))
        y, aux = point.rebuild(outputs[: derivative.outputs])
        return unflatten(point.result.spec, y), tuple(map(wrap, outputs[derivative.outputs :])), aux

    y, residuals, aux = _in_a_trace(program, *primals)
    pull = Pullback(*linear[0], residuals)
    return (y, pull, aux) if has_aux else (y, pull)


class Pullback:
    """A function's derivative at one point, transposed: cotangents of the result in, cotangents of the arguments out."""

    def __init__(self, derivative: Linearized, point: Point, residuals: tuple[Any, ...]) -> None:
        self.graph, self.moving = derivative.pull, derivative.moving
        self.avals = tuple(v.aval for v in point.results)
        self.arguments, self.result = point.arguments, point.result
        self.residuals = residuals

    def __call__(self, ct: Any) -> tuple[Any, ...]:
        return _in_a_trace(self._pull, ct)

    def _pull(self, ct: Any) -> tuple[Any, ...]:
        cotangents = _like("vjp: the cotangent", ct, self.result, self.avals)
        found = _inline(self.graph, [*map(read, self.residuals), *(cotangents[i] for i in self.moving)])
        return self.arguments.show(found)


def jvp(f: Function, primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False) -> Any:
    """The value of a function and its derivative along one direction.

    Args:
        primals: the arguments, a tuple or list.
        tangents: the direction, of the same structure and shapes.

    Returns:
        `(y, dy)`, or `(y, dy, aux)`.

    >>> import numpy as np
    >>> jvp(np.square, (np.array([1.0, 2.0]),), (np.array([1.0, 10.0]),))
    (array([1., 4.]), array([ 2., 40.]))
    """

    def program(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> Any:
        point = trace_point("jvp", f, primals, {}, range(len(primals)), has_aux=has_aux)
        directions = _like("jvp: the tangents", tangents, point.arguments, [v.aval for v in point.inputs])
        results = _inline(jvp_graph(point.graph, point.wrt), [*point.inputs, *point.captured, *directions])
        n = len(point.graph.outputs)
        y, aux = point.rebuild(results[:n])
        # aux may hold floats too: their tangents come after those of the result.
        dy = point.result.show(results[n : n + len(y)])
        pair = unflatten(point.result.spec, y), dy
        return (*pair, aux) if has_aux else pair

    return _in_a_trace(program, tuple(primals), tuple(tangents))


def stop_gradient(x: Any) -> Any:
    """The same value, constant to every derivative; containers leaf by leaf.

    >>> import numpy as np
    >>> grad(lambda x: x * stop_gradient(x))(np.float64(3.0))
    np.float64(3.0)
    """
    leaves, spec = flatten(x)
    return unflatten(spec, [_stopped(leaf) for leaf in leaves])


def _stopped(leaf: Any) -> Any:
    if not is_traced(leaf) or not is_float(leaf.dtype):
        return leaf
    value = ops.stop_gradient(read(leaf))
    if type(leaf) is TracedNumber:
        return TracedNumber.of_value(active_trace(), value)
    return fresh(value) if type(leaf) is TracedArray else scalar(value)


def _in_a_trace(program: Function, *args: Any, **kwargs: Any) -> Any:
    """Run what needs a trace: in the current one, or in one of its own."""
    return evaluate(program, args, kwargs) if current_trace() is None else program(*args, **kwargs)


def _forward(point: Point) -> tuple[Linearized, Sequence[Value]]:
    """Linearize at a point and record the forward part into the current trace."""
    results = len(point.results)
    derivative = linearize(point.graph, point.wrt, results)
    return derivative, _inline(derivative.forward, [*point.inputs, *point.captured])


def _inline(graph: Graph, args: Sequence[Value]) -> Sequence[Value]:
    return active_trace().builder.inline(graph, args)


def _positions(what: str, argnums: Sequence[int], given: int) -> list[int]:
    for n in argnums:
        if not -given <= n < given:
            raise DerivativeError(
                f"{what}: argnums names argument {n}, but the function is called with {given} positional arguments",
                source=user_source(),
                remedy="Arguments to differentiate by are passed by position.",
            )
    return [n % given for n in argnums]


def _like(what: str, tree: Any, form: Form, avals: Sequence[Aval]) -> list[Value]:
    """The leaves of a tree that has to look like another: same structure and shapes, dtypes as if assigned."""
    leaves, found = flatten(tree)
    if found != form.spec:
        raise DerivativeError(f"{what} has the structure {found}, where {form.spec} is wanted", source=user_source())
    values = [read(leaf) for leaf in leaves]
    for value, aval in zip(values, avals):
        if value.shape != aval.shape:
            raise DerivativeError(f"{what} is {value.aval} where {aval} is wanted", source=user_source())
    return [v if v.dtype == aval.dtype else ops.convert(v, dtype=aval.dtype) for v, aval in zip(values, avals)]
