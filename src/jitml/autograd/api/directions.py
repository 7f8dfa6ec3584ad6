"""`jvp`, `vjp`, `linearize`: the derivative at a point as a linear map, applied to tangents or, transposed, to cotangents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal, overload

from jitml.autograd.api.linear import LinearMap
from jitml.autograd.api.transform_driver import Function, forward, inline, leaves_like, require_sequence, run_or_tape
from jitml.autograd.arguments.point import FunctionPoint, trace_point
from jitml.autograd.core.jvp import jvp_graph
from jitml.autograd.core.transpose import zeros
from jitml.autograd.reverse.linearize import Linearized, LinearSplit, split
from jitml.autograd.rules.calls import expand_pulls
from jitml.autograd.tape.transforms import Recorded, recorded
from jitml.diagnostics.tracebacks import entry
from jitml.functions import require_function
from jitml.ir.graph import Graph, GraphBuilder, Value
from jitml.ir.op import recording
from jitml.records import dataclass, replace
from jitml.trace.environment.arguments import Unchanging
from jitml.trace.record.pytree import flatten, unflatten
from jitml.trace.values.boxing import wrap
from jitml.trace.values.kinds import rebuilt

if TYPE_CHECKING:
    from jitml.typing.functions import Aux, R, Ts


if TYPE_CHECKING:

    @overload
    def vjp(f: Callable[[*Ts], R], *primals: *Ts, has_aux: Literal[False] = False) -> tuple[R, Callable[[Any], tuple[*Ts]]]: ...
    @overload
    def vjp(
        f: Callable[[*Ts], tuple[R, Aux]], *primals: *Ts, has_aux: Literal[True]
    ) -> tuple[R, Callable[[Any], tuple[*Ts]], Aux]: ...


@entry  # type: ignore[misc]  # mypy takes `*primals: Any` for less than `*primals: *Ts`
def vjp(f: Function, *primals: Any, has_aux: bool = False) -> Any:
    """The value of a function, and a function that computes its derivative in reverse mode.

    That function is called `pull` here. Its argument is a cotangent: a weight for each element of the result. It gives the
    gradient of the weighted sum of the result. So `grad(f)(x)` is `pull(1.0)[0]`, for an `f` that returns one number.

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
    require_function("vjp", f)
    on_tape = partial(_on_tape, "vjp", f, primals, has_aux)
    (y, residuals, aux), program = run_or_tape(("vjp", has_aux), lambda: _Vjp(has_aux), f, primals, {}, on_tape)
    pull = Pullback(program.found, residuals)
    return (y, pull, aux) if has_aux else (y, pull)


@dataclass(frozen=True, eq=False)
class _OnTape:
    """The derivative of a function that has run on a tape, as a linear map."""

    what: str
    point: Recorded

    def __call__(self, residuals: Sequence[Any], x: Any) -> Any:
        point = self.point
        if self.what == "vjp":
            cotangents = point.fitting("vjp: the cotangent", x, of_arguments=False)
            return unflatten(point.spec, point.pull(cotangents))
        directions = point.fitting("linearize: the tangent", x, of_arguments=True)
        return unflatten(point.result_spec, point.push(directions))


def _on_tape(what: str, f: Function, primals: Sequence[Any], has_aux: bool) -> Any:
    places = range(len(primals))
    with recorded(what, f, primals, {}, places, has_aux=has_aux, keeps_all=what == "linearize") as point:
        linear = _OnTape(what, point)
        return (point.value, (), point.aux), SimpleNamespace(found=linear)


class Pullback(Unchanging):
    """A function's derivative at one point, transposed: cotangents of the result in, cotangents of the arguments out."""

    def __init__(self, linear: LinearMap | _OnTape, residuals: tuple[Any, ...]) -> None:
        self._linear, self._residuals = linear, residuals

    @entry
    def __call__(self, ct: Any) -> tuple[Any, ...]:
        pulled: tuple[Any, ...] = self._linear(self._residuals, ct)
        return pulled


class _Linearizing:
    """A program that gives a function's value and what its derivative needs, and finds the derivative as it is traced.

    residuals: which of the leaves of the result the derivative needs.
    """

    found: LinearMap
    residuals: range

    def __init__(self, has_aux: bool) -> None:
        self.has_aux = has_aux

    def shown(self, y: Any, needed: Sequence[Value], aux: Any) -> Any:
        before = len(flatten(y)[0])
        self.residuals = range(before, before + len(needed))
        return y, tuple(map(wrap, needed)), aux


class _Vjp(_Linearizing):
    def __call__(self, f: Function, *primals: Any) -> Any:
        point = trace_point("vjp", f, primals, {}, range(len(primals)), has_aux=self.has_aux)
        derivative, outputs = forward(point)
        avals = tuple(v.aval for v in point.results)
        self.found = LinearMap("vjp: the cotangent", _pull_of_all(derivative, point), point.result, avals, point.arguments)
        y, aux = point.rebuild(outputs[: derivative.outputs])
        return self.shown(rebuilt(point.result.spec, y), outputs[derivative.outputs :], aux)


def _pull_of_all(derivative: Linearized, point: FunctionPoint) -> Graph:
    """The pullback with an input for every result's cotangent, read or not."""
    inputs = derivative.pull.inputs
    cotangents = dict(zip(derivative.moving, inputs[derivative.residuals :]))
    every = (cotangents.get(n) or Value(v.aval) for n, v in enumerate(point.results))
    return replace(derivative.pull, inputs=(*inputs[: derivative.residuals], *every), names=())


if TYPE_CHECKING:

    @overload
    def jvp(
        f: Callable[[*Ts], R],
        primals: tuple[*Ts],
        tangents: tuple[*Ts],
        has_aux: Literal[False] = False,
    ) -> tuple[R, R]: ...
    @overload
    def jvp(
        f: Callable[[*Ts], tuple[R, Aux]],
        primals: tuple[*Ts],
        tangents: tuple[*Ts],
        has_aux: Literal[True],
    ) -> tuple[R, R, Aux]: ...
    @overload
    def jvp(f: Callable[..., Any], primals: list[Any], tangents: Sequence[Any], has_aux: bool = False) -> Any: ...


@entry
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
    require_function("jvp", f)
    return pushed("jvp", f, primals, tangents, has_aux)


def pushed(what: str, f: Function, primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False) -> Any:
    """`jvp`, under the name of what the user has called."""

    def program(f: Function, primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> Any:
        point = trace_point(what, f, primals, {}, range(len(primals)), has_aux=has_aux)
        directions = leaves_like(f"{what}: the tangent", tangents, point.arguments, [v.aval for v in point.inputs])
        results = inline(expand_pulls(jvp_graph(point.graph, point.wrt)), [*point.inputs, *point.captured, *directions])
        n = len(point.graph.outputs)
        y, aux = point.rebuild(results[:n])
        # aux may hold floats too: their tangents come after those of the result.
        dy = point.result.show(results[n : n + len(y)])
        pair = rebuilt(point.result.spec, y), dy
        return (*pair, aux) if has_aux else pair

    given = require_sequence(f"{what}: primals", primals), require_sequence(f"{what}: tangents", tangents)
    on_tape = partial(_pushed_on_tape, what, f, *given, has_aux)
    return run_or_tape((what, has_aux), lambda: program, f, given, {}, on_tape, given[0])[0]


def _pushed_on_tape(what: str, f: Function, primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool) -> Any:
    with recorded(what, f, primals, {}, range(len(primals)), has_aux=has_aux, keeps_all=True) as point:
        directions = point.fitting(f"{what}: the tangent", tangents, of_arguments=True)
        pair = point.value, unflatten(point.result_spec, point.push(directions))
        return ((*pair, point.aux) if has_aux else pair), None


if TYPE_CHECKING:

    @overload
    def linearize(f: Callable[[*Ts], R], *primals: *Ts, has_aux: Literal[False] = False) -> tuple[R, Callable[[*Ts], R]]: ...
    @overload
    def linearize(
        f: Callable[[*Ts], tuple[R, Aux]], *primals: *Ts, has_aux: Literal[True]
    ) -> tuple[R, Callable[[*Ts], R], Aux]: ...


@entry  # type: ignore[misc]  # mypy takes `*primals: Any` for less than `*primals: *Ts`
def linearize(f: Function, *primals: Any, has_aux: bool = False) -> Any:
    """The value of a function, and its derivative at that point as a function of a direction.

    It is for many directions at one point: `f` is computed once, and not again for each direction, as `jvp` does.

    Returns:
        `(y, push)`, or `(y, push, aux)`. `push(*tangents)`, one like each argument, gives a tangent like `y`.

    >>> import numpy as np
    >>> y, push = linearize(np.sin, 0.0)
    >>> push(2.0), push(3.0)
    (np.float64(2.0), np.float64(3.0))
    """
    require_function("linearize", f)
    on_tape = partial(_on_tape, "linearize", f, primals, has_aux)
    (y, residuals, aux), program = run_or_tape(("linearize", has_aux), lambda: _Linearize(has_aux), f, primals, {}, on_tape)
    push = Pushforward(program.found, residuals)
    return (y, push, aux) if has_aux else (y, push)


class Pushforward(Unchanging):
    """A function's derivative at one point: tangents of the arguments in, a tangent of the result out."""

    def __init__(self, linear: LinearMap | _OnTape, residuals: tuple[Any, ...]) -> None:
        self._linear, self._residuals = linear, residuals

    @entry
    def __call__(self, *tangents: Any) -> Any:
        return self._linear(self._residuals, tangents)


class _Linearize(_Linearizing):
    def __call__(self, f: Function, *primals: Any) -> Any:
        point = trace_point("linearize", f, primals, {}, range(len(primals)), has_aux=self.has_aux)
        parts = split(point.graph, point.wrt, len(point.results))
        outputs = inline(parts.forward, [*point.inputs, *point.captured])
        avals = tuple(v.aval for v in point.inputs)
        self.found = LinearMap("linearize: the tangent", _push_to_all(parts, point), point.arguments, avals, point.result)
        n = len(point.graph.outputs)
        y, aux = point.rebuild(outputs[:n])
        return self.shown(rebuilt(point.result.spec, y), outputs[n:], aux)


def _push_to_all(parts: LinearSplit, point: FunctionPoint) -> Graph:
    """The tangents of all results, zeros among them."""
    b, tangent = GraphBuilder(), expand_pulls(parts.tangent)
    moved = dict(zip(parts.moving, b.inline(tangent, [b.add_input(v.aval) for v in tangent.inputs])))
    with recording(b):
        return b.build([moved[n] if n in moved else zeros(v.aval) for n, v in enumerate(point.results)])
