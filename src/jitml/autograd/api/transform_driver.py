"""Transforms, the driver: how does one run, inside a trace, outside of `jit`, or on the tape where it cannot be captured?

Recording graphs into the current trace, and finding the arguments to differentiate by.

Each transform is a program that works inside a trace; `dispatch/eager.py` runs it outside of any. Eager and jitted results have
one source so: `jit(grad(f))` compiles what `grad(f)` leaves to NumPy, and `grad(grad(f))` nests it.
"""

from __future__ import annotations

import inspect
import operator
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from jitml.autograd.arguments.point import FunctionPoint, Place, ResultForm, told
from jitml.autograd.core.batch import Batch
from jitml.autograd.reverse.linearize import Linearized, linearize
from jitml.autograd.tape.tape import current_tape
from jitml.config import CONFIG
from jitml.device.array import Array
from jitml.diagnostics import log
from jitml.dispatch.eager import TracedOtherwise, identity, name_of_transform, run
from jitml.errors import DerivativeError, FailedCheck, JitmlError, NonFiniteError
from jitml.functions import is_disabled
from jitml.ir import ops
from jitml.ir.dims import Size
from jitml.ir.execute.debug_nans import is_debugging
from jitml.ir.graph import Graph, Value
from jitml.ir.types import Aval, is_complex
from jitml.records import dataclass, replace
from jitml.trace.record.pytree import first_leaves, flatten, structure_of
from jitml.trace.record.recording import active_trace, current_trace, user_source
from jitml.trace.symbolic.broadcasting import require_sizes
from jitml.trace.values.boxing import read

Function = Callable[..., Any]
Program = TypeVar("Program", bound=Callable[..., Any])

_MOST_REFUSED = 1024
_MOST_TOLD = 10_000  # parts of arguments by which calls are told apart
_refused: OrderedDict[Hashable, Exception] = OrderedDict()  # by the transform, the function, and the kind of its arguments


def run_or_tape(
    key: Hashable,
    make: Callable[[], Program],
    f: Function,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    on_tape: Callable[[], Any],
    positional: Sequence[Any] | None = None,
) -> Any:
    """`run`, or what `on_tape` gives where the function cannot be captured as a whole, which is remembered.

    Inside of a function that runs on a tape, its derivatives do, too, and all do while jitml is disabled.
    """
    if current_trace() is not None:
        return run(key, make, f, args, kwargs, positional)
    if current_tape() is not None or runs_untraced(args, kwargs):
        return on_tape()
    if was_refused(key, f, args, kwargs):
        return on_tape()
    try:
        return run(key, make, f, args, kwargs, positional)
    except JitmlError as error:
        if not is_refusal(error):
            raise
        refusal = error
    if not isinstance(refusal, TracedOtherwise):
        remember(refusal, "on a tape", key, f, args, kwargs)
    return on_tape()


def was_refused(key: Hashable, f: Function, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    """Whether a function could not be captured for a transform, for arguments like these."""
    return bool(_refused) and not CONFIG.strict and _call_kind(key, f, args, kwargs) in _refused


def remember(refusal: Exception, how: str, key: Hashable, f: Function, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Tell that a transform of a function runs as Python, and how, and know it from now on."""
    what = name_of_transform(key)
    log.refused(f, f"its {what if what == 'vmap' else f'derivative ({what})'} runs as Python, {how}", refusal)
    _refused[_call_kind(key, f, args, kwargs)] = refusal.with_traceback(None)
    while len(_refused) > _MOST_REFUSED:
        _refused.popitem(last=False)


def runs_untraced(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    """Whether a transform's function is to run as Python on the values themselves. What is on a device only a graph takes."""
    return is_disabled() and not (is_debugging() or any(isinstance(x, Array) for x in flatten((args, dict(kwargs)))[0]))


def is_refusal(error: Exception) -> bool:
    """Whether a function cannot be captured, and may be transformed as it runs, unless JITML_STRICT forbids it."""
    kinds = (DerivativeError, FailedCheck, NonFiniteError, MemoryError)
    return isinstance(error, JitmlError) and not CONFIG.strict and not isinstance(error, kinds)


def _call_kind(key: Hashable, f: Function, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Hashable:
    """What calls have in common that are captured alike: what they begin with, where a list of all would take minutes."""
    return key, identity(f), *map(_kind, first_leaves((args, dict(kwargs)), _MOST_TOLD))


def _kind(leaf: Any) -> Hashable:
    return type(leaf), getattr(leaf, "dtype", None), getattr(leaf, "ndim", 0)


def inline(graph: Graph, args: Sequence[Value]) -> Sequence[Value]:
    """Record a graph's nodes into the current trace; returns its outputs there."""
    trace = active_trace()
    before = len(trace.builder.nodes)
    outputs = trace.builder.inline(graph, args)
    # Sizes that were bound in a trace which has ended have their values here from now on.
    sizes = trace.sizes.values
    for node in trace.builder.nodes[before:] if graph.binders() else ():
        if node.op is ops.bind and not ((known := sizes.get(node.params["sym"])) and trace.sees(known)):
            sizes[node.params["sym"]] = node.inputs[0]
    return outputs


def forward(point: FunctionPoint) -> tuple[Linearized, Sequence[Value]]:
    """Linearize at a point and record the forward part into the current trace."""
    derivative = linearize(point.graph, point.wrt, len(point.results))
    return derivative, inline(derivative.forward, [*point.inputs, *point.captured])


def rows_of(size: Size, units: Value | None = None) -> Batch:
    """So many rows, in the current trace."""
    sizes, batch = active_trace().sizes.values, Batch(size, units=units)
    return replace(batch, counts=tuple(sizes[sym] for sym in batch.syms))


_NOT_A_POSITION = "Names go into argnames. The function's arguments are given to what {0} returns: {0}(f)(x)."


@dataclass(frozen=True)
class ArgumentChoice:
    """The arguments to differentiate by: `argnums`, or `argnames` in its place."""

    argnums: int | tuple[int, ...]
    argnames: str | tuple[str, ...] | None

    @classmethod
    def of(cls, what: str, argnums: Any, argnames: Any) -> ArgumentChoice:
        """What a transform is given; the first argument if neither.

        Raises:
            DerivativeError: these are no positions and no names, or both are given.
        """
        if argnames is None:
            return cls(
                _given("argnums", what, 0 if argnums is None else argnums, _position, "positions", _NOT_A_POSITION.format(what)),
                None,
            )
        if argnums is not None:
            raise DerivativeError(f"{what}: arguments are named by argnums or by argnames, not both", source=user_source())
        return cls(0, _given("argnames", what, argnames, _name, "names", "Positions go into argnums."))

    @property
    def key(self) -> Hashable:
        """What tells choices apart."""
        return self.argnums, self.argnames

    @property
    def is_one(self) -> bool:
        """Whether one argument is named, and not a sequence of them."""
        return isinstance(self.argnums if self.argnames is None else self.argnames, (int, str))

    def places(self, what: str, f: Function, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Place]:
        """Where they have been passed.

        Raises:
            DerivativeError: one has not been passed, or is named twice.
        """
        if self.argnames is None:
            return _positions(what, (self.argnums,) if isinstance(self.argnums, int) else self.argnums, len(args))
        names = (self.argnames,) if isinstance(self.argnames, str) else self.argnames
        return [_place_of(what, name, f, args, kwargs) for name in names]


def _position(x: Any) -> int:
    if isinstance(x, (bool, np.bool_)):
        raise TypeError
    return operator.index(x)


def _given(parameter: str, what: str, given: Any, read: Callable[[Any], Any], are: str, remedy: str) -> Any:
    """One position or name, or a tuple of them."""
    try:
        is_many = isinstance(given, Iterable) and not isinstance(given, (str, np.ndarray))
        return tuple(map(read, given)) if is_many else read(given)
    except TypeError:
        raise DerivativeError(
            f"{what}: {parameter} is {given!r}, and holds {are} of arguments", source=user_source(), remedy=remedy
        ) from None


def _name(given: Any) -> str:
    if not isinstance(given, str):
        raise TypeError(given)
    return given


def require_sequence(what: str, given: Any) -> tuple[Any, ...]:
    """The arguments, or their tangents, in a tuple or list.

    Raises:
        DerivativeError: it is none; an array would be taken apart row by row.
    """
    if isinstance(given, (tuple, list)):
        return tuple(given)
    raise DerivativeError(
        f"{what} are {told(given)}, and not a tuple with one for each argument",
        source=user_source(),
        remedy="Of a function of one argument they have one item: (x,).",
    )


def _positions(what: str, numbers: Sequence[int], given: int) -> list[Place]:
    for n in numbers:
        if not -given <= n < given:
            raise DerivativeError(
                f"{what}: argnums names argument {n}, but the function is called with {given} positional arguments",
                source=user_source(),
                remedy="Arguments to differentiate by are passed by position, or named in argnames.",
            )
    found = [n % given for n in numbers]
    if len(set(found)) < len(found):
        raise DerivativeError(f"{what}: argnums {numbers} names an argument twice", source=user_source())
    return [*found]


def _place_of(what: str, name: str, f: Function, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Place:
    """The position of an argument, or its name where it is passed by keyword."""
    if name in kwargs:
        return name
    try:
        parameters = inspect.signature(f).parameters.values()
    except (TypeError, ValueError):  # a C function that does not say
        order: list[str] = []
    else:
        order = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if name in order[: len(args)]:
        return order.index(name)
    raise DerivativeError(
        f"{what}: argnames names {name!r}, but the function is called without it",
        source=user_source(),
        remedy="Arguments to differentiate by have to be passed: a default value is no variable.",
    )


def require_structure(what: str, flattened: tuple[list[Any], Any], form: ResultForm) -> list[Any]:
    """The leaves of a container, which has to be built like another."""
    leaves, found = flattened
    if found != form.spec:
        wanted, given = structure_of(form.spec), structure_of(found)
        raise DerivativeError(f"{what} has the structure {given}, where {wanted} is wanted", source=user_source())
    return leaves


def leaves_like(what: str, tree: Any, form: ResultForm, avals: Sequence[Aval]) -> list[Value]:
    """The leaves of a tree that has to look like another: same structure and shapes, dtypes as if assigned."""
    leaves = require_structure(what, flatten(tree), form)
    return [fitting(what, read(leaf), aval) for leaf, aval in zip(leaves, avals, strict=True)]


def loses_half(given: np.dtype[Any], wanted: np.dtype[Any]) -> bool:
    """Whether imaginary parts have no place: a direction among real numbers has none."""
    return is_complex(given) and not is_complex(wanted)


def fitting(what: str, value: Value, aval: Aval) -> Value:
    """A value that has to have this shape; sizes that only the running program knows are checked then."""
    if value.ndim == aval.ndim and not (value.aval.is_static and aval.is_static):
        value = require_sizes(value, aval.shape)
    if value.shape != aval.shape or loses_half(value.dtype, aval.dtype):
        raise DerivativeError(f"{what} is {value.aval} where {aval} is wanted", source=user_source())
    return value if value.dtype == aval.dtype else ops.convert(value, dtype=aval.dtype)
