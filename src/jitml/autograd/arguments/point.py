"""The point of differentiation: what graph is to be differentiated?

A user's function at some arguments, traced with respect to a few of them.

Arguments and results are flattened here, checked to have derivatives at all, and put together again; the transforms in
`api.py` see graphs on one side and containers of tracers on the other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any

import numpy as np
import optree

from jitml.autograd.arguments.aliasing import own_copies
from jitml.autograd.arguments.attributes import hand_on_attributes, is_inexact, never
from jitml.autograd.core.differentiation_orders import at_level, levels
from jitml.autograd.reverse.budget import shared_by_directions
from jitml.errors import DerivativeError
from jitml.ir.graph import Graph, Value
from jitml.records import dataclass, field
from jitml.trace.hooks.convert import convert
from jitml.trace.record.pytree import flatten, places_in, unflatten
from jitml.trace.record.recording import active_trace, home_of, user_source
from jitml.trace.result_trees import settled
from jitml.trace.storage.strides import kept_strides
from jitml.trace.subgraph import trace_subgraph
from jitml.trace.values.boxing import TracedArray, TracedNumber, fresh, fresh_like, is_traced, layout_of, read, scalar
from jitml.trace.values.kinds import rebuilt

Place = int | str  # of an argument: its position, or the name of a keyword argument


class Domain(Enum):
    """Which numbers a transform takes and gives: kinds of dtypes of the arguments, kinds of the result, one number or any."""

    ANY = ("fc", "fc", False)
    REAL_SCALAR = ("fc", "f", True)
    HOLOMORPHIC = ("c", "c", True)
    REAL_ARGUMENTS = ("f", "fc", False)
    REAL_RESULTS = ("fc", "f", False)
    HOLOMORPHIC_ARRAYS = ("c", "c", False)

    def __init__(self, arguments: str, results: str, is_scalar: bool) -> None:
        self.arguments, self.results, self.is_scalar = arguments, results, is_scalar

    @property
    def is_holomorphic(self) -> bool:
        return self.arguments == "c"


@dataclass(frozen=True)
class ResultForm:
    """How values are shown to the user: containers, and arrays or scalars in them.

    >>> form_of([np.zeros(3), (np.array(1.0), 2.0)]).arrays
    (True, True, False)
    """

    spec: optree.PyTreeSpec
    arrays: tuple[bool, ...]
    layouts: tuple[Any, ...] = field(compare=False)  # of the arrays, as they were seen; None of scalars

    def show(self, values: Sequence[Value]) -> Any:
        """Floats in the graph as the same structure of arrays and NumPy scalars."""
        return rebuilt(self.spec, [fresh(v) if array else scalar(v) for v, array in zip(values, self.arrays, strict=True)])

    def show_alike(self, values: Sequence[Value]) -> Any:
        """The same, laid out in memory as the arrays were that were seen."""
        shown = zip(values, self.layouts, strict=True)
        return rebuilt(self.spec, [scalar(v) if of is None else fresh(v, kept_strides([of], v.shape)) for v, of in shown])


def form_of(tree: Any) -> ResultForm:
    leaves, spec = flatten(tree)
    arrays = tuple(isinstance(leaf, np.ndarray) for leaf in leaves)
    return ResultForm(spec, arrays, tuple(layout_of(leaf) if array else None for leaf, array in zip(leaves, arrays)))


@dataclass(frozen=True)
class FunctionPoint:
    """A function at one point of its domain.

    Args:
        graph: inputs are the varying leaves, then `captured`; outputs the leaves of the result, then of aux.
        inputs: the varying leaves in the enclosing trace, parallel to the first inputs of `graph`.
        captured: what else the graph reads of the enclosing trace.
        arguments: form of the varying arguments, as one tuple.
        result: form of what the function returns.
        rebuild: values of all outputs -> (leaves of the result, aux).
    """

    graph: Graph
    inputs: tuple[Value, ...]
    captured: tuple[Value, ...]
    arguments: ResultForm
    result: ResultForm
    rebuild: Callable[[Sequence[Value]], tuple[list[Any], Any]]

    @property
    def wrt(self) -> range:
        return range(len(self.inputs))

    @property
    def results(self) -> tuple[Value, ...]:
        """The outputs that are differentiated: the result's leaves."""
        return self.graph.outputs[: len(self.result.arrays)]


def trace_point(
    what: str,
    function: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    places: Sequence[Place],
    *,
    has_aux: bool,
    domain: Domain = Domain.ANY,
    all_at_once: bool = False,
) -> FunctionPoint:
    """Trace `function(*args, **kwargs)` inside the current trace, its arguments at `places` varying.

    The function gets copies of its array arguments: what it writes into them does not reach the caller's.

    Args:
        what: the transform's name, for messages.
        all_at_once: as many tangents go through it side by side as the varying arguments have elements; what its loops save for
            derivatives inside is saved for each.

    Raises:
        DerivativeError: a varying leaf or a result is not of the domain.
    """
    given: dict[Place, Any] = dict(enumerate(args))
    given.update(kwargs.items())
    varied = tuple(given[place] for place in places)
    arguments = form_of(varied)
    leaves, spec = flatten(varied)
    paths = [f"argument {places[path[0]]}{rest}" for path, rest in zip(spec.paths(), places_in(spec, 1))]
    for leaf, path in zip(leaves, paths):
        _check_varying(what, leaf, path, domain)
    inputs = tuple(read(leaf) for leaf in leaves)
    forms: list[ResultForm] = []

    def program(*varying: Any) -> Any:
        passed = {place: copied(arg) for place, arg in {**given, **dict(zip(places, unflatten(spec, varying)))}.items()}
        for place, arg in given.items():
            hand_on_attributes(what, arg, passed[place], is_inexact if place in places else never)
        with at_level(levels() + 1), own_copies(what, [*given.values()], [*passed.values()]):
            result = convert(function)(*(passed[n] for n in range(len(args))), **{name: passed[name] for name in kwargs})
        aux = None
        if has_aux:
            result, aux = _parted(what, result)
        result = settled(active_trace(), result)
        out_leaves, _ = flatten(result)
        forms.append(form_of(result))
        for leaf in out_leaves:
            _check_result(what, leaf, domain)
        if domain.is_scalar:
            _check_scalar(what, out_leaves, result)
        return out_leaves, aux

    with shared_by_directions(sum(v.capacity for v in inputs) if all_at_once else 1):
        subgraph = trace_subgraph(program, leaves, writes=True)
    return FunctionPoint(subgraph.graph, inputs, subgraph.captured, arguments, forms[0], subgraph.rebuild)


def copied(arg: Any) -> Any:
    """The argument with a storage of its own for each array, laid out in memory as a copy is (`order="K"`)."""
    leaves, spec = flatten(arg)
    arrays = (TracedArray, np.ndarray)
    return rebuilt(spec, [fresh_like(read(leaf), leaf) if type(leaf) in arrays else leaf for leaf in leaves])


def _parted(what: str, result: Any) -> tuple[Any, Any]:
    if not (isinstance(result, tuple) and len(result) == 2):
        raise DerivativeError(
            f"{what} with has_aux=True: the function has to return a pair (result, aux), not {told(result)}",
            source=user_source(),
        )
    return result


def _check_varying(what: str, leaf: Any, path: str, domain: Domain) -> None:
    if not is_number(leaf):
        raise DerivativeError(
            f"{what}: {path} is {told(leaf)}, which has no derivative",
            source=user_source(),
            remedy=_leave_out(leaf),
        )
    kind = np.dtype(_dtype(leaf)).kind
    if domain.is_holomorphic and kind == "f":
        raise DerivativeError(
            f"{what}(holomorphic=True): {path} is {told(leaf)}; a holomorphic function is one of complex numbers",
            source=user_source(),
            remedy="Pass it as complex, with .astype(complex), or leave holomorphic out.",
        )
    if kind == "c" and kind not in domain.arguments:
        raise DerivativeError(
            f"{what}: {path} is {told(leaf)}; it takes real arguments",
            source=user_source(),
            remedy="With holomorphic=True it takes complex ones, of a holomorphic function; of real results, jitml.jacrev does.",
        )
    if kind not in domain.arguments:
        remedy = "Write it with a decimal point" if isinstance(leaf, int) else "Convert it, with .astype(np.float64)"
        raise DerivativeError(
            f"{what}: {path} is {told(leaf)}; derivatives are taken with respect to floats",
            source=user_source(),
            remedy=f"{remedy}, or name other arguments in argnums.",
        )


def _leave_out(leaf: Any) -> str:
    apart = "eave it out of argnums, or keep it apart from the arrays that are differentiated."
    if isinstance(leaf, type) or home_of(leaf.__class__).partition(".")[0] in ("builtins", "functools", "jitml", "numpy"):
        return "L" + apart
    if hasattr(leaf.__class__, "__array__"):
        return f"Pass an array of it, np.asarray(x). Or l{apart}"
    return f"Make its class a dataclass, or register it with jitml.register_pytree_node, to differentiate by it. Or l{apart}"


def _check_result(what: str, leaf: Any, domain: Domain) -> None:
    kind = np.dtype(_dtype(leaf)).kind if is_number(leaf) else ""
    if kind == "c" and kind not in domain.results:
        raise DerivativeError(
            f"{what}: the function returns {told(leaf)}; a gradient is that of a real number",
            source=user_source(),
            remedy="Return its .real, or abs() of it; with holomorphic=True it is the derivative of a holomorphic function.",
        )
    if kind == "f" and domain.is_holomorphic:
        raise DerivativeError(
            f"{what}(holomorphic=True): the function returns {told(leaf)}, which no holomorphic function does",
            source=user_source(),
            remedy="Leave holomorphic out: the derivative of a real number is then ∂f/∂x - i ∂f/∂y.",
        )
    if not kind or kind not in domain.results:
        raise DerivativeError(
            f"{what}: the function returns {told(leaf)}, which has no derivative",
            source=user_source(),
            remedy="Return a float; other results go into the second place of a pair, with has_aux=True.",
        )


def _check_scalar(what: str, leaves: list[Any], result: Any) -> None:
    if len(leaves) != 1 or leaves[0] is not result:
        raise DerivativeError(
            f"{what}: the function returns {told(result)}; a gradient is that of one number",
            source=user_source(),
            remedy="Return the number alone, or (number, rest) with has_aux=True; jitml.vjp takes any result.",
        )
    if type(result) is not TracedNumber and np.shape(result):
        raise DerivativeError(
            f"{what}: the function returns {told(result)}; a gradient is that of one number",
            source=user_source(),
            remedy="Reduce it, with .sum() or .mean(), or use jitml.vjp, which takes a cotangent of the result's shape.",
        )


def is_number(leaf: Any) -> bool:
    return is_traced(leaf) or isinstance(leaf, (np.ndarray, np.generic, bool, int, float, complex))


def _dtype(leaf: Any) -> Any:
    return type(leaf) if type(leaf) in (bool, int, float, complex) else leaf.dtype


def told(leaf: Any) -> str:
    """A value as messages name it: `f64[3]`, `the Python int 3`, `a tuple`."""
    if isinstance(leaf, (np.ndarray, np.generic)):
        return f"{leaf.dtype}{list(leaf.shape)}" if leaf.shape else f"{article(str(leaf.dtype))} scalar"
    if type(leaf) is TracedNumber or type(leaf) in (bool, int, float, complex):
        return f"a Python {leaf.__class__.__name__}"
    return "None" if leaf is None else article(leaf.__class__.__name__)  # of a stand-in, what it stands for


def article(noun: str) -> str:
    """`an int64`, `a uint8`."""
    return f"an {noun}" if noun[0] in "aeioAEIO" else f"a {noun}"
