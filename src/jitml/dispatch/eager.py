"""Transforms outside `jit`: how does a transform run that is called outside `jit`?

Traced once for the kind of its arguments, then run by NumPy.

No compiler is waited for: the graph runs by NumPy (`numpy_execution.py`), behind the same guards as compiled code has. What is
kept belongs to the user's function by its code, so that a lambda that is written in a loop, and made anew each time, is traced
once.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial, wraps
from time import perf_counter
from types import FunctionType, MethodType
from typing import Any, TypeVar

import numpy as np
import optree

from jitml.device.array import Array
from jitml.device.convert import ours
from jitml.diagnostics import log
from jitml.diagnostics.progress import in_sight
from jitml.dispatch.entry import MISS, bind
from jitml.dispatch.numpy_execution import executed, executed_once_watched
from jitml.dispatch.on_device import compiled_for_device
from jitml.dispatch.variants import Specialization, Tries, Variants
from jitml.dispatch.witness import current_witness
from jitml.errors import (
    FailedCheck,
    MoreIterations,
    RaisingBranch,
    UnsupportedError,
    is_programs_own,
)
from jitml.forks import lock
from jitml.interrupts import contained, pass_on
from jitml.ir import ops
from jitml.ir.capacity import learning
from jitml.ir.execute.debug_nans import is_debugging
from jitml.ir.graph import Graph
from jitml.records import dataclass, field
from jitml.trace.asynchronous import is_aside
from jitml.trace.environment.arguments import Callee, require_countable
from jitml.trace.environment.transformed import Transformed
from jitml.trace.record.libraries import is_library
from jitml.trace.record.pytree import flatten, is_nested, unflatten
from jitml.trace.record.recording import current_trace, outside_trace
from jitml.trace.speculation.dynamic_shapes import VariantKey
from jitml.trace.trace import trace
from jitml.trace.values.python_arithmetic import unheard

Program = TypeVar("Program", bound=Callable[..., Any])

_MOST_FUNCTIONS = 256


@dataclass(slots=True, eq=False)
class TransformVariant(Specialization):
    """One specialisation, run by NumPy; `program` is what was traced, with what it has learned on the way."""

    program: Any = field(repr=False)


TransformTries = Tries[TransformVariant]


_transforms: OrderedDict[Hashable, Variants[TransformVariant]] = OrderedDict()  # by the transform, and the function
_lock = lock()


def run(
    key: Hashable,
    make: Callable[[], Program],
    f: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    positional: Sequence[Any] | None = None,
) -> tuple[Any, Program]:
    """The result of `program(f, *args, **kwargs)`, and the program that gave it when it was traced.

    Inside a trace the program records; outside any, what it records is run. Where that raises, `f` itself is called on copies of
    its arguments, for an exception from its own line, with the text that it has there.

    Args:
        key: what the program is, but for f.
        make: makes a program, a function that works inside a trace.
        positional: how f is called by position; as the program is, if not given.
    """
    if current_trace() is not None and is_aside():
        with outside_trace():
            return run(key, make, f, args, kwargs, positional)
    if current_trace() is None:
        (args, kwargs), positional = ours(args, kwargs), None if positional is None else ours(positional, {})[0]
    witness = current_witness()
    if witness is not None and current_trace() is None:
        witness(key, f, args if positional is None else tuple(positional), kwargs)
    tries = TransformTries()
    try:
        return attempt(key, make, f, args, kwargs, tries)
    except Exception as error:
        pass_on(error)
        if current_trace() is not None or not is_programs_own(error):
            raise
        failure = error
    replay(f, args if positional is None else positional, kwargs)
    if isinstance(failure, RaisingBranch):
        raise TracedOtherwise(failure.message) from failure
    raise failure  # of the derivative alone


class TracedOtherwise(UnsupportedError):
    """The program of a call raises where the function does not: it is traced differently."""


def replay(f: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """What the plain function answers, for copies of its arrays: transforms do not write into the caller's, nor do they warn."""
    leaves, spec = flatten((tuple(args), dict(kwargs)))
    passed, named = unflatten(spec, [leaf.copy("K") if isinstance(leaf, (np.ndarray, Array)) else leaf for leaf in leaves])
    with np.errstate(all="ignore"):
        return f(*passed, **named)


def attempt(
    key: Hashable,
    make: Callable[[], Program],
    f: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    tries: TransformTries,
) -> tuple[Any, Program]:
    """`run`, with exceptions as they come out of a trace, or of a graph: without the user's lines, perhaps without a text."""
    if current_trace() is not None:
        program = make()
        return _unheard_of(program)(f, *args, **kwargs), program
    whose = key, identity(f)
    variants = _transforms.get(whose)
    if variants is None or is_debugging():
        variants = _new_variants(whose)
    leaves: Sequence[Any] = (Callee(f), *args, *kwargs.values())
    group: Hashable = (len(args), *kwargs) if kwargs else len(args)
    result = variants.call(group, leaves, tries)
    if result is MISS:
        if not variants:  # later calls do not pay for it
            require_countable(f, args, kwargs)
        given = (leaves[0], *args)
        leaves, spec = _taken_apart(given, kwargs)
        if is_nested(spec):
            group = spec
            result = variants.call(group, leaves, tries)
        if result is MISS:

            def made(others: tuple[TransformVariant, ...], _: Tries[TransformVariant]) -> TransformVariant:
                began = perf_counter()
                with in_sight(f):
                    variant = contained(partial(_traced_for, make, given, kwargs, tries))
                log.traced(name_of_transform(key), f, args, kwargs, perf_counter() - began, number=len(others) + 1)
                return variant

            result = variants.make(group, leaves, made, tries)
    assert tries.last is not None
    return result, tries.last.program


def name_of_transform(key: Hashable) -> str:
    return str(key[0] if isinstance(key, tuple) else key)


def _new_variants(identity: Hashable) -> Variants[TransformVariant]:
    """For a transform of a function; they are kept, unless somebody watches."""
    if is_debugging():
        return Variants()
    with _lock:
        found = _transforms.setdefault(identity, Variants())
        while len(_transforms) > _MOST_FUNCTIONS:
            _transforms.popitem(last=False)
    return found


def _taken_apart(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[list[Any], optree.PyTreeSpec]:
    """What is handed to a traced function: the leaves of the arguments and, where there are containers, these themselves."""
    given = args, dict(kwargs)
    leaves, spec = flatten(given)
    return [*leaves, given] if is_nested(spec) else leaves, spec


def _unheard_of(program: Callable[..., Any]) -> Callable[..., Any]:
    """A program whose records ignore floating-point errors, as `executed` does: compiled or not, a transform does not warn."""

    @wraps(program)
    def unheard_of(*args: Any, **kwargs: Any) -> Any:
        with unheard():
            return program(*args, **kwargs)

    return unheard_of


def identity(f: Any) -> Hashable:
    """Functions of the same code are told apart by what they load, which is guarded, and so are those that are made of them."""
    if type(f) is FunctionType:
        return id(f) if is_library(f) else f.__code__
    if isinstance(f, Transformed):
        return Transformed, f.key, identity(f.__wrapped__)
    if type(f) is MethodType:
        return MethodType, id(f.__self__), identity(f.__func__)
    if type(f) is partial:
        return partial, identity(f.func), len(f.args), *f.keywords
    return id(f)


def _traced_for(
    make: Callable[[], Any], args: tuple[Any, ...], kwargs: Mapping[str, Any], tries: TransformTries
) -> TransformVariant:
    """A new variant, of the path that this call takes."""
    program = make()
    try:
        variant_key = VariantKey(tries.path())
        with learning():
            traced = trace(_unheard_of(program), args, kwargs, variant_key, rooted=True)
        if _is_once_only(traced.graph):
            program = make()
            traced = trace(_unheard_of(program), args, kwargs, variant_key, rooted=True)
    except FailedCheck as failure:  # nothing but the program itself answers here: what it has raised
        raise failure.__cause__ or failure from None
    if traced.device is not None:
        return TransformVariant(bind(traced, compiled_for_device(traced)), traced, program)
    execute = executed_once_watched(traced, getattr(program, "residuals", range(0))) if is_debugging() else executed(traced)
    return TransformVariant(bind(traced, execute), traced, program)


def _is_once_only(graph: Graph) -> bool:
    """Whether a call that has run out of room cannot be made again: it has drawn random numbers, or called out."""
    nodes = list(graph.walk())
    learns = any(node.op is ops.check and node.params["error"] == MoreIterations.__name__ for node in nodes)
    return learns and any(node.op.has_effect and node.op not in (ops.check, ops.observe) for node in nodes)
