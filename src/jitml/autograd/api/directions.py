"""`jvp`, `vjp`, `linearize`: the derivative at a point as a linear map, applied to tangents or, transposed, to cotangents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jitml.autograd.api.running import Function, forward, in_a_trace, inline, leaves_like
from jitml.autograd.jvp import jvp_graph
from jitml.autograd.linearize import Linearized, Split, split
from jitml.autograd.point import Point, trace_point
from jitml.autograd.transpose import zeros
from jitml.ir.graph import Value
from jitml.trace.tracers import read, wrap
from jitml.trace.tree import unflatten


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
        derivative, outputs = forward(point)
        linear.append((derivative, point))
        y, aux = point.rebuild(outputs[: derivative.outputs])
        return unflatten(point.result.spec, y), tuple(map(wrap, outputs[derivative.outputs :])), aux

    y, residuals, aux = in_a_trace(program, *primals)
    pull = Pullback(*linear[-1], residuals)
    return (y, pull, aux) if has_aux else (y, pull)


class Pullback:
    """A function's derivative at one point, transposed: cotangents of the result in, cotangents of the arguments out."""

    def __init__(self, derivative: Linearized, point: Point, residuals: tuple[Any, ...]) -> None:
        self.graph, self.moving = derivative.pull, derivative.moving
        self.avals = tuple(v.aval for v in point.results)
        self.arguments, self.result = point.arguments, point.result
        self.residuals = residuals

    def __call__(self, ct: Any) -> tuple[Any, ...]:
        return in_a_trace(self._pull, ct)

    def _pull(self, ct: Any) -> tuple[Any, ...]:
        cotangents = leaves_like("vjp: the cotangent", ct, self.result, self.avals)
        found = inline(self.graph, [*map(read, self.residuals), *(cotangents[i] for i in self.moving)])
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
        directions = leaves_like("jvp: the tangents", tangents, point.arguments, [v.aval for v in point.inputs])
        results = inline(jvp_graph(point.graph, point.wrt), [*point.inputs, *point.captured, *directions])
        n = len(point.graph.outputs)
        y, aux = point.rebuild(results[:n])
        # aux may hold floats too: their tangents come after those of the result.
        dy = point.result.show(results[n : n + len(y)])
        pair = unflatten(point.result.spec, y), dy
        return (*pair, aux) if has_aux else pair

    return in_a_trace(program, tuple(primals), tuple(tangents))


def linearize(f: Function, *primals: Any, has_aux: bool = False) -> Any:
    """The value of a function, and its derivative at that point as a function of a direction.

    `jvp` of many directions at one point: `f` itself is computed once.

    Returns:
        `(y, push)`, or `(y, push, aux)`. `push(*tangents)`, one like each argument, gives a tangent like `y`.

    >>> import numpy as np
    >>> y, push = linearize(np.sin, 0.0)
    >>> push(2.0), push(3.0)
    (np.float64(2.0), np.float64(3.0))
    """
    linear: list[tuple[Split, Point]] = []

    def program(*primals: Any) -> Any:
        point = trace_point("linearize", f, primals, {}, range(len(primals)), has_aux=has_aux)
        parts = split(point.graph, point.wrt, len(point.results))
        outputs = inline(parts.forward, [*point.inputs, *point.captured])
        linear.append((parts, point))
        n = len(point.graph.outputs)
        y, aux = point.rebuild(outputs[:n])
        return unflatten(point.result.spec, y), tuple(map(wrap, outputs[n:])), aux

    y, residuals, aux = in_a_trace(program, *primals)
    push = Pushforward(*linear[-1], residuals)
    return (y, push, aux) if has_aux else (y, push)


class Pushforward:
    """A function's derivative at one point: tangents of the arguments in, a tangent of the result out."""

    def __init__(self, parts: Split, point: Point, residuals: tuple[Any, ...]) -> None:
        self.graph, self.moving = parts.tangent, parts.moving
        self.inputs = tuple(v.aval for v in point.inputs)
        self.outputs = tuple(v.aval for v in point.results)
        self.arguments, self.result = point.arguments, point.result
        self.residuals = residuals

    def __call__(self, *tangents: Any) -> Any:
        return in_a_trace(self._push, *tangents)

    def _push(self, *tangents: Any) -> Any:
        directions = leaves_like("linearize: the tangents", tangents, self.arguments, self.inputs)
        moved = dict(zip(self.moving, inline(self.graph, [*map(read, self.residuals), *directions])))
        dense: list[Value] = [moved[n] if n in moved else zeros(aval) for n, aval in enumerate(self.outputs)]
        return self.result.show(dense)
